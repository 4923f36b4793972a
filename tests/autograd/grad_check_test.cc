#include "autograd/grad_check.h"

#include <cmath>

#include "absl/strings/str_join.h"
#include "autograd/op_checks.h"
#include "autograd/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/autograd/numbers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// x^3 element by element, with a gradient that a test can spoil: dx = dy * 3 x^2 * factor, and the opposite sign at `flipped`.
Variable Cube(Variable x, double factor = 1, int64_t flipped = -1) {
  Op op("cube", {x});
  Variable y = op.Output(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.value().elements(); ++i) y.value().Set(i, std::pow(x.value().At(i), 3));
  op.Backward([=](Gradients& g) {
    const Tensor dx = g.Into(x);
    for (int64_t i = 0; i < dx.elements(); ++i) {
      const double a = g.Of(y).At(i) * 3 * x.value().At(i) * x.value().At(i) * factor;
      dx.Set(i, dx.At(i) + (i == flipped ? -a : a));
    }
  });
  return y;
}

GradCheckReport CheckCube(double factor, int64_t flipped) {
  const Numbers x(DType::kF64, {3, 5}, 1);
  return CheckGradients({{"x", x}}, [=](Tape&, absl::Span<const Variable> v) { return Cube(v[0], factor, flipped); });
}

TEST(GradCheckTest, RightGradientPasses) {
  const GradCheckReport report = CheckCube(1, -1);
  ASSERT_EQ(report.entries.size(), 1);
  EXPECT_TRUE(report.passed) << report.ToString();
  EXPECT_EQ(report.entries[0].checked, 15);
  EXPECT_EQ(report.entries[0].kinks, 0);
  EXPECT_TRUE(report.entries[0].received_gradient);
  EXPECT_LE(report.entries[0].max_error, 1e-5);
}

TEST(GradCheckTest, GradientScaledBy99PercentFails) {  // B044
  const GradCheckReport report = CheckCube(0.99, -1);
  EXPECT_FALSE(report.passed);
  EXPECT_GE(report.entries[0].index, 0);
  EXPECT_NEAR(report.entries[0].max_error, 0.01, 1e-3);
}

TEST(GradCheckTest, OneFlippedSignFailsAndItsIndexIsNamed) {  // B044
  const GradCheckReport report = CheckCube(1, 7);
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.entries[0].index, 7);
  EXPECT_NEAR(report.entries[0].analytic, -report.entries[0].numeric, 1e-6);
  EXPECT_THAT(report.ToString(), HasSubstr("FAIL  x: "));
  EXPECT_THAT(report.ToString(), HasSubstr("at index 7"));
}

// An op that assigns its gradient is right as long as it is the first to write.
TEST(GradCheckTest, AssigningInsteadOfAddingFails) {
  const auto f = [](Tape&, absl::Span<const Variable> v) {
    const Variable x = v[0];
    Op op("twice", {x});
    Variable y = op.Output(x.dtype(), x.shape());
    for (int64_t i = 0; i < x.value().elements(); ++i) y.value().Set(i, 2 * x.value().At(i));
    op.Backward([x, y](Gradients& g) {
      const Tensor dx = g.Into(x);
      for (int64_t i = 0; i < dx.elements(); ++i) dx.Set(i, 2 * g.Of(y).At(i));
    });
    return y;
  };
  const Numbers x(DType::kF64, {4}, 1);
  EXPECT_FALSE(CheckGradients({{"x", x}}, f).passed);
}

TEST(GradCheckTest, KinksAreSkippedAndCounted) {
  const Numbers x(DType::kF64, {5}, {-1, 0, 0.5, 2, -3});
  const GradCheckReport report = CheckGradients({{"x", x}}, [](Tape&, absl::Span<const Variable> v) { return Relu(v[0]); });
  EXPECT_TRUE(report.passed) << report.ToString();
  EXPECT_EQ(report.entries[0].kinks, 1);
  EXPECT_EQ(report.entries[0].checked, 5);
  EXPECT_THAT(report.ToString(), HasSubstr("1 kinks"));
}

TEST(GradCheckTest, AKinkInsideOfTheStepIsPassedByWithASmallerOne) {
  const Numbers x(DType::kF64, {2}, {4e-7, -1});
  const GradCheckReport report = CheckGradients({{"x", x}}, [](Tape&, absl::Span<const Variable> v) { return Relu(v[0]); });
  EXPECT_TRUE(report.passed) << report.ToString();
  EXPECT_EQ(report.entries[0].kinks, 0);
}

