// The f32 pieces of attention.h: tiles of kQueryTile x kKeyTile scores, products by the register tiles of gemm-inl.h. Key tiles
// start at key 0 of the sequence, and hidden keys have a weight of exactly 0, so a row has the same bits whichever queries
// share its tile.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention_f32.cc"
#include "autograd/kernels/targets.h"
#include "hwy/foreach_target.h"
// Highway's order: the list of targets first.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/kernels/attention_tasks.h"
#include "autograd/kernels/dropout.h"
#include "autograd/kernels/gemm-inl.h"
#include "autograd/kernels/scratch.h"
#include "hwy/contrib/math/math-inl.h"

#ifndef WEFT_AUTOGRAD_KERNELS_ATTENTION_F32_ONCE_
#define WEFT_AUTOGRAD_KERNELS_ATTENTION_F32_ONCE_
namespace weft::kernels {
namespace {

constexpr int64_t kQueryTile = 48;  // whole register tiles of 6 and 12 rows
constexpr int64_t kKeyTile = 64;    // whole panels
constexpr float kInfinity = std::numeric_limits<float>::infinity();

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

// Multiplies the weights of query i, keys [j, j + n), by their dropout factors. j is a multiple of 4.
void ApplyDropout(const AttentionDropout& dropout, uint64_t key, int64_t i, int64_t j, int64_t n, float* weights) {
  if (dropout.p == 0) return;
  if (dropout.p >= 1) {
    std::fill_n(weights, n, 0.0f);
    return;
  }
  alignas(64) uint32_t words[kKeyTile];
  DropoutWords(key, (static_cast<uint64_t>(i) << 30) + static_cast<uint64_t>(j / 4), n, words);
  const uint32_t threshold = static_cast<uint32_t>(dropout.p * 0x1p32);
  const float factor = static_cast<float>(1 / (1 - dropout.p));
  for (int64_t x = 0; x < n; ++x) weights[x] = words[x] >= threshold ? weights[x] * factor : 0.0f;
}

}  // namespace
}  // namespace weft::kernels
#endif  // WEFT_AUTOGRAD_KERNELS_ATTENTION_F32_ONCE_

HWY_BEFORE_NAMESPACE();
namespace weft::kernels {
namespace HWY_NAMESPACE {
namespace {

using Vector = hn::Vec<FloatTag>;

HWY_INLINE int64_t WholeVectors(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// e^x, 0 for -infinity, NaN for NaN (Highway's own Exp turns NaN into 0).
HWY_INLINE Vector ExpOrNan(Vector x) {
  const FloatTag d;
  return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
}

// Rows [0, rows) of a matrix as the right side of a product, in place if its width allows, else packed into `scratch`.
HWY_INLINE Right RightRows(const float* data, int64_t ld, int64_t rows, int64_t d, float* scratch) {
  if (d % kLanes == 0) return DirectRight(data, ld);
  PackB(d, rows, data, ld, scratch);
  return PackedRight(scratch, rows);
}

// tile[rows, kKeyTile] = a[rows, d] times columns [j, j + n) of a whole sequence's packed keys.
HWY_INLINE void ScoreTile(const float* a, int64_t lda, int64_t rows, int64_t d, const float* packed, int64_t keys, int64_t j,
                          int64_t n, float* tile) {
  // Whole panels, except the sequence's last: that is how they were packed.
  const int64_t columns = std::min((n + kPanel - 1) / kPanel * kPanel, keys - j);
  MultiplyPanels(rows, columns, d, {Layout::kRows, a, lda}, PackedRight(packed + j * d, d), {tile, kKeyTile, nullptr, false});
}

HWY_INLINE bool AllFinite(const float* x, int64_t ld, int64_t rows, int64_t n) {
  const FloatTag d;
  Vector zeros = hn::Zero(d);  // NaN after an infinity or a NaN
  float zero = 0;
  for (int64_t i = 0; i < rows; ++i, x += ld) {
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) zeros = hn::MulAdd(hn::LoadU(d, x + j), hn::Zero(d), zeros);
    for (; j < n; ++j) zero += x[j] * 0.0f;
  }
  return zero + hn::GetLane(hn::SumOfLanes(d, zeros)) == 0;
}

HWY_INLINE float Dot(const float* a, const float* b, int64_t n) {
  const FloatTag d;
  Vector sums = hn::Zero(d);
  float rest = 0;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) sums = hn::MulAdd(hn::LoadU(d, a + j), hn::LoadU(d, b + j), sums);
  for (; j < n; ++j) rest += a[j] * b[j];
  return hn::GetLane(hn::SumOfLanes(d, sums)) + rest;
}

HWY_INLINE void ScaleRow(float* row, int64_t n, float factor) {
  const FloatTag d;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, row + j), hn::Set(d, factor)), d, row + j);
  for (; j < n; ++j) row[j] *= factor;
}

