#include "autograd/op_checks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"
#include "autograd/ops.h"

namespace weft {
namespace {

using Inputs = absl::Span<const Variable>;

class Catalogue {
 public:
  void Add(std::string name, std::vector<OpCheckInput> inputs, std::function<Variable(Inputs)> op) {
    checks_.push_back(MakeOpCheck(std::move(name), std::move(inputs), std::move(op)));
  }
  std::vector<OpCheck> Take() { return std::move(checks_); }

 private:
  std::vector<OpCheck> checks_;
};

// A function-local static, since registrations of other files run before this file's globals may exist.
std::vector<OpCheck>& Registered() {
  static std::vector<OpCheck> checks;
  return checks;
}

template <size_t N>
Tensor I32(const std::array<int32_t, N>& values, const Shape& shape) {
  return Tensor::Of(absl::MakeConstSpan(values), shape);
}

void AddArithmetic(Catalogue& c) {
  using Binary = Variable (*)(Variable, Variable);
  const std::pair<const char*, Binary> binary[] = {{"add", weft::Add}, {"sub", Sub}, {"mul", Mul}, {"div", Div}};
  for (const auto& [name, f] : binary) {
    const auto call = [f = f](Inputs x) { return f(x[0], x[1]); };
    const auto call_twice = [f = f](Inputs x) { return f(x[0], x[0]); };
    const std::string op = name;
    c.Add(op, {{"a", {3, 5}}, {"b", {3, 5}, 0.5, 2}}, call);
    c.Add(op + "_row", {{"a", {2, 3, 5}}, {"b", {5}, 0.5, 2}}, call);
    c.Add(op + "_column", {{"a", {3, 1}}, {"b", {3, 5}, 0.5, 2}}, call);
    c.Add(op + "_outer", {{"a", {3, 1, 5}}, {"b", {2, 1}, 0.5, 2}}, call);
    c.Add(op + "_scalar", {{"a", {3, 5}}, {"b", {}, 0.5, 2}}, call);
    c.Add(op + "_itself", {{"x", {7}, 0.5, 2}}, call_twice);
  }
  c.Add("scale", {{"x", {3, 5}}}, [](Inputs x) { return Scale(x[0], -1.75); });
  c.Add("neg", {{"x", {3, 5}}}, [](Inputs x) { return Neg(x[0]); });
  c.Add("cast", {{"x", {3, 5}}}, [](Inputs x) { return Cast(x[0], DType::kF64); });
}

void AddFunctions(Catalogue& c) {
  using Unary = Variable (*)(Variable);
  struct Case {
    const char* name;
    Unary f;
    double low, high;
  };
  // Wide ranges, so that the saturated ends of the activations are visited too.
  const Case cases[] = {{"exp", Exp, -3, 3},       {"log", Log, 0.2, 5},  {"sqrt", Sqrt, 0.2, 5},
                        {"square", Square, -3, 3}, {"tanh", Tanh, -4, 4}, {"sigmoid", Sigmoid, -6, 6},
                        {"relu", Relu, -2, 2},     {"gelu", Gelu, -5, 5}, {"gelu_tanh", GeluTanh, -5, 5},
                        {"silu", Silu, -6, 6}};
  for (const Case& k : cases) {
    c.Add(k.name, {{"x", {5, 7}, k.low, k.high}}, [f = k.f](Inputs x) { return f(x[0]); });
  }
}

void AddProducts(Catalogue& c) {
  struct Case {
    const char* name;
    Shape a, b;
    bool ta, tb;
  };
  const Case cases[] = {{"matmul", {3, 5}, {5, 7}, false, false},
                        {"matmul_transpose_a", {5, 3}, {5, 7}, true, false},
                        {"matmul_transpose_b", {3, 5}, {7, 5}, false, true},
                        {"matmul_transpose_both", {5, 3}, {7, 5}, true, true},
                        {"matmul_stack", {3, 2, 5}, {3, 5, 4}, false, false},
                        {"matmul_stack_transpose_both", {3, 5, 2}, {3, 4, 5}, true, true},
                        {"matmul_rank4", {2, 3, 2, 3}, {2, 3, 5, 3}, false, true},
                        {"matmul_shared_a", {2, 5}, {3, 5, 4}, false, false},
                        {"matmul_shared_a_transposed", {5, 2}, {3, 5, 4}, true, false},
                        {"matmul_shared_b", {3, 2, 5}, {5, 4}, false, false},
                        {"matmul_shared_b_transpose_a", {3, 5, 2}, {5, 4}, true, false},
                        {"matmul_vector", {1, 5}, {5, 1}, false, false}};
  for (const Case& k : cases) {
    c.Add(k.name, {{"a", k.a}, {"b", k.b}}, [ta = k.ta, tb = k.tb](Inputs x) { return MatMul(x[0], x[1], ta, tb); });
  }
  c.Add("matmul_itself", {{"x", {3, 5}}}, [](Inputs x) { return MatMul(x[0], x[0], false, true); });
  const auto linear = [](Inputs x) { return Linear(x[0], x[1], x.size() > 2 ? x[2] : Variable()); };
  c.Add("linear", {{"x", {3, 5}}, {"weight", {7, 5}}, {"bias", {7}}}, linear);
  c.Add("linear_no_bias", {{"x", {3, 5}}, {"weight", {7, 5}}}, linear);
  c.Add("linear_rank3", {{"x", {2, 3, 5}}, {"weight", {4, 5}}, {"bias", {4}}}, linear);
  c.Add("linear_rank1", {{"x", {5}}, {"weight", {4, 5}}, {"bias", {4}}}, linear);
}

void AddRows(Catalogue& c) {
  c.Add("softmax", {{"x", {3, 7}}}, [](Inputs x) { return Softmax(x[0]); });
  c.Add("log_softmax", {{"x", {3, 7}}}, [](Inputs x) { return LogSoftmax(x[0]); });
  const auto layer_norm = [](Inputs x) { return LayerNorm(x[0], x[1], x.size() > 2 ? x[2] : Variable(), 1e-5); };
  c.Add("layer_norm", {{"x", {5, 7}}, {"gamma", {7}}, {"beta", {7}}}, layer_norm);
  c.Add("layer_norm_no_beta", {{"x", {2, 3, 5}}, {"gamma", {5}}}, layer_norm);
  c.Add("rms_norm", {{"x", {5, 7}}, {"gamma", {7}}}, [](Inputs x) { return RmsNorm(x[0], x[1], 1e-5); });

  using Reduction = Variable (*)(Variable, int, bool);
  const std::pair<const char*, Reduction> reductions[] = {{"sum", Sum}, {"mean", Mean}, {"max", Max}};
  for (const auto& [name, f] : reductions) {
    const std::string op = name;
    c.Add(op + "_first_axis", {{"x", {3, 5}}}, [f = f](Inputs x) { return f(x[0], 0, false); });
    c.Add(op + "_middle_axis", {{"x", {2, 3, 5}}}, [f = f](Inputs x) { return f(x[0], 1, true); });
    c.Add(op + "_last_axis", {{"x", {3, 5}}}, [f = f](Inputs x) { return f(x[0], -1, false); });
  }
  c.Add("sum_all", {{"x", {3, 5}}}, [](Inputs x) { return SumAll(x[0]); });

  // Rows 4 and 9 belong to no sequence; the third sequence is empty.
  static constexpr Sequence kRagged[] = {{0, 4, 0, 0}, {5, 1, 0, 1}, {6, 0, 0, 2}, {6, 3, 0, 3}};
  const std::pair<const char*, Pooling> poolings[] = {{"pool_mean", Pooling::kMean},
                                                      {"pool_max", Pooling::kMax},
                                                      {"pool_first", Pooling::kFirst},
                                                      {"pool_last", Pooling::kLast}};
  for (const auto& [name, pooling] : poolings) {
    c.Add(name, {{"x", {10, 3}}}, [pooling = pooling](Inputs x) { return Pool(x[0], kRagged, pooling); });
  }
}

void AddShapes(Catalogue& c) {
  c.Add("reshape", {{"x", {3, 4}}}, [](Inputs x) { return Square(Reshape(x[0], {2, 6})); });
  c.Add("transpose", {{"x", {3, 5}}}, [](Inputs x) { return Transpose(x[0], 0, 1); });
  c.Add("transpose_rank4", {{"x", {2, 3, 2, 3}}}, [](Inputs x) { return Transpose(x[0], 1, 2); });
  c.Add("slice_first_axis", {{"x", {5, 3}}}, [](Inputs x) { return Slice(x[0], 0, 1, 3); });
  c.Add("slice_last_axis", {{"x", {2, 3, 5}}}, [](Inputs x) { return Slice(x[0], -1, 2, 2); });
  c.Add("split", {{"x", {3, 6}}}, [](Inputs x) {
    const std::vector<Variable> parts = Split(x[0], 1, {1, 3, 2});
    return Concat({parts[2], parts[0], Square(parts[1])}, 1);
  });
  c.Add("split_one_part_used", {{"x", {6, 2}}}, [](Inputs x) { return Split(x[0], 0, {1, 3, 2})[1]; });
  c.Add("concat_first_axis", {{"a", {2, 3}}, {"b", {1, 3}}}, [](Inputs x) { return Concat({x[0], x[1], x[0]}, 0); });
  c.Add("concat_last_axis", {{"a", {2, 3, 1}}, {"b", {2, 3, 4}}}, [](Inputs x) { return Concat({x[0], x[1]}, -1); });
  c.Add("gather_rows", {{"table", {5, 3}}}, [](Inputs x) { return GatherRows(x[0], {4, 0, 2, 4, 4, 1}); });

  static constexpr std::array<int32_t, 6> kChoice = {1, 0, 0, 1, 1, 0};
  static constexpr std::array<int32_t, 3> kColumn = {0, 1, 0};
  c.Add("where", {{"a", {2, 3}}, {"b", {2, 3}}}, [](Inputs x) { return Where(I32(kChoice, {2, 3}), x[0], x[1]); });
  c.Add("where_broadcast", {{"a", {3}}, {"b", {2, 1}}}, [](Inputs x) { return Where(I32(kChoice, {2, 3}), x[0], x[1]); });
  c.Add("masked_fill", {{"x", {2, 3}}}, [](Inputs x) { return MaskedFill(x[0], I32(kChoice, {2, 3}), 0.75); });
  c.Add("masked_fill_softmax", {{"x", {2, 2, 3}}},
        [](Inputs x) { return Softmax(MaskedFill(x[0], I32(kColumn, {3}), -std::numeric_limits<double>::infinity())); });

  static constexpr Sequence kRows[] = {{0, 3, 0, 7}, {4, 2, 5, 8}};  // row 3 belongs to none
  c.Add("dropout", {{"x", {6, 5}}}, [](Inputs x) { return Dropout(x[0], kRows, 0.4, RandomKey{3}); });
  c.Add("dropout_none", {{"x", {6, 5}}}, [](Inputs x) { return Square(Dropout(x[0], kRows, 0, RandomKey{3})); });
  c.Add("dropout_all", {{"x", {6, 5}}}, [](Inputs x) { return Dropout(x[0], kRows, 1, RandomKey{3}); });
}

// Ragged queries with a gap at row 5, and longer keys of their own; the last pair has fewer keys than queries.
constexpr Sequence kQueries[] = {{0, 5, 0, 1}, {6, 1, 0, 2}, {7, 3, 0, 3}};
constexpr Sequence kKeys[] = {{0, 5, 0, 1}, {5, 4, 0, 2}, {9, 2, 0, 3}};

void AddAttention(Catalogue& c) {
  const auto add = [&](const char* name, const Shape& q, const Shape& k, const AttentionOptions& options) {
    c.Add(name, {{"q", q}, {"k", k}, {"v", k}},
          [options](Inputs x) { return Attention(x[0], x[1], x[2], kQueries, kKeys, options); });
  };
  AttentionOptions options;
  options.heads = 2;
  add("attention", {10, 6}, {11, 6}, options);
  options.scale = 0.3;
  add("attention_scale", {10, 6}, {11, 6}, options);
  options.scale = 0;
  options.causal = true;
  add("attention_causal", {10, 6}, {11, 6}, options);
  options.heads = 4;
  options.kv_heads = 2;
  add("attention_grouped", {10, 12}, {11, 6}, options);
  options.kv_heads = 1;
  add("attention_multi_query", {10, 12}, {11, 3}, options);
  options.kv_heads = 0;
  options.heads = 2;
  options.dropout = 0.3;
  options.key = RandomKey{5};
  add("attention_dropout", {10, 6}, {11, 6}, options);
  options = {};
  static constexpr int32_t kSecond[] = {1, 1, 0};
  options.key_of_query = kSecond;
  add("attention_shared_keys", {10, 3}, {11, 3}, options);

  options = {};
  options.heads = 2;
  options.causal = true;
  c.Add("attention_packed", {{"qkv", {10, 12}}}, [options](Inputs x) {
    return Attention({x[0], 0, 4}, {x[0], 4, 4}, {x[0], 8, 4}, kQueries, kQueries, options);
  });
}

void AddLosses(Catalogue& c) {
  static constexpr int32_t kTargets[] = {2, 0, kIgnoreTarget, 6, 2};
  CrossEntropyOptions smoothed;
  smoothed.smoothing = 0.1;
  CrossEntropyOptions ignore_class;
  ignore_class.ignore = 2;
  static constexpr int32_t kClasses[] = {2, 0, 1, 6, 2};
  c.Add("cross_entropy", {{"logits", {5, 7}}}, [](Inputs x) { return CrossEntropy(x[0], kTargets).loss; });
  c.Add("cross_entropy_smoothing", {{"logits", {5, 7}}},
        [smoothed](Inputs x) { return CrossEntropy(x[0], kTargets, smoothed).loss; });
  c.Add("cross_entropy_ignored_class", {{"logits", {5, 7}}},
        [ignore_class](Inputs x) { return CrossEntropy(x[0], kClasses, ignore_class).loss; });

  const std::vector<OpCheckInput> with_bias = {{"x", {5, 3}}, {"weight", {7, 3}}, {"bias", {7}}};
  c.Add("linear_cross_entropy", with_bias, [](Inputs x) { return LinearCrossEntropy(x[0], x[1], x[2], kTargets).loss; });
  c.Add("linear_cross_entropy_no_bias", {{"x", {5, 3}}, {"weight", {7, 3}}},
        [](Inputs x) { return LinearCrossEntropy(x[0], x[1], {}, kTargets).loss; });
  c.Add("linear_cross_entropy_smoothing", with_bias,
        [smoothed](Inputs x) { return LinearCrossEntropy(x[0], x[1], x[2], kTargets, smoothed).loss; });
  c.Add("linear_cross_entropy_scaled", with_bias,
        [](Inputs x) { return Scale(LinearCrossEntropy(x[0], x[1], x[2], kTargets).loss, 0.25); });
}

}  // namespace

OpCheck MakeOpCheck(std::string name, std::vector<OpCheckInput> inputs, std::function<Variable(Inputs)> op) {
  auto run = [name, inputs = std::move(inputs), op = std::move(op)](const GradCheckOptions& options) {
    std::vector<std::vector<double>> memory;
    std::vector<NamedTensor> tensors;
    for (const OpCheckInput& input : inputs) {
      const RandomKey key = RandomKey{options.seed}.Fold(absl::string_view(name)).Fold(absl::string_view(input.name));
      std::vector<double>& values = memory.emplace_back(input.shape.elements());
      for (size_t i = 0; i < values.size(); ++i) values[i] = input.low + (input.high - input.low) * key.Uniform(i);
      tensors.push_back({input.name, Tensor::Of(absl::MakeSpan(values), input.shape)});
    }
    return CheckGradients(
        tensors, [&](Tape&, Inputs variables) { return op(variables); }, options);
  };
  return {std::move(name), std::move(run)};
}

OpCheckRegistration::OpCheckRegistration(OpCheck check) {
  for (const OpCheck& other : OpChecks())
    WEFT_CHECK(other.name != check.name) << "the op check " << check.name << " is there already";
  Registered().push_back(std::move(check));
}

std::vector<OpCheck> OpChecks() {
  Catalogue catalogue;
  AddArithmetic(catalogue);
  AddFunctions(catalogue);
  AddProducts(catalogue);
  AddRows(catalogue);
  AddShapes(catalogue);
  AddAttention(catalogue);
  AddLosses(catalogue);
  std::vector<OpCheck> checks = catalogue.Take();
  checks.insert(checks.end(), Registered().begin(), Registered().end());
  return checks;
}

}  // namespace weft