TEST(GradCheckTest, MostlyKinksFails) {
  const Numbers x(DType::kF64, {5}, {0, 0, 0.5, 0, -3});
  EXPECT_FALSE(CheckGradients({{"x", x}}, [](Tape&, absl::Span<const Variable> v) { return Relu(v[0]); }).passed);
}

// The strongest bend that is no kink: x^3 where its second derivative outweighs the first, with a gradient that is wrong there.
TEST(GradCheckTest, WrongGradientOfABentFunctionIsNoKink) {
  const Numbers x(DType::kF64, {3}, {1e-3, 2, 100});
  const auto f = [](Tape&, absl::Span<const Variable> v) { return Cube(v[0], 0.99); };
  const GradCheckReport report = CheckGradients({{"x", x}}, f);
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.entries[0].kinks, 0);
}

TEST(GradCheckTest, UnreachedInputIsNamed) {
  const Numbers x(DType::kF64, {3}, 1), unused(DType::kF64, {2}, 2);
  const GradCheckReport report =
      CheckGradients({{"x", x}, {"unused", unused}}, [](Tape&, absl::Span<const Variable> v) { return Square(v[0]); });
  EXPECT_TRUE(report.passed);
  EXPECT_FALSE(report.entries[1].received_gradient);
  EXPECT_THAT(report.ToString(), HasSubstr("unused: no gradient"));
}

TEST(GradCheckTest, UnreachedInputThatMattersFails) {
  const Numbers x(DType::kF64, {3}, 1), cut(DType::kF64, {3}, 2);
  const auto f = [](Tape& tape, absl::Span<const Variable> v) { return Mul(v[0], tape.Constant(v[1].value())); };
  const GradCheckReport report = CheckGradients({{"x", x}, {"cut", cut}}, f);
  EXPECT_TRUE(report.entries[0].passed);
  EXPECT_FALSE(report.entries[1].passed);
  EXPECT_FALSE(report.entries[1].received_gradient);
  EXPECT_FALSE(report.passed);
}

TEST(GradCheckTest, NothingReachedIsReportedForAll) {
  const Numbers x(DType::kF64, {3}, 1);
  const GradCheckReport report =
      CheckGradients({{"x", x}}, [](Tape& tape, absl::Span<const Variable> v) { return tape.Constant(v[0].value()); });
  EXPECT_FALSE(report.passed);
}

TEST(GradCheckTest, NanFails) {
  const Numbers x(DType::kF64, {3}, {1, NAN, 2});
  EXPECT_FALSE(CheckGradients({{"x", x}}, [](Tape&, absl::Span<const Variable> v) { return Square(v[0]); }).passed);
}

TEST(GradCheckTest, LargeInputsAreSampledTheSameWayForASeed) {
  const Numbers x(DType::kF64, {50, 7}, 1);
  GradCheckOptions options;
  options.max_elements_per_input = 10;
  const auto f = [](Tape&, absl::Span<const Variable> v) { return Tanh(v[0]); };
  const GradCheckReport first = CheckGradients({{"x", x}}, f, options), second = CheckGradients({{"x", x}}, f, options);
  EXPECT_EQ(first.entries[0].checked, 10);
  EXPECT_EQ(first.entries[0].elements, 350);
  EXPECT_EQ(first.entries[0].index, second.entries[0].index);
  EXPECT_EQ(first.entries[0].max_error, second.entries[0].max_error);
}

TEST(GradCheckTest, ValuesAreRestored) {
  const Numbers x(DType::kF64, {3, 5}, 1);
  const std::vector<char> before = ToBytes(x);
  CheckGradients({{"x", x}}, [](Tape&, absl::Span<const Variable> v) { return Tanh(v[0]); });
  EXPECT_EQ(ToBytes(x), before);
}

TEST(GradCheckDeathTest, SinglePrecisionIsRefused) {
  const Numbers x(DType::kF32, {3}, 1);
  EXPECT_DEATH(CheckGradients({{"x", x}}, [](Tape&, absl::Span<const Variable> v) { return Tanh(v[0]); }), "x is f32, not f64");
}

// A two-layer model whose parameters the test holds; `factor` spoils the second weight's gradient, `use_bias` cuts the bias
// off.
struct Model {
  Numbers x{DType::kF64, {6, 3}, 1};
  Numbers w1{DType::kF64, {5, 3}, 2}, b1{DType::kF64, {5}, 3}, w2{DType::kF64, {4, 5}, 4};
  Numbers dw1{DType::kF64, {5, 3}, 5}, db1{DType::kF64, {5}, 6}, dw2{DType::kF64, {4, 5}, 7};
  Tape tape;

