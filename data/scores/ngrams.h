// N-grams as sorted multisets: what two lines share is the size of an intersection, the union of several references has each
// n-gram as often as the one that has it most. Pure functions, thread-safe.
#ifndef WEFT_DATA_SCORES_NGRAMS_H_
#define WEFT_DATA_SCORES_NGRAMS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// The n-grams of a line in some fixed order, each as often as it occurs: views of the bytes of its ids, which must outlive it.
using Ngrams = std::vector<absl::string_view>;

// The ids.size() - n + 1 n-grams of `ids`; none where it is shorter. REQUIRES: n >= 1.
Ngrams NgramsOf(absl::Span<const int32_t> ids, int64_t n);

// Sum over n-grams of the smaller of both counts ("clipped" counts; Papineni, Roukos, Ward, Zhu, "BLEU", ACL 2002,
// section 2.1).
int64_t SharedNgrams(const Ngrams& a, const Ngrams& b);

// Each n-gram as often as in the one of the two that has it more often.
Ngrams UnionOf(const Ngrams& a, const Ngrams& b);

}  // namespace weft

#endif  // WEFT_DATA_SCORES_NGRAMS_H_
