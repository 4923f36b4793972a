#include <gtest/gtest.h>

#include <algorithm>
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

enum class Kind { kSum, kMean, kMax };

Variable Reduce(Kind kind, Variable x, int axis, bool keep) {
  return kind == Kind::kSum ? Sum(x, axis, keep) : kind == Kind::kMean ? Mean(x, axis, keep) : Max(x, axis, keep);
}

std::vector<double> Expected(Kind kind, const Numbers& x, int axis) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape[i];
  for (int i = axis + 1; i < x.shape.rank(); ++i) inner *= x.shape[i];
  const int64_t n = x.shape[axis];
  std::vector<double> result;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double sum = 0, largest = -std::numeric_limits<double>::infinity();
      for (int64_t k = 0; k < n; ++k) {
        sum += x.values[(o * n + k) * inner + i];
        largest = std::max(largest, x.values[(o * n + k) * inner + i]);
      }
      result.push_back(kind == Kind::kMax ? largest : kind == Kind::kSum ? sum : sum / n);
    }
  }
  return result;
}

TEST(Reductions, EveryAxisOfEveryRank) {
  for (Kind kind : {Kind::kSum, Kind::kMean, Kind::kMax}) {
    for (const Shape& shape : {Shape({2, 3, 4, 5}), Shape({3, 1, 2}), Shape({4, 3}), Shape({7}), Shape({1})}) {
      for (int axis = 0; axis < shape.rank(); ++axis) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(kind) << " " << shape << " axis " << axis);
        const Numbers x = Random(shape, 1);
        const auto f = [&](const Inputs& v) { return Reduce(kind, v[0], axis, false); };
        const Pass run = RunOnce<double>({x}, f);
        EXPECT_EQ(run.shape.rank(), shape.rank() - 1);
        ExpectNear(run.output, Expected(kind, x, axis), 1e-14, "value");
        ExpectGradients({x}, f);
        const Pass kept = RunOnce<double>({x}, [&](const Inputs& v) { return Reduce(kind, v[0], axis - shape.rank(), true); });
        EXPECT_EQ(kept.shape, shape.With(axis, 1));
        EXPECT_EQ(kept.output, run.output);
      }
    }
  }
}

TEST(Reductions, SumOverAnEmptyAxisIsZero) {
  const Pass run = RunOnce<double>({Random({3, 0}, 1)}, [](const Inputs& v) { return Sum(v[0], 1); });
  EXPECT_EQ(run.output, std::vector<double>({0, 0, 0}));
  EXPECT_EQ(RunOnce<double>({Random({0, 3}, 1)}, [](const Inputs& v) { return Sum(v[0], 0); }).output, run.output);
  EXPECT_EQ(RunOnce<double>({Random({0, 3}, 1)}, [](const Inputs& v) { return Sum(v[0], 1); }).shape, Shape({0}));
  EXPECT_EQ(RunOnce<double>({Random({0, 3}, 1)}, [](const Inputs& v) { return Max(v[0], 1); }).shape, Shape({0}));
}

TEST(Reductions, SumAllAddsEveryElement) {
  for (const Shape& shape : {Shape({3, 5}), Shape({}), Shape({0, 2}), Shape({2, 2, 2, 2})}) {
    const Numbers x = Random(shape, 2);
    double sum = 0;
    for (double v : x.values) sum += v;
    const auto f = [](const Inputs& v) { return SumAll(v[0]); };
    const Pass run = RunOnce<double>({x}, f);
    EXPECT_EQ(run.shape, Shape());
    EXPECT_NEAR(run.output[0], sum, 1e-14);
    ExpectGradients({x}, f);
  }
}

// Beyond one tile, along the last axis, along the first (more than one block of columns), and over all.
TEST(Reductions, LargeTensorsEqualAPlainLoop) {
  const Numbers x = Random({300, 700}, 3);
  for (Kind kind : {Kind::kSum, Kind::kMean, Kind::kMax}) {
    for (int axis : {0, 1}) {
      const auto f = [&](const Inputs& v) { return Reduce(kind, v[0], axis, false); };
      const Pass run = RunOnce<double>({x}, f), single = RunOnce<float>({x}, f);
      ExpectNear(run.output, Expected(kind, x, axis), 1e-12, "value");
      // Sums of up to 700 f32 inputs that are each rounded by at most 2^-25: as a random walk below 1e-6, plus 2^-24 of the
      // result.
      ExpectNear(single.output, run.output, 5e-6, "f32 value");
      ExpectNear(single.gradients[0], run.gradients[0], 1e-7, "f32 gradient");
      double upstream = 0, received = 0;  // each output's gradient arrives: whole at one place, or at each
      const std::vector<double> u = testing::Uniform(run.output.size(), 77);
      for (double v : u) upstream += v * (kind == Kind::kSum ? x.shape[axis] : 1);
      for (double v : run.gradients[0]) received += v;
      EXPECT_NEAR(received, upstream, 1e-9);
    }
  }
  double sum = 0;
  for (double v : x.values) sum += v;
  EXPECT_NEAR(RunOnce<double>({x}, [](const Inputs& v) { return SumAll(v[0]); }).output[0], sum, 1e-9);
}

