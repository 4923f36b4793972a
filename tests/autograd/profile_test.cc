// What a profiled tape reports: calls, declared flops, bytes from shapes, memory, and times that add up.
#include "autograd/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "autograd/ops.h"

namespace weft {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class ProfileTest : public testing::Test {
 protected:
  Variable Input(const Shape& shape) {
    memory_.emplace_back(shape.elements(), 0.5f);
    return tape_.Input(Tensor::Of(absl::MakeSpan(memory_.back()), shape));
  }
  const ProfileRow& Row(absl::string_view name) {
    const ProfileRow* row = profile_.Find(name);
    EXPECT_NE(row, nullptr) << name;
    static const ProfileRow kNone;
    return row == nullptr ? kNone : *row;
  }

  std::vector<std::vector<float>> memory_;
  Tape tape_;
  Profile profile_;
};

TEST_F(ProfileTest, LinearCountsTwoFlopsAWeightAndRowForwardAndTwiceThatBackward) {
  tape_.set_profile(&profile_);
  tape_.Backward(SumAll(Linear(Input({5, 7}), Input({3, 7}), Input({3}))));
  const ProfileRow& linear = Row("linear");
  EXPECT_EQ(linear.forward.calls, 1);
  EXPECT_EQ(linear.forward.flops, 2 * 5 * 7 * 3);
  EXPECT_EQ(linear.backward.calls, 1);
  EXPECT_EQ(linear.backward.flops, 2 * 2 * 5 * 7 * 3);
  EXPECT_EQ(linear.forward.bytes, 4 * (5 * 7 + 3 * 7 + 3 + 5 * 3));
  EXPECT_EQ(linear.backward.bytes, 4 * (3 * (5 * 7 + 3 * 7 + 3) + 5 * 3));
}

TEST_F(ProfileTest, ProductsCountOnlyTheGradientsThatAreNeeded) {
  tape_.set_profile(&profile_);
  std::vector<float> numbers(6 * 4, 1.f);
  const Variable constant = tape_.Constant(Tensor::Of(absl::MakeSpan(numbers), {6, 4}));
  tape_.Backward(SumAll(MatMul(constant, Input({4, 2}))));
  EXPECT_EQ(Row("matmul").forward.flops, 2 * 6 * 4 * 2);
  EXPECT_EQ(Row("matmul").backward.flops, 2 * 6 * 4 * 2);
}

TEST_F(ProfileTest, AttentionCountsThePairsThatTheMaskLetsThrough) {
  tape_.set_profile(&profile_);
  const Sequence queries[] = {{0, 3, 0, 0}, {3, 2, 0, 1}}, keys[] = {{0, 5, 0, 0}, {5, 1, 0, 1}};
  AttentionOptions options;
  options.heads = 2;
  options.causal = true;
  tape_.Backward(SumAll(Attention(Input({5, 8}), Input({6, 8}), Input({6, 8}), queries, keys, options)));
  // Three queries see 3, 4 and 5 keys; of two queries and one key, the last sees it. Two products of 2 * 8 a pair.
  EXPECT_EQ(Row("attention").forward.flops, 2 * 2 * 8 * (3 + 4 + 5 + 1));
  EXPECT_EQ(Row("attention").backward.flops, 2 * Row("attention").forward.flops);
}

TEST_F(ProfileTest, HeldBytesAreWhatTheTapeUsed) {
  tape_.set_profile(&profile_);
  const Variable x = Input({64, 64});  // 16 KiB, so what is kept beside outputs is small
  tape_.Backward(SumAll(Exp(Exp(x))));
  EXPECT_GE(Row("exp").forward.held, 2 * 16384);  // two outputs
  EXPECT_LT(Row("exp").forward.held, 2 * 16384 + 1024);
  // The second exp's input gradient takes the place of the one above it. That of x is an Input's, kept in the arena.
  EXPECT_GE(Row("exp").backward.held, 16384);
  EXPECT_LT(Row("exp").backward.held, 16384 + 1024);
}

TEST_F(ProfileTest, LookUpsMoveTheirRowsAndViewsNothing) {
  tape_.set_profile(&profile_);
  const Variable rows = GatherRows(Input({1000, 4}), {1, 1, 7});
  Reshape(rows, {4, 3});
  EXPECT_EQ(Row("gather_rows").forward.bytes, 2 * 3 * 4 * 4);
  EXPECT_EQ(Row("reshape").forward.bytes, 0);
  Add(rows, rows);  // one input, read once
  EXPECT_EQ(Row("add").forward.bytes, 2 * 3 * 4 * 4);
}

TEST_F(ProfileTest, TimesOfAllOpsAreLessThanTheTimeThatPassed) {
  tape_.set_profile(&profile_);
  const double start = Now();
  Variable x = Input({64, 64});
  for (int i = 0; i < 20; ++i) x = Tanh(MatMul(x, x));
  tape_.Backward(SumAll(x));
  const double passed = Now() - start;
  double sum = 0;
  for (const ProfileRow& row : profile_.rows()) {
    EXPECT_GT(row.forward.seconds, 0) << row.name;
    EXPECT_GT(row.backward.seconds, 0) << row.name;
    sum += row.forward.seconds + row.backward.seconds;
  }
  EXPECT_LT(sum, passed);
  EXPECT_EQ(Row("matmul").forward.calls, 20);
}

TEST_F(ProfileTest, AnOpInsideAnotherIsCountedOnce) {
  tape_.set_profile(&profile_);
  const Variable x = Input({4});
  {
    const Op outer("outer", {x});
    const Op inner("inner", {x});
    tape_.Allocate(DType::kF32, {1024});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_GE(Row("inner").forward.seconds, 0.02);
  EXPECT_LT(Row("outer").forward.seconds, 0.02);
  EXPECT_EQ(Row("inner").forward.held, 4096);
  EXPECT_EQ(Row("outer").forward.held, 0);
}

TEST_F(ProfileTest, ATapeWithoutProfileReportsNothing) {
  tape_.set_profile(&profile_);
  Exp(Input({3}));
  tape_.set_profile(nullptr);
  tape_.Reset();
  tape_.Backward(SumAll(Exp(Input({3}))));
  EXPECT_EQ(Row("exp").forward.calls, 1);
  EXPECT_EQ(Row("exp").backward.calls, 0);
}

TEST_F(ProfileTest, AddSumsRowByRow) {
  profile_.Row("a").forward = {1, 0.5, 10, 100, 1000};
  Profile other;
  other.Row("b").backward.calls = 2;
  other.Row("a").forward = {2, 0.25, 20, 200, 2000};
  profile_.Add(other);
  EXPECT_EQ(Row("a").forward.calls, 3);
  EXPECT_EQ(Row("a").forward.seconds, 0.75);
  EXPECT_EQ(Row("a").forward.flops, 30);
  EXPECT_EQ(Row("a").forward.bytes, 300);
  EXPECT_EQ(Row("a").forward.held, 3000);
  EXPECT_EQ(Row("b").backward.calls, 2);
}

}  // namespace
}  // namespace weft
