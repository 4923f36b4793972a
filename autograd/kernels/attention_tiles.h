// Internal to kernels/: how the f32 pieces of attention cut a head into tiles of scores, tiles that a causal mask cuts into
// bands, and which weights dropout drops. Plain code without vector instructions. Nothing is owned; no state.
#ifndef WEFT_AUTOGRAD_KERNELS_ATTENTION_TILES_H_
#define WEFT_AUTOGRAD_KERNELS_ATTENTION_TILES_H_

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/attention_tasks.h"
#include "autograd/kernels/dropout.h"

namespace weft::kernels {

inline constexpr int64_t kQueryTile = 48;
inline constexpr int64_t kKeyTile = 64;  // whole panels
inline constexpr int64_t kBand = 12;     // whole register tiles of 6 and 12 rows; divides kQueryTile

// Where one head of one sequence lies.
struct HeadView {
  const AttentionArgs<float>& args;
  const SequenceSpan& s;
  int64_t head, kv_head, d;
  const float *q, *k, *v;

  HeadView(const AttentionArgs<float>& args, int64_t sequence, int64_t head)
      : args(args),
        s(args.sequences[sequence]),
        head(head),
        kv_head(head / (args.shape.heads / args.shape.kv_heads)),
        d(args.shape.d_head),
        q(args.q + s.query_start * args.ldq + head * d),
        k(args.k + s.key_start * args.ldk + kv_head * d),
        v(args.v + s.key_start * args.ldv + kv_head * d) {}
};

// Up to kQueryTile queries from query i0 on, and how many keys each sees: not fewer than the one before.
struct QueryTile {
  int64_t i0, rows;
  int64_t visible[kQueryTile];

  QueryTile(const HeadView& x, int64_t i0) : i0(i0), rows(std::min(kQueryTile, x.s.query_length - i0)) {
    for (int64_t r = 0; r < rows; ++r) visible[r] = VisibleKeys(x.args.shape, x.s, i0 + r);
  }
  int64_t last() const { return visible[rows - 1]; }
};

// Rows [row, row + rows) of a tile of scores and its first `columns` columns: all that these rows see of it.
struct Band {
  int64_t row, rows, columns;
  bool masked;                // some row sees less
  float visible[kQueryTile];  // columns that each row sees

  Band(const QueryTile& q, int64_t row, int64_t rows, int64_t j0, int64_t tile_columns) : row(row), rows(rows) {
    columns = std::clamp<int64_t>(q.visible[row + rows - 1] - j0, 0, tile_columns);
    masked = q.visible[row] - j0 < columns;
    for (int64_t r = 0; r < rows; ++r)
      visible[r] = static_cast<float>(std::clamp<int64_t>(q.visible[row + r] - j0, 0, columns));
  }
};

// Calls f for the bands of the tile that begins at key j0: one when every row sees all of it. Bands that see nothing are left
// out.
template <class F>
void ForBands(const QueryTile& q, int64_t j0, int64_t columns, const F& f) {
  const int64_t step = q.visible[0] - j0 >= columns ? q.rows : kBand;
  for (int64_t row = 0; row < q.rows; row += step) {
    const Band band(q, row, std::min(step, q.rows - row), j0, columns);
    if (band.columns > 0) f(band);
  }
}

// Which weights of a head are dropped.
struct DropoutRule {
  bool on, all;
  uint64_t key;
  uint32_t threshold;
  float factor;

  DropoutRule(const AttentionDropout& dropout, uint64_t key)
      : on(dropout.p > 0),
        all(dropout.p >= 1),
        key(key),
        threshold(all ? 1 : static_cast<uint32_t>(dropout.p * 0x1p32)),
        factor(all ? 0.0f : static_cast<float>(1 / (1 - dropout.p))) {}

  // The words of query i and keys [j, j + n); kept are those of at least `threshold`. j is a multiple of 4.
  void Words(int64_t i, int64_t j, int64_t n, uint32_t* words) const {
    if (all) {
      std::fill_n(words, n, 0u);
    } else {
      DropoutWords(key, (static_cast<uint64_t>(i) << 30) + static_cast<uint64_t>(j / 4), n, words);
    }
  }
};

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_ATTENTION_TILES_H_
