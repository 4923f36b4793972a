#include "autograd/tape.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "autograd/ops.h"
#include "tests/allocation_count.h"
#include "tests/autograd/check_gradient.h"

namespace weft {
namespace {

// A value with its memory.
struct Value {
  explicit Value(std::vector<double> v, const Shape& shape = {}) : numbers(std::move(v)), grad(numbers.size()), shape(shape) {}
  Tensor tensor() { return Tensor::Of(absl::MakeSpan(numbers), shape); }
  Tensor gradient() { return Tensor::Of(absl::MakeSpan(grad), shape); }
  std::vector<double> numbers, grad;
  Shape shape;
};

TEST(Tape, BackwardFollowsTheChainRule) {
  Tape tape;
  Value a({3}), b({2}), d({1});
  const Variable va = tape.Input(a.tensor()), vb = tape.Input(b.tensor()), vd = tape.Input(d.tensor());
  const Variable e = Mul(Add(va, vb), vd);
  EXPECT_EQ(e.value().At(0), 5);
  tape.Backward(e);
  EXPECT_EQ(tape.Gradient(va).At(0), 1);
  EXPECT_EQ(tape.Gradient(vb).At(0), 1);
  EXPECT_EQ(tape.Gradient(vd).At(0), 5);
}

TEST(TapeDeathTest, BackwardTwiceIsRefused) {
  Tape tape;
  Value a({3}), b({2}), d({1});
  const Variable e = Mul(Add(tape.Input(a.tensor()), tape.Input(b.tensor())), tape.Input(d.tensor()));
  tape.Backward(e);
  EXPECT_DEATH(tape.Backward(e), "Backward twice: this graph has been used already");
}

TEST(TapeDeathTest, StaleHandlesAreRefused) {
  Tape tape;
  Value a({3});
  const Variable x = tape.Input(a.tensor());
  tape.Reset();
  EXPECT_DEATH(x.value(), "value\\(\\): stale Variable");
  EXPECT_DEATH(Exp(x), "exp: stale Variable");
  EXPECT_DEATH(tape.Backward(x), "Backward: stale Variable");
  EXPECT_DEATH(Variable().value(), "undefined Variable");
}

TEST(TapeDeathTest, VariablesOfAnotherTapeAreRefused) {
  Tape first, second;
  Value a({3});
  const Variable x = first.Input(a.tensor()), y = second.Input(a.tensor());
  EXPECT_DEATH(Add(x, y), "add: a Variable of another tape");
  EXPECT_DEATH(first.Gradient(y), "Gradient: a Variable of another tape");
}

TEST(TapeDeathTest, AValueChangedAfterUseIsRefusedNamingTheOp) {
  Tape tape;
  Value a({0});
  const Variable x = tape.Input(a.tensor());
  const Variable y = Exp(x), z = Scale(y, 2);
  tape.Mutable(y).Set(0, 2);  // y += 1
  EXPECT_DEATH(tape.Backward(z), "backward of scale: its input 0 of shape \\[\\] was changed");
  Tape other;
  const Variable x2 = other.Input(a.tensor());
  const Variable y2 = Exp(x2);
  other.Mutable(y2).Set(0, 2);
  EXPECT_DEATH(other.Backward(y2), "backward of exp: its output 0 of shape \\[\\] was changed");
}

TEST(TapeDeathTest, AValueChangedThroughAViewIsRefused) {
  Tape tape;
  Value a({1, 2}, {2});
  const Variable x = tape.Input(a.tensor());
  const Variable y = Exp(x);
  tape.Mutable(Reshape(y, {2, 1})).Set(0, 7);
  EXPECT_DEATH(tape.Backward(SumAll(y)), "backward of exp: its output 0");
}

TEST(Tape, AValueChangedBeforeUseIsFine) {
  Tape tape;
  Value a({5});
  const Variable x = tape.Input(a.tensor());
  tape.Mutable(x).Set(0, 3);
  tape.Backward(Square(x));
  EXPECT_EQ(tape.Gradient(x).At(0), 6);
}

TEST(TapeDeathTest, AParameterChangedBeforeBackwardIsRefusedNamingBoth) {
  Tape tape;
  Value w({5});
  uint64_t version = 7;
  const Variable x = tape.Leaf(w.tensor(), w.gradient(), &version, "encoder.0.weight");
  const Variable y = Square(x);
  ++version;
  EXPECT_DEATH(tape.Backward(y), "backward of square: parameter encoder.0.weight was changed between forward and backward");
}

// The view has no version of its own; the op that reads it is the one that is named.
TEST(TapeDeathTest, AParameterReadThroughAViewIsCheckedToo) {
  Tape tape;
  Value w({5}), v({2});
  uint64_t version = 0;
  const Variable frozen = tape.Leaf(w.tensor(), Tensor(), &version, "frozen");
  const Variable y = Mul(tape.Input(v.tensor()), Reshape(frozen, {}));
  ++version;
  EXPECT_DEATH(tape.Backward(y), "backward of mul: parameter frozen was changed");
}

TEST(Tape, AddsIntoALeafsGradient) {
  Tape tape;
  Value w({5});
  w.grad[0] = 100;
  uint64_t version = 0;
  const Variable x = tape.Leaf(w.tensor(), w.gradient(), &version, "w");
  tape.Backward(Add(Square(x), x));
  EXPECT_EQ(w.grad[0], 100 + 10 + 1);
  EXPECT_EQ(tape.Gradient(x).At(0), 111);
  tape.Reset();
  tape.Backward(tape.Leaf(w.tensor(), w.gradient(), &version, "w"));
  EXPECT_EQ(w.grad[0], 112);
}

TEST(TapeDeathTest, RetainKeepsAnIntermediateGradient) {
  Tape tape;
  Value a({3});
  const Variable x = tape.Input(a.tensor()), y = Square(x), z = Square(y);
  tape.Retain(y);
  tape.Backward(z);
  EXPECT_EQ(tape.Gradient(y).At(0), 18);
  EXPECT_EQ(tape.Gradient(x).At(0), 108);
  EXPECT_DEATH(tape.Gradient(z), "call Retain");
  EXPECT_DEATH(tape.Retain(z), "Retain after Backward");
}

TEST(Tape, OutputsWithoutGradientAreSkipped) {
  Tape tape;
  Value a({3}), b({4});
  const Variable x = tape.Input(a.tensor()), unused = tape.Input(b.tensor());
  Square(unused);
  int32_t* runs = static_cast<int32_t*>(tape.Allocate(DType::kI32, {1}).raw());
  *runs = 0;
  Op op("counting", {x});
  const Variable y = op.Output(DType::kF64, {});
  y.value().Set(0, 1);
  op.Backward([runs](Gradients&) { ++*runs; });
  tape.Backward(Square(x));
  EXPECT_EQ(*runs, 0);
  EXPECT_FALSE(tape.Gradient(unused).defined());
  EXPECT_EQ(tape.Gradient(x).At(0), 6);
}

TEST(Tape, ConstantsAreNotRecorded) {
  Tape tape;
  Value a({3});
  const Variable c = tape.Constant(a.tensor());
  const Variable y = Exp(Square(c));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(tape.op_count(), 0);
  EXPECT_TRUE(Add(y, tape.Input(a.tensor())).requires_grad());
  EXPECT_EQ(tape.op_count(), 1);
}

TEST(TapeDeathTest, InferenceRecordsNothing) {
  Tape tape(Tape::Mode::kInference);
  Value a({1, 2, 3}, {3});
  const Variable x = tape.Leaf(a.tensor(), a.gradient());
  const Variable y = SumAll(Max(Softmax(Exp(x)), 0));
  EXPECT_EQ(tape.op_count(), 0);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_DEATH(tape.Backward(y), "inference mode");
  tape.Reset(Tape::Mode::kTraining);
  SumAll(tape.Leaf(a.tensor(), a.gradient()));
  EXPECT_EQ(tape.op_count(), 1);
}

TEST(TapeDeathTest, BackwardNeedsOneNumberThatDependsOnSomething) {
  Tape tape;
  Value a({1, 2}, {2});
  EXPECT_DEATH(tape.Backward(tape.Input(a.tensor())), "Backward needs one number, got shape \\[2\\]");
  EXPECT_DEATH(tape.Backward(SumAll(tape.Constant(a.tensor()))), "depends on nothing");
  EXPECT_DEATH(tape.Backward(tape.Input(a.tensor()), Value({1}).tensor()), "upstream f64\\[\\] for an output f64\\[2\\]");
}

// s = a + b; L = sum(s) + sum(3 a): a buffer shared by two parents would give db = 4.
TEST(Tape, GradientsOfSharedParentsStayApart) {
  for (bool sum_first : {true, false}) {
    Tape tape;
    Value a({1, 2}, {2}), b({3, 4}, {2});
    const Variable va = tape.Input(a.tensor()), vb = tape.Input(b.tensor());
    const Variable s = Add(va, vb);
    const Variable first = sum_first ? SumAll(s) : SumAll(Scale(va, 3));
    const Variable second = sum_first ? SumAll(Scale(va, 3)) : SumAll(s);
    tape.Backward(Add(first, second));
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(tape.Gradient(va).At(i), 4);
      EXPECT_EQ(tape.Gradient(vb).At(i), 1);
    }
  }
}

// y views x's memory, but not its gradient.
TEST(Tape, AViewAndItsSourceMayBothBeUsed) {
  for (bool view_first : {true, false}) {
    Tape tape;
    Value a({1, 2}, {2});
    const Variable leaf = tape.Input(a.tensor()), x = Scale(leaf, 1), y = Reshape(x, {2, 1});
    tape.Retain(x);
    tape.Retain(y);
    const Variable first = view_first ? SumAll(y) : SumAll(Scale(x, 3));
    const Variable second = view_first ? SumAll(Scale(x, 3)) : SumAll(y);
    tape.Backward(Add(first, second));
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(tape.Gradient(y).At(i), 1);
      EXPECT_EQ(tape.Gradient(x).At(i), 4);
      EXPECT_EQ(tape.Gradient(leaf).At(i), 4);
    }
  }
}

