// How ops cut large loops: fixed tiles that depend on the size alone, so that results have the same bits for any number of
// threads. What fits in one tile runs on the calling thread without a fork. Internal to autograd/ops.
#ifndef WEFT_AUTOGRAD_OPS_TILES_H_
#define WEFT_AUTOGRAD_OPS_TILES_H_

#include <algorithm>
#include <cstdint>

#include "autograd/base/parallel.h"

namespace weft {

// Elements of one tile: long enough to pay for a fork (some 10 us of work), short enough for the second-level cache.
inline constexpr int64_t kTileElements = 32 << 10;

// Calls f(first, count) for consecutive ranges of at most `tile` out of 0..n-1, in parallel. REQUIRES: tile >= 1.
template <class F>
void ForTiles(int64_t n, int64_t tile, const F& f) {
  if (n <= tile) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  ParallelFor((n + tile - 1) / tile, [&](int64_t i) { f(i * tile, std::min(tile, n - i * tile)); });
}

// The same over `rows` rows of `width` elements each: whole rows, about kTileElements elements to a tile.
template <class F>
void ForRows(int64_t rows, int64_t width, const F& f) {
  ForTiles(rows, std::max<int64_t>(1, kTileElements / std::max<int64_t>(1, width)), f);
}

}  // namespace weft

#endif  // WEFT_AUTOGRAD_OPS_TILES_H_
