#include <gtest/gtest.h>

#include <numeric>

#include "autograd/ops.h"
#include "tests/autograd/check_gradient.h"

namespace weft {
namespace {

using testing::ExpectGradients;
using testing::ExpectNear;
using testing::Inputs;
using testing::Numbers;
using testing::Pass;
using testing::Random;
using testing::RunOnce;

Numbers Counting(const Shape& shape) {
  Numbers x{shape, std::vector<double>(shape.elements())};
  std::iota(x.values.begin(), x.values.end(), 0);
  return x;
}

TEST(Shapes, ReshapeSharesTheMemory) {
  Tape tape;
  const Numbers x = Counting({2, 6});
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x.values), x.shape));
  const Variable y = Reshape(v, {3, 4});
  EXPECT_EQ(y.value().raw(), v.value().raw());
  EXPECT_EQ(y.shape(), Shape({3, 4}));
  ExpectGradients({Random({2, 6}, 1)}, [](const Inputs& in) { return Reshape(in[0], {3, 2, 2}); });
  ExpectGradients({Random({0, 6}, 1)}, [](const Inputs& in) { return Reshape(in[0], {3, 0}); });
  ExpectGradients({Random({1}, 1)}, [](const Inputs& in) { return Reshape(in[0], {}); });
}

TEST(Shapes, TransposeExchangesAnyTwoAxes) {
  for (const Shape& shape : {Shape({2, 3, 4, 5}), Shape({17, 33}), Shape({3, 1, 2}), Shape({0, 3}), Shape({5})}) {
    const Numbers x = Counting(shape);
    for (int a = 0; a < shape.rank(); ++a) {
      for (int b = 0; b < shape.rank(); ++b) {
        SCOPED_TRACE(::testing::Message() << shape << " " << a << " " << b);
        const Pass run = RunOnce<double>({x}, [&](const Inputs& in) { return Transpose(in[0], a, b - shape.rank()); });
        ASSERT_EQ(run.shape, shape.With(a, shape[b]).With(b, shape[a]));
        for (int64_t i = 0; i < shape.elements(); ++i) {
          // the index of output element i, with the two axes exchanged, is the index of its input element
          int64_t index[4], rest = i;
          for (int d = shape.rank() - 1; d >= 0; --d) {
            index[d] = rest % run.shape[d];
            rest /= run.shape[d];
          }
          std::swap(index[a], index[b]);
          int64_t from = 0;
          for (int d = 0; d < shape.rank(); ++d) from = from * shape[d] + index[d];
          ASSERT_EQ(run.output[i], x.values[from]);
        }
      }
    }
  }
  ExpectGradients({Random({2, 3, 4}, 2)}, [](const Inputs& in) { return Transpose(in[0], 0, 2); });
  ExpectGradients({Random({2, 3, 2, 2}, 2)}, [](const Inputs& in) { return Transpose(in[0], 1, 2); });
}

TEST(Shapes, ALargeTransposeTwiceIsTheIdentity) {
  const Numbers x = Counting({301, 203});
  const Pass run = RunOnce<float>({x}, [](const Inputs& in) { return Transpose(Transpose(in[0], 0, 1), 1, 0); });
  EXPECT_EQ(run.output, x.values);
  const Pass once = RunOnce<double>({x}, [](const Inputs& in) { return Transpose(in[0], 0, 1); });
  const std::vector<double> u = testing::Uniform(301 * 203, 77);
  for (int64_t i = 0; i < 301; ++i) {
    for (int64_t j = 0; j < 203; ++j) ASSERT_EQ(once.gradients[0][i * 203 + j], u[j * 301 + i]);
  }
}

