#include "autograd/kernels/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/base/parallel.h"
#include "autograd/base/random.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/simd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::kernels {
namespace {

template <class T>
std::vector<T> Normals(uint64_t seed, int64_t n) {
  std::vector<T> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(RandomKey{seed}.Normal(static_cast<uint64_t>(i)));
  return values;
}

// Operands of one product with gaps at the end of each row; the gaps of C hold a value that must survive.
template <class T>
struct Case {
  Trans ta, tb;
  int64_t m, n, k, lda, ldb, ldc;
  std::vector<T> a, b, c, bias;

  Case(Trans ta, Trans tb, int64_t m, int64_t n, int64_t k, int64_t gap = 0) : ta(ta), tb(tb), m(m), n(n), k(k) {
    lda = (ta == Trans::kNo ? k : m) + gap;
    ldb = (tb == Trans::kNo ? n : k) + gap;
    ldc = n + gap;
    a = Normals<T>(1, std::max<int64_t>(1, (ta == Trans::kNo ? m : k) * lda));
    b = Normals<T>(2, std::max<int64_t>(1, (tb == Trans::kNo ? k : n) * ldb));
    c = Normals<T>(3, std::max<int64_t>(1, m * ldc));
    bias = Normals<T>(4, std::max<int64_t>(1, n));
  }
  T A(int64_t i, int64_t p) const { return ta == Trans::kNo ? a[i * lda + p] : a[p * lda + i]; }
  T B(int64_t p, int64_t j) const { return tb == Trans::kNo ? b[p * ldb + j] : b[j * ldb + p]; }

  std::vector<T> Run(bool accumulate, bool with_bias, bool parallel = true) const {
    std::vector<T> result = c;
    Gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, result.data(), ldc,
         {.accumulate = accumulate, .bias = with_bias ? bias.data() : nullptr, .parallel = parallel});
    return result;
  }
};

// The textbook triple loop in double, and the error bound of any order of summation: a sum of n terms t has an error of at most
// (n + 1) eps/2 sum |t| (Higham, Accuracy and Stability, 4.2; products rounded once more), n = k + bias + old value.
template <class T>
void ExpectProduct(const Case<T>& x, bool accumulate, bool with_bias) {
  const std::vector<T> result = x.Run(accumulate, with_bias);
  ASSERT_EQ(result, x.Run(accumulate, with_bias, /*parallel=*/false));
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.ldc; ++j) {
      const T actual = result[i * x.ldc + j], before = x.c[i * x.ldc + j];
      if (j >= x.n) {
        ASSERT_EQ(actual, before) << "wrote past the row";
        continue;
      }
      double sum = (accumulate ? before : 0.0) + (with_bias ? x.bias[j] : 0.0), size = std::abs(sum) + std::abs(before);
      for (int64_t p = 0; p < x.k; ++p) {
        const double term = static_cast<double>(x.A(i, p)) * x.B(p, j);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(actual, sum, (x.k + 4) * std::numeric_limits<T>::epsilon() * size)
          << "m " << x.m << " n " << x.n << " k " << x.k << " at " << i << "," << j;
    }
  }
}

template <class T>
void ExpectAllForms(int64_t m, int64_t n, int64_t k, int64_t gap) {
  for (const Trans ta : {Trans::kNo, Trans::kYes}) {
    for (const Trans tb : {Trans::kNo, Trans::kYes}) {
      const Case<T> x(ta, tb, m, n, k, gap);
      for (const bool accumulate : {false, true}) {
        for (const bool with_bias : {false, true}) ExpectProduct(x, accumulate, with_bias);
      }
    }
  }
}

template <class T>
class GemmTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Types);

TYPED_TEST(GemmTest, SmallSizesMatchTheTripleLoop) {
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 20}) {
    for (int64_t n : {1, 2, 5, 8, 15, 16, 17, 20}) {
      for (int64_t k : {1, 3, 4, 7, 20}) ExpectAllForms<TypeParam>(m, n, k, (m + n + k) % 3);
    }
  }
}

TYPED_TEST(GemmTest, EachDimensionFrom1To70MatchesTheTripleLoop) {
  for (int64_t size = 1; size <= 70; ++size) {
    ExpectAllForms<TypeParam>(size, 19, 7, 0);
    ExpectAllForms<TypeParam>(5, size, 7, 1);
    ExpectAllForms<TypeParam>(5, 19, size, 0);
  }
}

