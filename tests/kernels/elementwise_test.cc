#include "autograd/kernels/elementwise.h"

#include <algorithm>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "tests/kernels/vectors.h"

namespace weft::kernels {
namespace {

struct Function {
  Unary id;
  const char* name;
  double low, high;  // domain of the dense grid
  double ulps;       // bound on the error there, in units in the last place ...
  double absolute;   // ... or, where that is larger, absolute for |x| <= 1 and relative to |x| beyond
};

// Measured on 200k points each with SCALAR, SSE4, AVX2 and AVX-512: the bounds are those of the header.
const Function kFunctions[] = {
    {Unary::kNeg, "neg", -100, 100, 0, 0},         {Unary::kExp, "exp", -87, 88.7, 1, 0},
    {Unary::kLog, "log", 1e-6, 1000, 1.1, 0},      {Unary::kSqrt, "sqrt", 0, 1000, 0.5, 0},
    {Unary::kSquare, "square", -100, 100, 0.5, 0}, {Unary::kTanh, "tanh", -20, 20, 3, 0},
    {Unary::kSigmoid, "sigmoid", -87, 87, 2.5, 0}, {Unary::kRelu, "relu", -100, 100, 0, 0},
    {Unary::kGelu, "gelu", -12.8, 15, 7, 0},       {Unary::kGeluTanh, "gelu_tanh", -15, 15, 0, 2e-7},
    {Unary::kSilu, "silu", -87, 87, 3.5, 0},
};

// What UnaryBackward reads of n elements x.
template <class T>
std::vector<T> Source(Unary f, const std::vector<T>& x) {
  std::vector<T> y(x.size()), slope(x.size());
  const auto n = static_cast<int64_t>(x.size());
  switch (WhatBackwardReads(f)) {
    case BackwardReads::kX:
      return x;
    case BackwardReads::kY:
      UnaryForward(f, x.data(), y.data(), n);
      return y;
    default:
      UnaryForwardWithSlope(f, x.data(), y.data(), slope.data(), n);
      return slope;
  }
}

bool KeepsSlope(Unary f) { return WhatBackwardReads(f) == BackwardReads::kSlope; }

void PrintTo(const Function& f, std::ostream* out) { *out << f.name; }

class UnaryTest : public testing::TestWithParam<Function> {};
INSTANTIATE_TEST_SUITE_P(All, UnaryTest, testing::ValuesIn(kFunctions),
                         [](const auto& i) { return std::string(i.param.name); });

TEST_P(UnaryTest, FloatStaysWithinItsStatedError) {
  const Function& f = GetParam();
  constexpr int64_t kPoints = 200000;
  std::vector<float> x(kPoints), y(kPoints);
  for (int64_t i = 0; i < kPoints; ++i) x[i] = static_cast<float>(f.low + (f.high - f.low) * i / (kPoints - 1));
  const std::vector<double> wide = ToDouble(x);
  std::vector<double> expected(kPoints);
  UnaryForward(f.id, x.data(), y.data(), kPoints);
  UnaryForward(f.id, wide.data(), expected.data(), kPoints);
  double worst_ulps = 0, worst_absolute = 0;
  for (int64_t i = 0; i < kPoints; ++i) {
    const double absolute = std::abs(y[i] - expected[i]) / std::max(1.0, std::abs(wide[i])), ulps = Ulps(y[i], expected[i]);
    worst_ulps = std::max(worst_ulps, ulps);
    worst_absolute = std::max(worst_absolute, absolute);
    ASSERT_TRUE(ulps <= f.ulps || absolute <= f.absolute) << "x " << x[i] << " gives " << y[i] << ", not " << expected[i];
  }
  RecordProperty("worst_ulps", std::to_string(worst_ulps));
  RecordProperty("worst_absolute", std::to_string(worst_absolute));
}

TEST_P(UnaryTest, EdgeValuesAgreeWithThePlainLoop) {
  const Function& f = GetParam();
  const std::vector<float> x = EdgeFloats();
  const std::vector<double> wide = ToDouble(x);
  std::vector<float> y(x.size());
  std::vector<double> expected(x.size());
  UnaryForward(f.id, x.data(), y.data(), static_cast<int64_t>(x.size()));
  UnaryForward(f.id, wide.data(), expected.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    // exp flushes what would be denormal; silu and gelu lose up to 90 times as much.
    const bool close = Ulps(y[i], expected[i]) <= 4 || std::abs(y[i] - expected[i]) <= 1.1e-36;
    EXPECT_TRUE(close) << "x " << x[i] << " gives " << y[i] << ", not " << expected[i];
  }
}

TEST_P(UnaryTest, BackwardAgreesWithThePlainLoopForAllSizesAndAdds) {
  const Function& f = GetParam();
  const double low = std::max(f.low, -4.0) + (f.id == Unary::kLog || f.id == Unary::kSqrt ? 0.1 : 0.0);
  for (int64_t n = 0; n <= 70; ++n) {
    const std::vector<float> x = RandomFloats(n, 1, low, 4), dy = RandomFloats(n, 2), start = RandomFloats(n, 3);
    std::vector<float> dx = start;
    UnaryBackward(f.id, Source(f.id, x).data(), dy.data(), dx.data(), n);
    std::vector<double> expected = ToDouble(start);
    UnaryBackward(f.id, Source(f.id, ToDouble(x)).data(), ToDouble(dy).data(), expected.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      // dy, f' and dx are of size 2, 55 (exp) and 2: a few roundings of the product and the sum.
      EXPECT_NEAR(dx[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << f.name << " " << x[i] << " n " << n;
    }
  }
}

TEST_P(UnaryTest, BackwardInPlaceEqualsThatAddedToZeros) {
  const Function& f = GetParam();
  const double low = std::max(f.low, -4.0) + (f.id == Unary::kLog || f.id == Unary::kSqrt ? 0.1 : 0.0);
  const auto check = [&](const auto& x, auto dy) {
    dy[3] = 0;
    auto expected = dy;
    std::fill(expected.begin(), expected.end(), 0);
    const auto n = static_cast<int64_t>(x.size());
    UnaryBackward(f.id, Source(f.id, x).data(), dy.data(), expected.data(), n);
    UnaryBackward(f.id, Source(f.id, x).data(), dy.data(), dy.data(), n, false);
    EXPECT_EQ(dy, expected) << f.name;
  };
  const std::vector<float> x = RandomFloats(70, 1, low, 4), dy = RandomFloats(70, 2);
  check(x, dy);
  check(ToDouble(x), ToDouble(dy));
}

TEST_P(UnaryTest, DoubleBackwardIsTheDerivative) {
  const Function& f = GetParam();
  const double low = std::max(f.low, -4.0) + (f.id == Unary::kLog || f.id == Unary::kSqrt ? 0.1 : 0.0);
  const std::vector<double> x = ToDouble(RandomFloats(100, 4, low, 4));
  const std::vector<double> dy(100, 1.0);
  std::vector<double> dx(100);
  UnaryBackward(f.id, Source(f.id, x).data(), dy.data(), dx.data(), 100);
  for (int i = 0; i < 100; ++i) {
    if (f.id == Unary::kRelu && std::abs(x[i]) < 1e-3) continue;
    // Central differences: truncation h^2 f''' / 6 (f''' up to 2000 for ln x at 0.1), rounding 1e-16 f / h.
    const double h = 1e-5, points[2] = {x[i] - h, x[i] + h};
    double values[2];
    UnaryForward(f.id, points, values, 2);
    EXPECT_NEAR(dx[i], (values[1] - values[0]) / (2 * h), 1e-7 * (1 + std::abs(dx[i]))) << f.name << " at " << x[i];
  }
}

TEST_P(UnaryTest, BitsDependOnNeitherPlaceNorLength) {
  const Function& f = GetParam();
  const std::vector<float> x = RandomFloats(70, 5, std::max(f.low, -4.0), 4), dy = RandomFloats(70, 6);
  const std::vector<float> source = Source(f.id, x);
  std::vector<float> y(70), dx(70, 0.5f);
  UnaryForward(f.id, x.data(), y.data(), 70);
  UnaryBackward(f.id, source.data(), dy.data(), dx.data(), 70);
  for (int64_t i = 0; i < 70; ++i) {
    float one = 0, gradient = 0.5f;
    UnaryForward(f.id, &x[i], &one, 1);
    UnaryBackward(f.id, &source[i], &dy[i], &gradient, 1);
    if (KeepsSlope(f.id)) {
      float value = 0, slope = 0;
      UnaryForwardWithSlope(f.id, &x[i], &value, &slope, 1);
      EXPECT_TRUE(SameBits(value, one) && SameBits(slope, source[i])) << f.name << " place " << i;
    }
    EXPECT_TRUE(SameBits(one, y[i]) && SameBits(gradient, dx[i])) << f.name << " place " << i;
  }
  std::vector<float> in_place = x;
  UnaryForward(f.id, in_place.data(), in_place.data(), 70);
  EXPECT_TRUE(SameBits(in_place, y));
}

TEST_P(UnaryTest, TailLeavesTheNextElementsAlone) {
  for (int64_t n = 0; n < 20; ++n) {
    std::vector<float> x(40, 1.0f), y(40, 7.0f), dx(40, 7.0f), slope(40, 7.0f);
    UnaryForward(GetParam().id, x.data(), y.data(), n);
    if (KeepsSlope(GetParam().id)) UnaryForwardWithSlope(GetParam().id, x.data(), y.data(), slope.data(), n);
    UnaryBackward(GetParam().id, x.data(), x.data(), dx.data(), n);
    for (int64_t i = n; i < 40; ++i) {
      EXPECT_TRUE(y[i] == 7.0f && dx[i] == 7.0f && slope[i] == 7.0f) << "n " << n << " place " << i;
    }
  }
}

// Every 1009th float: all exponents, both signs.
std::vector<float> FloatsOfAllExponents() {
  std::vector<float> x;
  for (uint32_t bits = 0; bits <= 0x7F800000u; bits += 1009) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    x.push_back(value);
    x.push_back(-value);
  }
  return x;
}

// Largest error of f in units in the last place, for x from `low` on. Below, where f(x) or a factor of it is no normal float
// any more, results may be flushed to 0: they are off by 90 times the smallest normal float at most.
double WorstUlpsOverAllExponents(Unary f, double low) {
  const std::vector<float> x = FloatsOfAllExponents();
  const std::vector<double> wide = ToDouble(x);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> y(x.size());
  std::vector<double> expected(x.size());
  UnaryForward(f, x.data(), y.data(), n);
  UnaryForward(f, wide.data(), expected.data(), n);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < low) {
      EXPECT_NEAR(y[i], expected[i], 1.1e-36) << "x " << x[i];
    } else if (const double ulps = Ulps(y[i], expected[i]); !(ulps <= worst)) {
      worst = ulps;
    }
  }
  return worst;
}

TEST(UnaryAccuracyTest, ExpIsWithinItsUlpsOverAllExponents) {
  EXPECT_LE(WorstUlpsOverAllExponents(Unary::kExp, -87.3365447), 1);
}
TEST(UnaryAccuracyTest, GeluIsWithinItsUlpsOverAllExponents) { EXPECT_LE(WorstUlpsOverAllExponents(Unary::kGelu, -12.8), 7); }
TEST(UnaryAccuracyTest, SiluIsWithinItsUlpsOverAllExponents) { EXPECT_LE(WorstUlpsOverAllExponents(Unary::kSilu, -87.3), 3.5); }

TEST(UnaryAccuracyTest, ExpHandlesItsEdges) {
  const float x[] = {88.7228317f, 88.7228394f, 1e30f, kInf, -87.3365402f, -87.3365479f,
                     -1e30f,      -kInf,       kNan,  0.0f, -0.0f,        1e-45f};
  float y[12];
  UnaryForward(Unary::kExp, x, y, 12);
  EXPECT_LE(Ulps(y[0], std::exp(static_cast<double>(x[0]))), 1);  // next to the largest float
  for (int i : {1, 2, 3}) EXPECT_EQ(y[i], kInf) << x[i];
  EXPECT_LE(Ulps(y[4], std::exp(static_cast<double>(x[4]))), 1);  // next to the smallest normal float
  for (int i : {5, 6, 7}) EXPECT_EQ(y[i], 0.0f) << x[i];
  EXPECT_TRUE(std::isnan(y[8]));
  for (int i : {9, 10, 11}) EXPECT_EQ(y[i], 1.0f) << x[i];
}

TEST(UnaryAccuracyTest, SlopesStayWithinTheirStatedError) {
  constexpr int64_t kPoints = 200000;
  std::vector<float> x(kPoints), y(kPoints), slope(kPoints), value(kPoints);
  for (int64_t i = 0; i < kPoints; ++i) x[i] = static_cast<float>(-90 + 180.0 * i / (kPoints - 1));
  const std::vector<double> wide = ToDouble(x);
  std::vector<double> wide_y(kPoints), expected(kPoints);
  for (Unary f : {Unary::kGelu, Unary::kGeluTanh, Unary::kSilu}) {
    UnaryForwardWithSlope(f, x.data(), y.data(), slope.data(), kPoints);
    UnaryForwardWithSlope(f, wide.data(), wide_y.data(), expected.data(), kPoints);
    UnaryForward(f, x.data(), value.data(), kPoints);
    EXPECT_TRUE(SameBits(y, value));
    for (int64_t i = 0; i < kPoints; ++i) ASSERT_NEAR(slope[i], expected[i], 4e-7) << static_cast<int>(f) << " x " << x[i];
  }
}

template <class T>
class ElementwiseTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ElementwiseTest, Types);

