// Internal, compiled once for each instruction set: the register tile of f32 products and the packing of its operands. Shared
// by gemm_f32.cc and attention_f32.cc. Each element of a product is one chain of fused multiply-adds over the depth, starting
// at zero or at the old value, whatever the tile, the panel or the blocks of depth it falls into; that is what makes rows
// independent of each other, bit for bit.
#if defined(WEFT_AUTOGRAD_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_AUTOGRAD_KERNELS_GEMM_INL_H_
#undef WEFT_AUTOGRAD_KERNELS_GEMM_INL_H_
#else
#define WEFT_AUTOGRAD_KERNELS_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
constexpr int64_t kLanes = HWY_LANES(float);
// Columns of a panel of B: two vectors.
constexpr int64_t kPanel = 2 * kLanes;
// Rows of a full register tile: 2 * kTileRows accumulators, with room for two vectors of B and one element of A.
constexpr int64_t kTileRows = HWY_TARGET == HWY_AVX3 ? 12 : 6;

// Rows of the next tile when `left` rows remain: the sizes that MultiplyPanels has tiles for.
HWY_INLINE int64_t NextTileRows(int64_t left) {
  if (left >= kTileRows) return kTileRows;
  if (kTileRows > 8 && left >= 8) return 8;
  return std::min<int64_t>(left, 4);
}

// How the elements of A lie in memory, for a block of rows that starts at `data`.
enum class Layout {
  kRows,     // (r, p) at data[r * stride + p]
  kColumns,  // (r, p) at data[p * stride + r]
  kPacked    // tile after tile as PackA writes them; stride unused
};

struct Left {
  Layout layout;
  const float* data;
  int64_t stride;
};

// Panels of B: rows of kPanel columns, the last panel of kLanes if that is enough. A tile always loads whole vectors.
struct Right {
  const float* data;
  int64_t wide_stride;    // from one row to the next in a panel of kPanel columns
  int64_t narrow_stride;  // the same in a panel of kLanes columns
  int64_t column_step;    // panel j / kPanel starts at data + j * column_step
  int64_t ahead;          // rows by which a row is asked for ahead of its use; 0: all are near
};
// Long panels come from the second-level cache.
constexpr int64_t kAhead = 8;
// As PackB and PackTransposedB write them; `depth` is the one they were packed with.
HWY_INLINE Right PackedRight(const float* data, int64_t depth) { return {data, kPanel, kLanes, depth, kAhead}; }
// B stored [depth,n], read in place. REQUIRES: n is a multiple of kLanes. To ask for rows past the end of a short B costs more
// than it brings: they may lie on pages that do not exist, which the processor looks up each time.
HWY_INLINE Right DirectRight(const float* data, int64_t ldb, int64_t ahead) { return {data, ldb, ldb, 1, ahead}; }

// Where a product goes: c = a b (+ bias); with `add` the chains start at the old c.
struct Target {
  float* c;
  int64_t ldc;
  const float* bias;  // null: none
  bool add;
  const float* next = nullptr;  // the c that the tile after this one will write; null: unknown
};

// One register tile: kR rows, kV vectors of columns of which the first `cols` columns are stored; b + `ahead` is asked for
// before b is used.
template <int kR, int kV, bool kRowsLayout>
HWY_NOINLINE void Tile(int64_t depth, const float* HWY_RESTRICT a, int64_t a_stride, const float* HWY_RESTRICT b,
                       int64_t b_stride, int64_t ahead, int64_t cols, const Target& to) {
  const Target target = to;  // a copy, which stores to C cannot change
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  V acc[kR][kV];
  const bool whole = cols == kV * kLanes;
  if (target.next != nullptr) {  // brought near while this tile computes
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      hwy::Prefetch(target.next + r * target.ldc);
      if (kV * kLanes > 16) hwy::Prefetch(target.next + r * target.ldc + 16);
    }
  }
  HWY_ALIGN float buffer[kR * kV * kLanes];  // of the last columns, when they do not fill their vectors
  if (!target.add) {
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) acc[r][v] = hn::Zero(d);
    }
  } else {
    const float* from = target.c;
    int64_t stride = target.ldc;
    if (!whole) {
      for (int r = 0; r < kR; ++r) {
        for (int64_t j = 0; j < kV * kLanes; ++j) buffer[r * kV * kLanes + j] = j < cols ? from[r * stride + j] : 0.0f;
      }
      from = buffer;
      stride = kV * kLanes;
    }
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) acc[r][v] = hn::LoadU(d, from + r * stride + v * kLanes);
    }
  }
  // Three rows share a pointer: more than the general registers hold would be spilled inside the loop.
  const float* rows[(kR + 2) / 3];
