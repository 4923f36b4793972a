#include <gtest/gtest.h>

#include <limits>

#include "autograd/ops.h"
#include "tests/autograd/check_gradient.h"

namespace weft {
namespace {

using testing::ExpectGradients;
using testing::Inputs;
using testing::Numbers;
using testing::Pass;
using testing::Random;
using testing::RunOnce;

std::vector<int32_t> Coins(int64_t n) {
  std::vector<int32_t> coins(n);
  for (int64_t i = 0; i < n; ++i) coins[i] = RandomKey{11}.Uniform(i) < 0.5 ? 0 : 3;
  return coins;
}

TEST(Choice, WhereTakesFromOneOfTwo) {
  const std::vector<int32_t> condition = {1, 0, 0, 2};
  const Pass run = RunOnce<double>(
      {{Shape({4}), {1, 2, 3, 4}}, {Shape({4}), {10, 20, 30, 40}}},
      [&](const Inputs& x) { return Where(Tensor::Of(absl::MakeSpan(condition), {4}), x[0], x[1]); }, 0, 1.0);
  EXPECT_EQ(run.output, std::vector<double>({1, 20, 30, 4}));
  EXPECT_EQ(run.gradients[0], std::vector<double>({1, 0, 0, 1}));
  EXPECT_EQ(run.gradients[1], std::vector<double>({0, 1, 1, 0}));
}

TEST(Choice, WhereBroadcastsItsBranches) {
  const std::vector<int32_t> coins = Coins(24);
  const Shape shape = {2, 3, 4};
  const auto f = [&](const Inputs& x) { return Where(Tensor::Of(absl::MakeSpan(coins), shape), x[0], x[1]); };
  for (const Shape& a : {shape, Shape({4}), Shape({}), Shape({3, 1}), Shape({2, 1, 4})}) {
    for (const Shape& b : {shape, Shape({1}), Shape({2, 1, 1})}) {
      SCOPED_TRACE(::testing::Message() << a << b);
      const std::vector<Numbers> inputs = {Random(a, 1), Random(b, 2)};
      const Pass run = RunOnce<double>(inputs, f);
      // The same choice by arithmetic on broadcast operands.
      const Pass all_a =
          RunOnce<double>({inputs[0], {shape, std::vector<double>(24)}}, [](const Inputs& x) { return Add(x[0], x[1]); });
      const Pass all_b =
          RunOnce<double>({inputs[1], {shape, std::vector<double>(24)}}, [](const Inputs& x) { return Add(x[0], x[1]); });
      for (int64_t i = 0; i < 24; ++i) ASSERT_EQ(run.output[i], coins[i] ? all_a.output[i] : all_b.output[i]);
      ExpectGradients(inputs, f);
    }
  }
}

TEST(Choice, TheBranchNotTakenGetsExactlyZeroEvenFromInfinity) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<int32_t> condition = {1, 0};
  const Pass run = RunOnce<double>(
      {Random({2}, 1), Random({2}, 2)},
      [&](const Inputs& x) { return Where(Tensor::Of(absl::MakeSpan(condition), {2}), x[0], x[1]); }, 0, inf);
  EXPECT_EQ(run.gradients[0], std::vector<double>({inf, 0}));
  EXPECT_EQ(run.gradients[1], std::vector<double>({0, inf}));
}

TEST(Choice, MaskedFillReplacesAndStopsTheGradient) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<int32_t> mask = {0, 1, 0};
  const Pass run = RunOnce<float>(
      {{Shape({2, 3}), {1, 2, 3, 4, 5, 6}}},
      [&](const Inputs& x) { return MaskedFill(x[0], Tensor::Of(absl::MakeSpan(mask), {3}), -inf); }, 0, 1.0);
  EXPECT_EQ(run.output, std::vector<double>({1, -inf, 3, 4, -inf, 6}));
  EXPECT_EQ(run.gradients[0], std::vector<double>({1, 0, 1, 1, 0, 1}));
}

TEST(Choice, MaskedFillBroadcastsTheMask) {
  const std::vector<int32_t> coins = Coins(24);
  for (const Shape& mask : {Shape({2, 3, 4}), Shape({3, 4}), Shape({3, 1}), Shape({2, 1, 1}), Shape({})}) {
    SCOPED_TRACE(mask);
    ExpectGradients({Random({2, 3, 4}, 3)}, [&](const Inputs& x) {
      return MaskedFill(x[0], Tensor::Of(absl::MakeSpan(coins).subspan(0, mask.elements()), mask), 0.5);
    });
  }
  const std::vector<int32_t> none = {1};
  ExpectGradients({Random({0, 4}, 3)},
                  [&](const Inputs& x) { return MaskedFill(x[0], Tensor::Of(absl::MakeSpan(none), {1}), 0.5); });
}

TEST(Choice, LargeChoicesEqualAPlainLoop) {
  const int64_t n = 100003;
  const std::vector<int32_t> coins = Coins(n);
  const Numbers a = Random({n}, 4), b = Random({}, 5);
  const Pass run =
      RunOnce<double>({a, b}, [&](const Inputs& x) { return Where(Tensor::Of(absl::MakeSpan(coins), {n}), x[0], x[1]); });
  const std::vector<double> u = testing::Uniform(n, 77);
  double to_b = 0;
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(run.output[i], coins[i] ? a.values[i] : b.values[0]);
    ASSERT_EQ(run.gradients[0][i], coins[i] ? u[i] : 0);
    if (!coins[i]) to_b += u[i];
  }
  EXPECT_NEAR(run.gradients[1][0], to_b, 1e-10);
}

// Conditions and masks are copied: the caller's memory may change before Backward.
TEST(Choice, KeepsItsOwnCondition) {
  Tape tape;
  std::vector<double> x = {1, 2}, zero = {0};
  std::vector<int32_t> condition = {1, 0};
  const Tensor chosen = Tensor::Of(absl::MakeSpan(condition), {2});
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x), {2}));
  const Variable y = Add(Where(chosen, v, tape.Constant(Tensor::Of(absl::MakeSpan(zero), {}))), MaskedFill(v, chosen, 0));
  condition = {0, 0};
  tape.Backward(SumAll(y));
  EXPECT_EQ(tape.Gradient(v).At(0), 1);
  EXPECT_EQ(tape.Gradient(v).At(1), 1);
}

TEST(ChoiceDeathTest, MessagesNameTheOp) {
  Tape tape;
  std::vector<double> x(6);
  std::vector<int32_t> i(6);
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x), {2, 3}));
  const Tensor two = Tensor::Of(absl::MakeSpan(i).subspan(0, 2), {2});
  EXPECT_DEATH(Where(two, v, v), "where: shapes \\[2, 3\\] and \\[2, 3\\] do not broadcast to \\[2\\]");
  EXPECT_DEATH(Where(v.value(), v, v), "where: the condition must be i32");
  EXPECT_DEATH(MaskedFill(v, two, 0), "masked_fill: shapes \\[2, 3\\] and \\[2\\] do not broadcast to \\[2, 3\\]");
}

}  // namespace
}  // namespace weft
