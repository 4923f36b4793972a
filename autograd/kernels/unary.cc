// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/unary.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/vector-inl.h"

#ifndef WEFT_AUTOGRAD_KERNELS_UNARY_CC_ONCE_
#define WEFT_AUTOGRAD_KERNELS_UNARY_CC_ONCE_
namespace weft::kernels {
namespace {
constexpr double kSqrtHalf = 0.70710678118654752440;       // 1 / sqrt(2)
constexpr double kInvSqrtTwoPi = 0.39894228040143267794;   // 1 / sqrt(2 pi), the normal density at 0
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;  // gelu_tanh: u = kSqrtTwoOverPi (x + kCubic x^3)
constexpr double kCubic = 0.044715;
constexpr double kFlat = 40;  // gelu_tanh is 0 or x to the last bit of a double beyond; keeps 0 * inf out of its derivative
}  // namespace
}  // namespace weft::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE VF Const(double value) { return hn::Set(DF(), static_cast<float>(value)); }

struct Logistic {
  VF value;  // sigmoid(x)
  VF slope;  // value (1 - value), without the cancellation of 1 - value
};

// From e = exp(-|x|), so that nothing overflows and small values keep their relative accuracy.
HWY_INLINE Logistic StandardLogistic(VF x) {
  const VF one = Const(1), e = Exp(hn::Neg(hn::Abs(x))), sum = hn::Add(one, e);
  const VF value = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(DF())), e, one), sum);
  return {value, hn::Div(e, hn::Mul(sum, sum))};
}

struct Normal {
  VF distribution;  // Phi(x)
  VF density;       // phi(x)
};

// Phi(-a) = exp(-a^2 / 2) t h(u) for a >= 0, t = 1 / (1 + 0.32 a), u = 2 t - 1; h is a degree 9 least-squares Chebyshev fit
// over all of u in (-1, 1], relative error 4.5e-8. Phi(x) is that for x < 0, else 1 minus that.
HWY_INLINE Normal StandardNormal(VF x) {
  const VF one = Const(1), a = hn::Abs(x);
  const VF t = hn::Div(one, hn::MulAdd(Const(0.32), a, one));
  const VF u = hn::MulAdd(Const(2), t, Const(-1));
  VF h = Const(-4.05354732e-05);
  h = hn::MulAdd(h, u, Const(2.35805317e-06));
  h = hn::MulAdd(h, u, Const(0.000351829382));
  h = hn::MulAdd(h, u, Const(-2.56434356e-05));
  h = hn::MulAdd(h, u, Const(-0.00255352315));
  h = hn::MulAdd(h, u, Const(-0.00170250471));
  h = hn::MulAdd(h, u, Const(0.0204232243));
  h = hn::MulAdd(h, u, Const(0.0808513806));
  h = hn::MulAdd(h, u, Const(0.167988234));
  h = hn::MulAdd(h, u, Const(0.234705169));
  const VF e = Exp(hn::Mul(Const(-0.5), hn::Mul(a, a)));
  const VF tail = hn::Mul(e, hn::Mul(t, h));
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(DF())), tail, hn::Sub(one, tail)), hn::Mul(e, Const(kInvSqrtTwoPi))};
}

// 0.5 (1 + tanh(u)) = sigmoid(2 u), with u as in the header.
HWY_INLINE Logistic GeluTanhGate(VF x) {
  const VF inner = hn::MulAdd(hn::Mul(Const(kCubic), x), hn::Mul(x, x), x);
  return StandardLogistic(hn::Mul(Const(2 * kSqrtTwoOverPi), inner));
}

template <class F>
HWY_INLINE void Map(const float* x, float* y, int64_t n, const F& f) {
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { Store(f(Load(x + i, part)), y + i, part); });
}