// A recursive walk would overflow the stack.
TEST(Tape, AChainOf200000Ops) {
  Tape tape;
  Value a({1});
  Variable x = tape.Input(a.tensor());
  const Variable input = x;
  for (int i = 0; i < 200000; ++i) x = Neg(x);
  EXPECT_EQ(tape.op_count(), 200000);
  tape.Backward(x);
  EXPECT_EQ(tape.Gradient(input).At(0), 1);
}

// Gradients of a chain live for one op each, so their memory does not grow with its length.
TEST(Tape, GradientMemoryOfAChainDoesNotGrowWithItsLength) {
  const auto growth = [](int length) {
    Tape tape;
    Value a(std::vector<double>(5000, 1.0), {5000});
    Variable x = tape.Input(a.tensor());
    for (int i = 0; i < length; ++i) x = Neg(x);
    const Variable loss = SumAll(x);
    const int64_t before = tape.memory();
    tape.Backward(loss);
    return tape.memory() - before;
  };
  EXPECT_EQ(growth(20), growth(200));
}

// A step with most ops, small and beyond one tile.
double Step(Tape& tape, Value& w, Value& x, absl::Span<const int32_t> ids, const Tensor& mask) {
  tape.Reset();
  const Variable table = tape.Leaf(w.tensor(), w.gradient());
  const Variable rows = GatherRows(table, ids);                                 // [8, 6]
  const Variable h = Gelu(Add(Mul(rows, tape.Input(x.tensor())), Tanh(rows)));  // x is [6]
  const Variable t = Transpose(Reshape(h, {2, 4, 6}), 0, 1);
  const Variable halves[] = {Slice(t, 2, 0, 3), Exp(Slice(t, 2, 3, 3))};
  const Variable joined = Reshape(Concat(halves, 2), {8, 6});
  const Variable p = Softmax(MaskedFill(joined, mask, -1e9));
  const Variable q = Where(mask, LogSoftmax(joined), Div(p, Sqrt(Add(Square(joined), Exp(p)))));
  const Variable m = Sub(Max(q, 1, true), Mean(p, 1, true));
  const Variable loss = Add(SumAll(Relu(Silu(Sigmoid(m)))), SumAll(Sum(Cast(q, DType::kF64), 0)));
  tape.Backward(loss);
  return loss.value().At(0);
}

