// The flags of `weft eval` and `weft score` that say how BLEU reads text.
#ifndef WEFT_TOOLS_BLEU_FLAGS_H_
#define WEFT_TOOLS_BLEU_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/scores/metric.h"

namespace weft {

// Changes `options` by --tokenize and --smooth, where given. InvalidArgument for a name that does not exist, and if bleu is not
// among `metrics`, those of the flag `metrics_flag`: the flags would do nothing.
absl::Status ReadBleuFlags(const std::optional<std::string>& tokenize, const std::optional<std::string>& smooth,
                           absl::Span<const std::string> metrics, absl::string_view metrics_flag, TextMetricOptions* options);

}  // namespace weft

#endif  // WEFT_TOOLS_BLEU_FLAGS_H_
