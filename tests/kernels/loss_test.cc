#include "autograd/kernels/loss.h"

#include "gtest/gtest.h"
#include "tests/kernels/vectors.h"

namespace weft::kernels {
namespace {

constexpr int32_t kIgnore = -100;

template <class T>
class LossTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LossTest, Types);

TYPED_TEST(LossTest, LargeLogitsAreStable) {
  using T = TypeParam;
  for (int32_t target = 0; target < 3; ++target) {
    T logits[3] = {T(1e4), 0, T(-1e4)};
    double loss;
    int32_t argmax;
    CrossEntropyRows(logits, 3, &target, kIgnore, 1, 3, 0.0, true, &loss, &argmax);
    EXPECT_EQ(loss, 1e4 * target);
    EXPECT_EQ(argmax, 0);
    for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(logits[i], T((i == 0) - (i == target)));
  }
}

TYPED_TEST(LossTest, SmoothedMeanOverTargetsThatCount) {
  using T = TypeParam;
  T logits[9] = {2, 1, 0, 0, 0, 5, 1, 1, 1};
  const int32_t targets[3] = {0, kIgnore, 2};
  double losses[3];
  int32_t argmax[3];
  CrossEntropyRows(logits, 3, targets, kIgnore, 3, 3, 0.1, true, losses, argmax);
  EXPECT_NEAR((losses[0] + losses[2]) / 2, 0.803109, 5e-7);
  EXPECT_EQ(losses[1], 0.0);
  for (int i = 3; i < 6; ++i) EXPECT_EQ(logits[i], T{0});
  EXPECT_EQ(argmax[0], 0);
  EXPECT_EQ(argmax[1], 2);
  EXPECT_EQ(argmax[2], 0);
}

TYPED_TEST(LossTest, WithoutGradientLogitsStay) {
  using T = TypeParam;
  const std::vector<float> x = RandomFloats(3 * 20, 1);
  std::vector<T> logits(x.begin(), x.end());
  const std::vector<T> before = logits;
  const int32_t targets[3] = {4, kIgnore, 0};
  double losses[3], with_gradient[3];
  CrossEntropyRows(logits.data(), 20, targets, kIgnore, 3, 17, 0.1, false, losses, nullptr);
  EXPECT_EQ(logits, before);
  CrossEntropyRows(logits.data(), 20, targets, kIgnore, 3, 17, 0.1, true, with_gradient, nullptr);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(losses[r], with_gradient[r]);
    for (int i = 17; i < 20; ++i) EXPECT_EQ(logits[r * 20 + i], before[r * 20 + i]);  // beyond width, within ld
  }
}

TEST(LossFloatTest, AgreesWithThePlainLoop) {
  for (int64_t width = 1; width <= 70; ++width) {
    for (double smoothing : {0.0, 0.1, 1.0}) {
      std::vector<float> x = RandomFloats(4 * width, 2, -8, 8);
      std::vector<double> x64 = ToDouble(x);
      const int32_t last = static_cast<int32_t>(width) - 1, targets[4] = {0, last, kIgnore, last / 2};
      double losses[4], losses64[4];
      int32_t argmax[4], argmax64[4];
      CrossEntropyRows(x.data(), width, targets, kIgnore, 4, width, smoothing, true, losses, argmax);
      CrossEntropyRows(x64.data(), width, targets, kIgnore, 4, width, smoothing, true, losses64, argmax64);
      for (int r = 0; r < 4; ++r) {
        EXPECT_EQ(argmax[r], argmax64[r]);
        EXPECT_NEAR(losses[r], losses64[r], 2e-6);  // x - max rounded at 16
        double sum = 0;
        for (int64_t i = r * width; i < (r + 1) * width; ++i) {
          EXPECT_NEAR(x[i], x64[i], 2e-6);  // the same rounding inside exp, times p
          sum += x[i];
        }
        EXPECT_NEAR(sum, 0, 2e-6);
      }
    }
  }
}