TEST(Shapes, SliceTakesARangeOfAnAxis) {
  const Numbers x = Counting({3, 4});
  EXPECT_EQ(RunOnce<double>({x}, [](const Inputs& in) { return Slice(in[0], 0, 1, 2); }).output,
            std::vector<double>({4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(RunOnce<double>({x}, [](const Inputs& in) { return Slice(in[0], -1, 1, 2); }).output,
            std::vector<double>({1, 2, 5, 6, 9, 10}));
  for (int axis : {0, 1, 2}) {
    for (int64_t length : {0, 1, 2}) {
      ExpectGradients({Random({3, 2, 4}, 3)}, [&](const Inputs& in) { return Slice(in[0], axis, 0, length); });
    }
  }
  ExpectGradients({Random({3, 2, 4}, 3)}, [&](const Inputs& in) { return Slice(in[0], 2, 3, 1); });
}

TEST(Shapes, ConcatUndoesSplit) {
  for (int axis : {0, 1, 2}) {
    const Shape shape = Shape({2, 3, 4}).With(axis, 6);
    const Numbers x = Counting(shape);
    const auto round_trip = [&](const Inputs& in) { return Concat(Split(in[0], axis, {1, 0, 3, 2}), axis); };
    const Pass run = RunOnce<double>({x}, round_trip);
    EXPECT_EQ(run.shape, shape);
    EXPECT_EQ(run.output, x.values);
    ExpectGradients({Random(shape, 4)}, round_trip);
  }
}

TEST(Shapes, ConcatKeepsTheOrderOfItsInputs) {
  const Pass run = RunOnce<double>({Counting({2, 2}), Counting({2, 1})}, [](const Inputs& in) {
    return Concat({in[0], in[1], in[0]}, 1);
  });
  EXPECT_EQ(run.output, std::vector<double>({0, 1, 0, 0, 1, 2, 3, 1, 2, 3}));
  ExpectGradients({Random({2, 2}, 5), Random({2, 1}, 6), Random({2, 3}, 7)}, [](const Inputs& in) {
    return Concat({in[0], in[1], in[0], in[2]}, -1);
  });
  ExpectGradients({Random({2, 2}, 5), Random({0, 2}, 6)}, [](const Inputs& in) { return Concat({in[0], in[1]}, 0); });
}

// Only the middle piece is used: the others get no gradient and add nothing.
TEST(Shapes, UnusedPiecesOfASplitAreSkipped) {
  const Pass run = RunOnce<double>(
      {Counting({6})},
      [](const Inputs& in) {
        return Split(in[0], 0, {2, 1, 3})[1];
      },
      0, 1.0);
  EXPECT_EQ(run.gradients[0], std::vector<double>({0, 0, 1, 0, 0, 0}));
}

TEST(Shapes, LargeSlicesAndConcatsEqualAPlainLoop) {
  const Numbers x = Counting({400, 300});
  const Pass run = RunOnce<double>({x}, [](const Inputs& in) { return Concat(Split(in[0], 1, {100, 200}), 1); });
  EXPECT_EQ(run.output, x.values);
  EXPECT_EQ(run.gradients[0], testing::Uniform(400 * 300, 77));
}

TEST(Shapes, GatherRowsLooksUpAndAddsEqualIds) {
  const std::vector<int32_t> ids = {2, 0, 2, 2};
  const auto f = [&](const Inputs& in) { return GatherRows(in[0], ids); };
  const Pass run = RunOnce<double>({Counting({3, 2})}, f, 0, 1.0);
  EXPECT_EQ(run.output, std::vector<double>({4, 5, 0, 1, 4, 5, 4, 5}));
  EXPECT_EQ(run.gradients[0], std::vector<double>({1, 1, 0, 0, 3, 3}));
  ExpectGradients({Random({3, 5}, 8)}, f);
  ExpectGradients({Random({3, 1}, 8)}, f);
  const Pass none = RunOnce<double>({Counting({3, 2})}, [](const Inputs& in) { return GatherRows(in[0], {}); });
  EXPECT_EQ(none.shape, Shape({0, 2}));
}

// The ids are copied: the caller's list may be gone before Backward.
TEST(Shapes, GatherRowsKeepsItsOwnIds) {
  Tape tape;
  const Numbers x = Counting({3, 1});
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x.values), x.shape));
  std::vector<int32_t> ids = {1, 1};
  const Variable y = GatherRows(v, ids);
  ids = {0, 0};
  tape.Backward(SumAll(y));
  EXPECT_EQ(tape.Gradient(v).At(0), 0);
  EXPECT_EQ(tape.Gradient(v).At(1), 2);
}

TEST(Shapes, ALargeGatherAddsInTheOrderOfTheIds) {
  const int64_t rows = 50, width = 300, count = 400;
  std::vector<int32_t> ids(count);
  for (int64_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>(RandomKey{9}.Below(i, rows));
  const Numbers table = Random({rows, width}, 9);
  const Pass run = RunOnce<float>({table}, [&](const Inputs& in) { return GatherRows(in[0], ids); });
  std::vector<float> expected(rows * width);
  const std::vector<double> u = testing::Uniform(count * width, 77);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      expected[ids[i] * width + c] += static_cast<float>(u[i * width + c]);
      ASSERT_EQ(run.output[i * width + c], static_cast<float>(table.values[ids[i] * width + c]));
    }
  }
  EXPECT_EQ(run.gradients[0], std::vector<double>(expected.begin(), expected.end()))
      << "the same sums in the same order: equal bits";
}

TEST(ShapesDeathTest, MessagesNameTheOpAndTheNumbers) {
  Tape tape;
  std::vector<double> x(6);
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x), {2, 3}));
  const Variable w = tape.Input(Tensor::Of(absl::MakeSpan(x), {3, 2}));
  EXPECT_DEATH(Reshape(v, {7}), "reshape: shape \\[2, 3\\] as \\[7\\]");
  EXPECT_DEATH(Transpose(v, 0, 2), "transpose: axis 2 of shape \\[2, 3\\]");
  EXPECT_DEATH(Slice(v, 1, 2, 2), "slice: 2 places from 2 on, along axis 1 of shape \\[2, 3\\]");
  EXPECT_DEATH(Slice(v, 1, -1, 2), "slice: 2 places from -1 on");
  EXPECT_DEATH(Split(v, 1, {1, 1}), "split: 2 pieces of 2 places in all, along axis 1 of shape \\[2, 3\\]");
  EXPECT_DEATH(Concat({v, w}, 0), "concat: f64\\[2, 3\\] and f64\\[3, 2\\] along axis 0");
  EXPECT_DEATH(Concat({}, 0), "concat: no input");
  EXPECT_DEATH(GatherRows(v, {0, 2}), "gather_rows: id 2 at place 1, table of shape \\[2, 3\\]");
  EXPECT_DEATH(GatherRows(v, {-1}), "gather_rows: id -1 at place 0");
}

}  // namespace
}  // namespace weft
