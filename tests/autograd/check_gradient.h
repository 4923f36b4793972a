// Checks of an op for tests: gradients against central differences in f64, f32 against f64, gradients that add. Written apart
// from autograd/grad_check.h on purpose, so that each is a check of the other. Owns nothing beyond a call.
#ifndef WEFT_TESTS_AUTOGRAD_CHECK_GRADIENT_H_
#define WEFT_TESTS_AUTOGRAD_CHECK_GRADIENT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/base/random.h"
#include "autograd/tape.h"

namespace weft::testing {

// Values with a shape; the memory of a leaf.
struct Numbers {
  Shape shape;
  std::vector<double> values;
};

inline std::vector<double> Uniform(int64_t n, uint64_t seed, double low = -1, double high = 1) {
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = low + (high - low) * RandomKey{seed}.Uniform(i);
  return values;
}

inline Numbers Random(const Shape& shape, uint64_t seed, double low = -1, double high = 1) {
  return {shape, Uniform(shape.elements(), seed, low, high)};
}

using Inputs = std::vector<Variable>;
using Function = std::function<Variable(const Inputs&)>;

struct Pass {
  std::vector<double> output;
  Shape shape;
  std::vector<std::vector<double>> gradients;  // one per input
};

// One forward and backward pass in type T with upstream gradient u (uniform, seeded). Gradients start at `initial`, which is
// taken off again. `upstream` 0 means random.
template <class T>
Pass RunOnce(const std::vector<Numbers>& inputs, const Function& f, double initial = 0, double upstream = 0) {
  Tape tape;
  std::vector<std::vector<T>> values, gradients;
  for (const Numbers& input : inputs) {
    values.emplace_back(input.values.begin(), input.values.end());
    gradients.emplace_back(input.values.size(), static_cast<T>(initial));
    values.back().reserve(1);  // an empty tensor still needs an address
    gradients.back().reserve(1);
  }
  Inputs leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    leaves.push_back(tape.Leaf(Tensor::Of(absl::MakeSpan(values[i]), inputs[i].shape),
                               Tensor::Of(absl::MakeSpan(gradients[i]), inputs[i].shape)));
  }
  const Variable y = f(leaves);
  Pass run;
  run.shape = y.shape();
  for (int64_t i = 0; i < y.shape().elements(); ++i) run.output.push_back(y.value().At(i));
  const Tensor u = tape.Allocate(y.dtype(), y.shape());
  const std::vector<double> random = Uniform(u.elements(), 77);
  for (int64_t i = 0; i < u.elements(); ++i) u.Set(i, upstream != 0 ? upstream : random[i]);
  tape.Backward(y, u);
  for (const std::vector<T>& g : gradients) {
    run.gradients.emplace_back();
    for (T value : g) run.gradients.back().push_back(static_cast<double>(value) - initial);
  }
  return run;
}

// sum(f(inputs) * u) with the u of RunOnce, on an inference tape.
inline double Loss(const std::vector<Numbers>& inputs, const Function& f) {
  Tape tape(Tape::Mode::kInference);
  Inputs constants;
  for (const Numbers& input : inputs) constants.push_back(tape.Constant(Tensor::Of(absl::MakeSpan(input.values), input.shape)));
  const Variable y = f(constants);
  const std::vector<double> u = Uniform(y.shape().elements(), 77);
  double loss = 0;
  for (int64_t i = 0; i < y.shape().elements(); ++i) loss += u[i] * y.value().At(i);
  return loss;
}

inline void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance,
                       const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
    if (expected[i] == actual[i]) continue;  // also infinities
    ASSERT_NEAR(actual[i], expected[i], tolerance) << what << " " << i;
  }
}

// Everything an op owes (f must be smooth within 1e-5 of the inputs):
// - f64 gradients equal central differences. With h = 1e-5 their error is h^2 f''' / 6 (1e-10) and the rounding of a loss of at
// most
//   some hundred, 2e-16 * 100 / h (2e-9): 1e-6 is far above both and far below a wrong term.
// - The same gradients when added onto 0.5, and twice those when f is used twice on the same leaves (rounding: 1e-12).
// - f32 equals f64 within f32_tolerance * (1 + largest value); 2e-5 is 170 roundings of 2^-23.
inline void ExpectGradients(std::vector<Numbers> inputs, const Function& f, double f32_tolerance = 2e-5) {
  const Pass exact = RunOnce<double>(inputs, f);
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (size_t i = 0; i < inputs[k].values.size(); ++i) {
      constexpr double kStep = 1e-5;
      const double x = inputs[k].values[i];
      inputs[k].values[i] = x + kStep;
      const double above = Loss(inputs, f);
      inputs[k].values[i] = x - kStep;
      const double below = Loss(inputs, f);
      inputs[k].values[i] = x;
      const double numeric = (above - below) / (2 * kStep);
      ASSERT_NEAR(exact.gradients[k][i], numeric, 1e-6 * (1 + std::abs(numeric))) << "input " << k << ", element " << i;
    }
  }
  const Pass onto = RunOnce<double>(inputs, f, 0.5);
  const Pass twice = RunOnce<double>(inputs, [&](const Inputs& x) {
    const Variable first = f(x), second = f(x);
    // An op of the test's own that adds: no op of the library is trusted here.
    Op op("test_add", {first, second});
    const Variable y = op.Output(first.dtype(), first.shape());
    for (int64_t i = 0; i < y.shape().elements(); ++i) y.value().Set(i, first.value().At(i) + second.value().At(i));
    op.Backward([first, second, y](Gradients& g) {
      for (Variable v : {first, second}) {
        const Tensor dv = g.Into(v), dy = g.Of(y);
        for (int64_t i = 0; i < dy.elements(); ++i) dv.Set(i, dv.At(i) + dy.At(i));
      }
    });
    return y;
  });
  const Pass single = RunOnce<float>(inputs, f);
  double largest = 0;
  for (double y : exact.output) largest = std::max(largest, std::isfinite(y) ? std::abs(y) : 0.0);
  ExpectNear(single.output, exact.output, f32_tolerance * (1 + largest), "f32 output");
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<double> doubled = exact.gradients[k];
    double scale = 0;
    for (double& d : doubled) {
      scale = std::max(scale, std::abs(d));
      d *= 2;
    }
    ExpectNear(onto.gradients[k], exact.gradients[k], 1e-12 * (1 + scale), "gradient onto 0.5");
    ExpectNear(twice.gradients[k], doubled, 1e-12 * (1 + scale), "gradient of two uses");
    ExpectNear(single.gradients[k], exact.gradients[k], f32_tolerance * (1 + scale), "f32 gradient");
  }
}

}  // namespace weft::testing

#endif  // WEFT_TESTS_AUTOGRAD_CHECK_GRADIENT_H_