TYPED_TEST(ElementwiseTest, ZeroGradientAtASingularityAddsZero) {
  using T = TypeParam;
  const T x[2] = {0, 0}, dy[2] = {0, 1};
  T dx[2] = {3, 3};
  UnaryBackward(Unary::kSqrt, x, dy, dx, 2);
  EXPECT_EQ(dx[0], T{3});
  EXPECT_TRUE(std::isinf(dx[1]));
  dx[1] = 3;
  UnaryBackward(Unary::kLog, x, dy, dx, 2);
  EXPECT_EQ(dx[0], T{3});
  EXPECT_TRUE(std::isinf(dx[1]));
}

TYPED_TEST(ElementwiseTest, ZeroGradientAddsZeroWhateverTheSlope) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x = {inf, -inf, nan, 0};
  const T dy[4] = {0, -T{0}, 0, 0};
  for (const Function& f : kFunctions) {
    T dx[4] = {3, 3, 3, 3};
    UnaryBackward(f.id, x.data(), dy, dx, 4);
    UnaryBackward(f.id, Source(f.id, x).data(), dy, dx, 4);
    for (T v : dx) EXPECT_EQ(v, T{3}) << f.name;
  }
}

TYPED_TEST(ElementwiseTest, ReluAndHugeGeluInputsHaveFiniteGradients) {
  using T = TypeParam;
  const std::vector<T> x = {0, -T{0}, T(1e20), T(-1e20)};
  const T dy[4] = {1, 1, 1, 1};
  for (Unary f : {Unary::kRelu, Unary::kGelu, Unary::kGeluTanh, Unary::kSilu}) {
    T dx[4] = {0, 0, 0, 0};
    UnaryBackward(f, Source(f, x).data(), dy, dx, 4);
    const T at_zero = f == Unary::kRelu ? 0 : T(0.5);
    // Phi(0) from the float fit is 0.5 within its rounding.
    EXPECT_NEAR(dx[0], at_zero, 1e-7);
    EXPECT_NEAR(dx[1], at_zero, 1e-7);
    EXPECT_EQ(dx[2], T{1});
    EXPECT_EQ(dx[3], T{0});
  }
}

