#include "autograd/kernels/softmax.h"

#include "gtest/gtest.h"
#include "tests/kernels/vectors.h"

namespace weft::kernels {
namespace {

template <class T>
class SoftmaxTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SoftmaxTest, Types);

TYPED_TEST(SoftmaxTest, LargeLogitsAreStable) {
  using T = TypeParam;
  const T x[3] = {T(1e4), 0, T(-1e4)};
  T y[3];
  LogSoftmaxForward(x, y, 1, 3);
  EXPECT_EQ(y[0], T{0});
  EXPECT_EQ(y[1], T(-1e4));
  EXPECT_EQ(y[2], T(-2e4));
  SoftmaxForward(x, y, 1, 3);
  EXPECT_EQ(y[0], T{1});
  EXPECT_EQ(y[1], T{0});
  EXPECT_EQ(y[2], T{0});
}

TYPED_TEST(SoftmaxTest, RowOfOnlyMinusInfinityGivesZeros) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity();
  for (int64_t width = 1; width <= 20; ++width) {
    const std::vector<T> x(width, -inf);
    std::vector<T> y(width, T{7}), log(width);
    SoftmaxForward(x.data(), y.data(), 1, width);
    LogSoftmaxForward(x.data(), log.data(), 1, width);
    for (int64_t i = 0; i < width; ++i) {
      EXPECT_EQ(y[i], T{0});
      EXPECT_EQ(log[i], -inf);
    }
  }
}

TYPED_TEST(SoftmaxTest, NanReachesItsWholeRowOnly) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (T bad : {nan, inf}) {
    const T x[6] = {-inf, bad, -inf, 1, -inf, 1};
    T y[6];
    SoftmaxForward(x, y, 2, 3);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y[i]) || (bad == inf && i != 1 && y[i] == 0)) << i;
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_EQ(y[3], T(0.5));
    EXPECT_EQ(y[4], T{0});
    EXPECT_EQ(y[5], T(0.5));
  }
}

TEST(SoftmaxFloatTest, AgreesWithThePlainLoopAndRowsSumToOne) {
  for (int64_t width = 1; width <= 70; ++width) {
    const std::vector<float> x = RandomFloats(3 * width, 1, -10, 10);
    const std::vector<double> wide = ToDouble(x);
    std::vector<float> y(x.size()), log(x.size());
    std::vector<double> expected(x.size()), expected_log(x.size());
    SoftmaxForward(x.data(), y.data(), 3, width);
    SoftmaxForward(wide.data(), expected.data(), 3, width);
    LogSoftmaxForward(x.data(), log.data(), 3, width);
    LogSoftmaxForward(wide.data(), expected_log.data(), 3, width);
    for (int64_t r = 0; r < 3; ++r) {
      double sum = 0;
      for (int64_t i = r * width; i < (r + 1) * width; ++i) {
        sum += y[i];
        // x - max is rounded at 20 (1e-6 absolute, so relative in exp); the rest are a few ulp.
        EXPECT_NEAR(y[i], expected[i], 2e-6 * expected[i]);
        EXPECT_NEAR(log[i], expected_log[i], 4e-6);  // two roundings at 24
      }
      EXPECT_NEAR(sum, 1, 4e-7);  // each term has 3 ulp of itself
    }
  }
}

TEST(SoftmaxFloatTest, BackwardAgreesWithThePlainLoopAndAdds) {
  for (int64_t width = 1; width <= 70; ++width) {
    const std::vector<float> x = RandomFloats(3 * width, 2), dy = RandomFloats(3 * width, 3),
                             start = RandomFloats(3 * width, 4);
    std::vector<float> y(x.size()), dx = start, dlog = start;
    SoftmaxForward(x.data(), y.data(), 3, width);
    SoftmaxBackward(y.data(), dy.data(), dx.data(), 3, width);
    std::vector<double> expected = ToDouble(start), expected_log = expected;
    SoftmaxBackward(ToDouble(y).data(), ToDouble(dy).data(), expected.data(), 3, width);
    LogSoftmaxForward(x.data(), y.data(), 3, width);
    LogSoftmaxBackward(y.data(), dy.data(), dlog.data(), 3, width);
    LogSoftmaxBackward(ToDouble(y).data(), ToDouble(dy).data(), expected_log.data(), 3, width);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(dx[i], expected[i], 2e-6);        // sums of terms up to 8
      EXPECT_NEAR(dlog[i], expected_log[i], 2e-5);  // sum(dy) up to 140, times exp within a few ulp
    }
  }
}

TEST(SoftmaxFloatTest, RowBitsDependOnNoOtherRow) {
  for (int64_t width : {1, 5, 16, 33}) {
    const std::vector<float> x = RandomFloats(4 * width, 5);
    std::vector<float> all(x.size()), one(width), in_place = x;
    SoftmaxForward(x.data(), all.data(), 4, width);
    for (int64_t r = 0; r < 4; ++r) {
      SoftmaxForward(x.data() + r * width, one.data(), 1, width);
      EXPECT_TRUE(SameBits(one, std::vector<float>(all.begin() + r * width, all.begin() + (r + 1) * width)));
    }
    SoftmaxForward(in_place.data(), in_place.data(), 4, width);
    EXPECT_TRUE(SameBits(in_place, all));
  }
}

TEST(SoftmaxDoubleTest, BackwardIsTheDerivative) {
  constexpr int64_t kWidth = 7;
  std::vector<double> x = ToDouble(RandomFloats(kWidth, 6));
  const std::vector<double> dy = ToDouble(RandomFloats(kWidth, 7));
  for (bool log : {false, true}) {
    const auto forward = [&](const std::vector<double>& in) {
      std::vector<double> out(kWidth);
      log ? LogSoftmaxForward(in.data(), out.data(), 1, kWidth) : SoftmaxForward(in.data(), out.data(), 1, kWidth);
      return out;
    };
    const std::vector<double> y = forward(x);
    std::vector<double> dx(kWidth);
    log ? LogSoftmaxBackward(y.data(), dy.data(), dx.data(), 1, kWidth)
        : SoftmaxBackward(y.data(), dy.data(), dx.data(), 1, kWidth);
    for (int64_t i = 0; i < kWidth; ++i) {
      const double h = 1e-6;
      std::vector<double> up = x, down = x;
      up[i] += h;
      down[i] -= h;
      const std::vector<double> high = forward(up), low = forward(down);
      double slope = 0;
      for (int64_t j = 0; j < kWidth; ++j) slope += dy[j] * (high[j] - low[j]) / (2 * h);
      EXPECT_NEAR(dx[i], slope, 1e-8);  // rounding 1e-16 / h times a few terms
    }
  }
}

}  // namespace
}  // namespace weft::kernels