// The running softmax of one row.
struct RowState {
  float maximum;
  float sum;
};

// Turns the row's scores (visible ones first, then anything up to `columns`) into unnormalised weights exp(scale s - maximum),
// hidden ones 0, and updates the state. Returns the factor by which earlier sums must shrink. `log_weights`, unless null, gets
// scale s of the visible keys.
HWY_INLINE float SoftmaxRow(float* row, int64_t visible, int64_t columns, float scale, RowState& state, float* log_weights) {
  const FloatTag d;
  const int64_t end = WholeVectors(columns);
  std::fill(row + visible, row + end, -kInfinity);
  const Vector factor = hn::Set(d, scale);
  Vector top = hn::Set(d, -kInfinity);
  for (int64_t j = 0; j < visible; j += kLanes) {
    Vector score = hn::Mul(hn::Load(d, row + j), factor);
    // A negative scale would turn the hidden -infinity around.
    if (j + kLanes > visible)
      score = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(visible - j)), score, hn::Set(d, -kInfinity));
    hn::Store(score, d, row + j);
    top = hn::Max(top, score);
  }
  if (log_weights != nullptr) std::copy_n(row, visible, log_weights);
  const float maximum = std::max(state.maximum, hn::GetLane(hn::MaxOfLanes(d, top)));
  const Vector shift = hn::Set(d, maximum);
  Vector sum = hn::Zero(d);
  for (int64_t j = 0; j < visible; j += kLanes) {
    const Vector weight = ExpOrNan(hn::Sub(hn::Load(d, row + j), shift));
    hn::Store(weight, d, row + j);
    sum = hn::Add(sum, weight);
  }
  std::fill(row + std::min(end, WholeVectors(visible)), row + end, 0.0f);
  const float shrink = state.sum == 0 ? 1.0f : std::exp(state.maximum - maximum);
  state.sum = state.sum * shrink + hn::GetLane(hn::SumOfLanes(d, sum));
  state.maximum = maximum;
  return shrink;
}

