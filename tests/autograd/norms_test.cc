// LayerNorm and RmsNorm against plain loops and known values, in both dtypes.
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "tests/autograd/numbers.h"

namespace weft {
namespace {

std::vector<double> PlainLayerNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  const int64_t width = x.shape().width();
  std::vector<double> y(x.elements());
  for (int64_t row = 0; row < x.shape().rows(); ++row) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < width; ++j) mean += x.At(row * width + j) / width;
    for (int64_t j = 0; j < width; ++j) variance += std::pow(x.At(row * width + j) - mean, 2) / width;
    for (int64_t j = 0; j < width; ++j) {
      const double h = (x.At(row * width + j) - mean) / std::sqrt(variance + eps);
      y[row * width + j] = gamma.At(j) * h + (beta.defined() ? beta.At(j) : 0);
    }
  }
  return y;
}

std::vector<double> PlainRmsNorm(const Tensor& x, const Tensor& gamma, double eps) {
  const int64_t width = x.shape().width();
  std::vector<double> y(x.elements());
  for (int64_t row = 0; row < x.shape().rows(); ++row) {
    double square = 0;
    for (int64_t j = 0; j < width; ++j) square += std::pow(x.At(row * width + j), 2) / width;
    for (int64_t j = 0; j < width; ++j) y[row * width + j] = gamma.At(j) * x.At(row * width + j) / std::sqrt(square + eps);
  }
  return y;
}

// Statistics are double; an f32 result is rounded a few times, and |y| < 6 * 6 + 6 for normal x, gamma and beta: 4 ulp of 64.
double Tolerance(DType dtype) { return dtype == DType::kF32 ? 4 * 64 * 0x1p-24 : 1e-13; }

// Layer norm of one row with gamma 1 and the given beta.
std::vector<double> OneRow(DType dtype, std::initializer_list<double> x, double beta, double eps, double gamma = 1) {
  const auto width = static_cast<int64_t>(x.size());
  const Numbers xs(dtype, {1, width}, x);
  std::vector<double> gammas(width, gamma), betas(width, beta);
  Tape tape;
  const auto as_dtype = [&](std::vector<double>& v) {
    return Cast(tape.Constant(Tensor::Of(absl::MakeSpan(v), {width})), dtype);
  };
  return ToDoubles(LayerNorm(tape.Constant(xs), as_dtype(gammas), as_dtype(betas), eps).value());
}

TEST(LayerNormTest, MatchesPlainLoops) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    for (int64_t width : {1, 2, 7, 16, 65}) {
      const Numbers x(dtype, {2, 3, width}, 1), gamma(dtype, {width}, 2), beta(dtype, {width}, 3);
      Tape tape;
      const Variable vx = tape.Constant(x), vg = tape.Constant(gamma), vb = tape.Constant(beta);
      EXPECT_LE(LargestDifference(ToDoubles(LayerNorm(vx, vg, vb, 1e-5).value()), PlainLayerNorm(x, gamma, beta, 1e-5)),
                Tolerance(dtype));
      EXPECT_LE(LargestDifference(ToDoubles(LayerNorm(vx, vg, {}, 1e-5).value()), PlainLayerNorm(x, gamma, Tensor(), 1e-5)),
                Tolerance(dtype));
    }
  }
}

TEST(LayerNormTest, GradientsMatchDifferences) { ExpectGradientsOf("layer_norm"); }

TEST(LayerNormTest, ConstantRowGivesExactlyBeta) {  // B022
  const Numbers x(DType::kF32, {2, 256}, std::vector<double>(512, 1234.0));
  const Numbers gamma(DType::kF32, {256}, std::vector<double>(256, 1.0)),
      beta(DType::kF32, {256}, std::vector<double>(256, 0.5));
  Tape tape;
  const Variable y = LayerNorm(tape.Constant(x), tape.Constant(gamma), tape.Constant(beta), 1e-5);
  EXPECT_EQ(ToDoubles(y.value()), std::vector<double>(512, 0.5));
}

TEST(LayerNormTest, EpsIsInsideOfTheRootAndTheVarianceIsBiased) {  // B022
  for (DType dtype : {DType::kF32, DType::kF64}) {
    EXPECT_LE(LargestDifference(OneRow(dtype, {0, 0.002}, 0, 1e-5), {-0.301511, 0.301511}), 1e-6);
    EXPECT_LE(LargestDifference(OneRow(dtype, {1, 2, 3, 4}, 0, 1e-5), {-1.341635, -0.447212, 0.447212, 1.341635}), 1e-6);
    EXPECT_EQ(OneRow(dtype, {42}, 0.5, 1e-5, 1e10), std::vector<double>({0.5}));  // width 1: exactly beta
  }
}

TEST(LayerNormTest, LargeFiniteInputsDoNotOverflow) {  // B023
  EXPECT_LE(LargestDifference(OneRow(DType::kF32, {1e20, -1e20, 1e20, -1e20}, 0, 1e-5), {1, -1, 1, -1}), 1e-6);
  EXPECT_EQ(OneRow(DType::kF32, {3e38, 3e38, 3e38, 3e38}, 0.25, 1e-5), std::vector<double>(4, 0.25));
}