void ForwardF32(Unary function, const float* x, float* y, int64_t n) {
  switch (function) {
    case Unary::kNeg:
      return Map(x, y, n, [](VF v) HWY_ATTR { return hn::Neg(v); });
    case Unary::kExp:
      return Map(x, y, n, [](VF v) HWY_ATTR { return Exp(v); });
    case Unary::kLog:
      return Map(x, y, n, [](VF v) HWY_ATTR { return Log(v); });
    case Unary::kSqrt:
      return Map(x, y, n, [](VF v) HWY_ATTR { return hn::Sqrt(v); });
    case Unary::kSquare:
      return Map(x, y, n, [](VF v) HWY_ATTR { return hn::Mul(v, v); });
    case Unary::kTanh:
      return Map(x, y, n, [](VF v) HWY_ATTR { return hn::Tanh(DF(), v); });
    case Unary::kSigmoid:
      return Map(x, y, n, [](VF v) HWY_ATTR { return StandardLogistic(v).value; });
    case Unary::kRelu:
      return Map(x, y, n, [](VF v) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(DF())), v); });
    case Unary::kGelu:
      return Map(x, y, n, [](VF v) HWY_ATTR { return hn::Mul(v, StandardNormal(v).distribution); });
    case Unary::kGeluTanh:
      return Map(x, y, n, [](VF v) HWY_ATTR { return hn::Mul(v, GeluTanhGate(v).value); });
    case Unary::kSilu:
      return Map(x, y, n, [](VF v) HWY_ATTR { return hn::Mul(v, StandardLogistic(v).value); });
  }
}

// dx += dy f(s), s either x or y; nothing where dy is 0, also where f is infinite.
template <class F>
HWY_INLINE void AddSlope(const float* s, const float* dy, float* dx, int64_t n, const F& f) {
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF g = Load(dy + i, part), slope = hn::IfThenZeroElse(hn::Eq(g, hn::Zero(DF())), f(Load(s + i, part)));
    Store(hn::MulAdd(g, slope, Load(dx + i, part)), dx + i, part);
  });
}

// dx += dy / (factor s), nothing where dy is 0.
HWY_INLINE void AddQuotient(float factor, const float* s, const float* dy, float* dx, int64_t n) {
  const VF c = hn::Set(DF(), factor);
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF g = Load(dy + i, part);
    const VF quotient = hn::Div(g, hn::Mul(c, Load(s + i, part)));
    Store(hn::Add(Load(dx + i, part), hn::IfThenZeroElse(hn::Eq(g, hn::Zero(DF())), quotient)), dx + i, part);
  });
}

HWY_INLINE VF GeluTanhSlope(VF v) {
  const VF flat = Const(kFlat);
  v = hn::IfThenElse(hn::Gt(v, flat), flat, hn::IfThenElse(hn::Lt(v, hn::Neg(flat)), hn::Neg(flat), v));
  const Logistic gate = GeluTanhGate(v);
  // d(2 u)/dx
  const VF du = hn::MulAdd(Const(6 * kSqrtTwoOverPi * kCubic), hn::Mul(v, v), Const(2 * kSqrtTwoOverPi));
  return hn::MulAdd(hn::Mul(v, du), gate.slope, gate.value);
}

void BackwardF32(Unary function, const float* x, const float* y, const float* dy, float* dx, int64_t n) {
  switch (function) {
    case Unary::kNeg:
      return AddSlope(dy, dy, dx, n, [](VF) HWY_ATTR { return Const(-1); });
    case Unary::kExp:
      return AddSlope(y, dy, dx, n, [](VF v) HWY_ATTR { return v; });
    case Unary::kLog:
      return AddQuotient(1, x, dy, dx, n);
    case Unary::kSqrt:
      return AddQuotient(2, y, dy, dx, n);
    case Unary::kSquare:
      return AddSlope(x, dy, dx, n, [](VF v) HWY_ATTR { return hn::Add(v, v); });
    case Unary::kTanh:
      return AddSlope(y, dy, dx, n, [](VF v) HWY_ATTR { return hn::NegMulAdd(v, v, Const(1)); });
    case Unary::kSigmoid:
      return AddSlope(y, dy, dx, n, [](VF v) HWY_ATTR { return hn::Mul(v, hn::Sub(Const(1), v)); });
    case Unary::kRelu:
      return ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
        const VF g = hn::IfThenZeroElse(hn::Le(Load(x + i, part), hn::Zero(DF())), Load(dy + i, part));
        Store(hn::Add(Load(dx + i, part), g), dx + i, part);
      });
    case Unary::kGelu:
      return AddSlope(x, dy, dx, n, [](VF v) HWY_ATTR {
        const Normal normal = StandardNormal(v);
        return hn::MulAdd(v, normal.density, normal.distribution);
      });
    case Unary::kGeluTanh:
      return AddSlope(x, dy, dx, n, [](VF v) HWY_ATTR { return GeluTanhSlope(v); });
    case Unary::kSilu:
      return AddSlope(x, dy, dx, n, [](VF v) HWY_ATTR {
        const Logistic s = StandardLogistic(v);
        return hn::MulAdd(v, s.slope, s.value);
      });
  }
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

