// Scores of generated answers against references, on token ids. Pure functions, thread-safe.
#ifndef WEFT_DATA_EDIT_DISTANCE_H_
#define WEFT_DATA_EDIT_DISTANCE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "data/examples.h"

namespace weft {

// Fewest insertions, deletions and substitutions that turn `a` into `b` (Levenshtein 1966; table of Wagner and Fischer 1974).
// O(|a| |b|) time, O(|b|) memory.
int64_t EditDistance(absl::Span<const int32_t> a, absl::Span<const int32_t> b);

// How one answer compares with the accepted ones.
struct PairScore {
  bool exact = false;    // equals one of them
  int64_t distance = 0;  // edit distance in tokens to the nearest (the first of equally near ones)
  int64_t length = 0;    // tokens of that nearest reference
};

// The score of `answer` (without <bos> and <eos>) for example i. REQUIRES: a validation set of pairs.
PairScore ScorePair(const ExampleSet& examples, int64_t i, absl::Span<const int32_t> answer);

// Sums over a set.
struct PairScores {
  int64_t count = 0;
  int64_t exact = 0;
  int64_t distance = 0;
  int64_t length = 0;

  void Add(const PairScore& score);
  // Part of the answers that are right, in [0, 1]; 0 without any.
  double exact_match() const { return count == 0 ? 0.0 : static_cast<double>(exact) / static_cast<double>(count); }
  // `per` (phoneme error rate where tokens are phonemes): summed distances over summed lengths of the nearest references.
  double per() const { return length == 0 ? 0.0 : static_cast<double>(distance) / static_cast<double>(length); }
};

}  // namespace weft

#endif  // WEFT_DATA_EDIT_DISTANCE_H_
