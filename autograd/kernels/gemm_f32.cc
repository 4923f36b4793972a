// f32 products through Highway. C is cut into one part for each thread; the loops of a part around the register tile
// (gemm-inl.h: 6 rows by two vectors, 12 with AVX-512) follow Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication" (TOMS 2008): blocks of depth, B packed into panels, blocks of rows. What will be read soon is asked for
// early. Measured with `weft bench --suite gemm` on two cores of a Xeon: 87 to 92 % of the peak in the mean of NT, NN and TN
// with AVX2, 71 to 74 % with AVX-512.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm_f32.cc"
#include "autograd/kernels/targets.h"
#include "hwy/foreach_target.h"
// Highway's order: the list of targets first.
#include <algorithm>
#include <limits>

#include "autograd/base/check.h"
#include "autograd/base/parallel.h"
#include "autograd/kernels/gemm-inl.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/scratch.h"

#ifndef WEFT_AUTOGRAD_KERNELS_GEMM_F32_ONCE_
#define WEFT_AUTOGRAD_KERNELS_GEMM_F32_ONCE_
namespace weft::kernels {
namespace {

// Longest block of depth: long ones read and write C less often.
constexpr int64_t kMaxDepth = 768;
// Where many rows pass by and there is more than one block anyway, a panel of B stays in L1 beside them (with AVX2).
constexpr int64_t kDepthOfManyRows = 512;
// Where columns of A are packed, they stay in L2 together with what is read meanwhile.
constexpr int64_t kDepthOfColumns = 256;
// Columns of B packed at a time for many rows: with kMaxDepth, 3 MB a thread.
constexpr int64_t kMaxColumns = 1024;
// Rows multiplied at a time with them: a block of A stays in L2. Whole tiles.
constexpr int64_t kMaxRows = 192;
// Up to this many rows, all of A is used at once and B is packed strip by strip.
constexpr int64_t kFewRows = 512;
// Columns of such a strip, and of a part at least: 128 bytes a row. Processors fetch lines of the cache in pairs; half pairs
// come from L3 at 10 GB/s, whole ones at 23 (a Xeon of the Sapphire Rapids class).
constexpr int64_t kStrip = 32;
// Multiply-adds below which a product stays on its thread: waking another one costs microseconds.
constexpr int64_t kForkWork = int64_t{1} << 20;
// Multiply-adds of a part, at least.
constexpr int64_t kPartWork = kForkWork / 2;
// Multiply-adds that take as long as packing an element: 60 to 100 against 5 a nanosecond.
constexpr int64_t kPackCost = 16;
// Below this many rows a row-major B is read in place: packing would cost more than it saves.
constexpr int64_t kMinRowsToPack = 32;

struct Product {
  Trans ta, tb;
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  GemmOptions<float> options;
};

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDivide(a, b) * b; }

}  // namespace
}  // namespace weft::kernels
#endif  // WEFT_AUTOGRAD_KERNELS_GEMM_F32_ONCE_

