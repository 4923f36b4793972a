#include "autograd/kernels/optimizer.h"

#include "gtest/gtest.h"
#include "tests/kernels/vectors.h"

namespace weft::kernels {
namespace {

template <class T>
class OptimizerTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(OptimizerTest, Types);

AdamStep StepAt(int t, double lr, double eps) {
  AdamStep step;
  step.lr = lr;
  step.eps = eps;
  step.bias_correction1 = 1 - std::pow(step.beta1, t);
  step.bias_correction2 = 1 - std::pow(step.beta2, t);
  return step;
}

TYPED_TEST(OptimizerTest, AdamEpsilonStandsOutsideTheRoot) {
  using T = TypeParam;
  // m / bc1 = g and sqrt(v / bc2) = g at the first step: lr g / (g + eps) = 0.1 / 2.
  T p = 1, m = 0, v = 0;
  const T g = T(1e-3);
  Adam(StepAt(1, 0.1, 1e-3), &g, &p, &m, &v, 1);
  EXPECT_NEAR(p, 0.95, 1e-7);
}

TYPED_TEST(OptimizerTest, AdamTwoSteps) {
  using T = TypeParam;
  T p = 0, m = 0, v = 0, g = 1;
  Adam(StepAt(1, 0.1, 1e-8), &g, &p, &m, &v, 1);
  EXPECT_NEAR(p, -0.1, 1e-7);
  g = 2;
  Adam(StepAt(2, 0.1, 1e-8), &g, &p, &m, &v, 1);
  EXPECT_NEAR(p, -0.1965182, 1e-7);
}

TYPED_TEST(OptimizerTest, DecoupledDecayShrinksWithoutGradient) {
  using T = TypeParam;
  AdamStep step = StepAt(1, 0.1, 1e-8);
  step.weight_decay = 0.5;
  T p = 2, m = 0, v = 0, g = 0;
  Adam(step, &g, &p, &m, &v, 1);
  EXPECT_NEAR(p, 1.9, 2e-7);
  EXPECT_EQ(m, T{0});
  // As a part of the gradient it is normalised away: one step of lr.
  step.decoupled = false;
  p = 2, m = 0, v = 0;
  Adam(step, &g, &p, &m, &v, 1);
  EXPECT_NEAR(p, 1.9, 2e-7);
  EXPECT_NEAR(m, 0.1, 1e-7);
}

TYPED_TEST(OptimizerTest, SgdFollowsItsThreeForms) {
  using T = TypeParam;
  SgdStep step;
  step.lr = 0.1;
  step.weight_decay = 0.5;
  step.grad_scale = 2;
  T p = 2, g = 1;
  Sgd(step, &g, &p, static_cast<T*>(nullptr), 1);
  EXPECT_NEAR(p, 2 - 0.1 * (2 + 0.5 * 2), 2e-7);

  step.weight_decay = 0;
  step.grad_scale = 1;
  step.momentum = 0.9;
  for (bool nesterov : {false, true}) {
    step.nesterov = nesterov;
    T buffer = T(77);  // whatever was there, the first step sets it
    p = 0;
    step.first_step = true;
    Sgd(step, &g, &p, &buffer, 1);
    EXPECT_EQ(buffer, T{1});
    EXPECT_NEAR(p, nesterov ? -0.19 : -0.1, 1e-7);
    step.first_step = false;
    Sgd(step, &g, &p, &buffer, 1);
    EXPECT_NEAR(buffer, 1.9, 2e-7);
    EXPECT_NEAR(p, nesterov ? -0.19 - 0.1 * (1 + 0.9 * 1.9) : -0.29, 1e-7);
  }
}

TEST(OptimizerFloatTest, AdamAgreesWithThePlainLoop) {
  for (bool decoupled : {false, true}) {
    for (int64_t n = 0; n <= 70; ++n) {
      std::vector<float> p = RandomFloats(n, 1), m = RandomFloats(n, 2, -0.1, 0.1), v = RandomFloats(n, 3, 0.01, 1);
      std::vector<double> p64 = ToDouble(p), m64 = ToDouble(m), v64 = ToDouble(v);
      for (int t = 1; t <= 3; ++t) {
        const std::vector<float> g = RandomFloats(n, 10 + t);
        AdamStep step = StepAt(t, 0.01, 1e-8);
        step.weight_decay = 0.1;
        step.decoupled = decoupled;
        step.grad_scale = 0.25;
        Adam(step, g.data(), p.data(), m.data(), v.data(), n);
        Adam(step, ToDouble(g).data(), p64.data(), m64.data(), v64.data(), n);
      }
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_NEAR(p[i], p64[i], 1e-6);  // three steps, a few roundings at 2 each
        EXPECT_NEAR(m[i], m64[i], 2e-7);
        EXPECT_NEAR(v[i], v64[i], 5e-7);
      }
    }
  }
}

TEST(OptimizerFloatTest, SgdAgreesWithThePlainLoop) {
  for (bool nesterov : {false, true}) {
    for (int64_t n = 0; n <= 70; ++n) {
      std::vector<float> p = RandomFloats(n, 4), buffer = RandomFloats(n, 5);
      std::vector<double> p64 = ToDouble(p), buffer64 = ToDouble(buffer);
      const std::vector<float> g = RandomFloats(n, 6);
      SgdStep step{0.1, 0.9, 0.01, nesterov, false, 0.5};
      Sgd(step, g.data(), p.data(), buffer.data(), n);
      Sgd(step, ToDouble(g).data(), p64.data(), buffer64.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_NEAR(p[i], p64[i], 1e-6);
        EXPECT_NEAR(buffer[i], buffer64[i], 1e-6);
      }
    }
  }
}

TEST(OptimizerFloatTest, LionAgreesWithThePlainLoop) {
  for (int64_t n = 0; n <= 70; ++n) {
    // |0.9 m + 0.1 g| > 0.05 whatever g: both round to the same sign.
    std::vector<float> p = RandomFloats(n, 9), m = RandomFloats(n, 10, 0.3, 0.4);
    std::vector<double> p64 = ToDouble(p), m64 = ToDouble(m);
    const std::vector<float> g = RandomFloats(n, 11);
    const LionStep step{0.01, 0.9, 0.99, 0.1, 0.5};
    Lion(step, g.data(), p.data(), m.data(), n);
    Lion(step, ToDouble(g).data(), p64.data(), m64.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(p[i], p64[i], 4e-7);
      EXPECT_NEAR(m[i], m64[i], 1e-7);
    }
  }
}

TEST(OptimizerFloatTest, AdafactorPassesAgreeWithThePlainLoops) {
  for (int64_t n = 0; n <= 70; ++n) {
    const std::vector<float> g = RandomFloats(n, 12), factors = RandomFloats(n, 13, 0.5, 3);
    std::vector<double> sums(n, 0.25), sums64 = sums;
    AddSquares(g.data(), sums.data(), n);
    AddSquares(ToDouble(g).data(), sums64.data(), n);
    EXPECT_EQ(sums, sums64);  // squares of floats are exact in double
    EXPECT_NEAR(SumSquaredProducts(factors.data(), g.data(), n),
                SumSquaredProducts(ToDouble(factors).data(), ToDouble(g).data(), n),
                n * 36 * 2e-7);  // terms below 36, each product rounded once to float
    std::vector<float> p = RandomFloats(n, 14);
    std::vector<double> p64 = ToDouble(p);
    ScaledStep(0.99, 0.1, factors.data(), g.data(), p.data(), n);
    ScaledStep(0.99, 0.1, ToDouble(factors).data(), ToDouble(g).data(), p64.data(), n);
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(p[i], p64[i], 6e-7);
  }
}

TEST(OptimizerFloatTest, BitsDependOnNeitherPlaceNorLength) {
  const std::vector<float> g = RandomFloats(70, 7), start = RandomFloats(70, 8);
  std::vector<float> p = start, m(70), v(70), p_sgd = start, buffer = start, p_lion = start, m_lion = start, p_scaled = start;
  AdamStep adam = StepAt(1, 0.01, 1e-8);
  adam.weight_decay = 0.1;
  const SgdStep sgd{0.1, 0.9, 0.01, true, false, 0.5};
  Adam(adam, g.data(), p.data(), m.data(), v.data(), 70);
  const LionStep lion{0.01, 0.9, 0.99, 0.1, 0.5};
  Sgd(sgd, g.data(), p_sgd.data(), buffer.data(), 70);
  Lion(lion, g.data(), p_lion.data(), m_lion.data(), 70);
  ScaledStep(0.99, 0.1, start.data(), g.data(), p_scaled.data(), 70);
  for (int64_t i = 0; i < 70; ++i) {
    float one = start[i], m1 = 0, v1 = 0, two = start[i], b1 = start[i];
    Adam(adam, &g[i], &one, &m1, &v1, 1);
    Sgd(sgd, &g[i], &two, &b1, 1);
    EXPECT_TRUE(SameBits(one, p[i]) && SameBits(m1, m[i]) && SameBits(v1, v[i])) << i;
    float three = start[i], m2 = start[i], four = start[i];
    Lion(lion, &g[i], &three, &m2, 1);
    ScaledStep(0.99, 0.1, &start[i], &g[i], &four, 1);
    EXPECT_TRUE(SameBits(three, p_lion[i]) && SameBits(m2, m_lion[i]) && SameBits(four, p_scaled[i])) << i;
    EXPECT_TRUE(SameBits(two, p_sgd[i]) && SameBits(b1, buffer[i])) << i;
  }
}

}  // namespace
}  // namespace weft::kernels
