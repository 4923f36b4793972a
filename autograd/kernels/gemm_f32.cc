// f32 products through Highway. The loops around the register tile (gemm-inl.h: 6 rows by two vectors, 12 with AVX-512) follow
// Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (TOMS 2008): blocks of depth, B packed into
// panels, tasks over blocks of C. Everything that will be read soon is asked for early. Measured with `weft bench --suite gemm`
// on two cores of a Xeon: 81 to 86 % of the peak in the mean of NN, NT and TN with AVX2, 67 to 70 % with AVX-512.
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

// Longest block of depth: long ones read and write C less often, and need fewer barriers; a panel of B then streams from L2.
constexpr int64_t kMaxDepth = 768;
// Where many rows of A pass by, a panel that stays in L1 beside them is better, if there is more than one block anyway.
constexpr int64_t kDepthOfManyRows = 512;
// Columns of B packed at a time: with kMaxDepth, 3 MB.
constexpr int64_t kMaxColumns = 1024;
// Rows of a task at most: a block of A stays in L2.
constexpr int64_t kMaxRows = 192;
// Up to this many rows, tasks share all of A and each packs its own panels of B, just before it multiplies them.
constexpr int64_t kFewRows = 512;
// Panels of B that such a task packs at a time: long enough pieces of rows to read along, still in L2 when they are used.
constexpr int64_t kGroup = 8;
// Columns of B that a task reads at least: 128 bytes a row. Processors fetch lines of the cache in pairs; half pairs come from
// L3 at 10 GB/s, whole ones at 23 (a Xeon of the Sapphire Rapids class).
constexpr int64_t kMinColumns = 32;
// Multiply-adds below which a product stays on its thread: waking another one costs microseconds.
constexpr int64_t kForkWork = int64_t{1} << 20;
// Tasks a forked product aims for: many, so that threads end together, but each with some work (multiply-adds) to do.
constexpr int64_t kMinTasks = 12, kMaxTasks = 36, kTaskWork = int64_t{1} << 20;
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

int64_t TasksFor(const Product& x) { return std::clamp(x.m * x.n * x.k / kTaskWork, kMinTasks, kMaxTasks); }

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

// Whether rows of A are worth a copy: not if they lie end to end already, or few columns use them.
bool CopyPays(const Product& x, int64_t depth) {
  return x.ta == Trans::kYes ? x.n > kPanel : x.lda != depth && x.n > 4 * kPanel;
}

// Rows [i, i + m), depth [p, p + depth) of A where they lie.
Left InPlace(const Product& x, int64_t i, int64_t p) {
  return x.ta == Trans::kNo ? Left{Layout::kRows, x.a + i * x.lda + p, x.lda}
                            : Left{Layout::kColumns, x.a + p * x.lda + i, x.lda};
}

// The same copied to `copy`, m * depth elements. REQUIRES: i a multiple of kTileRows.
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

// Few rows: packing B is a large part of the work, so each panel is packed by the one task that uses it, into memory that is
// still near when it is multiplied.
void MultiplyFewRows(const Product& x, int64_t max_depth, bool fork) {
  const int64_t tasks = fork ? TasksFor(x) : 1;
  const int64_t columns = RoundUp(CeilDivide(x.n, tasks), std::max(kPanel, kMinColumns));
  const bool copy = CopyPays(x, max_depth);
  Scratch<float> left_copy(copy ? x.m * max_depth : 0);
  for (int64_t p0 = 0; p0 < x.k; p0 += max_depth) {
    const int64_t depth = std::min(max_depth, x.k - p0);
    Left left = InPlace(x, 0, p0);
    if (copy) {
      const int64_t rows = fork ? RoundUp(CeilDivide(x.m, tasks / 2), kTileRows) : x.m;
      For(fork, CeilDivide(x.m, rows), [&](int64_t t) {
        const int64_t i = t * rows;
        Copied(x, i, std::min(rows, x.m - i), p0, depth, left_copy.data() + i * depth);
      });
      left = x.ta == Trans::kNo ? Left{Layout::kRows, left_copy.data(), depth} : Left{Layout::kPacked, left_copy.data(), 0};
    }
    For(fork, CeilDivide(x.n, columns), [&](int64_t t) {
      const int64_t group = std::min(columns, kGroup * kPanel), end = std::min(x.n, (t + 1) * columns);
      Scratch<float> packed(group * depth);
      for (int64_t j = t * columns; j < end; j += group) {
        const int64_t n = std::min(group, end - j);
        PackColumns(x, j, n, p0, depth, packed.data());
        MultiplyPanels(x.m, n, depth, left, PackedRight(packed.data(), depth), TargetOf(x, 0, j, p0, depth));
      }
    });
  }
}