HWY_BEFORE_NAMESPACE();
namespace weft::kernels {
namespace HWY_NAMESPACE {

static_assert(kMaxRows % kTileRows == 0);

// Columns [j, j + n), depth [p, p + depth) of op(B) into panels.
void PackColumns(const Product& x, int64_t j, int64_t n, int64_t p, int64_t depth, float* packed) {
  if (x.tb == Trans::kNo) {
    PackB(n, depth, x.b + p * x.ldb + j, x.ldb, packed);
  } else {
    PackTransposedB(n, depth, x.b + j * x.ldb + p, x.ldb, packed);
  }
}

// Whether rows of A are worth a copy: not if they lie end to end already, or few columns use them.
bool CopyPays(const Product& x, int64_t depth) {
  return x.ta == Trans::kYes ? x.n > kPanel : x.lda != depth && x.n > 4 * kPanel;
}

// Rows [i, i + m), depth [p, p + depth) of A where they lie.
Left InPlace(const Product& x, int64_t i, int64_t p) {
  return x.ta == Trans::kNo ? Left{Layout::kRows, x.a + i * x.lda + p, x.lda}
                            : Left{Layout::kColumns, x.a + p * x.lda + i, x.lda};
}

// The same copied to `copy`, m * depth elements.
Left Copied(const Product& x, int64_t i, int64_t m, int64_t p, int64_t depth, float* copy) {
  if (x.ta == Trans::kNo) {
    CopyRows(m, depth, x.a + i * x.lda + p, x.lda, copy);
    return {Layout::kRows, copy, depth};
  }
  PackA(m, depth, x.a + p * x.lda + i, x.lda, copy);
  return {Layout::kPacked, copy, 0};
}

// The block of C from (i, j) on, for depth [p, p + depth). The bias comes last, so that blocks of depth change no bits.
Target TargetOf(const Product& x, int64_t i, int64_t j, int64_t p, int64_t depth) {
  const bool is_last = p + depth == x.k;
  return {x.c + i * x.ldc + j, x.ldc, is_last && x.options.bias != nullptr ? x.options.bias + j : nullptr,
          p > 0 || x.options.accumulate};
}

// Few rows: packing B is a large part of the work, so each strip is multiplied with all rows while it is still near.
void MultiplyFewRows(const Product& x, int64_t max_depth) {
  const bool copy = CopyPays(x, max_depth);
  Scratch<float> left_copy(copy ? x.m * max_depth : 0), packed(PackedColumns(std::min(x.n, kStrip)) * max_depth);
  for (int64_t p = 0; p < x.k; p += max_depth) {
    const int64_t depth = std::min(max_depth, x.k - p);
    const Left left = copy ? Copied(x, 0, x.m, p, depth, left_copy.data()) : InPlace(x, 0, p);
    for (int64_t j = 0; j < x.n; j += kStrip) {
      const int64_t n = std::min(kStrip, x.n - j);
      PackColumns(x, j, n, p, depth, packed.data());
      MultiplyPanels(x.m, n, depth, left, PackedRight(packed.data(), depth), TargetOf(x, 0, j, p, depth));
    }
  }
}

// Many rows: B is packed once, then multiplied with one block of rows after the other.
void MultiplyManyRows(const Product& x, int64_t max_depth) {
  const int64_t max_columns = std::min(x.n, kMaxColumns), max_rows = std::min(x.m, kMaxRows);
  const bool pack = x.tb == Trans::kYes || x.m >= kMinRowsToPack || x.n % kLanes != 0;
  const bool copy = CopyPays(x, max_depth);
  Scratch<float> packed(pack ? PackedColumns(max_columns) * max_depth : 0), block(copy ? max_rows * max_depth : 0);
  for (int64_t j = 0; j < x.n; j += kMaxColumns) {
    const int64_t n = std::min(kMaxColumns, x.n - j);
    for (int64_t p = 0; p < x.k; p += max_depth) {
      const int64_t depth = std::min(max_depth, x.k - p);
      if (pack) PackColumns(x, j, n, p, depth, packed.data());
      const Right right = pack ? PackedRight(packed.data(), depth) : DirectRight(x.b + p * x.ldb + j, x.ldb, kAhead);
      for (int64_t i = 0; i < x.m; i += max_rows) {
        const int64_t m = std::min(max_rows, x.m - i);
        const Left left = copy ? Copied(x, i, m, p, depth, block.data()) : InPlace(x, i, p);
        MultiplyPanels(m, n, depth, left, right, TargetOf(x, i, j, p, depth));
      }
    }
  }
}

// On the calling thread.
void Multiply(const Product& x) {
  const bool few_rows = x.m >= kMinRowsToPack && x.m <= kFewRows;
  const int64_t longest = x.ta == Trans::kYes ? kDepthOfColumns : few_rows || x.k <= kMaxDepth ? kMaxDepth : kDepthOfManyRows;
  const int64_t max_depth = std::min(x.k, RoundUp(CeilDivide(x.k, CeilDivide(x.k, longest)), 4));  // equal blocks
  few_rows ? MultiplyFewRows(x, max_depth) : MultiplyManyRows(x, max_depth);
}

// Rows and columns of a part of C.
struct Cut {
  int64_t rows, columns;
};

// The grid of at most `parts` parts whose largest takes the least time.
Cut CutOf(const Product& x, int64_t parts) {
  Cut best = {x.m, x.n};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t across = 1; across <= parts; ++across) {
    const Cut cut = {std::min(x.m, RoundUp(CeilDivide(x.m, across), kTileRows)),
                     std::min(x.n, RoundUp(CeilDivide(x.n, parts / across), std::max(kPanel, kStrip)))};
    const int64_t cost = cut.rows * cut.columns + kPackCost * (cut.rows + cut.columns);
    if (cost <= least) best = cut, least = cost;
  }
  return best;
}

// Each thread multiplies a part of C and packs what it needs for itself, though others pack the same: packed by one thread and
// read by another it would cross between their caches, and each block of depth would have to wait for the last thread.
void GemmImpl(const Product& x) {
  const int64_t work = x.m * x.n * x.k;
  if (!x.options.parallel || work < kForkWork) return Multiply(x);
  const Cut cut = CutOf(x, std::min(EqualTiles(), work / kPartWork));
  const int64_t across = CeilDivide(x.m, cut.rows);
  ParallelFor(across * CeilDivide(x.n, cut.columns), [&](int64_t t) {
    const int64_t i = t % across * cut.rows, j = t / across * cut.columns;
    Product part = x;
    part.m = std::min(cut.rows, x.m - i);
    part.n = std::min(cut.columns, x.n - j);
    part.a = InPlace(x, i, 0).data;
    part.b += x.tb == Trans::kNo ? j : j * x.ldb;
    part.c += i * x.ldc + j;
    if (x.options.bias != nullptr) part.options.bias += j;
    Multiply(part);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::kernels {
namespace {

// k = 0: the product is zero.
void FillEmpty(const Product& x) {
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      const float bias = x.options.bias == nullptr ? 0.0f : x.options.bias[j];
      float& c = x.c[i * x.ldc + j];
      c = x.options.accumulate ? c + bias : bias;
    }
  }
}

HWY_EXPORT(GemmImpl);

}  // namespace

void Gemm(Trans ta, Trans tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          float* c, int64_t ldc, GemmOptions<float> options) {
  WEFT_CHECK(m >= 0 && n >= 0 && k >= 0) << "Gemm: m " << m << " n " << n << " k " << k;
  if (m == 0 || n == 0) return;
  WEFT_CHECK_GE(ldc, n);
  const Product product = {ta, tb, m, n, k, a, lda, b, ldb, c, ldc, options};
  if (k == 0) return FillEmpty(product);
  WEFT_CHECK_GE(lda, ta == Trans::kNo ? k : m);
  WEFT_CHECK_GE(ldb, tb == Trans::kNo ? n : k);
  WEFT_DISPATCH(GemmImpl)(product);
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