// The first NaN wins over any number, +inf included; the first of equals wins otherwise.
TYPED_TEST(LossTest, ArgMaxIsTheFirstNanElseTheFirstLargest) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (int64_t width = 1; width <= 70; ++width) {
    for (int64_t place = 0; place < width; place += 3) {
      const int64_t last = width - 1;
      for (int variant = 0; variant < 6; ++variant) {
        std::vector<T> logits(width, variant == 5 ? nan : T(-1));
        int64_t expected = place;
        if (variant == 0) logits[place] = logits[last] = 2;
        if (variant == 1) logits[place] = logits[last] = inf;
        if (variant == 2) logits[place] = logits[last] = nan;
        if (variant == 3) {
          logits[0] = inf;
          logits[place] = nan;
        }
        if (variant == 4) expected = 0;  // all equal
        if (variant == 5) expected = 0;  // all NaN
        for (const bool gradient : {false, true}) {
          std::vector<T> row = logits;
          const int32_t target = static_cast<int32_t>(last);
          double loss;
          int32_t argmax = -7;
          CrossEntropyRows(row.data(), width, &target, kIgnore, 1, width, 0.1, gradient, &loss, &argmax);
          ASSERT_EQ(argmax, expected) << "width " << width << " place " << place << " variant " << variant;
          ASSERT_EQ(std::isnan(loss), variant != 0 && variant != 4);
        }
      }
    }
  }
}

TYPED_TEST(LossTest, DenormalAndDistantLogitsCountAsZeroShares) {
  using T = TypeParam;
  for (int64_t width = 2; width <= 70; ++width) {
    std::vector<T> logits(width, T(-500));  // e^-500 is no float
    logits[0] = T(1e-40);
    logits[1] = T(-1e-40);
    const int32_t target = 1;
    double loss;
    int32_t argmax;
    CrossEntropyRows(logits.data(), width, &target, kIgnore, 1, width, 0.0, true, &loss, &argmax);
    EXPECT_NEAR(loss, std::log(2.0), 1e-7);
    EXPECT_EQ(argmax, 0);
    EXPECT_NEAR(logits[0], 0.5, 1e-7);
    EXPECT_NEAR(logits[1], -0.5, 1e-7);
    for (int64_t i = 2; i < width; ++i) EXPECT_NEAR(logits[i], 0, 1e-200);
  }
}

TYPED_TEST(LossTest, NanLossForNanLogitAndInfiniteLossForAnImpossibleTarget) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  T logits[9] = {1, nan, 0, -inf, 1, 1, -inf, -inf, -inf};
  const int32_t targets[3] = {0, 0, 1};
  double losses[3];
  int32_t argmax[3];
  CrossEntropyRows(logits, 3, targets, kIgnore, 3, 3, 0.0, true, losses, argmax);
  EXPECT_TRUE(std::isnan(losses[0]));
  EXPECT_TRUE(std::isnan(logits[0]));
  EXPECT_EQ(argmax[0], 1);
  EXPECT_EQ(losses[1], inf);
  EXPECT_EQ(logits[3], T{-1});
  EXPECT_EQ(logits[4], T(0.5));
  EXPECT_EQ(losses[2], inf);
  EXPECT_EQ(logits[6], T{0});
}

TEST(LossFloatTest, RowBitsDependOnNoOtherRow) {
  constexpr int64_t kWidth = 37;
  const std::vector<float> x = RandomFloats(4 * kWidth, 3);
  const int32_t targets[4] = {3, 36, kIgnore, 0};
  std::vector<float> all = x;
  double losses[4];
  CrossEntropyRows(all.data(), kWidth, targets, kIgnore, 4, kWidth, 0.1, true, losses, nullptr);
  for (int r = 0; r < 4; ++r) {
    std::vector<float> row(x.begin() + r * kWidth, x.begin() + (r + 1) * kWidth);
    double loss;
    CrossEntropyRows(row.data(), kWidth, &targets[r], kIgnore, 1, kWidth, 0.1, true, &loss, nullptr);
    EXPECT_EQ(loss, losses[r]);
    EXPECT_TRUE(SameBits(row, std::vector<float>(all.begin() + r * kWidth, all.begin() + (r + 1) * kWidth)));
  }
}

TEST(LossDoubleTest, GradientIsTheDerivative) {
  constexpr int64_t kWidth = 6;
  const std::vector<double> x = ToDouble(RandomFloats(kWidth, 4));
  const int32_t target = 2;
  const auto loss_of = [&](std::vector<double> logits) {
    double loss;
    CrossEntropyRows(logits.data(), kWidth, &target, kIgnore, 1, kWidth, 0.2, false, &loss, nullptr);
    return loss;
  };
  std::vector<double> gradient = x;
  double loss;
  CrossEntropyRows(gradient.data(), kWidth, &target, kIgnore, 1, kWidth, 0.2, true, &loss, nullptr);
  for (int64_t i = 0; i < kWidth; ++i) {
    const double h = 1e-5;
    std::vector<double> up = x, down = x;
    up[i] += h;
    down[i] -= h;
    EXPECT_NEAR(gradient[i], (loss_of(up) - loss_of(down)) / (2 * h), 1e-9);  // rounding 1e-15 / h, truncation h^2
  }
}

}  // namespace
}  // namespace weft::kernels