#pragma GCC unroll 4
  for (int r = 0; r < kR; r += 3) rows[r / 3] = a + r * (kRowsLayout ? a_stride : 1);
  for (int64_t p = 0; p < depth; ++p) {
    V right[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) right[v] = hn::LoadU(d, b + v * kLanes);
    hwy::Prefetch(b + ahead);
    if (kV * kLanes > 16) hwy::Prefetch(b + ahead + 16);
    b += b_stride;
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const V left = hn::Set(d, rows[r / 3][kRowsLayout ? r % 3 * a_stride : r % 3]);
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) acc[r][v] = hn::MulAdd(left, right[v], acc[r][v]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kR; r += 3) rows[r / 3] += kRowsLayout ? 1 : a_stride;
  }
  const float* bias = target.bias;
  if (HWY_LIKELY(whole)) {
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) {
        if (bias != nullptr) acc[r][v] = hn::Add(acc[r][v], hn::LoadU(d, bias + v * kLanes));
        hn::StoreU(acc[r][v], d, target.c + r * target.ldc + v * kLanes);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) hn::Store(acc[r][v], d, buffer + (r * kV + v) * kLanes);
  }
  for (int r = 0; r < kR; ++r) {
    for (int64_t j = 0; j < cols; ++j) {
      const float value = buffer[r * kV * kLanes + j];
      target.c[r * target.ldc + j] = bias == nullptr ? value : value + bias[j];
    }
  }
}

template <int kV, bool kRowsLayout>
HWY_INLINE void TileOfRows(int64_t rows, int64_t depth, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                           int64_t ahead, int64_t cols, const Target& target) {
  switch (rows) {
    case 1:
      return Tile<1, kV, kRowsLayout>(depth, a, a_stride, b, b_stride, ahead, cols, target);
    case 2:
      return Tile<2, kV, kRowsLayout>(depth, a, a_stride, b, b_stride, ahead, cols, target);
    case 3:
      return Tile<3, kV, kRowsLayout>(depth, a, a_stride, b, b_stride, ahead, cols, target);
    case 4:
      return Tile<4, kV, kRowsLayout>(depth, a, a_stride, b, b_stride, ahead, cols, target);
#if HWY_TARGET == HWY_AVX3
    case 8:
      return Tile<8, kV, kRowsLayout>(depth, a, a_stride, b, b_stride, ahead, cols, target);
#endif
    default:
      return Tile<kTileRows, kV, kRowsLayout>(depth, a, a_stride, b, b_stride, ahead, cols, target);
  }
}

// target[m,n] = A[m,depth] B[depth,n] on the calling thread; panels of B outside, tiles of rows inside.
HWY_INLINE void MultiplyPanels(int64_t m, int64_t n, int64_t depth, const Left& left, const Right& right,
                               const Target& target) {
  for (int64_t j = 0; j < n; j += kPanel) {
    const int64_t cols = std::min(kPanel, n - j);
    const bool wide = cols > kLanes;
    const float* b = right.data + j * right.column_step;
    const int64_t b_stride = wide ? right.wide_stride : right.narrow_stride, ahead = right.ahead * b_stride;
    for (int64_t i = 0; i < m;) {
      const int64_t rows = NextTileRows(m - i);
      const float* next = i + rows < m     ? target.c + (i + rows) * target.ldc + j
                          : j + kPanel < n ? target.c + j + kPanel
                                           : nullptr;
      const Target part = {target.c + i * target.ldc + j, target.ldc, target.bias == nullptr ? nullptr : target.bias + j,
                           target.add, next};
      if (left.layout == Layout::kRows) {
        const float* a = left.data + i * left.stride;
        wide ? TileOfRows<2, true>(rows, depth, a, left.stride, b, b_stride, ahead, cols, part)
             : TileOfRows<1, true>(rows, depth, a, left.stride, b, b_stride, ahead, cols, part);
      } else {
        const bool packed = left.layout == Layout::kPacked;
        const float* a = packed ? left.data + i * depth : left.data + i;
        const int64_t a_stride = packed ? rows : left.stride;
        wide ? TileOfRows<2, false>(rows, depth, a, a_stride, b, b_stride, ahead, cols, part)
             : TileOfRows<1, false>(rows, depth, a, a_stride, b, b_stride, ahead, cols, part);
      }
      i += rows;
    }
  }
}

