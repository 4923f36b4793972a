// The f32 pieces of attention.h: tiles of kQueryTile x kKeyTile scores, products by the register tiles of gemm-inl.h. Key tiles
// start at key 0 of the sequence, sums over keys run in lanes from there, and hidden keys have a weight of exactly 0, so a row
// has the same bits whichever queries share its tile. Tiles that a causal mask cuts are worked on in bands of kBand rows, each
// as far as its last row sees: what is skipped would have added zeros.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention_f32.cc"
#include "autograd/kernels/targets.h"
#include "hwy/foreach_target.h"
// Highway's order: the list of targets first.
#include <algorithm>

#include "autograd/kernels/attention-inl.h"
#include "autograd/kernels/attention_tiles.h"
#include "autograd/kernels/gemm-inl.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels {
namespace HWY_NAMESPACE {
namespace {

// Rows whose exponentials are taken at once.
constexpr int kPair = 2;

// The running softmax of the rows of a query tile: largest scaled score so far, the one that was subtracted (0 instead of
// -infinity), the sum of exponentials, and by what earlier ones shrink in this key tile.
struct SoftmaxState {
  HWY_ALIGN float maximum[kQueryTile];
  HWY_ALIGN float shift[kQueryTile];
  HWY_ALIGN float sum[kQueryTile];
  HWY_ALIGN float shrink[kQueryTile];