TYPED_TEST(ElementwiseTest, BinaryHandlesBroadcastStepsAndAliases) {
  using T = TypeParam;
  for (int64_t n = 0; n <= 40; ++n) {
    for (int64_t a_step : {0, 1}) {
      for (int64_t b_step : {0, 1}) {
        for (Binary op : {Binary::kAdd, Binary::kSub, Binary::kMul, Binary::kDiv}) {
          const std::vector<float> fa = RandomFloats(n + 1, 7), fb = RandomFloats(n + 1, 8, 0.5, 2);
          const std::vector<T> a(fa.begin(), fa.end()), b(fb.begin(), fb.end());
          std::vector<T> out(n + 1, T{9});
          BinaryForward(op, a.data(), a_step, b.data(), b_step, out.data(), n);
          std::vector<T> aliased = a_step == 1 ? a : b;
          if (a_step == 1) BinaryForward(op, aliased.data(), 1, b.data(), b_step, aliased.data(), n);
          if (a_step == 0 && b_step == 1) BinaryForward(op, a.data(), 0, aliased.data(), 1, aliased.data(), n);
          for (int64_t i = 0; i < n; ++i) {
            const T u = a[i * a_step], v = b[i * b_step];
            const T expected = op == Binary::kAdd ? u + v : op == Binary::kSub ? u - v : op == Binary::kMul ? u * v : u / v;
            EXPECT_EQ(out[i], expected);
            EXPECT_TRUE(a_step + b_step == 0 || aliased[i] == expected);
          }
          EXPECT_EQ(out[n], T{9});
        }
      }
    }
  }
}

