#include "train/muon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "autograd/base/parallel.h"
#include "autograd/base/random.h"
#include "layers/builder.h"
#include "train/optimizer.h"

namespace weft {
namespace {

using testing::ElementsAre;

OptimizerConfig Config(double momentum, double weight_decay = 0) {
  OptimizerConfig config;
  config.kind = "muon";
  config.momentum = momentum;
  config.weight_decay = weight_decay;
  return config;
}

using Rows = std::vector<std::vector<double>>;

Rows Product(const Rows& a, const Rows& b) {
  Rows c(a.size(), std::vector<double>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b[0].size(); ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Rows Transposed(const Rows& a) {
  Rows t(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[0].size(); ++j) t[j][i] = a[i][j];
  }
  return t;
}

// The formulas of muon.h as they stand there, as plain loops over one matrix.
struct Plain {
  Rows p, b;

  void Step(const Rows& g, double momentum, double lr, double weight_decay) {
    const size_t n = p.size(), m = p[0].size();
    Rows x = g;
    double squares = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < m; ++j) {
        b[i][j] = momentum * b[i][j] + (1 - momentum) * g[i][j];
        x[i][j] = (1 - momentum) * g[i][j] + momentum * b[i][j];
        squares += x[i][j] * x[i][j];
      }
    }
    for (auto& row : x) {
      for (double& e : row) e /= std::sqrt(squares);
    }
    for (int step = 0; step < 5; ++step) {
      const Rows gram = Product(x, Transposed(x)), third = Product(gram, x), fifth = Product(gram, third);
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < m; ++j) x[i][j] = 3.4445 * x[i][j] - 4.775 * third[i][j] + 2.0315 * fifth[i][j];
      }
    }
    const double size = 0.2 * std::sqrt(static_cast<double>(std::max(n, m)));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < m; ++j) p[i][j] = (1 - lr * weight_decay) * p[i][j] - lr * size * x[i][j];
    }
  }
};

// Wide, tall, square, a single number, and gradients of rank 1.
TEST(Muon, AgreesWithThePlainLoop) {
  struct Case {
    int64_t rows, columns;
    bool rank_one;
  };
  const std::vector<Case> cases = {{1, 1, false}, {1, 6, false},   {6, 1, false},   {5, 5, false},
                                   {4, 9, false}, {70, 33, false}, {33, 90, false}, {12, 7, true}};
  for (DType dtype : {DType::kF32, DType::kF64}) {
    Parameters parameters;
    Builder builder(&parameters);
    for (size_t i = 0; i < cases.size(); ++i) builder.Weight("w" + std::to_string(i), cases[i].rows, cases[i].columns);
    parameters.Allocate(dtype, 1);
    std::vector<Plain> plain;
    for (size_t i = 0; i < cases.size(); ++i) {
      const Rows zero(cases[i].rows, std::vector<double>(cases[i].columns));
      plain.push_back({zero, zero});
      for (int64_t e = 0; e < cases[i].rows * cases[i].columns; ++e) {
        plain[i].p[e / cases[i].columns][e % cases[i].columns] = parameters.value(static_cast<int>(i)).At(e);
      }
    }
    Optimizer optimizer(Config(0.9, 0.1), parameters);
    const Slab gradients(dtype, parameters.slab_size());
    for (int t = 1; t <= 3; ++t) {
      for (size_t i = 0; i < cases.size(); ++i) {
        const auto [rows, columns, rank_one] = cases[i];
        const Tensor g = Parameters::In(gradients.tensor(), parameters.list()[i]);
        const RandomKey key = RandomKey{static_cast<uint64_t>(rank_one ? 1 : t)}.Fold(i);
        Rows values = plain[i].p;
        for (int64_t e = 0; e < rows * columns; ++e) {
          g.Set(e, rank_one ? key.Normal(e / columns) * (e % columns + 1) : key.Normal(e));
          values[e / columns][e % columns] = g.At(e) / 4;
        }
        plain[i].Step(values, 0.9, 0.05, 0.1);
      }
      EXPECT_TRUE(optimizer.Step(&parameters, gradients.tensor(), 0.25, 0.0, 0.05).weights_finite);
    }
    for (size_t i = 0; i < cases.size(); ++i) {
      const Tensor p = parameters.value(static_cast<int>(i));
      for (int64_t e = 0; e < p.elements(); ++e) {
        ASSERT_NEAR(p.At(e), plain[i].p[e / cases[i].columns][e % cases[i].columns], dtype == DType::kF32 ? 1e-5 : 1e-12)
            << dtype << " " << i << " " << e;
      }
    }
  }
}

// What the method is for: singular values of 1 and of a hundredth move a matrix equally far, whatever the gradient's size.
TEST(Muon, MovesAllDirectionsAlike) {
  for (double scale : {1e-20, 1.0, 1e12}) {
    Parameters parameters;
    Builder(&parameters).Parameter("table", {3, 5}, Init::Ones());
    Builder(&parameters).Weight("w", 3, 5);
    parameters.Allocate(DType::kF32, 1);
    const Tensor w = parameters.value(1);
    for (int64_t e = 0; e < w.elements(); ++e) w.Set(e, 0);
    Optimizer optimizer(Config(0.95), parameters);
    const Slab gradients(DType::kF32, parameters.slab_size());
    const Tensor g = Parameters::In(gradients.tensor(), parameters.list()[1]);
    for (int64_t i = 0; i < 3; ++i) g.Set(i * 5 + i, scale * std::pow(10, -i));
    EXPECT_TRUE(optimizer.Step(&parameters, gradients.tensor(), 1.0, 0.0, 1.0).weights_finite);
    for (int64_t e = 0; e < w.elements(); ++e) {
      const double moved = w.At(e) / (-0.2 * std::sqrt(5));
      if (e % 6 == 0) {
        // 0.995, 0.0995 and 0.00995 of the norm become 0.702, 0.709 and 0.697.
        EXPECT_GT(moved, 0.69) << scale << " " << e;
        EXPECT_LT(moved, 0.72) << scale << " " << e;
      } else {
        EXPECT_EQ(moved, 0) << scale << " " << e;
      }
    }
  }
}

