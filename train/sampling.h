// Choosing the next token of an answer: greedy, or drawn with temperature, top-k, top-p and min-p, after a penalty on
// repetition. Pure functions of logits, options and one uniform number, thread-safe.
#ifndef WEFT_TRAIN_SAMPLING_H_
#define WEFT_TRAIN_SAMPLING_H_

#include <cstdint>

#include "absl/types/span.h"

namespace weft {

struct DecodeOptions {
  int64_t max_new_tokens = 0;     // at most this many, <eos> not counted; REQUIRES: > 0
  double temperature = 0;         // 0: greedy, the largest logit (the first of ties); else logits are divided by it
  int64_t top_k = 0;              // keep the k most probable tokens; 0: all
  double top_p = 1;               // keep the fewest tokens whose probability reaches p (Holtzman et al. 2020, section 3.1)
  double min_p = 0;               // keep tokens of at least min_p times the largest probability (Nguyen et al. 2024, section 3)
  double repetition_penalty = 1;  // see PenalizeRepetition; 1: none
  int64_t min_new_tokens = 0;     // <eos> is barred before so many
  uint64_t seed = 1;
};

// One token drawn from `logits` by the options, with `u` uniform in [0, 1). Temperature comes first, the filters see the
// probabilities that it left. Never a token of probability zero; equal logits keep the order of their ids. REQUIRES: not
// empty; at least one finite logit, no NaN.
int32_t SampleToken(absl::Span<const double> logits, const DecodeOptions& options, double u);

// Makes tokens that were there less likely: a positive logit is divided by `penalty`, another one multiplied (Keskar et al.
// 2019, section 4.1, with the sign looked at, so that a penalty above 1 never raises a logit). Once for each distinct id of
// `seen`, however often it is there. REQUIRES: penalty > 0; ids in range.
void PenalizeRepetition(absl::Span<const int32_t> seen, double penalty, absl::Span<double> logits);

}  // namespace weft

#endif  // WEFT_TRAIN_SAMPLING_H_