TYPED_TEST(ElementwiseTest, ScaledSumsMatchPlainLoops) {
  using T = TypeParam;
  for (int64_t n = 0; n <= 70; ++n) {
    const std::vector<float> fa = RandomFloats(n, 9), fb = RandomFloats(n, 10);
    const std::vector<T> a(fa.begin(), fa.end()), b(fb.begin(), fb.end());
    std::vector<T> added = b, product = b, scaled(n), filled(n);
    AddScaled(T(1.5), a.data(), added.data(), n);
    AddProduct(a.data(), a.data(), product.data(), n);
    Scale(T(-3), a.data(), scaled.data(), n);
    Fill(T(2.5), filled.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      // Values up to 2, sums up to 6: one or two roundings of the type.
      const double tolerance = 8 * std::numeric_limits<T>::epsilon();
      EXPECT_NEAR(added[i], 1.5 * a[i] + b[i], tolerance);
      EXPECT_NEAR(product[i], static_cast<double>(a[i]) * a[i] + b[i], tolerance);
      EXPECT_EQ(scaled[i], T(-3) * a[i]);
      EXPECT_EQ(filled[i], T(2.5));
    }
  }
}

TYPED_TEST(ElementwiseTest, SumsAreTakenInDouble) {
  using T = TypeParam;
  for (int64_t n = 0; n <= 70; ++n) {
    const std::vector<float> fa = RandomFloats(n, 11), fb = RandomFloats(n, 12);
    const std::vector<T> a(fa.begin(), fa.end()), b(fb.begin(), fb.end());
    long double sum = 0, squares = 0, dot = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += a[i];
      squares += static_cast<long double>(a[i]) * a[i];
      dot += static_cast<long double>(a[i]) * b[i];
    }
    // 70 terms up to 4: 70 roundings of 280 * 1e-16 at most.
    EXPECT_NEAR(Sum(a.data(), n), static_cast<double>(sum), 1e-12);
    EXPECT_NEAR(SumSquares(a.data(), n), static_cast<double>(squares), 1e-12);
    EXPECT_NEAR(Dot(a.data(), b.data(), n), static_cast<double>(dot), 1e-12);
  }
  const std::vector<T> large(5, T(1e20));
  EXPECT_NEAR(SumSquares(large.data(), 5) / 5e40, 1, 1e-6);  // 1e20 as a float is off by 2e-8
}