// Elements that PackB writes for n columns.
HWY_INLINE int64_t PackedColumns(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Copies B[depth,n], stored [depth,n], into panels; columns up to the next multiple of kLanes become zero.
HWY_INLINE void PackB(int64_t n, int64_t depth, const float* b, int64_t ldb, float* packed) {
  const FloatTag d;
  // A few rows at a time for all panels, so that rows are read along, as the processor prefetches.
  constexpr int64_t kPiece = 8;
  for (int64_t p0 = 0; p0 < depth; p0 += kPiece) {
    const int64_t piece = std::min(kPiece, depth - p0);
    for (int64_t j = 0; j < n; j += kPanel) {
      const int64_t cols = std::min(kPanel, n - j), width = cols > kLanes ? kPanel : kLanes;
      const float* from = b + p0 * ldb + j;
      float* to = packed + j * depth + p0 * width;
      if (cols == kPanel) {
        for (int64_t p = 0; p < piece; ++p, from += ldb, to += kPanel) {
          hwy::Prefetch(from + kPiece * ldb);
          if (kPanel > 16) hwy::Prefetch(from + kPiece * ldb + 16);
          hn::StoreU(hn::LoadU(d, from), d, to);
          hn::StoreU(hn::LoadU(d, from + kLanes), d, to + kLanes);
        }
      } else {
        for (int64_t p = 0; p < piece; ++p, from += ldb, to += width) {
          for (int64_t x = 0; x < width; ++x) to[x] = x < cols ? from[x] : 0.0f;
        }
      }
    }
  }
}

constexpr int64_t kPackDepth = 32;

#if HWY_TARGET != HWY_SCALAR
// Columns [0, kColumns), 4 or 8, of a panel from as many rows of b: packed[p * width + x] = b[x * ldb + p] for p in [0, depth).
template <int kColumns>
HWY_INLINE void PackTransposedColumns(int64_t depth, const float* b, int64_t ldb, int64_t width, float* packed) {
  const hn::FixedTag<float, 4> d4;
  const hn::FixedTag<float, kColumns> d;
  const hn::Repartition<double, decltype(d)> pairs;
  // Rows r and r + 4, four elements of each from p on.
  const auto load = [&](int64_t r, int64_t p) HWY_ATTR {
    const auto low = hn::LoadU(d4, b + r * ldb + p);
    if constexpr (kColumns == 8) {
      return hn::Combine(d, hn::LoadU(d4, b + (r + 4) * ldb + p), low);
    } else {
      return low;
    }
  };
  const auto lower = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  const auto upper = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  for (int64_t r = 0; r < kColumns; ++r) {  // the next piece
    hwy::Prefetch(b + r * ldb + kPackDepth);
    hwy::Prefetch(b + r * ldb + kPackDepth + 16);
  }
  int64_t p = 0;
  for (; p + 4 <= depth; p += 4, packed += 4 * width) {  // blocks of 4 x 4, transposed in registers
    const auto v0 = load(0, p), v1 = load(1, p), v2 = load(2, p), v3 = load(3, p);
    const auto low01 = hn::InterleaveLower(d, v0, v1), low23 = hn::InterleaveLower(d, v2, v3);
    const auto high01 = hn::InterleaveUpper(d, v0, v1), high23 = hn::InterleaveUpper(d, v2, v3);
    hn::StoreU(lower(low01, low23), d, packed);
    hn::StoreU(upper(low01, low23), d, packed + width);
    hn::StoreU(lower(high01, high23), d, packed + 2 * width);
    hn::StoreU(upper(high01, high23), d, packed + 3 * width);
  }
  for (; p < depth; ++p, packed += width) {
    for (int64_t r = 0; r < kColumns; ++r) packed[r] = b[r * ldb + p];
  }
}
#endif

// The same as PackB for B stored [n,depth].
HWY_INLINE void PackTransposedB(int64_t n, int64_t depth, const float* b, int64_t ldb, float* packed) {
  for (int64_t j = 0; j < n; j += kPanel) {
    const int64_t cols = std::min(kPanel, n - j), width = cols > kLanes ? kPanel : kLanes;
    // Pieces of depth whose part of the panel stays in L1 while its columns are filled one group after the other.
    for (int64_t p0 = 0; p0 < depth; p0 += kPackDepth) {
      const int64_t piece = std::min(depth - p0, kPackDepth);
      const float* from = b + j * ldb + p0;
      float* to = packed + p0 * width;
      int64_t x = 0;
#if HWY_TARGET != HWY_SCALAR
      if constexpr (kLanes >= 8) {
        for (; x + 8 <= cols; x += 8) PackTransposedColumns<8>(piece, from + x * ldb, ldb, width, to + x);
      }
      for (; x + 4 <= cols; x += 4) PackTransposedColumns<4>(piece, from + x * ldb, ldb, width, to + x);
#endif
      for (; x < width; ++x) {
        for (int64_t p = 0; p < piece; ++p) to[p * width + x] = x < cols ? from[x * ldb + p] : 0.0f;
      }
    }
    packed += width * depth;
  }
}

// One column of n rows of A, which lie end to end from `from` on, into n / kTileRows tiles of that depth; asks for what lies
// `ahead` elements further on.
HWY_INLINE void PackColumnOfA(int64_t n, int64_t depth, const float* from, int64_t ahead, float* to) {
  for (int64_t x = 0; x < n; x += 16) hwy::Prefetch(from + ahead + x);
  for (int64_t x = 0; x < n; x += kTileRows) std::memcpy(to + x * depth, from + x, kTileRows * sizeof(float));
}

// Copies A[m,depth], stored [depth,m], tile after tile in the order of NextTileRows. Writes m * depth elements.
HWY_INLINE void PackA(int64_t m, int64_t depth, const float* a, int64_t lda, float* packed) {
  // Three lines of eight columns at a time, and the next eight asked for: where columns lie a multiple of 2 KB apart, they
  // share two sets of an L1 of 32 KB, which hold 16 lines.
  constexpr int64_t kPiece = 8, kGroup = 48;
  static_assert(kGroup % kTileRows == 0);
  const int64_t whole = m / kTileRows * kTileRows;
  for (int64_t p0 = 0; p0 < depth; p0 += kPiece) {
    const int64_t end = std::min(p0 + kPiece, depth);
    for (int64_t i = 0; i < whole; i += kGroup) {
      const int64_t group = std::min(kGroup, whole - i);
      for (int64_t p = p0; p < end; ++p) {
        const float* from = a + p * lda + i;
        float* to = packed + i * depth + p * kTileRows;
        if (group == kGroup) {  // a constant, so that the loops are unrolled
          PackColumnOfA(kGroup, depth, from, kPiece * lda, to);
        } else {
          PackColumnOfA(group, depth, from, kPiece * lda, to);
        }
      }
    }
    for (int64_t i = whole; i < m;) {
      const int64_t rows = NextTileRows(m - i);
      for (int64_t p = p0; p < end; ++p) {
        const float* from = a + p * lda + i;
        float* to = packed + i * depth + p * rows;
        for (int64_t r = 0; r < rows; ++r) to[r] = from[r];
      }
      i += rows;
    }
  }
}

// Copies A[m,depth], stored [m,depth], so that its rows follow each other without gaps.
HWY_INLINE void CopyRows(int64_t m, int64_t depth, const float* a, int64_t lda, float* copy) {
  for (int64_t i = 0; i < m; ++i) std::memcpy(copy + i * depth, a + i * lda, depth * sizeof(float));
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
