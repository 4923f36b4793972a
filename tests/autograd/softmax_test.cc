#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "tests/autograd/check_gradient.h"

namespace weft {
namespace {

using testing::ExpectGradients;
using testing::ExpectNear;
using testing::Inputs;
using testing::Numbers;
using testing::Pass;
using testing::Random;
using testing::RunOnce;

const double kInf = std::numeric_limits<double>::infinity();

Variable SoftmaxOf(const Inputs& x) { return Softmax(x[0]); }
Variable LogSoftmaxOf(const Inputs& x) { return LogSoftmax(x[0]); }

TEST(Softmax, ValuesEqualTheFormula) {
  const Numbers x = Random({4, 7}, 1, -3, 3);
  const Pass y = RunOnce<double>({x}, SoftmaxOf), log_y = RunOnce<double>({x}, LogSoftmaxOf);
  for (int64_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 7; ++i) sum += std::exp(x.values[row * 7 + i]);
    for (int64_t i = row * 7; i < row * 7 + 7; ++i) {
      EXPECT_NEAR(y.output[i], std::exp(x.values[i]) / sum, 1e-15);
      EXPECT_NEAR(log_y.output[i], x.values[i] - std::log(sum), 1e-14);
    }
  }
}

TEST(Softmax, RowsSumToOne) {
  const Pass run = RunOnce<float>({Random({50, 13}, 2, -20, 20)}, SoftmaxOf);
  for (int64_t row = 0; row < 50; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 13; ++i) sum += run.output[row * 13 + i];
    EXPECT_NEAR(sum, 1, 1e-6);  // 13 roundings of at most 2^-24
  }
}

TEST(Softmax, GradientsEqualDifferences) {
  for (const Shape& shape : {Shape({4, 7}), Shape({2, 3, 5}), Shape({1, 1}), Shape({9}), Shape({0, 3}), Shape({3, 0})}) {
    SCOPED_TRACE(shape);
    ExpectGradients({Random(shape, 3, -2, 2)}, SoftmaxOf);
    ExpectGradients({Random(shape, 4, -2, 2)}, LogSoftmaxOf);
  }
}

TEST(Softmax, LargeValuesDoNotOverflow) {
  const std::vector<Numbers> x = {{Shape({2}), {10000, 10000}}};
  EXPECT_EQ(RunOnce<float>(x, SoftmaxOf).output, std::vector<double>({0.5, 0.5}));
  EXPECT_NEAR(RunOnce<float>(x, LogSoftmaxOf).output[0], std::log(0.5), 1e-6);
}

TEST(Softmax, MaskedElementsGetZeroAndAFullyMaskedRowIsZero) {
  const std::vector<Numbers> x = {{Shape({2, 3}), {1, -kInf, 1, -kInf, -kInf, -kInf}}};
  for (const Pass& run : {RunOnce<float>(x, SoftmaxOf), RunOnce<double>(x, SoftmaxOf)}) {
    EXPECT_EQ(run.output, std::vector<double>({0.5, 0, 0.5, 0, 0, 0}));
    EXPECT_EQ(run.gradients[0][1], 0);
    for (int i = 3; i < 6; ++i) EXPECT_EQ(run.gradients[0][i], 0);
  }
  for (const Pass& run : {RunOnce<float>(x, LogSoftmaxOf), RunOnce<double>(x, LogSoftmaxOf)}) {
    for (double g : run.gradients[0]) EXPECT_FALSE(std::isnan(g));
    EXPECT_NEAR(run.output[0], std::log(0.5), 1e-6);
    EXPECT_EQ(run.output[1], -kInf);
  }
}

// Beyond one tile: each row has the same bits as alone.
TEST(Softmax, ARowDoesNotDependOnItsNeighbours) {
  const int64_t rows = 700, width = 101;
  const Numbers x = Random({rows, width}, 5, -3, 3);
  for (const auto& f : {SoftmaxOf, LogSoftmaxOf}) {
    const Pass all = RunOnce<float>({x}, f);
    for (int64_t row : {0, 323, 324, 699}) {
      const std::vector<double> values(x.values.begin() + row * width, x.values.begin() + (row + 1) * width);
      const Pass alone = RunOnce<float>({{Shape({1, width}), values}}, f);
      const std::vector<double> part(all.output.begin() + row * width, all.output.begin() + (row + 1) * width);
      EXPECT_EQ(alone.output, part) << row;
    }
  }
}

TEST(SoftmaxDeathTest, NeedsADimension) {
  Tape tape;
  std::vector<double> x = {1};
  EXPECT_DEATH(Softmax(tape.Input(Tensor::Of(absl::MakeSpan(x), {}))), "softmax: needs a last dimension");
}

}  // namespace
}  // namespace weft
