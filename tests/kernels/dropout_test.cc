#include "autograd/kernels/dropout.h"

#include "gtest/gtest.h"
#include "tests/kernels/vectors.h"

namespace weft::kernels {
namespace {

TEST(DropoutTest, WordsAreThoseOfRandomKey) {
  // The last start crosses the 32-bit border of the counter, where the carry must reach its second word.
  for (uint64_t first : {uint64_t{0}, uint64_t{17}, uint64_t{0xFFFFFFFA}, ~uint64_t{3}}) {
    for (int64_t n = 0; n <= 140; ++n) {
      const RandomKey key{0x9E3779B97F4A7C15 + first};
      std::vector<uint32_t> words(n + 1, 42);
      DropoutWords(key.bits, first, n, words.data());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(words[i], key.Block(first + static_cast<uint64_t>(i) / 4)[i % 4])
            << "first " << first << " n " << n << " i " << i;
      }
      EXPECT_EQ(words[n], 42u);
    }
  }
}

TEST(DropoutTest, FloatKeepsWhatDoubleKeepsForAnyStartAndLength) {
  const double p = 0.3;
  for (uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{1023}, (uint64_t{1} << 34) - 3}) {
    for (int64_t n : {0, 1, 2, 3, 4, 5, 15, 16, 17, 33, 70, 1024, 1025, 2500}) {
      const std::vector<float> x = RandomFloats(n, 1, 0.5, 1), start = RandomFloats(n, 2);
      const std::vector<double> wide = ToDouble(x);
      std::vector<float> y(n), dx = start;
      std::vector<double> expected(n), expected_dx = ToDouble(start);
      DropoutForward(5, first, p, x.data(), y.data(), n);
      DropoutForward(5, first, p, wide.data(), expected.data(), n);
      DropoutBackward(5, first, p, x.data(), dx.data(), n);
      DropoutBackward(5, first, p, wide.data(), expected_dx.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(y[i] == 0, expected[i] == 0) << "first " << first << " n " << n << " i " << i;
        ASSERT_NEAR(y[i], expected[i], 4e-7);  // scale and product rounded at 1.4, the sum at 3.5
        ASSERT_NEAR(dx[i], expected_dx[i], 8e-7);
      }
    }
  }
}

TEST(DropoutTest, ElementDependsOnItsNumberAlone) {
  constexpr int64_t kN = 3000;
  const std::vector<float> x(kN, 1.0f);
  std::vector<float> whole(kN), parts(kN);
  DropoutForward(9, 100, 0.5, x.data(), whole.data(), kN);
  for (int64_t start = 0, step = 1; start < kN; start += step, step = step * 2 + 1) {
    const int64_t n = std::min(step, kN - start);
    DropoutForward(9, 100 + static_cast<uint64_t>(start), 0.5, x.data() + start, parts.data() + start, n);
  }
  EXPECT_TRUE(SameBits(whole, parts));
}

TEST(DropoutTest, KeepsTheStatedShareAndTheMean) {
  constexpr int64_t kN = 100000;
  const std::vector<float> x(kN, 1.0f);
  std::vector<float> y(kN);
  for (double p : {0.1, 0.5, 0.9}) {
    DropoutForward(3, 0, p, x.data(), y.data(), kN);
    double sum = 0, zeros = 0;
    for (float v : y) {
      sum += v;
      zeros += v == 0;
    }
    const double deviation = std::sqrt(p * (1 - p) / kN);  // of the share; five of them for a fixed seed
    EXPECT_NEAR(zeros / kN, p, 5 * deviation);
    EXPECT_NEAR(sum / kN, 1, 5 * deviation / (1 - p));
  }
}

TEST(DropoutTest, ExtremeProbabilities) {
  const std::vector<float> x = RandomFloats(50, 4);
  const std::vector<double> wide = ToDouble(x);
  std::vector<float> y(50, 7.0f), dx(50, 1.0f);
  std::vector<double> y64(50, 7.0);
  DropoutForward(1, 0, 0, x.data(), y.data(), 50);
  EXPECT_TRUE(SameBits(x, y));
  DropoutForward(1, 0, 0, wide.data(), y64.data(), 50);
  EXPECT_EQ(wide, y64);
  DropoutForward(1, 0, 1, x.data(), y.data(), 50);
  DropoutForward(1, 0, 1, wide.data(), y64.data(), 50);
  DropoutBackward(1, 0, 1, x.data(), dx.data(), 50);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(y[i] == 0 && y64[i] == 0 && dx[i] == 1) << i;
  DropoutBackward(1, 0, 0, x.data(), dx.data(), 50);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(dx[i], 1 + x[i]);
}

TEST(DropoutTest, DroppedNanIsZeroAndInPlaceWorks) {
  std::vector<float> x(64, kNan), y(64);
  DropoutForward(2, 0, 0.5, x.data(), y.data(), 64);
  DropoutForward(2, 0, 0.5, x.data(), x.data(), 64);
  int zeros = 0;
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(y[i] == 0 || std::isnan(y[i]));
    EXPECT_EQ(std::isnan(x[i]), std::isnan(y[i]));
    zeros += y[i] == 0;
  }
  EXPECT_GT(zeros, 10);
  EXPECT_LT(zeros, 54);
}

}  // namespace
}  // namespace weft::kernels