TEST(Muon, WithoutAGradientOnlyDecays) {
  Parameters parameters;
  Builder(&parameters).Weight("w", 4, 3);
  parameters.Allocate(DType::kF64, 1);
  const double before = parameters.value(0).At(5);
  Optimizer optimizer(Config(0.95, 0.5), parameters);
  const Slab gradients(DType::kF64, parameters.slab_size());
  EXPECT_TRUE(optimizer.Step(&parameters, gradients.tensor(), 1.0, 0.0, 0.1).weights_finite);
  EXPECT_DOUBLE_EQ(parameters.value(0).At(5), 0.95 * before);
}

// A matrix that gets no gradient any more: its momentum shrinks through all numbers that a float can be.
TEST(Muon, StaysFiniteWhereTheMomentumVanishes) {
  Parameters parameters;
  Builder(&parameters).Weight("w", 4, 3);
  parameters.Allocate(DType::kF32, 1);
  Optimizer optimizer(Config(0.5), parameters);
  const Slab gradients(DType::kF32, parameters.slab_size());
  for (int64_t e = 0; e < 12; ++e) gradients.tensor().Set(e, RandomKey{7}.Normal(e));
  for (int t = 0; t < 200; ++t) {
    ASSERT_TRUE(optimizer.Step(&parameters, gradients.tensor(), 1.0, 0.0, 0.01).weights_finite) << t;
    for (int64_t e = 0; e < 12; ++e) gradients.tensor().Set(e, 0);
  }
}

TEST(Muon, SaysWhenAWeightIsNoLongerFinite) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    Parameters parameters;
    Builder(&parameters).Weight("w", 4, 3);
    Builder(&parameters).Weight("u", 2, 2);
    parameters.Allocate(dtype, 1);
    Optimizer optimizer(Config(0.95), parameters);
    const Slab gradients(dtype, parameters.slab_size());
    EXPECT_TRUE(optimizer.Step(&parameters, gradients.tensor(), 1.0, 0.0, 0.1).weights_finite);
    Parameters::In(parameters.Mutable(), parameters.list()[1]).Set(3, std::nan(""));
    EXPECT_FALSE(optimizer.Step(&parameters, gradients.tensor(), 1.0, 0.0, 0.1).weights_finite) << dtype;
  }
}

TEST(Muon, LeavesTablesHeadsAndVectorsToAdamW) {
  const auto make = [] {
    auto parameters = std::make_unique<Parameters>();
    Builder builder(parameters.get());
    builder.Parameter("table", {6, 4}, Init::Normal(1));
    builder.StackedWeights({{"q", 4}, {"k", 4}}, 4);
    builder.Parameter("bias", {4}, Init::Normal(1));
    builder.HeadWeight("head", 6, 4);
    parameters->Allocate(DType::kF32, 1);
    return parameters;
  };
  const auto muon = make(), adamw = make();
  OptimizerConfig config = Config(0.95, 0.1);
  Optimizer a(config, *muon);
  config.kind = "adamw";
  Optimizer b(config, *adamw);
  const Slab gradients(DType::kF32, muon->slab_size());
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t e = 0; e < muon->slab_size(); ++e) gradients.tensor().Set(e, RandomKey{7}.Fold(t).Normal(e));
    a.Step(muon.get(), gradients.tensor(), 1.0, 1.0, 0.01);
    b.Step(adamw.get(), gradients.tensor(), 1.0, 1.0, 0.01);
  }
  for (size_t i = 0; i < muon->list().size(); ++i) {
    const auto x = muon->value(static_cast<int>(i)).span<float>(), y = adamw->value(static_cast<int>(i)).span<float>();
    EXPECT_EQ(std::equal(x.begin(), x.end(), y.begin()), i != 1 && i != 2) << muon->list()[i].name;
  }
  std::vector<std::string> names;
  for (const NamedTensor& state : a.state()) names.push_back(state.name);
  EXPECT_THAT(names, ElementsAre("m/table", "m/q", "m/k", "m/bias", "m/head", "v/table", "v/bias", "v/head"));
}

TEST(Muon, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<float> first;
  for (int threads : {1, 2, 3}) {
    Parameters parameters;
    Builder builder(&parameters);
    builder.Weight("square", 200, 200);
    builder.Weight("wide", 100, 700);
    builder.Weight("tall", 700, 100);
    parameters.Allocate(DType::kF32, 1);
    Optimizer optimizer(Config(0.95, 0.1), parameters);
    const Slab gradients(DType::kF32, parameters.slab_size());
    Workers workers(threads);
    for (int64_t t = 0; t < 2; ++t) {
      for (int64_t e = 0; e < parameters.slab_size(); ++e) gradients.tensor().Set(e, RandomKey{7}.Fold(t).Normal(e));
      workers.Run([&] { optimizer.Step(&parameters, gradients.tensor(), 1.0, 1.0, 0.01); });
    }
    std::vector<float> all;
    for (size_t i = 0; i < parameters.list().size(); ++i) {
      for (const Tensor& tensor : {parameters.value(static_cast<int>(i)), optimizer.state()[i].value}) {
        all.insert(all.end(), tensor.span<float>().begin(), tensor.span<float>().end());
      }
    }
    if (first.empty()) first = all;
    EXPECT_EQ(first, all) << threads;
  }
}

}  // namespace
}  // namespace weft