TEST(Tape, ASteadyStepAllocatesNothingAndKeepsItsMemory) {
  Tape tape;
  Value w(testing::Uniform(30, 1), {5, 6}), x(testing::Uniform(6, 2), {6});
  const std::vector<int32_t> ids = {0, 1, 2, 3, 4, 0, 1, 0};
  std::vector<int32_t> bits(48);
  for (int i = 0; i < 48; ++i) bits[i] = i % 3 == 0;
  const Tensor mask = Tensor::Of(absl::MakeSpan(bits), {8, 6});
  double loss = 0;
  for (int i = 0; i < 3; ++i) loss = Step(tape, w, x, ids, mask);
  const int64_t memory = tape.memory(), ops = tape.op_count(), before = AllocationCount();
  for (int i = 0; i < 20; ++i) {
    const double again = Step(tape, w, x, ids, mask);
    ASSERT_EQ(again, loss);
  }
  EXPECT_EQ(AllocationCount() - before, 0);
  EXPECT_EQ(tape.memory(), memory);
  EXPECT_EQ(tape.op_count(), ops);
}

TEST(Tape, AFreshLeafIsOverwrittenWhateverItHeld) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto gradients = [&](bool is_fresh, double start) {
    Tape tape;
    Value w(testing::Uniform(6, 1), {2, 3}), table(testing::Uniform(6, 2), {2, 3}), unused({1.0}, {1});
    for (Value* value : {&w, &table, &unused}) std::fill(value->grad.begin(), value->grad.end(), start);
    const Variable ws = tape.Leaf(w.tensor(), w.gradient(), nullptr, "w", is_fresh);
    const Variable tables = tape.Leaf(table.tensor(), table.gradient(), nullptr, "table", is_fresh);
    const Variable alone = tape.Leaf(unused.tensor(), unused.gradient(), nullptr, "unused", is_fresh);
    // w is written by one product and added to by another; the table's first gradient is a sum into zeros.
    const std::vector<int32_t> ids = {1, 1};
    const Variable x = GatherRows(tables, ids);
    tape.Backward(SumAll(Linear(Linear(Linear(x, ws), Reshape(ws, {3, 2})), ws)));
    EXPECT_FALSE(tape.Gradient(alone).defined());
    std::vector<double> all = w.grad;
    all.insert(all.end(), table.grad.begin(), table.grad.end());
    return all;
  };
  EXPECT_EQ(gradients(true, nan), gradients(false, 0.0));
}

