// Plain text for language models: one stream of ids, cut into windows of T targets. Training takes each of the N - T start
// positions once an epoch; validation goes through end to end. Pure functions, thread-safe.
#ifndef WEFT_DATA_TEXT_DATA_H_
#define WEFT_DATA_TEXT_DATA_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/examples.h"
#include "data/tokenizer.h"

namespace weft {

// The ids of a whole file. FailedPrecondition for an empty text or an unknown symbol: "name:line: unknown ...".
absl::StatusOr<std::vector<int32_t>> EncodeText(const Tokenizer& tokenizer, absl::string_view text, absl::string_view name);

// Index of the first validation token of N: floor(N (1 - fraction)), N itself for fraction 0. InvalidArgument for a fraction
// outside [0, 1), FailedPrecondition for one that gives validation fewer than 2 tokens.
absl::StatusOr<int64_t> ValidationStart(int64_t tokens, double fraction, absl::string_view name);

// Training windows. InvalidArgument for window < 1; FailedPrecondition, naming N and T, if N <= T.
absl::StatusOr<ExampleSet> TrainingWindows(std::vector<int32_t> stream, int64_t window, absl::string_view name);

// Validation windows. InvalidArgument for window < 1; FailedPrecondition for fewer than 2 tokens.
absl::StatusOr<ExampleSet> ValidationWindows(std::vector<int32_t> stream, int64_t window, absl::string_view name);

}  // namespace weft

#endif  // WEFT_DATA_TEXT_DATA_H_