  GradCheckReport Check(double factor, bool use_bias) {
    const int32_t targets[] = {0, 1, 2, 3, 0, 1};
    const auto loss = [&](bool backward) {
      tape.Reset();
      Variable h = tape.Constant(x);
      h = Tanh(Linear(h, tape.Leaf(w1, dw1), use_bias ? tape.Leaf(b1, db1) : Variable()));
      const Variable out = LinearCrossEntropy(h, tape.Leaf(w2, dw2), {}, targets).loss;
      if (backward) {
        tape.Backward(out);
        for (double& v : dw2.tensor().span<double>()) v *= factor;
      }
      return out.value().At(0);
    };
    return CheckParameterGradients({{"w1", w1, dw1}, {"b1", b1, db1}, {"w2", w2, dw2}}, loss);
  }
};

TEST(GradCheckTest, ModelWithRightGradientsPasses) {
  Model model;
  const GradCheckReport report = model.Check(1, true);
  EXPECT_TRUE(report.passed) << report.ToString();
  for (const GradCheckEntry& entry : report.entries) EXPECT_TRUE(entry.received_gradient) << entry.name;
}

TEST(GradCheckTest, ModelWithAWrongGradientFailsAtThatParameterOnly) {
  Model model;
  const GradCheckReport report = model.Check(0.99, true);
  EXPECT_TRUE(report.entries[0].passed && report.entries[1].passed);
  EXPECT_FALSE(report.entries[2].passed);
  EXPECT_FALSE(report.passed);
}

TEST(GradCheckTest, ModelParameterWithoutGradientIsNamed) {
  Model model;
  const GradCheckReport report = model.Check(1, false);
  EXPECT_TRUE(report.passed) << report.ToString();
  EXPECT_FALSE(report.entries[1].received_gradient);
  EXPECT_THAT(report.ToString(), HasSubstr("b1: no gradient"));
}

TEST(OpChecksTest, EveryEntryPasses) {
  for (const OpCheck& check : OpChecks()) {
    const GradCheckReport report = check.run(GradCheckOptions());
    EXPECT_TRUE(report.passed) << check.name << "\n" << report.ToString();
    for (const GradCheckEntry& entry : report.entries) {
      EXPECT_TRUE(entry.received_gradient) << check.name << ": " << entry.name;
      EXPECT_GT(entry.checked, 0) << check.name << ": " << entry.name;
    }
  }
}

TEST(OpChecksTest, NamesArePinned) {
  std::vector<std::string> names;
  for (const OpCheck& check : OpChecks()) names.push_back(check.name);
  const absl::string_view expected =
      "add add_row add_column add_outer add_scalar add_itself sub sub_row sub_column sub_outer sub_scalar "
      "sub_itself mul mul_row mul_column mul_outer mul_scalar mul_itself div div_row div_column div_outer "
      "div_scalar div_itself scale neg cast exp log sqrt square tanh sigmoid relu gelu gelu_tanh silu matmul "
      "matmul_transpose_a matmul_transpose_b matmul_transpose_both matmul_stack matmul_stack_transpose_both "
      "matmul_rank4 matmul_shared_a matmul_shared_a_transposed matmul_shared_b matmul_shared_b_transpose_a "
      "matmul_vector matmul_itself linear linear_no_bias linear_rank3 linear_rank1 softmax log_softmax layer_norm "
      "layer_norm_no_beta rms_norm sum_first_axis sum_middle_axis sum_last_axis mean_first_axis mean_middle_axis "
      "mean_last_axis max_first_axis max_middle_axis max_last_axis sum_all pool_mean pool_max pool_first pool_last "
      "reshape transpose transpose_rank4 slice_first_axis slice_last_axis split split_one_part_used "
      "concat_first_axis concat_last_axis gather_rows where where_broadcast masked_fill masked_fill_softmax dropout "
      "dropout_none dropout_all attention attention_scale attention_causal attention_grouped attention_multi_query "
      "attention_dropout attention_shared_keys attention_packed cross_entropy cross_entropy_smoothing "
      "cross_entropy_ignored_class linear_cross_entropy linear_cross_entropy_no_bias linear_cross_entropy_smoothing "
      "linear_cross_entropy_scaled";
  EXPECT_EQ(absl::StrJoin(names, " "), expected);
}

}  // namespace
}  // namespace weft
