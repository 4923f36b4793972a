#include "tools/bleu_flags.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// The value of --FLAG into `option`, if it is given. `parse` begins what it says of a wrong one with FLAG.
template <typename T>
absl::Status Read(const std::optional<std::string>& flag, absl::StatusOr<T> (*parse)(absl::string_view), T* option) {
  if (!flag.has_value()) return absl::OkStatus();
  const absl::StatusOr<T> value = parse(*flag);
  if (!value.ok()) return absl::InvalidArgumentError(absl::StrCat("--", value.status().message()));
  *option = *value;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadBleuFlags(const std::optional<std::string>& tokenize, const std::optional<std::string>& smooth,
                           absl::Span<const std::string> metrics, absl::string_view metrics_flag, TextMetricOptions* options) {
  const bool bleu = std::find(metrics.begin(), metrics.end(), "bleu") != metrics.end();
  if ((tokenize.has_value() || smooth.has_value()) && !bleu) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tokenize and --smooth: they are BLEU's; give ", metrics_flag, " bleu as well"));
  }
  const absl::Status status = Read(tokenize, ParseScoreTokenizer, &options->tokenizer);
  return status.ok() ? Read(smooth, ParseBleuSmoothing, &options->smoothing) : status;
}

}  // namespace weft