namespace weft::kernels {
namespace {
HWY_EXPORT(ForwardF32);
HWY_EXPORT(BackwardF32);

double SigmoidOf(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

double NormalDistribution(double x) { return 0.5 * std::erfc(-x * kSqrtHalf); }

double GateOf(double x) { return SigmoidOf(2 * kSqrtTwoOverPi * (x + kCubic * x * x * x)); }

double Value(Unary function, double x) {
  switch (function) {
    case Unary::kNeg:
      return -x;
    case Unary::kExp:
      return std::exp(x);
    case Unary::kLog:
      return std::log(x);
    case Unary::kSqrt:
      return std::sqrt(x);
    case Unary::kSquare:
      return x * x;
    case Unary::kTanh:
      return std::tanh(x);
    case Unary::kSigmoid:
      return SigmoidOf(x);
    case Unary::kRelu:
      return x <= 0 ? 0.0 : x;
    case Unary::kGelu:
      return x * NormalDistribution(x);
    case Unary::kGeluTanh:
      return x * GateOf(x);
    case Unary::kSilu:
      return x * SigmoidOf(x);
  }
  return 0;
}

// dy f'(s), s being x or y as the header lists.
double Gradient(Unary function, double s, double dy) {
  switch (function) {
    case Unary::kNeg:
      return -dy;
    case Unary::kExp:
      return dy * s;
    case Unary::kLog:
      return dy / s;
    case Unary::kSqrt:
      return dy / (2 * s);
    case Unary::kSquare:
      return dy * 2 * s;
    case Unary::kTanh:
      return dy * (1 - s * s);
    case Unary::kSigmoid:
      return dy * s * (1 - s);
    case Unary::kRelu:
      return s <= 0 ? 0.0 : dy;
    case Unary::kGelu:
      return dy * (NormalDistribution(s) + s * kInvSqrtTwoPi * std::exp(-0.5 * s * s));
    case Unary::kGeluTanh: {
      const double x = std::clamp(s, -kFlat, kFlat), gate = GateOf(x);
      return dy * (gate + x * gate * (1 - gate) * 2 * kSqrtTwoOverPi * (1 + 3 * kCubic * x * x));
    }
    case Unary::kSilu: {
      const double gate = SigmoidOf(s);
      return dy * gate * (1 + s * (1 - gate));
    }
  }
  return 0;
}

bool ReadsY(Unary function) {
  return function == Unary::kExp || function == Unary::kSqrt || function == Unary::kTanh || function == Unary::kSigmoid;
}

}  // namespace

void UnaryForward(Unary f, const float* x, float* y, int64_t n) { WEFT_DISPATCH(ForwardF32)(f, x, y, n); }

void UnaryBackward(Unary f, const float* x, const float* y, const float* dy, float* dx, int64_t n) {
  WEFT_DISPATCH(BackwardF32)(f, x, y, dy, dx, n);
}

void UnaryForward(Unary f, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = Value(f, x[i]);
}

void UnaryBackward(Unary f, const double* x, const double* y, const double* dy, double* dx, int64_t n) {
  const double* source = f == Unary::kNeg ? dy : ReadsY(f) ? y : x;
  for (int64_t i = 0; i < n; ++i) dx[i] += dy[i] == 0 ? 0.0 : Gradient(f, source[i], dy[i]);
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