// Gradients of 2 dtypes over several tiles of rows: the sums for gamma and beta are joined across tiles.
TEST(LayerNormTest, GradientsOfManyRowsMatchDouble) {
  const int64_t rows = 1500, width = 67;
  std::vector<std::vector<double>> dx, dgamma, dbeta;
  for (DType dtype : {DType::kF64, DType::kF32}) {
    const Numbers x(dtype, {rows, width}, 1), gamma(dtype, {width}, 2), beta(dtype, {width}, 3), up(dtype, {rows, width}, 4);
    Tape tape;
    const Variable vx = tape.Input(x), vg = tape.Input(gamma), vb = tape.Input(beta);
    tape.Backward(LayerNorm(vx, vg, vb, 1e-5), up);
    dx.push_back(ToDoubles(tape.Gradient(vx)));
    dgamma.push_back(ToDoubles(tape.Gradient(vg)));
    dbeta.push_back(ToDoubles(tape.Gradient(vb)));
  }
  std::vector<double> sums(width);
  const Numbers up(DType::kF64, {rows, width}, 4);
  for (int64_t i = 0; i < rows * width; ++i) sums[i % width] += up.tensor().At(i);
  EXPECT_LE(LargestDifference(dbeta[0], sums), 1e-10);
  // A tile has 489 rows: below 500 + 10 roundings of sums below 6 sqrt(1500) (232).
  EXPECT_LE(LargestDifference(dbeta[0], dbeta[1]), 510 * 0x1p-24 * 232);
  EXPECT_LE(LargestDifference(dgamma[0], dgamma[1]), 510 * 0x1p-24 * 232 * 2);
  EXPECT_LE(LargestDifference(dx[0], dx[1]), 64 * 64 * 0x1p-24);  // terms below 64, some 64 ulp of them
}

TEST(LayerNormTest, SameBitsForAnyNumberOfThreads) {
  const Numbers x(DType::kF32, {1500, 67}, 1), gamma(DType::kF32, {67}, 2), beta(DType::kF32, {67}, 3),
      up(DType::kF32, {1500, 67}, 4);
  std::vector<std::vector<char>> results;
  for (int threads : {1, 2, 4}) {
    Workers(threads).Run([&] {
      Tape tape;
      const Variable vx = tape.Input(x), vg = tape.Input(gamma), vb = tape.Input(beta);
      tape.Backward(LayerNorm(vx, vg, vb, 1e-5), up);
      results.push_back(ToBytes(tape.Gradient(vg)));
      results.push_back(ToBytes(tape.Gradient(vb)));
    });
  }
  EXPECT_TRUE(results[0] == results[2] && results[0] == results[4]);
  EXPECT_TRUE(results[1] == results[3] && results[1] == results[5]);
}

TEST(LayerNormTest, NoRows) {
  const Numbers x(DType::kF32, {0, 3}, 1), gamma(DType::kF32, {3}, 2), beta(DType::kF32, {3}, 3);
  Tape tape;
  const Variable vx = tape.Input(x), vg = tape.Input(gamma), vb = tape.Input(beta);
  const Variable y = LayerNorm(vx, vg, vb, 1e-5);
  tape.Backward(y, Numbers(DType::kF32, {0, 3}, 4));
  EXPECT_EQ(ToDoubles(tape.Gradient(vg)), std::vector<double>(3, 0.0));
}

TEST(LayerNormDeathTest, WidthsThatDoNotFitAreNamed) {
  const Numbers x(DType::kF32, {2, 3}, 1), gamma(DType::kF32, {4}, 2), good(DType::kF32, {3}, 2);
  Tape tape;
  const Variable vx = tape.Constant(x), vg = tape.Constant(gamma), vgood = tape.Constant(good);
  EXPECT_DEATH(LayerNorm(vx, vg, {}, 1e-5), "layer_norm: gamma f32\\[4\\] does not fit x f32\\[2, 3\\]");
  EXPECT_DEATH(LayerNorm(vx, vgood, vg, 1e-5), "layer_norm: beta f32\\[4\\] does not fit x f32\\[2, 3\\]");
  EXPECT_DEATH(RmsNorm(vx, vg, 1e-5), "rms_norm: gamma f32\\[4\\] does not fit x f32\\[2, 3\\]");
}

TEST(RmsNormTest, MatchesPlainLoops) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    for (int64_t width : {1, 2, 7, 16, 65}) {
      const Numbers x(dtype, {5, width}, 1), gamma(dtype, {width}, 2);
      Tape tape;
      EXPECT_LE(LargestDifference(ToDoubles(RmsNorm(tape.Constant(x), tape.Constant(gamma), 1e-6).value()),
                                  PlainRmsNorm(x, gamma, 1e-6)),
                Tolerance(dtype));
    }
  }
}

TEST(RmsNormTest, GradientsMatchDifferences) { ExpectGradientsOf("rms_norm"); }

TEST(RmsNormTest, GradientsOfManyRowsMatchDouble) {
  std::vector<std::vector<double>> dgamma;
  for (DType dtype : {DType::kF64, DType::kF32}) {
    const Numbers x(dtype, {1500, 67}, 1), gamma(dtype, {67}, 2), up(dtype, {1500, 67}, 4);
    Tape tape;
    const Variable vg = tape.Input(gamma);
    tape.Backward(RmsNorm(tape.Constant(x), vg, 1e-5), up);
    dgamma.push_back(ToDoubles(tape.Gradient(vg)));
  }
  EXPECT_LE(LargestDifference(dgamma[0], dgamma[1]), 510 * 0x1p-24 * 232 * 2);  // as for LayerNorm
}

TEST(RmsNormTest, ZerosStayZero) {
  const Numbers x(DType::kF32, {1, 3}, {0, 0, 0}), gamma(DType::kF32, {3}, 2);
  Tape tape;
  EXPECT_EQ(ToDoubles(RmsNorm(tape.Constant(x), tape.Constant(gamma), 1e-5).value()), std::vector<double>(3, 0.0));
}

}  // namespace
}  // namespace weft
