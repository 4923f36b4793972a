#include <gtest/gtest.h>

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

using BinaryOp = Variable (*)(Variable, Variable);

struct Named {
  const char* name;
  BinaryOp op;
  double (*value)(double, double);
};
const Named kOps[] = {{"add", Add, [](double a, double b) { return a + b; }},
                      {"sub", Sub, [](double a, double b) { return a - b; }},
                      {"mul", Mul, [](double a, double b) { return a * b; }},
                      {"div", Div, [](double a, double b) { return a / b; }}};

// Element i of the broadcast of x to `out`, by plain index arithmetic.
double Element(const Numbers& x, const Shape& out, int64_t i) {
  int64_t index = 0, stride = 1;
  for (int d = 1; d <= out.rank(); ++d) {
    const int64_t at = i % out[-d];
    i /= out[-d];
    if (d > x.shape.rank()) continue;
    index += x.shape[-d] == 1 ? 0 : at * stride;
    stride *= x.shape[-d];
  }
  return x.values[index];
}

void CheckShapes(const Shape& a, const Shape& b, const Shape& out) {
  for (const Named& named : kOps) {
    SCOPED_TRACE(::testing::Message() << named.name << " " << a << " " << b);
    const std::vector<Numbers> inputs = {Random(a, 1), Random(b, 2, 0.5, 2)};
    const auto f = [&](const Inputs& x) { return named.op(x[0], x[1]); };
    const Pass run = RunOnce<double>(inputs, f);
    ASSERT_EQ(run.shape, out);
    for (int64_t i = 0; i < out.elements(); ++i) {
      ASSERT_EQ(run.output[i], named.value(Element(inputs[0], out, i), Element(inputs[1], out, i))) << i;
    }
    ExpectGradients(inputs, f);
  }
}

TEST(Arithmetic, EqualShapes) {
  CheckShapes({2, 3}, {2, 3}, {2, 3});
  CheckShapes({17}, {17}, {17});
  CheckShapes({1}, {1}, {1});
  CheckShapes({}, {}, {});
}

TEST(Arithmetic, BroadcastsRowsColumnsAndScalars) {
  CheckShapes({3, 4}, {4}, {3, 4});
  CheckShapes({4}, {3, 4}, {3, 4});
  CheckShapes({3, 4}, {3, 1}, {3, 4});
  CheckShapes({3, 1}, {1, 4}, {3, 4});
  CheckShapes({2}, {}, {2});
  CheckShapes({}, {2, 3}, {2, 3});
  CheckShapes({1, 1}, {3}, {1, 3});
}

TEST(Arithmetic, BroadcastsUpToRankFour) {
  CheckShapes({2, 1, 4, 3}, {2, 1, 4, 1}, {2, 1, 4, 3});
  CheckShapes({2, 1, 3, 1}, {1, 4, 1, 2}, {2, 4, 3, 2});
  CheckShapes({2, 3, 2, 2}, {3, 1, 2}, {2, 3, 2, 2});
  CheckShapes({2, 3, 2}, {2, 1, 2}, {2, 3, 2});
  CheckShapes({1, 1}, {2, 3, 1}, {2, 3, 1});
  CheckShapes({1, 3, 1, 2}, {2, 1, 2, 1}, {2, 3, 2, 2});
}

TEST(Arithmetic, EmptyOperandsGiveEmptyResults) {
  CheckShapes({0, 3}, {3}, {0, 3});
  CheckShapes({0}, {0}, {0});
  CheckShapes({2, 0}, {2, 1}, {2, 0});
}

