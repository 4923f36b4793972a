// f32 products through Highway. The loops around the register tile follow Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication" (TOMS 2008): blocks of depth, B packed into panels once for all tasks, tasks over blocks of C.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm_f32.cc"
#include "autograd/kernels/targets.h"
#include "hwy/foreach_target.h"
// Highway's order: the list of targets first.
#include <algorithm>

#include "autograd/base/check.h"
#include "autograd/base/parallel.h"
#include "autograd/kernels/gemm-inl.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/scratch.h"

#ifndef WEFT_AUTOGRAD_KERNELS_GEMM_F32_ONCE_
#define WEFT_AUTOGRAD_KERNELS_GEMM_F32_ONCE_
namespace weft::kernels {
namespace {

// Longest block of depth. C is read and written once a block, so long blocks win although a panel of B outgrows L1.
constexpr int64_t kMaxDepth = 768;
// Columns of B packed at a time: with kMaxDepth, 3 MB.
constexpr int64_t kMaxColumns = 1024;
// Rows of a task at most: a block of A stays in L2.
constexpr int64_t kMaxRows = 96;
// Multiply-adds below which a product stays on its thread: waking another one costs microseconds.
constexpr int64_t kForkWork = int64_t{1} << 20;
// Tasks a forked product aims for.
constexpr int64_t kTasks = 24;
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

// Runs body(0..n-1), on several threads when `fork`.
void For(bool fork, int64_t n, absl::FunctionRef<void(int64_t)> body) {
  if (fork) {
    ParallelFor(n, body);
  } else {
    for (int64_t i = 0; i < n; ++i) body(i);
  }
}

}  // namespace
}  // namespace weft::kernels
#endif  // WEFT_AUTOGRAD_KERNELS_GEMM_F32_ONCE_

HWY_BEFORE_NAMESPACE();
namespace weft::kernels {
namespace HWY_NAMESPACE {

// Columns [j, j + n), depth [p, p + depth) of op(B) into panels.
void PackColumns(const Product& x, int64_t j, int64_t n, int64_t p, int64_t depth, float* packed) {
  if (x.tb == Trans::kNo) {
    PackB(n, depth, x.b + p * x.ldb + j, x.ldb, packed);
  } else {
    PackTransposedB(n, depth, x.b + j * x.ldb + p, x.ldb, packed);
  }
}

// Rows [i, i + m) and the columns of `right` (their first one is j), for one block of depth.
void MultiplyBlock(const Product& x, int64_t i, int64_t m, int64_t j, int64_t n, int64_t p, int64_t depth, const Right& right) {
  const Target target = {x.c + i * x.ldc + j, x.ldc, p == 0 && x.options.bias != nullptr ? x.options.bias + j : nullptr,
                         p > 0 || x.options.accumulate};
  if (x.ta == Trans::kNo) {
    MultiplyPanels(m, n, depth, {Layout::kRows, x.a + i * x.lda + p, x.lda}, right, target);
    return;
  }
  const float* a = x.a + p * x.lda + i;
  if (n <= kPanel) {
    MultiplyPanels(m, n, depth, {Layout::kColumns, a, x.lda}, right, target);
    return;
  }
  Scratch<float> packed(m * depth);
  PackA(m, depth, a, x.lda, packed.data());
  MultiplyPanels(m, n, depth, {Layout::kPacked, packed.data(), 0}, right, target);
}

void GemmImpl(const Product& x) {
  const bool fork = x.options.parallel && x.m * x.n * x.k >= kForkWork;
  // Equal blocks of depth, from k alone.
  const int64_t max_depth = RoundUp(CeilDivide(x.k, CeilDivide(x.k, kMaxDepth)), 4);
  const int64_t max_columns = std::min(x.n, kMaxColumns);
  const bool pack = x.tb == Trans::kYes || x.m >= kMinRowsToPack || max_columns % kLanes != 0 || x.n % kLanes != 0;
  Scratch<float> packed(pack ? PackedColumns(max_columns) * std::min(max_depth, x.k) : 0);

  const int64_t rows =
      fork ? std::min(RoundUp(CeilDivide(x.m, kTasks), kTileRows), kMaxRows / kTileRows * kTileRows) : kMaxRows;
  const int64_t row_blocks = CeilDivide(x.m, rows);
  for (int64_t j0 = 0; j0 < x.n; j0 += kMaxColumns) {
    const int64_t n = std::min(kMaxColumns, x.n - j0), panels = CeilDivide(n, kPanel);
    const int64_t column_blocks = fork && row_blocks < kTasks / 2 ? std::min(panels, CeilDivide(kTasks, row_blocks)) : 1;
    const int64_t block_panels = CeilDivide(panels, column_blocks), columns = block_panels * kPanel;
    for (int64_t p0 = 0; p0 < x.k; p0 += max_depth) {
      const int64_t depth = std::min(max_depth, x.k - p0);
      if (pack) {
        const int64_t pieces = fork ? std::min(panels, kTasks / 2) : 1, piece = CeilDivide(panels, pieces) * kPanel;
        For(fork, CeilDivide(n, piece), [&](int64_t t) {
          const int64_t j = t * piece;
          PackColumns(x, j0 + j, std::min(piece, n - j), p0, depth, packed.data() + j * depth);
        });
      }
      For(fork, row_blocks * CeilDivide(n, columns), [&](int64_t t) {
        const int64_t i = t % row_blocks * rows, j = t / row_blocks * columns;
        const Right right =
            pack ? PackedRight(packed.data() + j * depth, depth) : DirectRight(x.b + p0 * x.ldb + j0 + j, x.ldb);
        MultiplyBlock(x, i, std::min(rows, x.m - i), j0 + j, std::min(columns, n - j), p0, depth, right);
      });
    }
  }
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
