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
using testing::Pass;
using testing::Random;
using testing::RunOnce;

double Phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

struct Named {
  const char* name;
  Variable (*op)(Variable);
  double (*value)(double);
  double low, high;  // where to test
};
const Named kFunctions[] = {
    {"exp", Exp, [](double x) { return std::exp(x); }, -3, 2},
    {"log", Log, [](double x) { return std::log(x); }, 0.2, 4},
    {"sqrt", Sqrt, [](double x) { return std::sqrt(x); }, 0.2, 4},
    {"square", Square, [](double x) { return x * x; }, -2, 2},
    {"tanh", Tanh, [](double x) { return std::tanh(x); }, -3, 3},
    {"sigmoid", Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -4, 4},
    {"relu", Relu, [](double x) { return x > 0 ? x : 0; }, -2, 2},
    {"gelu", Gelu, [](double x) { return x * Phi(x); }, -4, 4},
    {"gelu_tanh", GeluTanh,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, -4, 4},
    {"silu", Silu, [](double x) { return x / (1 + std::exp(-x)); }, -4, 4},
};

TEST(Functions, ValuesEqualTheFormulas) {
  for (const Named& f : kFunctions) {
    SCOPED_TRACE(f.name);
    const auto x = Random({3, 11}, 1, f.low, f.high);
    const Pass run = RunOnce<double>({x}, [&](const Inputs& v) { return f.op(v[0]); });
    ASSERT_EQ(run.shape, x.shape);
    // Both sides are f64 with a few roundings of values below 20.
    for (size_t i = 0; i < x.values.size(); ++i) EXPECT_NEAR(run.output[i], f.value(x.values[i]), 1e-14) << x.values[i];
  }
}

// Between two ops the gradient takes the place of the one above it; at an input used twice it is added.
TEST(Functions, GradientsInsideAChainAndOfASharedInputEqualDifferences) {
  for (const Named& f : kFunctions) {
    SCOPED_TRACE(f.name);
    const auto x = Random({3, 11}, 3, f.low, f.high);
    ExpectGradients({x}, [&](const Inputs& v) { return Scale(f.op(Scale(v[0], 0.9)), 2); });
    ExpectGradients({x}, [&](const Inputs& v) {
      const Variable shared = Scale(v[0], 0.9);
      return Mul(f.op(shared), Add(shared, f.op(shared)));
    });
  }
}

TEST(Functions, GradientsEqualDifferences) {
  for (const Named& f : kFunctions) {
    SCOPED_TRACE(f.name);
    for (const Shape& shape : {Shape({3, 11}), Shape({1}), Shape({}), Shape({0, 4})}) {
      ExpectGradients({Random(shape, 2, f.low, f.high)}, [&](const Inputs& v) { return f.op(v[0]); });
    }
  }
}

// More than two tiles, with a rest.
TEST(Functions, TilesCoverALargeTensor) {
  const int64_t n = 70001;
  for (const Named& f : kFunctions) {
    SCOPED_TRACE(f.name);
    const auto x = Random({n}, 3, f.low, f.high);
    const Pass exact = RunOnce<double>({x}, [&](const Inputs& v) { return f.op(v[0]); });
    const Pass single = RunOnce<float>({x}, [&](const Inputs& v) { return f.op(v[0]); });
    for (int64_t i = 0; i < n; i += 97) ASSERT_NEAR(exact.output[i], f.value(x.values[i]), 1e-14);
    // x is rounded to f32 (2^-24 relative): values and slopes below 10 move by less than 20 * 10 * 6e-8.
    ExpectNear(single.output, exact.output, 1.2e-5, "output");
    ExpectNear(single.gradients[0], exact.gradients[0], 1.2e-5, "gradient");
  }
}

TEST(Functions, ReluHasSlopeZeroAtZero) {
  const Pass run = RunOnce<double>(
      {{Shape({3}), {-1, 0, 2}}}, [](const Inputs& v) { return Relu(v[0]); }, 0, 1.0);
  EXPECT_EQ(run.gradients[0], std::vector<double>({0, 0, 1}));
}