// The sums of a gradient over repeats, by hand.
TEST(Arithmetic, BroadcastGradientSumsIntoTheOperandsShape) {
  const auto ones = [](const Shape& shape) { return Numbers{shape, std::vector<double>(shape.elements(), 1.0)}; };
  const auto gradients = [&](const Shape& a, const Shape& b, BinaryOp op) {
    const Pass run = RunOnce<double>(
        {ones(a), ones(b)}, [&](const Inputs& x) { return op(x[0], x[1]); }, 0, 1.0);
    for (size_t k = 0; k < 2; ++k) {
      for (double g : run.gradients[k]) EXPECT_EQ(g, run.gradients[k][0]);
    }
    return std::pair(run.gradients[0][0], run.gradients[1][0]);
  };
  EXPECT_EQ(gradients({2, 1, 4, 3}, {2, 1, 4, 1}, Mul), std::pair(1.0, 3.0));
  EXPECT_EQ(gradients({5, 4}, {1}, Mul), std::pair(1.0, 20.0));
  EXPECT_EQ(gradients({4, 1}, {1, 4}, Mul), std::pair(4.0, 4.0));
  EXPECT_EQ(gradients({3, 4}, {4}, Add), std::pair(1.0, 3.0));
  EXPECT_EQ(gradients({}, {2}, Mul), std::pair(2.0, 1.0));
  EXPECT_EQ(gradients({1, 1}, {2, 3, 1}, Add), std::pair(6.0, 1.0));
}

// Sizes beyond one tile, so that the parallel paths and the blocks of rows run; b's gradient is a sum over 5000 rows.
TEST(Arithmetic, LargeBroadcastsEqualAPlainLoop) {
  const int64_t rows = 5000, width = 30;
  const Numbers a = Random({rows, width}, 1), b = Random({width}, 2, 0.5, 2), c = Random({rows, 1}, 3, 0.5, 2);
  const std::vector<double> u = testing::Uniform(rows * width, 77);
  const Pass run = RunOnce<float>({a, b, c}, [](const Inputs& x) { return Mul(Mul(x[0], x[1]), x[2]); });
  std::vector<double> y(rows * width), da(rows * width), db(width), dc(rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t k = i * width + j;
      y[k] = a.values[k] * b.values[j] * c.values[i];
      da[k] = u[k] * b.values[j] * c.values[i];
      db[j] += u[k] * a.values[k] * c.values[i];
      dc[i] += u[k] * a.values[k] * b.values[j];
    }
  }
  // Values below 4 with four roundings each: 4 * 4 * 2^-24 < 1e-6. Sums are f64, so only the rounding of their terms (below 4,
  // about 2e-7 each) and of the result adds up: 5000 terms at most 1e-3, as a random walk 2e-5.
  ExpectNear(run.output, y, 1e-6, "output");
  ExpectNear(run.gradients[0], da, 1e-6, "da");
  ExpectNear(run.gradients[1], db, 1e-4, "db");
  ExpectNear(run.gradients[2], dc, 1e-4, "dc");
}

// Terms of 1 vanish next to 2^24 in f32; the sums over repeats are f64.
TEST(Arithmetic, GradientOverManyRepeatsDoesNotLoseSmallTerms) {
  for (int64_t width : {1, 2}) {  // a scalar, a row
    const int64_t rows = 1001;
    Tape tape;
    std::vector<float> x(rows * width), upstream(rows * width, 1.0f), b(width);
    for (int64_t j = 0; j < width; ++j) upstream[j] = 1 << 24;
    const Variable vb = tape.Input(Tensor::Of(absl::MakeSpan(b), {width}));
    const Variable y = Add(tape.Constant(Tensor::Of(absl::MakeSpan(x), {rows, width})), vb);
    tape.Backward(y, Tensor::Of(absl::MakeSpan(upstream), {rows, width}));
    for (int64_t j = 0; j < width; ++j) EXPECT_EQ(tape.Gradient(vb).At(j), (1 << 24) + 1000);
  }
}

