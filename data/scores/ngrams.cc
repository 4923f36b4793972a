#include "data/scores/ngrams.h"

#include <algorithm>
#include <iterator>

#include "autograd/base/check.h"

namespace weft {

Ngrams NgramsOf(absl::Span<const int32_t> ids, int64_t n) {
  WEFT_CHECK_GE(n, 1);
  Ngrams ngrams;
  const char* bytes = reinterpret_cast<const char*>(ids.data());
  for (int64_t i = 0; i + n <= static_cast<int64_t>(ids.size()); ++i) {
    ngrams.emplace_back(bytes + i * sizeof(int32_t), n * sizeof(int32_t));
  }
  std::sort(ngrams.begin(), ngrams.end());
  return ngrams;
}

int64_t SharedNgrams(const Ngrams& a, const Ngrams& b) {
  int64_t shared = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    const int order = i->compare(*j);
    shared += order == 0 ? 1 : 0;
    if (order <= 0) ++i;
    if (order >= 0) ++j;
  }
  return shared;
}

Ngrams UnionOf(const Ngrams& a, const Ngrams& b) {
  Ngrams both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace weft