TYPED_TEST(GemmTest, OddAndLargeSizesMatchTheTripleLoop) {
  ExpectAllForms<TypeParam>(65, 65, 33, 5);
  ExpectAllForms<TypeParam>(97, 31, 130, 0);
  ExpectAllForms<TypeParam>(25, 1030, 9, 3);   // two passes over the columns
  ExpectAllForms<TypeParam>(14, 35, 1601, 1);  // several blocks of depth
  ExpectAllForms<TypeParam>(37, 700, 50, 1);   // few rows, several strips
  ExpectAllForms<TypeParam>(530, 66, 40, 1);   // many rows
  ExpectAllForms<TypeParam>(9, 1030, 800, 1);  // two passes over the columns, each of several blocks of depth
  ExpectAllForms<TypeParam>(128, 128, 96, 0);  // large enough to fork
}

TYPED_TEST(GemmTest, EmptySizes) {
  for (const bool accumulate : {false, true}) {
    for (const bool with_bias : {false, true}) {
      ExpectProduct(Case<TypeParam>(Trans::kNo, Trans::kYes, 3, 4, 0, 2), accumulate, with_bias);
      ExpectProduct(Case<TypeParam>(Trans::kNo, Trans::kNo, 0, 4, 5), accumulate, with_bias);
      ExpectProduct(Case<TypeParam>(Trans::kYes, Trans::kNo, 3, 0, 5), accumulate, with_bias);
    }
  }
}

TYPED_TEST(GemmTest, SameBitsForAnyNumberOfThreads) {
  for (const Trans ta : {Trans::kNo, Trans::kYes}) {
    for (const Trans tb : {Trans::kNo, Trans::kYes}) {
      for (const auto& [m, n] : {std::pair{150, 131}, {40, 420}, {520, 35}}) {
        const Case<TypeParam> x(ta, tb, m, n, 800);
        const std::vector<TypeParam> serial = x.Run(true, true, false);
        for (const int threads : {1, 2, 3, 4, 8}) {
          std::vector<TypeParam> result;
          Workers(threads).Run([&] { result = x.Run(true, true); });
          EXPECT_EQ(result, serial) << threads << " threads";
        }
      }
    }
  }
}

// Inside of a loop a product is cut otherwise.
TEST(GemmF32Test, SameBitsInsideOfALoop) {
  for (const Trans ta : {Trans::kNo, Trans::kYes}) {
    const Case<float> x(ta, Trans::kNo, 150, 131, 800);
    const std::vector<float> serial = x.Run(true, true, false);
    for (const int threads : {2, 8}) {
      for (const int64_t tiles : {2, 3, 8}) {
        std::vector<std::vector<float>> results(static_cast<size_t>(tiles));
        Workers(threads).Run(
            [&] { ParallelFor(tiles, [&](int64_t tile) { results[static_cast<size_t>(tile)] = x.Run(true, true); }); });
        for (const std::vector<float>& result : results)
          EXPECT_EQ(result, serial) << threads << " threads, " << tiles << " tiles";
      }
    }
  }
}

// Any sub-block of rows and columns, computed alone, has the bits it has in the whole product.
TEST(GemmF32Test, RowsAndColumnsDoNotDependOnTheOthers) {
  for (const Trans ta : {Trans::kNo, Trans::kYes}) {
    for (const Trans tb : {Trans::kNo, Trans::kYes}) {
      for (const int64_t k : {5, 100, 900}) {
        const Case<float> x(ta, tb, 67, 83, k);
        const std::vector<float> whole = x.Run(true, true);
        for (const auto& [i, m, j, n] : std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>>{{0, 1, 0, 83},
                                                                                                    {66, 1, 0, 83},
                                                                                                    {13, 2, 40, 3},
                                                                                                    {20, 5, 82, 1},
                                                                                                    {3, 64, 1, 32},
                                                                                                    {0, 67, 17, 1},
                                                                                                    {7, 11, 5, 48}}) {
          std::vector<float> part = x.c;
          Gemm(ta, tb, m, n, k, x.a.data() + (ta == Trans::kNo ? i * x.lda : i), x.lda,
               x.b.data() + (tb == Trans::kNo ? j : j * x.ldb), x.ldb, part.data() + i * x.ldc + j, x.ldc,
               {.accumulate = true, .bias = x.bias.data() + j});
          for (int64_t r = i; r < i + m; ++r) {
            for (int64_t s = j; s < j + n; ++s) {
              ASSERT_EQ(std::bit_cast<uint32_t>(part[r * x.ldc + s]), std::bit_cast<uint32_t>(whole[r * x.ldc + s]))
                  << "row " << r << " column " << s << " of a " << m << " x " << n << " part, k " << k;
            }
          }
        }
      }
    }
  }
}

