// Single operations, and the cross entropy.
#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_case.h"

namespace weft::golden {
namespace {

using In = std::vector<Variable>;

// By the start of the case's name: what follows it ("op_linear_b") tells cases of one operation apart.
const std::map<std::string, std::function<Variable(const In&, const Case&)>>& Operations() {
  using F = const In&;
  static const std::map<std::string, std::function<Variable(const In&, const Case&)>> operations = {
      {"op_layer_norm", [](F x, const Case& c) { return LayerNorm(x.at(0), x.at(1), x.at(2), c.numbers.at("eps")); }},
      {"op_rms_norm", [](F x, const Case& c) { return RmsNorm(x.at(0), x.at(1), c.numbers.at("eps")); }},
      {"op_gelu_erf", [](F x, const Case&) { return Gelu(x.at(0)); }},
      {"op_gelu_tanh", [](F x, const Case&) { return GeluTanh(x.at(0)); }},
      {"op_silu", [](F x, const Case&) { return Silu(x.at(0)); }},
      {"op_relu", [](F x, const Case&) { return Relu(x.at(0)); }},
      {"op_sigmoid", [](F x, const Case&) { return Sigmoid(x.at(0)); }},
      {"op_tanh", [](F x, const Case&) { return Tanh(x.at(0)); }},
      {"op_swiglu",
       [](F x, const Case&) { return Linear(Mul(Silu(Linear(x.at(0), x.at(1))), Linear(x.at(0), x.at(2))), x.at(3)); }},
      {"op_softmax", [](F x, const Case&) { return Softmax(x.at(0)); }},
      {"op_log_softmax", [](F x, const Case&) { return LogSoftmax(x.at(0)); }},
      {"op_linear", [](F x, const Case&) { return Linear(x.at(0), x.at(1), x.at(2)); }},
      {"op_matmul_batched", [](F x, const Case&) { return MatMul(x.at(0), x.at(1)); }},
      {"op_mul_broadcast", [](F x, const Case&) { return Mul(x.at(0), x.at(1)); }},
      {"op_add_broadcast", [](F x, const Case&) { return Add(x.at(0), x.at(1)); }},
  };
  return operations;
}

}  // namespace

void RunOperation(const Case& c) {
  const auto operation = std::find_if(Operations().begin(), Operations().end(), [&](const auto& entry) {
    return c.name == entry.first || absl::StartsWith(c.name, absl::StrCat(entry.first, "_"));
  });
  ASSERT_NE(operation, Operations().end()) << "no test knows the operation " << c.name;
  const DType type = c.TypeOf("x0");
  const double tolerance = ToleranceOf(type);
  Tape tape;
  In inputs;
  for (int i = 0; c.Has(absl::StrCat("x", i)); ++i) {
    const Values x = c.Read(absl::StrCat("x", i));
    inputs.push_back(InputOf(&tape, type, x.v, Shape(x.shape)));
  }
  ASSERT_FALSE(inputs.empty()) << c.name;
  const Variable y = operation->second(inputs, c);
  const Values expected = c.Read("output"), upstream = c.Read("upstream");
  ASSERT_EQ(y.shape(), Shape(expected.shape));
  tape.Backward(y, InputOf(&tape, type, upstream.v, Shape(upstream.shape)).value());
  ExpectNear("output", ToDoubles(y.value()), expected.v, tolerance);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = absl::StrCat("grad.x", i);
    ExpectNear(name, ToDoubles(tape.Gradient(inputs[i])), c.Read(name).v, tolerance);
  }
}

void RunCrossEntropy(const Case& c) {
  const Values logits = c.Read("logits");
  const std::vector<int32_t> targets = c.ReadIds("targets");
  const int64_t classes = logits.dim(1);
  const DType type = c.TypeOf("logits");
  const double tolerance = ToleranceOf(type);
  const CrossEntropyOptions options{.smoothing = c.numbers.at("label_smoothing")};
  // The op itself, and the fused head with the identity as its weight.
  for (const bool fused : {false, true}) {
    Tape tape;
    const Variable x = InputOf(&tape, type, logits.v, Shape(logits.shape));
    CrossEntropyResult result;
    if (fused) {
      const Tensor identity = tape.Allocate(type, {classes, classes});
      identity.Zero();
      for (int64_t i = 0; i < classes; ++i) identity.Set(i * classes + i, 1);
      result = LinearCrossEntropy(x, tape.Constant(identity), {}, targets, options);
    } else {
      result = CrossEntropy(x, targets, options);
    }
    ASSERT_GT(result.targets, 0);
    tape.Backward(result.loss);
    const double share = 1.0 / static_cast<double>(result.targets);
    std::vector<double> gradient = ToDoubles(tape.Gradient(x));
    for (double& g : gradient) g *= share;
    ExpectNear("loss", {result.loss.value().At(0) * share}, c.Read("loss").v, tolerance);
    ExpectNear("grad.logits", gradient, c.Read("grad.logits").v, tolerance);
  }
}

}  // namespace weft::golden