TYPED_TEST(ElementwiseTest, MaxAndArgMaxFindTheFirst) {
  using T = TypeParam;
  EXPECT_EQ(ArgMax(static_cast<const T*>(nullptr), 0), -1);
  EXPECT_EQ(Max(static_cast<const T*>(nullptr), 0), -std::numeric_limits<T>::infinity());
  for (int64_t n = 1; n <= 40; ++n) {
    for (int64_t place = 0; place < n; ++place) {
      std::vector<T> x(n, T{-5});
      x[place] = x[n - 1] = T{-1};
      EXPECT_EQ(ArgMax(x.data(), n), place);
      EXPECT_EQ(Max(x.data(), n), T{-1});
      EXPECT_TRUE(AllFinite(x.data(), n));
      x[place] = std::numeric_limits<T>::infinity();
      EXPECT_FALSE(AllFinite(x.data(), n));
      x[place] = std::numeric_limits<T>::quiet_NaN();
      EXPECT_EQ(ArgMax(x.data(), n), place);
      EXPECT_TRUE(std::isnan(Max(x.data(), n)));
      EXPECT_FALSE(AllFinite(x.data(), n));
    }
    const std::vector<T> lowest(n, -std::numeric_limits<T>::infinity());
    EXPECT_EQ(ArgMax(lowest.data(), n), 0);
  }
}

}  // namespace
}  // namespace weft::kernels
