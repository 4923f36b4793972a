#include "train/resume.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/fields.h"
#include "autograd/base/status.h"
#include "train/toml.h"

namespace weft {
namespace {

// Every scalar and list under its dotted key, as TOML text.
void Flatten(const OptionValue::Table& table, const std::string& prefix, std::map<std::string, std::string>* flat) {
  for (const Option& entry : table) {
    const std::string key = prefix.empty() ? entry.key : absl::StrCat(prefix, ".", entry.key);
    if (const auto* inner = std::get_if<OptionValue::Table>(&entry.value.value)) {
      Flatten(*inner, key, flat);
    } else {
      (*flat)[key] = PrintTomlValue(entry.value);
    }
  }
}

bool MayChange(absl::string_view key) {
  if (absl::StartsWith(key, "model.")) return absl::EndsWith(key, "dropout");
  if (absl::StartsWith(key, "data.")) return false;
  constexpr absl::string_view kFixed[] = {"run.seed",      "train.batch_size", "train.batch_tokens", "train.accumulate",
                                          "train.shuffle", "train.sort_pool",  "train.shards",       "optimizer.kind"};
  return std::find(std::begin(kFixed), std::end(kFixed), key) == std::end(kFixed);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CompareForResume(absl::string_view saved, absl::string_view given) {
  WEFT_ASSIGN_OR_RETURN(const Options old_options, ParseToml(saved, "the checkpoint's config"));
  WEFT_ASSIGN_OR_RETURN(const Options new_options, ParseToml(given, "the given config"));
  std::map<std::string, std::string> before, after;
  Flatten(old_options.entries(), "", &before);
  Flatten(new_options.entries(), "", &after);
  for (const auto& [key, value] : before) after.try_emplace(key, "(not set)");
  std::vector<std::string> changes, errors;
  for (const auto& [key, value] : after) {
    const auto it = before.find(key);
    const std::string old_value = it == before.end() ? "(not set)" : it->second;
    if (old_value == value) continue;
    if (MayChange(key)) {
      changes.push_back(absl::StrCat(key, ": ", old_value, " -> ", value));
    } else {
      errors.push_back(absl::StrCat("--resume: ", key, ": found ", value, ", but the run was started with ", old_value,
                                    "; set it back, or train in another run.dir"));
    }
  }
  WEFT_RETURN_IF_ERROR(ErrorsToStatus(errors));
  return changes;
}

}  // namespace weft