  HWY_INLINE explicit SoftmaxState(int64_t rows) {
    std::fill_n(maximum, rows, -kInfinity);
    std::fill_n(shift, rows, 0.0f);
    std::fill_n(sum, rows, 0.0f);
  }
};

// Turns the band's scores into unnormalised weights exp(scale s - shift), hidden ones 0, and updates the state of its rows.
template <bool kMasked>
HWY_INLINE void SoftmaxBand(float* tile, const Band& band, float scale, SoftmaxState& state) {
  const FloatTag d;
  const VF factor = hn::Set(d, scale), lowest = hn::Set(d, -kInfinity), zero = hn::Zero(d);
  HWY_ALIGN float found[kQueryTile];  // of each row: the largest, later the sum
  ForRowGroups(band.rows, [&](auto group, int64_t r) HWY_ATTR {
    constexpr int kR = decltype(group)::value;
    const float* from = tile + (band.row + r) * kKeyTile;
    VF top[kR];
    for (int x = 0; x < kR; ++x) top[x] = lowest;
    for (int64_t j = 0; j < band.columns; j += kLanes) {
      const VF place = hn::Iota(d, static_cast<float>(j));
      for (int x = 0; x < kR; ++x) {
        VF score = hn::Mul(hn::Load(d, from + x * kKeyTile + j), factor);
        if (kMasked) score = IfVisible(place, band.visible[r + x], score, lowest);
        top[x] = hn::Max(score, top[x]);
      }
    }
    for (int x = 0; x < kR; ++x) found[r + x] = hn::GetLane(hn::MaxOfLanes(d, top[x]));
  });
  float *maximum = state.maximum + band.row, *shift = state.shift + band.row, *shrink = state.shrink + band.row;
  ForEachVector(band.rows, [&](int64_t r, auto part) HWY_ATTR {
    const VF before = Load(maximum + r, part), now = MaxIgnoringNan(Load(found + r, part), before);
    const VF shifted = hn::IfThenElse(hn::Eq(now, lowest), zero, now);
    Store(now, maximum + r, part);
    Store(shifted, shift + r, part);
    const VF factors = ExpUpTo88(hn::Sub(before, shifted));
    Store(hn::IfThenElse(hn::Eq(now, before), hn::Set(d, 1.0f), factors), shrink + r, part);
  });
  ForRowGroups(band.rows, [&](auto group, int64_t r) HWY_ATTR {
    constexpr int kR = decltype(group)::value;
    float* row = tile + (band.row + r) * kKeyTile;
    VF shifts[kR], sums[kR];
    for (int x = 0; x < kR; ++x) {
      shifts[x] = hn::Set(d, shift[r + x]);
      sums[x] = zero;
    }
    for (int64_t j = 0; j < band.columns; j += kLanes) {
      const VF place = hn::Iota(d, static_cast<float>(j));
      constexpr int kN = std::min(kR, kPair);
      for (int x = 0; x < kR; x += kN) {
        VF weights[kN];
        for (int y = 0; y < kN; ++y) {
          weights[y] = hn::MulSub(hn::Load(d, row + (x + y) * kKeyTile + j), factor, shifts[x + y]);
        }
        ExpUpTo88(weights);
        for (int y = 0; y < kN; ++y) {
          if (kMasked) weights[y] = IfVisible(place, band.visible[r + x + y], weights[y], zero);
          hn::Store(weights[y], d, row + (x + y) * kKeyTile + j);
          sums[x + y] = hn::Add(sums[x + y], weights[y]);
        }
      }
    }
    for (int x = 0; x < kR; ++x) found[r + x] = hn::GetLane(hn::SumOfLanes(d, sums[x]));
  });
  float* sum = state.sum + band.row;
  ForEachVector(band.rows, [&](int64_t r, auto part) HWY_ATTR {
    Store(hn::MulAdd(Load(sum + r, part), Load(shrink + r, part), Load(found + r, part)), sum + r, part);
  });
}

// y += weights times values for the rows of a band; `y = ` in the first key tile.
HWY_INLINE void ValueBand(const float* tile, const Band& band, const Right& right, const float* values, int64_t ldv, int64_t d,
                          float* y, int64_t ldo, bool first) {
  const int64_t all_see = static_cast<int64_t>(band.visible[0]);
  const float* weights = tile + band.row * kKeyTile;
  y += band.row * ldo;
  if (!band.masked || AllFinite(values + all_see * ldv, ldv, band.columns - all_see, d)) {
    MultiplyPanels(band.rows, d, band.columns, {Layout::kRows, weights, kKeyTile}, right, {y, ldo, nullptr, !first});
    return;
  }
  // A weight of 0 does not hide a NaN or an infinity: row by row, visible keys only. The same chains of sums.
  for (int64_t r = 0; r < band.rows; ++r) {
    MultiplyPanels(1, d, static_cast<int64_t>(band.visible[r]), {Layout::kRows, weights + r * kKeyTile, kKeyTile}, right,
                   {y + r * ldo, ldo, nullptr, !first});
  }
}

void ForwardTask(const AttentionArgs<float>& args, int64_t sequence, int64_t head, float* out, int64_t ldo, float* log_sum_exp,
                 float* weights) {
  const HeadView x(args, sequence, head);
  const SequenceSpan& s = x.s;
  const int64_t d = x.d, key_count = s.key_length;
  const float scale = static_cast<float>(args.shape.scale);
  const DropoutRule dropout(args.dropout, DropoutKey(args.dropout, s.id, head).bits);
  out += s.query_start * ldo + head * d;
  log_sum_exp += s.query_start * args.shape.heads + head;

  const int64_t packed_keys = (PackedColumns(key_count) * d + 15) / 16 * 16;
  Scratch<float, 65536> scratch(kQueryTile * kKeyTile + packed_keys + RightTiles::Scratch(key_count, d));
  float* tile = scratch.data();
  float* keys = tile + kQueryTile * kKeyTile;
  float* value_panels = keys + packed_keys;
  PackColumns(x.k, args.ldk, key_count, d, keys);
  PrefetchRows(x.v, args.ldv, std::min(key_count, kKeyTile), d);
  const bool again = key_count > kKeyTile;  // whether tiles of values are read more than once or twice
  const RightTiles value_rows(x.v, args.ldv, key_count, d, again, value_panels);

  for (int64_t i0 = 0; i0 < s.query_length; i0 += kQueryTile) {
    const QueryTile queries(x, i0);
    const float* q = x.q + i0 * args.ldq;
    float* y = out + i0 * ldo;
    SoftmaxState state(queries.rows);
    for (int64_t r = 0; r < queries.rows && queries.visible[r] == 0; ++r) std::fill_n(y + r * ldo, d, 0.0f);
    for (int64_t j0 = 0; j0 < queries.last(); j0 += kKeyTile) {
      const int64_t columns = std::min(kKeyTile, queries.last() - j0);
      const float* values = x.v + j0 * args.ldv;
      const Right right = value_rows.At(j0);
      ForBands(queries, j0, columns, [&](const Band& band) HWY_ATTR {
        ScoreBand(q, args.ldq, band, d, keys, key_count, j0, tile);
        for (int64_t r = 0; weights != nullptr && r < band.rows; ++r) {
          float* w = weights + (i0 + band.row + r) * key_count + j0;  // scaled scores for now
          const float* row = tile + (band.row + r) * kKeyTile;
          for (int64_t j = 0; j < static_cast<int64_t>(band.visible[r]); ++j) w[j] = row[j] * scale;
        }
        if (band.masked || band.columns % kLanes != 0) {
          SoftmaxBand<true>(tile, band, scale, state);
        } else {
          SoftmaxBand<false>(tile, band, scale, state);
        }
        for (int64_t r = band.row; r < band.row + band.rows; ++r) {
          if (j0 > 0 && state.shrink[r] != 1.0f) ScaleRow(y + r * ldo, d, state.shrink[r]);
          if (!dropout.on) continue;
          HWY_ALIGN uint32_t words[kKeyTile];
          dropout.Words(i0 + r, j0, band.columns, words);
          DropRow(dropout, words, band.columns, tile + r * kKeyTile);
        }
        ValueBand(tile, band, right, values, args.ldv, d, y, ldo, j0 == 0);
      });
    }
    HWY_ALIGN float inverse[kQueryTile], logs[kQueryTile];
    ForEachVector(queries.rows, [&](int64_t r, auto part) HWY_ATTR {
      const VF sum = Load(state.sum + r, part);
      Store(hn::Div(hn::Set(FloatTag(), 1.0f), sum), inverse + r, part);
      Store(hn::Add(Load(state.maximum + r, part), Log(sum)), logs + r, part);
    });
    for (int64_t r = 0; r < queries.rows; ++r) {
      const int64_t visible = queries.visible[r];
      log_sum_exp[(i0 + r) * args.shape.heads] = visible == 0 ? -kInfinity : logs[r];
      if (visible > 0) ScaleRow(y + r * ldo, d, inverse[r]);
      if (weights == nullptr) continue;
      float* w = weights + (i0 + r) * key_count;
      const VF shift = hn::Set(FloatTag(), state.shift[r]), factor = hn::Set(FloatTag(), inverse[r]);
      ForEachVector(visible, [&](int64_t j, auto part) HWY_ATTR {
        Store(hn::Mul(ExpUpTo88(hn::Sub(Load(w + j, part), shift)), factor), w + j, part);
      });
      std::fill(w + visible, w + key_count, 0.0f);
    }
  }
}

// Scores and dout . v of the band become the two left sides of backward's products: dropped weights w m in `weights`, scaled
// gradients of the scores scale w (m dw - mean) in `gradients` (the formulas are at the f64 piece). Hidden keys get 0.
template <bool kMasked>
HWY_INLINE void BackwardBand(float* weights, float* gradients, const Band& band, float scale, const float* log_sums,
                             const float* means, const DropoutRule& dropout, int64_t i0, int64_t j0) {
  const FloatTag d;
  const VF factor = hn::Set(d, scale), zero = hn::Zero(d);
  ForRowGroups(band.rows, [&](auto group, int64_t r) HWY_ATTR {
    constexpr int kR = decltype(group)::value, kN = std::min(kR, kPair);
    float* w = weights + (band.row + r) * kKeyTile;
    float* g = gradients + (band.row + r) * kKeyTile;
    HWY_ALIGN uint32_t words[kR * kKeyTile];
    for (int x = 0; x < kR && dropout.on; ++x) {
      dropout.Words(i0 + band.row + r + x, j0, band.columns, words + x * kKeyTile);
      DropRow(dropout, words + x * kKeyTile, band.columns, g + x * kKeyTile);
    }
    VF log_sum[kR], mean[kR];
    for (int x = 0; x < kR; ++x) {
      log_sum[x] = hn::Set(d, log_sums[band.row + r + x]);
      mean[x] = hn::Set(d, means[band.row + r + x]);
    }
    for (int64_t j = 0; j < band.columns; j += kLanes) {
      const VF place = hn::Iota(d, static_cast<float>(j));
      for (int x = 0; x < kR; x += kN) {
        VF weight[kN];
        for (int y = 0; y < kN; ++y) weight[y] = hn::MulSub(hn::Load(d, w + (x + y) * kKeyTile + j), factor, log_sum[x + y]);
        ExpUpTo88(weight);
        for (int y = 0; y < kN; ++y) {
          const int64_t at = (x + y) * kKeyTile + j;
          VF gradient = hn::Mul(hn::Mul(weight[y], factor), hn::Sub(hn::Load(d, g + at), mean[x + y]));
          if (kMasked) {
            weight[y] = IfVisible(place, band.visible[r + x + y], weight[y], zero);
            gradient = IfVisible(place, band.visible[r + x + y], gradient, zero);
          }
          hn::Store(weight[y], d, w + at);
          hn::Store(gradient, d, g + at);
        }
      }
    }
    for (int x = 0; x < kR && dropout.on; ++x) DropRow(dropout, words + x * kKeyTile, band.columns, w + x * kKeyTile);
  });
}

// c[columns, d] += tile^T right for a tile of kQueryTile x kKeyTile, where `right` has a row for each query. Keys of a cut tile
// start at the first query that sees any of them.
HWY_INLINE void AddTransposed(const QueryTile& queries, int64_t j0, int64_t columns, int64_t d, const float* tile,
                              const Right& right, float* c, int64_t ldc) {
  // Where there are panels of both widths, rows cannot be skipped in both by one offset.
  const bool skip = queries.visible[0] - j0 < columns && (d % kPanel == 0 || right.wide_stride == right.narrow_stride);
  const int64_t step = skip ? kBand : columns;
  int64_t row = 0;
  for (int64_t j = 0; j < columns; j += step) {
    while (skip && row < queries.rows && queries.visible[row] - j0 <= j) ++row;
    Right rest = right;
    if (row > 0) rest.data += row * right.wide_stride;
    MultiplyPanels(std::min(step, columns - j), d, queries.rows - row, {Layout::kColumns, tile + row * kKeyTile + j, kKeyTile},
                   rest, {c + j * ldc, ldc, nullptr, true});
  }
}

void BackwardTask(const AttentionArgs<float>& args, int64_t sequence, int64_t kv_head, const AttentionGradients<float>& g) {
  const AttentionShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  const HeadView first(args, sequence, kv_head * group);
  const SequenceSpan& s = first.s;
  const int64_t d = first.d, key_count = s.key_length;
  const float scale = static_cast<float>(shape.scale);

  const int64_t packed_keys = (PackedColumns(key_count) * d + 15) / 16 * 16;
  Scratch<float, 65536> scratch(2 * (kQueryTile * kKeyTile + packed_keys + RightTiles::Scratch(kQueryTile, d)) +
                                RightTiles::Scratch(key_count, d));
  float* weights = scratch.data();
  float* gradients = weights + kQueryTile * kKeyTile;
  float* keys = gradients + kQueryTile * kKeyTile;
  float* values = keys + packed_keys;
  float* query_panels = values + packed_keys;
  float* dout_panels = query_panels + RightTiles::Scratch(kQueryTile, d);
  float* key_panels = dout_panels + RightTiles::Scratch(kQueryTile, d);
  PackColumns(first.k, args.ldk, key_count, d, keys);
  PackColumns(first.v, args.ldv, key_count, d, values);
  const bool again = key_count > kKeyTile;
  const RightTiles key_rows(first.k, args.ldk, key_count, d, again, key_panels);

  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const HeadView x(args, sequence, head);
    const DropoutRule dropout(args.dropout, DropoutKey(args.dropout, s.id, head).bits);
    for (int64_t i0 = 0; i0 < s.query_length; i0 += kQueryTile) {
      const QueryTile queries(x, i0);
      const int64_t rows = queries.rows, row0 = s.query_start + i0;
      const float* q = x.q + i0 * args.ldq;
      const float* out = g.out + row0 * g.ldo + head * d;
      const float* dout = g.dout + row0 * g.lddo + head * d;
      const RightTiles query_rows(q, args.ldq, rows, d, again, query_panels);
      const RightTiles dout_rows(dout, g.lddo, rows, d, again, dout_panels);
      float* dq = g.dq == nullptr ? nullptr : g.dq + row0 * g.lddq + head * d;
      PrefetchRows(dq, g.lddq, rows, d);
      float means[kQueryTile], log_sums[kQueryTile];
      for (int64_t r = 0; r < rows; ++r) {
        means[r] = DotOf(dout + r * g.lddo, out + r * g.ldo, d);
        log_sums[r] = g.log_sum_exp[(row0 + r) * shape.heads + head];
      }
      for (int64_t j0 = 0; j0 < queries.last(); j0 += kKeyTile) {
        const int64_t columns = std::min(kKeyTile, queries.last() - j0);
        float* dk = g.dk == nullptr ? nullptr : g.dk + (s.key_start + j0) * g.lddk + kv_head * d;
        float* dv = g.dv == nullptr ? nullptr : g.dv + (s.key_start + j0) * g.lddv + kv_head * d;
        PrefetchRows(dk, g.lddk, columns, d);
        PrefetchRows(dv, g.lddv, columns, d);
        if (queries.visible[0] - j0 < columns) {  // what bands leave out, AddTransposed may read
          std::fill_n(weights, rows * kKeyTile, 0.0f);
          std::fill_n(gradients, rows * kKeyTile, 0.0f);
        }
        ForBands(queries, j0, columns, [&](const Band& band) HWY_ATTR {
          ScoreBand(q, args.ldq, band, d, keys, key_count, j0, weights);
          ScoreBand(dout, g.lddo, band, d, values, key_count, j0, gradients);
          if (band.masked || band.columns % kLanes != 0) {
            BackwardBand<true>(weights, gradients, band, scale, log_sums, means, dropout, i0, j0);
          } else {
            BackwardBand<false>(weights, gradients, band, scale, log_sums, means, dropout, i0, j0);
          }
          // A softmax over one key is 1 whatever the score: its gradient is 0, and not the rounding of dw - mean, which Adam
          // would blow up to whole steps.
          for (int64_t r = band.row; r < band.row + band.rows; ++r) {
            if (queries.visible[r] == 1) std::fill_n(gradients + r * kKeyTile, WholeVectors(band.columns), 0.0f);
          }
          if (dq != nullptr) {
            MultiplyPanels(band.rows, d, band.columns, {Layout::kRows, gradients + band.row * kKeyTile, kKeyTile},
                           key_rows.At(j0), {dq + band.row * g.lddq, g.lddq, nullptr, true});
          }
        });
        if (dk != nullptr) AddTransposed(queries, j0, columns, d, gradients, query_rows.At(0), dk, g.lddk);
        if (dv != nullptr) AddTransposed(queries, j0, columns, d, weights, dout_rows.At(0), dv, g.lddv);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::kernels {
namespace {
HWY_EXPORT(ForwardTask);
HWY_EXPORT(BackwardTask);
}  // namespace

void AttentionForwardTask(const AttentionArgs<float>& args, int64_t sequence, int64_t head, float* out, int64_t ldo,
                          float* log_sum_exp, float* weights) {
  WEFT_DISPATCH(ForwardTask)(args, sequence, head, out, ldo, log_sum_exp, weights);
}

void AttentionBackwardTask(const AttentionArgs<float>& args, int64_t sequence, int64_t kv_head,
                           const AttentionGradients<float>& g) {
  WEFT_DISPATCH(BackwardTask)(args, sequence, kv_head, g);
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