// Terms of 1 vanish next to 2^24 in f32; the sums are f64.
TEST(Reductions, F32SumsKeepSmallTerms) {
  std::vector<double> values(1001, 1.0);
  values[0] = 1 << 24;
  const double sum = (1 << 24) + 1000;
  EXPECT_EQ(RunOnce<float>({{Shape({1001}), values}}, [](const Inputs& v) { return SumAll(v[0]); }).output[0], sum);
  EXPECT_EQ(RunOnce<float>({{Shape({1001}), values}}, [](const Inputs& v) { return Sum(v[0], 0); }).output[0], sum);
  std::vector<double> columns;
  for (double v : values) columns.insert(columns.end(), {v, v});
  EXPECT_EQ(RunOnce<float>({{Shape({1001, 2}), columns}}, [](const Inputs& v) { return Sum(v[0], 0); }).output[1], sum);
}

TEST(Reductions, TheGradientOfTiesGoesToTheFirst) {
  const auto gradient = [](const Shape& shape, const std::vector<double>& x, int axis) {
    return RunOnce<double>(
               {{shape, x}}, [&](const Inputs& v) { return Max(v[0], axis); }, 0, 1.0)
        .gradients[0];
  };
  EXPECT_EQ(gradient({3}, {2, 2, 1}, 0), std::vector<double>({1, 0, 0}));
  EXPECT_EQ(gradient({3, 2}, {2, 1, 2, 3, 1, 3}, 0), std::vector<double>({1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(gradient({2, 2}, {5, 5, -1, -1}, 1), std::vector<double>({1, 0, 1, 0}));
}

TEST(Reductions, MaxPlusItsInputIsLinear) {
  const Pass run = RunOnce<double>(
      {{Shape({2}), {2, 3}}}, [](const Inputs& v) { return Add(Max(v[0], 0), v[0]); }, 0, 1.0);
  // y_i = max(x) + x_i for two i: the sum is 2 max(x) + x_0 + x_1.
  EXPECT_EQ(run.gradients[0], std::vector<double>({1, 3}));
  const Pass scalar = RunOnce<double>(
      {{Shape({2}), {2, 3}}}, [](const Inputs& v) { return Add(Max(v[0], 0), SumAll(v[0])); }, 0, 1.0);
  EXPECT_EQ(scalar.gradients[0], std::vector<double>({1, 2}));
}

TEST(Reductions, MaxOfNanIsNanAlongEveryAxis) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Numbers> x = {{Shape({2, 2}), {1, nan, 3, 4}}};
  EXPECT_TRUE(std::isnan(RunOnce<float>(x, [](const Inputs& v) { return Max(v[0], 0); }).output[1]));
  EXPECT_TRUE(std::isnan(RunOnce<float>(x, [](const Inputs& v) { return Max(v[0], 1); }).output[0]));
  EXPECT_EQ(RunOnce<float>(x, [](const Inputs& v) { return Max(v[0], 1); }).output[1], 4);
}

TEST(ReductionsDeathTest, RefuseAWrongAxisAndAnEmptyOne) {
  Tape tape;
  std::vector<double> x(6);
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x), {2, 3}));
  const Variable empty = tape.Input(Tensor::Of(absl::MakeSpan(x).subspan(0, 0), {2, 0}));
  EXPECT_DEATH(Sum(v, 2), "sum: axis 2 of shape \\[2, 3\\]");
  EXPECT_DEATH(Max(v, -3), "max: axis -3 of shape \\[2, 3\\]");
  EXPECT_DEATH(Mean(empty, 1), "mean: axis 1 of shape \\[2, 0\\] is empty");
  EXPECT_DEATH(Max(empty, 1), "max: axis 1 of shape \\[2, 0\\] is empty");
}

}  // namespace
}  // namespace weft
