// Internal, compiled once for each instruction set: what both directions of attention_f32.cc do with rows, bands and tiles
// besides the softmax. All functions are pure; elements of a row are treated alike wherever its tile or band begins.
#if defined(WEFT_AUTOGRAD_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_AUTOGRAD_KERNELS_ATTENTION_INL_H_
#undef WEFT_AUTOGRAD_KERNELS_ATTENTION_INL_H_
#else
#define WEFT_AUTOGRAD_KERNELS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "autograd/kernels/attention_tiles.h"
#include "autograd/kernels/gemm-inl.h"
#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE int64_t WholeVectors(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Asks for rows that are needed soon: they lie too far apart for the processor to see a pattern.
HWY_INLINE void PrefetchRows(const float* x, int64_t ld, int64_t rows, int64_t d) {
  if (x == nullptr) return;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < d; j += 16) hwy::Prefetch(x + r * ld + j);
  }
}

// Packs rows [0, n) as columns, for scores.
HWY_INLINE void PackColumns(const float* x, int64_t ld, int64_t n, int64_t d, float* packed) {
  PrefetchRows(x, ld, std::min(n, kKeyTile), d);
  for (int64_t j = 0; j < n; j += kKeyTile) {
    if (j + kKeyTile < n) PrefetchRows(x + (j + kKeyTile) * ld, ld, std::min(n - j - kKeyTile, kKeyTile), d);
    PackTransposedB(std::min(n - j, kKeyTile), d, x + j * ld, ld, packed + j * d);
  }
}

// The rows of a matrix, by tiles of kKeyTile, as right sides of products. A single tile is used in place if its width allows.
// Others are packed: rows of whole projections lie so far apart that those of a tile compete for a few sets of the first-level
// cache. A product's bits are the same.
class RightTiles {
 public:
  static int64_t Scratch(int64_t rows, int64_t d) { return rows * PackedColumns(d); }

  HWY_INLINE RightTiles(const float* data, int64_t ld, int64_t rows, int64_t d, bool again, float* scratch)
      : data_(data), packed_(scratch), ld_(ld), rows_(rows), d_(d), in_place_(!again && d % kLanes == 0) {
    for (int64_t r = 0; r < rows && !in_place_; r += kKeyTile) {
      PackB(d, std::min(kKeyTile, rows - r), data + r * ld, ld, scratch + r * PackedColumns(d));
    }
  }
  // The tile from `row` on, a multiple of kKeyTile.
  HWY_INLINE Right At(int64_t row) const {
    if (in_place_) return DirectRight(data_ + row * ld_, ld_, 0);
    return PackedRight(packed_ + row * PackedColumns(d_), std::min(kKeyTile, rows_ - row));
  }

 private:
  const float *data_, *packed_;
  int64_t ld_, rows_, d_;
  bool in_place_;
};

// The band of tile[rows, kKeyTile] = a[rows, d] times columns from j on of a whole sequence's packed keys, in whole vectors.
HWY_INLINE void ScoreBand(const float* a, int64_t lda, const Band& band, int64_t d, const float* packed, int64_t keys,
                          int64_t j, float* tile) {
  const int64_t columns = WholeVectors(band.columns), last = (columns - 1) / kPanel * kPanel;
  Right right = PackedRight(packed + j * d, d);
  // Half of a panel is enough for the last columns; the sequence's last panel may be a narrow one anyway.
  if (PackedColumns(keys) - j - last > kLanes) right.narrow_stride = kPanel;
  MultiplyPanels(band.rows, columns, d, {Layout::kRows, a + band.row * lda, lda}, right,
                 {tile + band.row * kKeyTile, kKeyTile, nullptr, false});
}

HWY_INLINE bool AllFinite(const float* x, int64_t ld, int64_t rows, int64_t n) {
  const FloatTag d;
  // NaN after an infinity or a NaN. Two chains, since one would wait for itself.
  VF even = hn::Zero(d), odd = even;
  const auto add = [&](const float* row, VF& zeros) HWY_ATTR {
    ForEachVector(n, [&](int64_t j, auto part) HWY_ATTR { zeros = hn::MulAdd(Load(row + j, part), hn::Zero(d), zeros); });
  };
  int64_t i = 0;
  for (; i + 2 <= rows; i += 2, x += 2 * ld) add(x, even), add(x + ld, odd);
  if (i < rows) add(x, even);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))) == 0;
}

HWY_INLINE float DotOf(const float* a, const float* b, int64_t n) {
  VF sums = hn::Zero(FloatTag());
  ForEachVector(n, [&](int64_t j, auto part) HWY_ATTR { sums = hn::MulAdd(Load(a + j, part), Load(b + j, part), sums); });
  return hn::GetLane(hn::SumOfLanes(FloatTag(), sums));
}

HWY_INLINE void ScaleRow(float* row, int64_t n, float factor) {
  const VF f = hn::Set(FloatTag(), factor);
  ForEachVector(n, [&](int64_t j, auto part) HWY_ATTR { Store(hn::Mul(Load(row + j, part), f), row + j, part); });
}

// Zero for dropped elements of the first n, the others times the rule's factor; in whole vectors.
HWY_INLINE void DropRow(const DropoutRule& rule, const uint32_t* words, int64_t n, float* row) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto limit = hn::Set(du, rule.threshold);
  for (int64_t j = 0; j < n; j += kLanes) {
    const auto word = hn::Load(du, words + j);
    const auto kept = hn::MaskFromVec(hn::BitCast(d, hn::VecFromMask(du, hn::Eq(hn::Max(word, limit), word))));
    hn::Store(hn::IfThenElseZero(kept, hn::Mul(hn::Load(d, row + j), hn::Set(d, rule.factor))), d, row + j);
  }
}

// Calls f(kR, row) for groups of kR = 4 rows, then for single ones, so that the ends of rows overlap.
template <class F>
HWY_INLINE void ForRowGroups(int64_t rows, const F& f) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) f(std::integral_constant<int, 4>(), r);
  for (; r < rows; ++r) f(std::integral_constant<int, 1>(), r);
}

HWY_INLINE VF IfVisible(VF place, float visible, VF yes, VF no) {
  return hn::IfThenElse(hn::Lt(place, hn::Set(FloatTag(), visible)), yes, no);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft::kernels
HWY_AFTER_NAMESPACE();

#endif  // WEFT_AUTOGRAD_KERNELS_ATTENTION_INL_H_
