#include "autograd/kernels/norm.h"

#include "gtest/gtest.h"
#include "tests/kernels/vectors.h"

namespace weft::kernels {
namespace {

template <class T>
class NormTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(NormTest, Types);

template <class T>
std::vector<T> LayerNormOfRow(const std::vector<T>& x, T gamma, T beta) {
  const int64_t width = static_cast<int64_t>(x.size());
  const std::vector<T> gammas(width, gamma), betas(width, beta);
  std::vector<T> y(width);
  double mean, rstd;
  LayerNormForward(x.data(), gammas.data(), betas.data(), y.data(), &mean, &rstd, 1, width, 1e-5);
  return y;
}

TYPED_TEST(NormTest, ConstantRowsGiveExactlyBeta) {
  using T = TypeParam;
  const T beta = T(0.3);
  EXPECT_EQ(LayerNormOfRow(std::vector<T>(256, T{1234}), T{1}, beta), std::vector<T>(256, beta));
  EXPECT_EQ(LayerNormOfRow(std::vector<T>(1, T(5.7)), T(1e10), beta), std::vector<T>(1, beta));
  EXPECT_EQ(LayerNormOfRow(std::vector<T>(4, T(3e38)), T{1}, beta), std::vector<T>(4, beta));
}

TEST(NormFloatTest, ConstantRowsOfAnyWidthGiveExactlyBeta) {
  for (int64_t width = 1; width <= 70; ++width) {
    EXPECT_EQ(LayerNormOfRow(std::vector<float>(width, 0.1f), 100.0f, 0.25f), std::vector<float>(width, 0.25f)) << width;
  }
}

TYPED_TEST(NormTest, HugeRowsDoNotOverflow) {
  using T = TypeParam;
  for (T size : {T(1e20), T(3e38)}) {
    const std::vector<T> x = {size, -size, size, -size};
    EXPECT_EQ(LayerNormOfRow(x, T{1}, T{0}), (std::vector<T>{1, -1, 1, -1}));
    std::vector<T> y(4);
    double rstd;
    RmsNormForward(x.data(), nullptr, y.data(), &rstd, 1, 4, 1e-5);
    EXPECT_EQ(y, (std::vector<T>{1, -1, 1, -1}));
  }
}

TYPED_TEST(NormTest, KnownValues) {
  using T = TypeParam;
  // Mean 2.5, variance 1.25; mean square 7.5.
  const T x[4] = {1, 2, 3, 4};
  T y[4];
  double mean, rstd;
  LayerNormForward(x, static_cast<const T*>(nullptr), static_cast<const T*>(nullptr), y, &mean, &rstd, 1, 4, 0);
  EXPECT_EQ(mean, 2.5);
  EXPECT_DOUBLE_EQ(rstd, 1 / std::sqrt(1.25));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], (x[i] - 2.5) / std::sqrt(1.25), 2e-7);
  RmsNormForward(x, static_cast<const T*>(nullptr), y, &rstd, 1, 4, 0);
  EXPECT_DOUBLE_EQ(rstd, 1 / std::sqrt(7.5));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], x[i] / std::sqrt(7.5), 2e-7);
}