TEST(Tape, GradientsThatAreHandedOverAreNotShared) {
  // y = (x + 2x) + x x: each sum hands its gradient to its first operand, which then receives more.
  Tape tape;
  Value a({3.0, -1.0}, {2});
  const Variable x = tape.Input(a.tensor());
  const Variable first = Neg(x), doubled = Scale(x, 2);
  const Variable sum = Add(first, doubled), again = Add(sum, sum), y = Add(again, Mul(first, first));
  tape.Backward(SumAll(y));
  // y = 2 (-x + 2x) + x^2: dy/dx = 2 + 2x.
  EXPECT_EQ(tape.Gradient(x).At(0), 8.0);
  EXPECT_EQ(tape.Gradient(x).At(1), 0.0);
}

TEST(Tape, AResultTakesTheMemoryOfAFreeValueAtItsLastUse) {
  Value a(testing::Uniform(6, 1), {2, 3}), w(testing::Uniform(9, 2), {3, 3});
  Tape tape;
  const Variable x = tape.Input(a.tensor()), weight = tape.Input(w.tensor());
  const Variable free = Linear(x, weight), used = Linear(x, weight), needed = Tanh(x), twice = Linear(x, weight),
                 unsaid = Linear(x, weight), activated = Linear(x, weight), read = Linear(x, weight);
  const Variable other = Tanh(used);
  const void *memory = free.value().raw(), *memory_of_activated = activated.value().raw();
  const Variable sum = Add(x, tape.LastUse(free)), gelu = Gelu(tape.LastUse(activated));
  EXPECT_EQ(sum.value().raw(), memory);
  EXPECT_EQ(gelu.value().raw(), memory_of_activated);
  EXPECT_NE(Add(x, unsaid).value().raw(), unsaid.value().raw());
  EXPECT_NE(Add(x, tape.LastUse(used)).value().raw(), used.value().raw()) << "something else used it";
  EXPECT_NE(Add(x, tape.LastUse(needed)).value().raw(), needed.value().raw()) << "its own backward reads it";
  EXPECT_NE(Add(twice, tape.LastUse(twice)).value().raw(), twice.value().raw()) << "both operands";
  EXPECT_NE(Mul(x, tape.LastUse(read)).value().raw(), read.value().raw()) << "the backward of a product reads it";
  EXPECT_DEATH(Tanh(free), "used after its LastUse");
  EXPECT_DEATH(free.value(), "used after its LastUse");

  tape.Backward(SumAll(Mul(Mul(sum, other), gelu)));
  Tape plain;
  const Variable px = plain.Input(a.tensor()), pw = plain.Input(w.tensor());
  const Variable expected = Add(px, Linear(px, pw)), pgelu = Gelu(Linear(px, pw));
  plain.Backward(SumAll(Mul(Mul(expected, Tanh(Linear(px, pw))), pgelu)));
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(sum.value().At(i), expected.value().At(i));
    EXPECT_EQ(gelu.value().At(i), pgelu.value().At(i));
    EXPECT_NEAR(tape.Gradient(x).At(i), plain.Gradient(px).At(i), 1e-14);  // three sums in another order
  }
  for (int64_t i = 0; i < 9; ++i) EXPECT_NEAR(tape.Gradient(weight).At(i), plain.Gradient(pw).At(i), 1e-14);
}

TEST(Tape, TheCounterOfAllocationsCounts) {
  const int64_t before = AllocationCount();
  std::vector<int> v(100);
  v[0] = 1;
  EXPECT_GT(AllocationCount() - before, 0);
}

TEST(Tape, TwoTapesInTwoThreadsAreIndependent) {
  const std::vector<int32_t> ids = {0, 1, 2, 3, 4, 0, 1, 0};
  std::vector<int32_t> bits(48);
  for (int i = 0; i < 48; ++i) bits[i] = i % 3 == 0;
  const Tensor mask = Tensor::Of(absl::MakeSpan(bits), {8, 6});
  const auto gradient = [&](uint64_t seed) {
    Tape tape;
    Value w(testing::Uniform(30, seed), {5, 6}), x(testing::Uniform(6, seed + 1), {6});
    for (int i = 0; i < 50; ++i) Step(tape, w, x, ids, mask);
    return w.grad;
  };
  const std::vector<double> expected_first = gradient(1), expected_second = gradient(5);
  std::vector<double> first, second;
  std::thread other([&] { first = gradient(1); });
  second = gradient(5);
  other.join();
  EXPECT_EQ(first, expected_first);
  EXPECT_EQ(second, expected_second);
}

}  // namespace
}  // namespace weft
