// Plain text for language models: one stream of ids, cut into windows of T targets. Training takes each of the N - T start
// positions once an epoch; validation goes through end to end. Pure functions, thread-safe.
#ifndef WEFT_DATA_TEXT_DATA_H_
#define WEFT_DATA_TEXT_DATA_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/examples.h"
#include "data/token_stream.h"
#include "data/tokenizer.h"

namespace weft {

// Calls `take` with the ids of each piece of a text, in order. FailedPrecondition for an unknown symbol: "name:line: unknown
// ..", with its place in the line (of a line longer than a piece, in the piece). Errors of `text` and `take` as they are.
absl::Status EncodeText(const Tokenizer& tokenizer, TextPieces text, absl::string_view name,
                        absl::FunctionRef<absl::Status(absl::Span<const int32_t>)> take);

// Index of the first validation token of N: floor(N (1 - fraction)), N itself for fraction 0. `fraction` counts as the decimal
// number it is written as: 0.9 of 10 tokens leave 1, though the double next to 0.9 is above it. InvalidArgument for a fraction
// outside [0, 1), FailedPrecondition for one that gives validation fewer than 2 tokens.
absl::StatusOr<int64_t> ValidationStart(int64_t tokens, double fraction, absl::string_view name);

// Training windows. InvalidArgument for window < 1; FailedPrecondition, naming N and T, if N <= T.
absl::StatusOr<ExampleSet> TrainingWindows(TokenStream stream, int64_t window, absl::string_view name);

// Validation windows. InvalidArgument for window < 1; FailedPrecondition for fewer than 2 tokens.
absl::StatusOr<ExampleSet> ValidationWindows(TokenStream stream, int64_t window, absl::string_view name);

}  // namespace weft

#endif  // WEFT_DATA_TEXT_DATA_H_