TEST(GemmF32Test, NanAndInfinityStayInTheirRowAndColumn) {
  for (const Trans ta : {Trans::kNo, Trans::kYes}) {
    for (const Trans tb : {Trans::kNo, Trans::kYes}) {
      Case<float> x(ta, tb, 29, 21, 37);
      const std::vector<float> clean = x.Run(false, false);
      const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
      (ta == Trans::kNo ? x.a[28 * x.lda + 36] : x.a[36 * x.lda + 28]) = nan;
      (tb == Trans::kNo ? x.b[4 * x.ldb + 20] : x.b[20 * x.ldb + 4]) = inf;
      const std::vector<float> result = x.Run(false, false);
      for (int64_t i = 0; i < x.m; ++i) {
        for (int64_t j = 0; j < x.n; ++j) {
          const float value = result[i * x.ldc + j];
          if (i == 28) {
            EXPECT_TRUE(std::isnan(value)) << i << "," << j;
          } else if (j == 20) {
            EXPECT_EQ(value, std::copysign(inf, x.A(i, 4))) << i << "," << j;
          } else {
            EXPECT_EQ(value, clean[i * x.ldc + j]) << i << "," << j;
          }
        }
      }
    }
  }
}

TEST(GemmF32Test, SteadyStateTakesNoNewScratch) {
  const Case<float> x(Trans::kYes, Trans::kYes, 120, 300, 700);
  Workers(1).Run([&] {
    x.Run(false, false);
    const int64_t blocks = ScratchPool::Get().blocks();
    for (int i = 0; i < 3; ++i) x.Run(false, false);
    EXPECT_EQ(ScratchPool::Get().blocks(), blocks);
  });
}

TEST(ScratchTest, BlocksAreAlignedDistinctAndReused) {
  ScratchPool pool;
  void* first = nullptr;
  {
    const ScratchPool::Block a = pool.Acquire(5000), b = pool.Acquire(5000);
    EXPECT_NE(a.data(), b.data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
    first = a.data();
  }
  const ScratchPool::Block c = pool.Acquire(8192), d = pool.Acquire(100);
  EXPECT_EQ(c.data(), first);
  EXPECT_EQ(pool.blocks(), 3);
}

TEST(SimdTest, TargetHonoursTheEnvironment) {
  const char* value = std::getenv("WEFT_SIMD");
  const std::string cap = value == nullptr ? "" : value, target(SimdTarget());
  std::vector<std::string> allowed = {"SCALAR", "NEON"};
  if (cap != "baseline") allowed.push_back("SSE4");
  if (cap != "baseline" && cap != "sse4") allowed.push_back("AVX2");
  if (cap != "baseline" && cap != "sse4" && cap != "avx2") allowed.push_back("AVX3");
  EXPECT_THAT(allowed, ::testing::Contains(target));
}

// SSE4 and SCALAR round the product of a multiply-add, the others do not: 1 + eps squared minus its rounding is eps^2 or 0. So
// the result tells which code ran, also after SimdTarget() has looked at Highway's list of targets.
TEST(SimdTest, KernelsRunTheReportedTarget) {
  const std::string target(SimdTarget());
  const float eps = std::numeric_limits<float>::epsilon();
  const std::vector<float> a = {-1.0f - 2 * eps, 1.0f + eps}, b = {1.0f, 1.0f + eps};
  float c = 0;
  Gemm(Trans::kNo, Trans::kNo, 1, 1, 2, a.data(), 2, b.data(), 1, &c, 1);
  EXPECT_EQ(c, target == "SCALAR" || target == "SSE4" ? 0.0f : eps * eps);
}

TEST(SimdTest, UnknownEnvironmentValueIsAnError) {
  const char* value = std::getenv("WEFT_SIMD");
  const std::string before = value == nullptr ? "" : value;
  setenv("WEFT_SIMD", "avx1024", 1);
  const absl::Status status = CheckSimdEnvironment();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(::testing::HasSubstr("avx1024"), ::testing::HasSubstr("baseline")));
  for (const char* known : {"baseline", "sse4", "avx2", "avx512", ""}) {
    setenv("WEFT_SIMD", known, 1);
    EXPECT_TRUE(CheckSimdEnvironment().ok()) << known;
  }
  value == nullptr ? unsetenv("WEFT_SIMD") : setenv("WEFT_SIMD", before.c_str(), 1);
}

TEST(GemmDeathTest, BadSizesAbort) {
  const std::vector<float> x(16);
  std::vector<float> y(16);
  EXPECT_DEATH(Gemm(Trans::kNo, Trans::kNo, 2, 2, 4, x.data(), 3, x.data(), 2, y.data(), 2), "check failed|lda");
}

}  // namespace
}  // namespace weft::kernels
