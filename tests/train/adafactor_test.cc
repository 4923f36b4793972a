#include "train/adafactor.h"

#include <cmath>
#include <string>
#include <vector>

#include "autograd/base/random.h"
#include "gtest/gtest.h"
#include "layers/builder.h"
#include "train/optimizer.h"

namespace weft {
namespace {

OptimizerConfig Config(double weight_decay) {
  OptimizerConfig config;
  config.kind = "adafactor";
  config.weight_decay = weight_decay;
  config.decay = "all";
  return config;
}

// The formulas of adafactor.h as plain loops over one matrix, or a vector (rows = 0).
struct Plain {
  int64_t rows, columns;
  std::vector<double> p, row, column;

  void Step(const std::vector<double>& g, int t, double lr, double weight_decay) {
    const double beta = 1 - std::pow(t, -0.8);
    const int64_t n = std::max<int64_t>(rows, 1), m = columns;
    std::vector<double> u(g.size());
    double row_mean = 0;
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < m; ++j) sum += g[i * m + j] * g[i * m + j] + 1e-30;
      row[i] = beta * row[i] + (1 - beta) * sum / static_cast<double>(m);
      row_mean += row[i] / static_cast<double>(rows);
    }
    for (int64_t j = 0; j < m; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += g[i * m + j] * g[i * m + j] + 1e-30;
      column[j] = beta * column[j] + (1 - beta) * sum / static_cast<double>(n);
    }
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        const double v = rows == 0 ? column[j] : row[i] * column[j] / row_mean;
        u[i * m + j] = g[i * m + j] / std::sqrt(v);
        squares += u[i * m + j] * u[i * m + j];
      }
    }
    const double clip = std::max(1.0, std::sqrt(squares / static_cast<double>(n * m)));
    for (size_t i = 0; i < u.size(); ++i) p[i] = (1 - lr * weight_decay) * p[i] - lr * u[i] / clip;
  }
};

TEST(Adafactor, TwoStepsOfASmallMatrixByHand) {
  Parameters parameters;
  Builder(&parameters).Parameter("w", {2, 2}, Init::Zeros());
  parameters.Allocate(DType::kF64, 1);
  Optimizer optimizer(Config(0.5), parameters);
  const Slab gradients(DType::kF64, parameters.slab_size());
  const auto step = [&](const std::vector<double>& g) {
    for (int64_t i = 0; i < 4; ++i) gradients.tensor().Set(i, 2 * g[i]);
    EXPECT_TRUE(optimizer.Step(&parameters, gradients.tensor(), 0.5, 0.0, 0.1).weights_finite);
  };
  // Rows' means of squares 2.5 and 12.5, columns' 5 and 10: v_11 = 2.5 5 / 7.5, u_11 = 1 / sqrt(v_11) = .7745967. RMS(u) < 1.
  step({1, 2, 3, 4});
  const double first[] = {-0.07745966692, -0.10954451150, -0.10392304845, -0.09797958971};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(parameters.value(0).At(i), first[i], 1e-10);
  // beta = 1 - 2^-.8; RMS(u) = 1.11548 is clipped to 1. From the paper's formulas in another program.
  step({4, 0, -10, 6});
  const double second[] = {-0.20023648015, -0.10406728593, 0.01433997347, -0.19879585061};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(parameters.value(0).At(i), second[i], 1e-10);
  ASSERT_EQ(optimizer.state().size(), 2u);
  EXPECT_EQ(optimizer.state()[0].name, "row/w");
  EXPECT_NEAR(optimizer.state()[0].value.At(1), 44.37637935, 1e-7);
  EXPECT_EQ(optimizer.state()[1].name, "column/w");
  EXPECT_NEAR(optimizer.state()[1].value.At(0), 35.44050641, 1e-7);
}

// Sizes below, at and above the least tile, and a tensor of rank 3, whose last dimension has the columns.
TEST(Adafactor, AgreesWithThePlainLoop) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    Parameters parameters;
    Builder builder(&parameters);
    const std::vector<Shape> shapes = {{1, 5}, {5, 1}, {37, 19}, {600, 130}, {3, 7, 4}, {33}};
    for (size_t i = 0; i < shapes.size(); ++i) builder.Parameter("p" + std::to_string(i), shapes[i], Init::Normal(1));
    parameters.Allocate(dtype, 1);
    std::vector<Plain> plain;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const int64_t columns = shapes[i][shapes[i].rank() - 1], n = shapes[i].elements();
      Plain one{shapes[i].rank() == 1 ? 0 : n / columns, columns, {}, {}, {}};
      for (int64_t e = 0; e < n; ++e) one.p.push_back(parameters.value(static_cast<int>(i)).At(e));
      one.row.resize(one.rows);
      one.column.resize(columns);
      plain.push_back(one);
    }
    Optimizer optimizer(Config(0.1), parameters);
    const Slab gradients(dtype, parameters.slab_size());
    for (int t = 1; t <= 4; ++t) {
      for (size_t i = 0; i < shapes.size(); ++i) {
        const Tensor g = Parameters::In(gradients.tensor(), parameters.list()[i]);
        const RandomKey key = RandomKey{static_cast<uint64_t>(t)}.Fold(i);
        std::vector<double> values(g.elements());
        for (int64_t e = 0; e < g.elements(); ++e) {
          g.Set(e, key.Normal(e) * (e % 3 == 0 ? 10 : 1));
          values[e] = g.At(e) / 4;
        }
        plain[i].Step(values, t, 0.05, 0.1);
      }
      optimizer.Step(&parameters, gradients.tensor(), 0.25, 0.0, 0.05);
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Tensor p = parameters.value(static_cast<int>(i));
      // f32: a few roundings of numbers below 5, steps below 0.5 with relative errors of a few 1e-7.
      for (int64_t e = 0; e < p.elements(); ++e) {
        ASSERT_NEAR(p.At(e), plain[i].p[e], dtype == DType::kF32 ? 3e-6 : 1e-12) << i << " " << e;
      }
    }
  }
}

TEST(Adafactor, StateIsTheSumOfTheSidesAndZeroGradientsMoveNothing) {
  Parameters parameters;
  Builder builder(&parameters);
  builder.Parameter("w", {300, 200}, Init::Normal(1));
  builder.Parameter("b", {200}, Init::Normal(1));
  parameters.Allocate(DType::kF32, 1);
  Optimizer optimizer(Config(0), parameters);
  int64_t numbers = 0;
  for (const NamedTensor& state : optimizer.state()) numbers += state.value.elements();
  EXPECT_EQ(numbers, 300 + 200 + 200);
  const float before = static_cast<float>(parameters.value(0).At(777));
  const Slab gradients(DType::kF32, parameters.slab_size());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(optimizer.Step(&parameters, gradients.tensor(), 1, 1, 0.1).weights_finite);
  EXPECT_EQ(parameters.value(0).At(777), before);
}

}  // namespace
}  // namespace weft