TEST(NormFloatTest, ForwardAndBackwardAgreeWithThePlainLoop) {
  for (int64_t width = 1; width <= 70; width += width < 20 ? 1 : 7) {
    for (int64_t rows : {1, 3, 16, 37}) {
      const int64_t n = rows * width;
      const std::vector<float> x = RandomFloats(n, 1), gamma = RandomFloats(width, 2), beta = RandomFloats(width, 3);
      const std::vector<float> dy = RandomFloats(n, 4), start = RandomFloats(n, 5), start_gamma = RandomFloats(width, 6);
      const std::vector<double> x64 = ToDouble(x), gamma64 = ToDouble(gamma), beta64 = ToDouble(beta), dy64 = ToDouble(dy);
      for (bool rms : {false, true}) {
        std::vector<float> y(n), dx = start, dgamma = start_gamma, dbeta = start_gamma;
        std::vector<double> y64(n), dx64 = ToDouble(start), dgamma64 = ToDouble(start_gamma), dbeta64 = dgamma64;
        std::vector<double> mean(rows), rstd(rows), mean64(rows), rstd64(rows);
        if (rms) {
          RmsNormForward(x.data(), gamma.data(), y.data(), rstd.data(), rows, width, 1e-2);
          RmsNormForward(x64.data(), gamma64.data(), y64.data(), rstd64.data(), rows, width, 1e-2);
          RmsNormBackward(x.data(), gamma.data(), rstd.data(), dy.data(), dx.data(), dgamma.data(), rows, width);
          RmsNormBackward(x64.data(), gamma64.data(), rstd64.data(), dy64.data(), dx64.data(), dgamma64.data(), rows, width);
        } else {
          LayerNormForward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(), rows, width, 1e-2);
          LayerNormForward(x64.data(), gamma64.data(), beta64.data(), y64.data(), mean64.data(), rstd64.data(), rows, width,
                           1e-2);
          LayerNormBackward(x.data(), gamma.data(), mean.data(), rstd.data(), dy.data(), dx.data(), dgamma.data(), dbeta.data(),
                            rows, width);
          LayerNormBackward(x64.data(), gamma64.data(), mean64.data(), rstd64.data(), dy64.data(), dx64.data(), dgamma64.data(),
                            dbeta64.data(), rows, width);
        }
        for (int64_t r = 0; r < rows; ++r) {
          EXPECT_NEAR(mean[r], mean64[r], 1e-14);
          EXPECT_NEAR(rstd[r], rstd64[r], 1e-13 * rstd64[r]);
        }
        // h is below sqrt(width) < 9, so y below 18; dx terms below rstd (10) times 4 times 9: a few float roundings of those.
        for (int64_t i = 0; i < n; ++i) {
          EXPECT_NEAR(y[i], y64[i], 4e-6);
          EXPECT_NEAR(dx[i], dx64[i], 1e-4) << "width " << width << " rows " << rows;
        }
        // One rounding at up to 37 * 18 for each group of 16 rows.
        for (int64_t i = 0; i < width; ++i) {
          EXPECT_NEAR(dgamma[i], dgamma64[i], 1e-4);
          EXPECT_NEAR(dbeta[i], dbeta64[i], 1e-4);
        }
      }
    }
  }
}

TEST(NormFloatTest, RowsFarFromZeroOrHugeKeepTheirDigits) {
  constexpr int64_t kWidth = 37;
  const std::vector<float> dy = RandomFloats(kWidth, 10);
  const std::vector<double> dy64 = ToDouble(dy);
  for (float offset : {-1e6f, 1e6f, 3e38f}) {
    std::vector<float> x = RandomFloats(kWidth, 9), y(kWidth), dx(kWidth), dgamma(kWidth);
    for (float& v : x) v = offset > 1e30f ? v * 1e38f : offset + v;
    if (offset > 1e30f) std::fill_n(x.begin(), kWidth / 2, -offset);
    const std::vector<double> x64 = ToDouble(x);
    std::vector<double> y64(kWidth), dx64(kWidth), dgamma64(kWidth);
    double mean, rstd, mean64, rstd64;
    LayerNormForward(x.data(), nullptr, nullptr, y.data(), &mean, &rstd, 1, kWidth, 1e-5);
    LayerNormForward(x64.data(), nullptr, nullptr, y64.data(), &mean64, &rstd64, 1, kWidth, 1e-5);
    LayerNormBackward(x.data(), nullptr, &mean, &rstd, dy.data(), dx.data(), dgamma.data(), nullptr, 1, kWidth);
    LayerNormBackward(x64.data(), nullptr, &mean64, &rstd64, dy64.data(), dx64.data(), dgamma64.data(), nullptr, 1, kWidth);
    for (int64_t i = 0; i < kWidth; ++i) {
      EXPECT_NEAR(y[i], y64[i], 1e-6) << offset;
      EXPECT_NEAR(dx[i], dx64[i], 4e-6 * rstd64) << offset;
      EXPECT_NEAR(dgamma[i], dgamma64[i], 4e-6) << offset;
    }
  }
}

TEST(NormFloatTest, TinyRowsWithoutEpsilonAreStandardized) {
  for (float size : {1e-30f, 1e-37f, 1e-44f}) {  // the last is a denormal number
    const std::vector<float> x = {size, -size, size, -size};
    std::vector<float> y(4);
    double mean, rstd;
    LayerNormForward(x.data(), nullptr, nullptr, y.data(), &mean, &rstd, 1, 4, 0);
    EXPECT_EQ(y, (std::vector<float>{1, -1, 1, -1})) << size;
  }
}