TEST(Arithmetic, AnUpstreamZeroStaysZeroNextToInfinity) {
  const double inf = std::numeric_limits<double>::infinity();
  for (BinaryOp op : {Mul, Div}) {
    Tape tape;
    std::vector<double> a = {1, 0}, b = {inf, 0}, u = {0, 0};
    const Variable va = tape.Input(Tensor::Of(absl::MakeSpan(a), {2})), vb = tape.Input(Tensor::Of(absl::MakeSpan(b), {2}));
    tape.Backward(op(va, vb), Tensor::Of(absl::MakeSpan(u), {2}));
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(tape.Gradient(va).At(i), 0);
      EXPECT_EQ(tape.Gradient(vb).At(i), 0);
    }
  }
}

TEST(Arithmetic, OneVariableAsBothOperands) {
  ExpectGradients({Random({3, 2}, 4, 0.5, 2)}, [](const Inputs& x) { return Mul(x[0], x[0]); });
  ExpectGradients({Random({3, 2}, 4, 0.5, 2)}, [](const Inputs& x) { return Add(x[0], x[0]); });
  ExpectGradients({Random({3, 2}, 4, 0.5, 2)}, [](const Inputs& x) { return Sub(Div(x[0], x[0]), x[0]); });
}

TEST(Arithmetic, ScaleAndNeg) {
  const Numbers x = Random({3, 5}, 5);
  const Pass scaled = RunOnce<double>({x}, [](const Inputs& v) { return Scale(v[0], -2.5); });
  const Pass negative = RunOnce<double>({x}, [](const Inputs& v) { return Neg(v[0]); });
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_EQ(scaled.output[i], -2.5 * x.values[i]);
    EXPECT_EQ(negative.output[i], -x.values[i]);
  }
  for (const Shape& shape : {Shape({3, 5}), Shape({0}), Shape({}), Shape({7})}) {
    ExpectGradients({Random(shape, 6)}, [](const Inputs& v) { return Scale(v[0], 3); });
    ExpectGradients({Random(shape, 6)}, [](const Inputs& v) { return Neg(v[0]); });
  }
}

TEST(Arithmetic, CastRoundsForwardAndReturnsTheGradientInTheInputsDtype) {
  Tape tape;
  std::vector<double> x = {0.1, -3};
  std::vector<float> u = {0.25f, 2};
  const Variable v = tape.Input(Tensor::Of(absl::MakeSpan(x), {2}));
  const Variable y = Cast(v, DType::kF32);
  EXPECT_EQ(y.dtype(), DType::kF32);
  EXPECT_EQ(y.value().At(0), static_cast<double>(0.1f));
  tape.Backward(y, Tensor::Of(absl::MakeSpan(u), {2}));
  EXPECT_EQ(tape.Gradient(v).dtype(), DType::kF64);
  EXPECT_EQ(tape.Gradient(v).At(0), 0.25);
  EXPECT_EQ(tape.Gradient(v).At(1), 2);
  ExpectGradients({Random({5}, 7)}, [](const Inputs& in) { return Cast(in[0], DType::kF64); });
}

TEST(ArithmeticDeathTest, MessagesNameTheOpAndBothShapes) {
  Tape tape;
  std::vector<double> x(6);
  std::vector<float> f(4);
  const Variable a = tape.Input(Tensor::Of(absl::MakeSpan(x), {2, 3}));
  const Variable b = tape.Input(Tensor::Of(absl::MakeSpan(x).subspan(0, 4), {4}));
  const Variable c = tape.Input(Tensor::Of(absl::MakeSpan(f), {4}));
  EXPECT_DEATH(Add(a, b), "add: shapes \\[2, 3\\] and \\[4\\] do not broadcast");
  EXPECT_DEATH(Div(b, a), "div: shapes \\[4\\] and \\[2, 3\\] do not broadcast");
  EXPECT_DEATH(Mul(b, c), "mul: operands are f64\\[4\\] and f32\\[4\\]");
  EXPECT_DEATH(Sub(a, Variable()), "sub: an operand is not defined");
  EXPECT_DEATH(Cast(a, DType::kI32), "cast: needs f32 or f64, got i32");
}

}  // namespace
}  // namespace weft