// Derivatives that are infinite, or made of infinities, next to an upstream gradient of 0.
template <class T>
void CheckZeroUpstream() {
  const T inf = std::numeric_limits<T>::infinity();
  for (const Named& f : kFunctions) {
    SCOPED_TRACE(f.name);
    Tape tape;
    std::vector<T> x = {0, inf, 1000, -1000, 0, inf, -inf}, u(7, T(0));
    const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x), {7}));
    tape.Backward(f.op(v), Tensor::Of(absl::MakeSpan(u), {7}));
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(tape.Gradient(v).At(i), 0) << "at x = " << x[i];
  }
}
TEST(Functions, AnUpstreamZeroGivesZeroF64) { CheckZeroUpstream<double>(); }
TEST(Functions, AnUpstreamZeroGivesZeroF32) { CheckZeroUpstream<float>(); }

// where(x > 0, log x, 0) at x = 0.
TEST(Functions, GuardedLogHasGradientZeroAtZero) {
  Tape tape;
  std::vector<double> x = {0, 2}, zero = {0};
  std::vector<int32_t> positive = {0, 1};
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x), {2}));
  const Variable y =
      Where(Tensor::Of(absl::MakeSpan(positive), {2}), Log(v), tape.Constant(Tensor::Of(absl::MakeSpan(zero), {})));
  EXPECT_EQ(y.value().At(0), 0);
  tape.Backward(SumAll(y));
  EXPECT_EQ(tape.Gradient(v).At(0), 0);
  EXPECT_EQ(tape.Gradient(v).At(1), 0.5);
}

// x log x with the limit 0 at 0: the product's own derivative is infinite there.
TEST(Functions, GuardedEntropyTermHasGradientZeroAtZero) {
  Tape tape;
  std::vector<float> x = {0, 1}, zero = {0};
  std::vector<int32_t> positive = {0, 1};
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x), {2}));
  const Variable y =
      Where(Tensor::Of(absl::MakeSpan(positive), {2}), Mul(v, Log(v)), tape.Constant(Tensor::Of(absl::MakeSpan(zero), {})));
  tape.Backward(SumAll(y));
  EXPECT_EQ(tape.Gradient(v).At(0), 0);
  EXPECT_EQ(tape.Gradient(v).At(1), 1);
}

// max(sqrt(x^2 + y^2), 1e-10) at (0, 0), with the maximum as a choice; the same for the length of a zero vector.
TEST(Functions, GuardedLengthHasGradientZeroAtTheOrigin) {
  Tape tape;
  std::vector<double> x = {0, 3}, y = {0, 4}, least = {1e-10};
  const Variable vx = tape.Input(Tensor::Of(absl::MakeSpan(x), {2})), vy = tape.Input(Tensor::Of(absl::MakeSpan(y), {2}));
  const Variable length = Sqrt(Add(Square(vx), Square(vy)));
  std::vector<int32_t> larger(2);
  for (int64_t i = 0; i < 2; ++i) larger[i] = length.value().At(i) > 1e-10;
  const Variable guarded =
      Where(Tensor::Of(absl::MakeSpan(larger), {2}), length, tape.Constant(Tensor::Of(absl::MakeSpan(least), {1})));
  EXPECT_EQ(guarded.value().At(0), 1e-10);
  tape.Backward(SumAll(guarded));
  EXPECT_EQ(tape.Gradient(vx).At(0), 0);
  EXPECT_EQ(tape.Gradient(vy).At(0), 0);
  EXPECT_NEAR(tape.Gradient(vx).At(1), 3.0 / 5, 1e-15);
  EXPECT_NEAR(tape.Gradient(vy).At(1), 4.0 / 5, 1e-15);
}

}  // namespace
}  // namespace weft