TEST(NormFloatTest, AnyGradientMayBeLeftOut) {
  constexpr int64_t kRows = 5, kWidth = 11;
  const std::vector<float> x = RandomFloats(kRows * kWidth, 7), dy = RandomFloats(kRows * kWidth, 8);
  std::vector<float> y(x.size()), dx(x.size()), dgamma(kWidth), dbeta(kWidth), dx2(x.size()), dgamma2(kWidth), dbeta2(kWidth);
  std::vector<double> mean(kRows), rstd(kRows);
  LayerNormForward(x.data(), nullptr, nullptr, y.data(), mean.data(), rstd.data(), kRows, kWidth, 1e-5);
  LayerNormBackward(x.data(), nullptr, mean.data(), rstd.data(), dy.data(), dx.data(), dgamma.data(), dbeta.data(), kRows,
                    kWidth);
  LayerNormBackward(x.data(), nullptr, mean.data(), rstd.data(), dy.data(), dx2.data(), nullptr, nullptr, kRows, kWidth);
  LayerNormBackward(x.data(), nullptr, mean.data(), rstd.data(), dy.data(), nullptr, dgamma2.data(), nullptr, kRows, kWidth);
  LayerNormBackward(x.data(), nullptr, mean.data(), rstd.data(), dy.data(), nullptr, nullptr, dbeta2.data(), kRows, kWidth);
  EXPECT_TRUE(SameBits(dx, dx2) && SameBits(dgamma, dgamma2) && SameBits(dbeta, dbeta2));
}

TEST(NormFloatTest, RowBitsDependOnNoOtherRow) {
  for (int64_t width : {1, 5, 16, 33}) {
    const std::vector<float> x = RandomFloats(20 * width, 9), dy = RandomFloats(20 * width, 10),
                             gamma = RandomFloats(width, 11);
    std::vector<float> y(x.size()), dx(x.size()), one(width), done(width);
    std::vector<double> mean(20), rstd(20);
    LayerNormForward(x.data(), gamma.data(), gamma.data(), y.data(), mean.data(), rstd.data(), 20, width, 1e-5);
    LayerNormBackward(x.data(), gamma.data(), mean.data(), rstd.data(), dy.data(), dx.data(), nullptr, nullptr, 20, width);
    for (int64_t r = 0; r < 20; ++r) {
      double m, s;
      std::fill(done.begin(), done.end(), 0.0f);
      LayerNormForward(&x[r * width], gamma.data(), gamma.data(), one.data(), &m, &s, 1, width, 1e-5);
      LayerNormBackward(&x[r * width], gamma.data(), &m, &s, &dy[r * width], done.data(), nullptr, nullptr, 1, width);
      EXPECT_TRUE(SameBits(one, std::vector<float>(y.begin() + r * width, y.begin() + (r + 1) * width)));
      EXPECT_TRUE(SameBits(done, std::vector<float>(dx.begin() + r * width, dx.begin() + (r + 1) * width)));
    }
  }
}

TEST(NormDoubleTest, BackwardIsTheDerivative) {
  constexpr int64_t kRows = 3, kWidth = 5, kN = kRows * kWidth;
  const std::vector<double> dy = ToDouble(RandomFloats(kN, 12));
  for (bool rms : {false, true}) {
    // x, then gamma, then beta, in one list.
    std::vector<double> inputs = ToDouble(RandomFloats(kN + 2 * kWidth, 13)), mean(kRows), rstd(kRows);
    const auto loss = [&](const std::vector<double>& in) {
      std::vector<double> y(kN);
      const double *x = in.data(), *gamma = x + kN, *beta = gamma + kWidth;
      rms ? RmsNormForward(x, gamma, y.data(), rstd.data(), kRows, kWidth, 1e-3)
          : LayerNormForward(x, gamma, beta, y.data(), mean.data(), rstd.data(), kRows, kWidth, 1e-3);
      double sum = 0;
      for (int64_t i = 0; i < kN; ++i) sum += dy[i] * y[i];
      return sum;
    };
    loss(inputs);
    std::vector<double> gradient(inputs.size());
    const std::vector<double> saved_mean = mean, saved_rstd = rstd;
    double *dx = gradient.data(), *dgamma = dx + kN, *dbeta = dgamma + kWidth;
    const double *x = inputs.data(), *gamma = x + kN;
    rms ? RmsNormBackward(x, gamma, saved_rstd.data(), dy.data(), dx, dgamma, kRows, kWidth)
        : LayerNormBackward(x, gamma, saved_mean.data(), saved_rstd.data(), dy.data(), dx, dgamma, dbeta, kRows, kWidth);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double h = 1e-5;
      std::vector<double> up = inputs, down = inputs;
      up[i] += h;
      down[i] -= h;
      // Truncation h^2 times third derivatives (rstd^3, at most 1e2 here), rounding 1e-15 / h.
      EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / (2 * h), 1e-7) << (rms ? "rms " : "layer ") << i;
    }
  }
}

}  // namespace
}  // namespace weft::kernels
