#include "data/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "autograd/base/check.h"

namespace weft {

int64_t EditDistance(absl::Span<const int32_t> a, absl::Span<const int32_t> b) {
  // row[j]: distance from the first i ids of a to the first j of b.
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t substitute = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

PairScore ScorePair(const ExampleSet& examples, int64_t i, absl::Span<const int32_t> answer) {
  WEFT_CHECK_GT(examples.reference_count(i), 0) << "references of example " << i;
  PairScore best;
  for (int64_t r = 0; r < examples.reference_count(i); ++r) {
    const absl::Span<const int32_t> reference = examples.Reference(i, r);
    const int64_t distance = EditDistance(answer, reference);
    if (r == 0 || distance < best.distance) {
      best = {.exact = distance == 0, .distance = distance, .length = static_cast<int64_t>(reference.size())};
    }
  }
  return best;
}

void PairScores::Add(const PairScore& score) {
  ++count;
  exact += score.exact ? 1 : 0;
  distance += score.distance;
  length += score.length;
}

}  // namespace weft