void ForwardTask(const AttentionArgs<float>& args, int64_t sequence, int64_t head, float* out, int64_t ldo, float* log_sum_exp,
                 float* weights) {
  const HeadView x(args, sequence, head);
  const SequenceSpan& s = x.s;
  const int64_t d = x.d, key_count = s.key_length;
  const float scale = static_cast<float>(args.shape.scale);
  const uint64_t dropout_key = DropoutKey(args.dropout, s.id, head).bits;
  out += s.query_start * ldo + head * d;
  log_sum_exp += s.query_start * args.shape.heads + head;

  const int64_t packed_keys = (PackedColumns(key_count) * d + 15) / 16 * 16;
  Scratch<float, 65536> scratch(kQueryTile * kKeyTile + packed_keys + kKeyTile * PackedColumns(d));
  float* tile = scratch.data();
  float* keys = tile + kQueryTile * kKeyTile;
  float* value_panels = keys + packed_keys;
  PackTransposedB(key_count, d, x.k, args.ldk, keys);

  for (int64_t i0 = 0; i0 < s.query_length; i0 += kQueryTile) {
    const int64_t rows = std::min(kQueryTile, s.query_length - i0);
    const int64_t last = VisibleKeys(args.shape, s, i0 + rows - 1);
    float* y = out + i0 * ldo;
    RowState states[kQueryTile];
    for (int64_t r = 0; r < rows; ++r) {
      states[r] = {-kInfinity, 0};
      std::fill_n(y + r * ldo, d, 0.0f);
    }
    for (int64_t j0 = 0; j0 < last; j0 += kKeyTile) {
      const int64_t columns = std::min(kKeyTile, last - j0);
      ScoreTile(x.q + i0 * args.ldq, args.ldq, rows, d, keys, key_count, j0, columns, tile);
      for (int64_t r = 0; r < rows; ++r) {
        float* row = tile + r * kKeyTile;
        const int64_t visible = std::clamp<int64_t>(VisibleKeys(args.shape, s, i0 + r) - j0, 0, columns);
        if (visible == 0) {
          std::fill_n(row, WholeVectors(columns), 0.0f);
          continue;
        }
        const float shrink = SoftmaxRow(row, visible, columns, scale, states[r],
                                        weights == nullptr ? nullptr : weights + (i0 + r) * key_count + j0);
        if (shrink != 1.0f) ScaleRow(y + r * ldo, d, shrink);
        ApplyDropout(args.dropout, dropout_key, i0 + r, j0, visible, row);
      }
      const float* values = x.v + j0 * args.ldv;
      const Right right = RightRows(values, args.ldv, columns, d, value_panels);
      const bool hidden = VisibleKeys(args.shape, s, i0) < j0 + columns;
      if (!hidden || AllFinite(values, args.ldv, columns, d)) {
        MultiplyPanels(rows, d, columns, {Layout::kRows, tile, kKeyTile}, right, {y, ldo, nullptr, true});
        continue;
      }
      // A weight of 0 does not hide a NaN or an infinity: row by row, visible keys only. The same chains of sums.
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t visible = std::clamp<int64_t>(VisibleKeys(args.shape, s, i0 + r) - j0, 0, columns);
        MultiplyPanels(1, d, visible, {Layout::kRows, tile + r * kKeyTile, kKeyTile}, right, {y + r * ldo, ldo, nullptr, true});
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      const RowState& state = states[r];
      const int64_t visible = VisibleKeys(args.shape, s, i0 + r);
      log_sum_exp[(i0 + r) * args.shape.heads] = visible == 0 ? -kInfinity : state.maximum + std::log(state.sum);
      if (visible > 0) ScaleRow(y + r * ldo, d, 1 / state.sum);
      if (weights == nullptr) continue;
      float* w = weights + (i0 + r) * key_count;
      for (int64_t j = 0; j < visible; ++j) w[j] = std::exp(w[j] - state.maximum) / state.sum;
      std::fill(w + visible, w + key_count, 0.0f);
    }
  }
}

// Scores and dout . v of one row become the two left sides of backward's products: dropped weights w m in `weights`, scaled
// gradients of the scores scale w (m dw - mean) in `gradients` (the formulas are at the f64 piece). Hidden keys get 0.
HWY_INLINE void BackwardRow(float* weights, float* gradients, int64_t visible, int64_t columns, float scale, float log_sum,
                            float mean, const AttentionDropout& dropout, uint64_t dropout_key, int64_t i, int64_t j0) {
  const FloatTag d;
  const int64_t end = WholeVectors(columns);
  if (visible == 0) {
    std::fill_n(weights, end, 0.0f);
    std::fill_n(gradients, end, 0.0f);
    return;
  }
  for (int64_t j = 0; j < visible; j += kLanes) {
    hn::Store(ExpOrNan(hn::Sub(hn::Mul(hn::Load(d, weights + j), hn::Set(d, scale)), hn::Set(d, log_sum))), d, weights + j);
  }
  ApplyDropout(dropout, dropout_key, i, j0, visible, gradients);
  for (int64_t j = 0; j < visible; j += kLanes) {
    const Vector w = hn::Mul(hn::Load(d, weights + j), hn::Set(d, scale));
    hn::Store(hn::Mul(w, hn::Sub(hn::Load(d, gradients + j), hn::Set(d, mean))), d, gradients + j);
  }
  std::fill(weights + visible, weights + end, 0.0f);
  std::fill(gradients + visible, gradients + end, 0.0f);
  ApplyDropout(dropout, dropout_key, i, j0, visible, weights);
}