// Many rows: B is packed once for all tasks; tasks are blocks of rows.
void MultiplyManyRows(const Product& x, int64_t max_depth, bool fork) {
  const int64_t max_columns = std::min(x.n, kMaxColumns);
  const bool pack = x.tb == Trans::kYes || x.m >= kMinRowsToPack || max_columns % kLanes != 0 || x.n % kLanes != 0;
  Scratch<float> packed(pack ? PackedColumns(max_columns) * std::min(max_depth, x.k) : 0);
  const bool copy = CopyPays(x, max_depth);
  const int64_t max_rows = kMaxRows / kTileRows * kTileRows, tasks = TasksFor(x);
  const int64_t rows = fork ? std::min(RoundUp(CeilDivide(x.m, tasks), kTileRows), max_rows) : max_rows;
  const int64_t row_blocks = CeilDivide(x.m, rows);
  for (int64_t j0 = 0; j0 < x.n; j0 += kMaxColumns) {
    const int64_t n = std::min(kMaxColumns, x.n - j0), panels = CeilDivide(n, kPanel);
    const int64_t column_blocks = fork && row_blocks < tasks / 2 ? std::min(panels, CeilDivide(tasks, row_blocks)) : 1;
    const int64_t block_panels = CeilDivide(panels, column_blocks), columns = block_panels * kPanel;
    for (int64_t p0 = 0; p0 < x.k; p0 += max_depth) {
      const int64_t depth = std::min(max_depth, x.k - p0);
      if (pack) {
        const int64_t piece = fork ? RoundUp(CeilDivide(n, tasks / 2), std::max(kPanel, kMinColumns)) : n;
        For(fork, CeilDivide(n, piece), [&](int64_t t) {
          const int64_t j = t * piece;
          PackColumns(x, j0 + j, std::min(piece, n - j), p0, depth, packed.data() + j * depth);
        });
      }
      For(fork, row_blocks * CeilDivide(n, columns), [&](int64_t t) {
        const int64_t i = t % row_blocks * rows, j = t / row_blocks * columns;
        const int64_t m = std::min(rows, x.m - i);
        const Right right =
            pack ? PackedRight(packed.data() + j * depth, depth) : DirectRight(x.b + p0 * x.ldb + j0 + j, x.ldb);
        Scratch<float> block(copy ? m * depth : 0);
        const Left left = copy ? Copied(x, i, m, p0, depth, block.data()) : InPlace(x, i, p0);
        MultiplyPanels(m, std::min(columns, n - j), depth, left, right, TargetOf(x, i, j0 + j, p0, depth));
      });
    }
  }
}

void GemmImpl(const Product& x) {
  const bool fork = x.options.parallel && x.m * x.n * x.k >= kForkWork;
  const bool few_rows = x.m >= kMinRowsToPack && x.m <= kFewRows && (!fork || CeilDivide(x.n, kPanel) >= TasksFor(x) / 2);
  const int64_t blocks = few_rows || x.k <= kMaxDepth ? CeilDivide(x.k, kMaxDepth) : CeilDivide(x.k, kDepthOfManyRows);
  const int64_t max_depth = RoundUp(CeilDivide(x.k, blocks), 4);  // equal blocks
  few_rows ? MultiplyFewRows(x, max_depth, fork) : MultiplyManyRows(x, max_depth, fork);
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