void BackwardTask(const AttentionArgs<float>& args, int64_t sequence, int64_t kv_head, const AttentionGradients<float>& g) {
  const AttentionShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  const HeadView first(args, sequence, kv_head * group);
  const SequenceSpan& s = first.s;
  const int64_t d = first.d, key_count = s.key_length;
  const float scale = static_cast<float>(shape.scale);

  const int64_t packed_keys = (PackedColumns(key_count) * d + 15) / 16 * 16, panels = kKeyTile * PackedColumns(d);
  Scratch<float, 65536> scratch(2 * (kQueryTile * kKeyTile + packed_keys) + 3 * panels);
  float* weights = scratch.data();
  float* gradients = weights + kQueryTile * kKeyTile;
  float* keys = gradients + kQueryTile * kKeyTile;
  float* values = keys + packed_keys;
  float* key_panels = values + packed_keys;
  float* query_panels = key_panels + panels;
  float* dout_panels = query_panels + panels;
  PackTransposedB(key_count, d, first.k, args.ldk, keys);
  PackTransposedB(key_count, d, first.v, args.ldv, values);

  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const HeadView x(args, sequence, head);
    const uint64_t dropout_key = DropoutKey(args.dropout, s.id, head).bits;
    for (int64_t i0 = 0; i0 < s.query_length; i0 += kQueryTile) {
      const int64_t rows = std::min(kQueryTile, s.query_length - i0), row0 = s.query_start + i0;
      const int64_t last = VisibleKeys(shape, s, i0 + rows - 1);
      const float* q = x.q + i0 * args.ldq;
      const float* out = g.out + row0 * g.ldo + head * d;
      const float* dout = g.dout + row0 * g.lddo + head * d;
      const Right query_rows = RightRows(q, args.ldq, rows, d, query_panels);
      const Right dout_rows = RightRows(dout, g.lddo, rows, d, dout_panels);
      float means[kQueryTile];
      for (int64_t r = 0; r < rows; ++r) means[r] = Dot(dout + r * g.lddo, out + r * g.ldo, d);
      for (int64_t j0 = 0; j0 < last; j0 += kKeyTile) {
        const int64_t columns = std::min(kKeyTile, last - j0);
        ScoreTile(q, args.ldq, rows, d, keys, key_count, j0, columns, weights);
        ScoreTile(dout, g.lddo, rows, d, values, key_count, j0, columns, gradients);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t visible = std::clamp<int64_t>(VisibleKeys(shape, s, i0 + r) - j0, 0, columns);
          BackwardRow(weights + r * kKeyTile, gradients + r * kKeyTile, visible, columns, scale,
                      g.log_sum_exp[(row0 + r) * shape.heads + head], means[r], args.dropout, dropout_key, i0 + r, j0);
          // A softmax over one key is 1 whatever the score: its gradient is 0, and not the rounding of dw - mean, which Adam
          // would blow up to whole steps.
          if (VisibleKeys(shape, s, i0 + r) == 1) std::fill_n(gradients + r * kKeyTile, WholeVectors(columns), 0.0f);
        }
        const int64_t key_row = s.key_start + j0;
        if (g.dq != nullptr) {
          const Right key_rows = RightRows(x.k + j0 * args.ldk, args.ldk, columns, d, key_panels);
          MultiplyPanels(rows, d, columns, {Layout::kRows, gradients, kKeyTile}, key_rows,
                         {g.dq + row0 * g.lddq + head * d, g.lddq, nullptr, true});
        }
        if (g.dk != nullptr) {
          MultiplyPanels(columns, d, rows, {Layout::kColumns, gradients, kKeyTile}, query_rows,
                         {g.dk + key_row * g.lddk + kv_head * d, g.lddk, nullptr, true});
        }
        if (g.dv != nullptr) {
          MultiplyPanels(columns, d, rows, {Layout::kColumns, weights, kKeyTile}, dout_rows,
                         {g.dv + key_row * g.lddv + kv_head * d, g.lddv, nullptr, true});
        }
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
