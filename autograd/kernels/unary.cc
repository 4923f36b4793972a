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
  const VF one = Const(1), e = ExpUpTo88(hn::Neg(hn::Abs(x))), sum = hn::Add(one, e);
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
  // a^2 is about 100 where Phi(-a) leaves the normal floats: what its rounding loses would be 50 ulp of the exponential.
#if HWY_NATIVE_FMA
  const VF half = hn::Mul(Const(-0.5), a), square = hn::Mul(half, a), rest = hn::MulSub(half, a, square);
#else
  const VF front = hn::And(a, hn::BitCast(DF(), hn::Set(hn::RebindToUnsigned<DF>(), 0xFFFFF000u)));  // 12 bits
  const VF square = hn::Mul(hn::Mul(Const(-0.5), front), front);
  const VF rest = hn::Mul(hn::Mul(Const(-0.5), hn::Sub(a, front)), hn::Add(a, front));
#endif
  VF e[1] = {square};
  ExpUpTo88(e, &rest);
  // h, its even and its odd powers apart: two short chains in place of one that waits for itself.
  const VF u2 = hn::Mul(u, u);
  VF odd = hn::MulAdd(Const(-4.05354732e-05), u2, Const(0.000351829382));
  VF even = hn::MulAdd(Const(2.35805317e-06), u2, Const(-2.56434356e-05));
  odd = hn::MulAdd(odd, u2, Const(-0.00255352315));
  even = hn::MulAdd(even, u2, Const(-0.00170250471));
  odd = hn::MulAdd(odd, u2, Const(0.0204232243));
  even = hn::MulAdd(even, u2, Const(0.0808513806));
  odd = hn::MulAdd(odd, u2, Const(0.167988234));
  even = hn::MulAdd(even, u2, Const(0.234705169));
  const VF h = hn::MulAdd(odd, u, even);
  const VF tail = hn::Mul(e[0], hn::Mul(t, h));
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(DF())), tail, hn::Sub(one, tail)), hn::Mul(e[0], Const(kInvSqrtTwoPi))};
}

// Functions whose slope shares most of its work with the value. Unused halves cost nothing once inlined.
struct Sloped {
  VF value, slope;
};

HWY_INLINE Sloped GeluOf(VF x) {
  const Normal normal = StandardNormal(x);
  return {hn::Mul(x, normal.distribution), hn::MulAdd(x, normal.density, normal.distribution)};
}

// 0.5 (1 + tanh(u)) = sigmoid(2 u), with u as in the header. The gate is exactly 0 or 1 beyond kFlat.
HWY_INLINE Sloped GeluTanhOf(VF x) {
  const VF flat = Const(kFlat);
  const VF v = hn::IfThenElse(hn::Gt(x, flat), flat, hn::IfThenElse(hn::Lt(x, hn::Neg(flat)), hn::Neg(flat), x));
  const VF square = hn::Mul(v, v), inner = hn::MulAdd(hn::Mul(Const(kCubic), v), square, v);
  const Logistic gate = StandardLogistic(hn::Mul(Const(2 * kSqrtTwoOverPi), inner));
  const VF twice_du = hn::MulAdd(Const(6 * kSqrtTwoOverPi * kCubic), square, Const(2 * kSqrtTwoOverPi));
  return {hn::Mul(x, gate.value), hn::MulAdd(hn::Mul(v, twice_du), gate.slope, gate.value)};
}

HWY_INLINE Sloped SiluOf(VF x) {
  const Logistic s = StandardLogistic(x);
  return {hn::Mul(x, s.value), hn::MulAdd(x, s.slope, s.value)};
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
      return Map(x, y, n, [](VF v) HWY_ATTR { return GeluOf(v).value; });
    case Unary::kGeluTanh:
      return Map(x, y, n, [](VF v) HWY_ATTR { return GeluTanhOf(v).value; });
    case Unary::kSilu:
      return Map(x, y, n, [](VF v) HWY_ATTR { return SiluOf(v).value; });
  }
}

template <class F>
HWY_INLINE void MapWithSlope(const float* x, float* y, float* slope, int64_t n, const F& f) {
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const Sloped both = f(Load(x + i, part));
    Store(both.value, y + i, part);
    Store(both.slope, slope + i, part);
  });
}

// REQUIRES: function reads its slope.
void ForwardWithSlopeF32(Unary function, const float* x, float* y, float* slope, int64_t n) {
  switch (function) {
    case Unary::kGelu:
      return MapWithSlope(x, y, slope, n, [](VF v) HWY_ATTR { return GeluOf(v); });
    case Unary::kGeluTanh:
      return MapWithSlope(x, y, slope, n, [](VF v) HWY_ATTR { return GeluTanhOf(v); });
    default:
      return MapWithSlope(x, y, slope, n, [](VF v) HWY_ATTR { return SiluOf(v); });
  }
}

// dx += dy f(s), or dx = without kAdd, s being x, y or the slope; nothing where dy is 0, also where f is infinite.
template <bool kAdd, class F>
HWY_INLINE void PutSlope(const float* s, const float* dy, float* dx, int64_t n, const F& f) {
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF g = Load(dy + i, part), slope = hn::IfThenZeroElse(hn::Eq(g, hn::Zero(DF())), f(Load(s + i, part)));
    Store(kAdd ? hn::MulAdd(g, slope, Load(dx + i, part)) : hn::Mul(g, slope), dx + i, part);
  });
}

// The same for dy / (factor s).
template <bool kAdd>
HWY_INLINE void PutQuotient(float factor, const float* s, const float* dy, float* dx, int64_t n) {
  const VF c = hn::Set(DF(), factor);
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF g = Load(dy + i, part);
    const VF quotient = hn::IfThenZeroElse(hn::Eq(g, hn::Zero(DF())), hn::Div(g, hn::Mul(c, Load(s + i, part))));
    Store(kAdd ? hn::Add(Load(dx + i, part), quotient) : quotient, dx + i, part);
  });
}

template <bool kAdd>
void BackwardOf(Unary function, const float* s, const float* dy, float* dx, int64_t n) {
  switch (function) {
    case Unary::kNeg:
      return PutSlope<kAdd>(dy, dy, dx, n, [](VF) HWY_ATTR { return Const(-1); });
    case Unary::kExp:
      return PutSlope<kAdd>(s, dy, dx, n, [](VF v) HWY_ATTR { return v; });
    case Unary::kLog:
      return PutQuotient<kAdd>(1, s, dy, dx, n);
    case Unary::kSqrt:
      return PutQuotient<kAdd>(2, s, dy, dx, n);
    case Unary::kSquare:
      return PutSlope<kAdd>(s, dy, dx, n, [](VF v) HWY_ATTR { return hn::Add(v, v); });
    case Unary::kTanh:
      return PutSlope<kAdd>(s, dy, dx, n, [](VF v) HWY_ATTR { return hn::NegMulAdd(v, v, Const(1)); });
    case Unary::kSigmoid:
      return PutSlope<kAdd>(s, dy, dx, n, [](VF v) HWY_ATTR { return hn::Mul(v, hn::Sub(Const(1), v)); });
    case Unary::kRelu:
      return ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
        const VF g = hn::IfThenZeroElse(hn::Le(Load(s + i, part), hn::Zero(DF())), Load(dy + i, part));
        Store(kAdd ? hn::Add(Load(dx + i, part), g) : g, dx + i, part);
      });
    case Unary::kGelu:
    case Unary::kGeluTanh:
    case Unary::kSilu:
      return PutSlope<kAdd>(s, dy, dx, n, [](VF v) HWY_ATTR { return v; });
  }
}

void BackwardF32(Unary function, const float* s, const float* dy, float* dx, int64_t n, bool add) {
  add ? BackwardOf<true>(function, s, dy, dx, n) : BackwardOf<false>(function, s, dy, dx, n);
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

#include "autograd/base/check.h"

namespace weft::kernels {
namespace {
HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardWithSlopeF32);
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

// f'(x) of the functions that read their slope.
double Slope(Unary function, double x) {
  if (function == Unary::kGelu) return NormalDistribution(x) + x * kInvSqrtTwoPi * std::exp(-0.5 * x * x);
  if (function == Unary::kGeluTanh) {
    const double v = std::clamp(x, -kFlat, kFlat), gate = GateOf(v);
    return gate + v * gate * (1 - gate) * 2 * kSqrtTwoOverPi * (1 + 3 * kCubic * v * v);
  }
  const double gate = SigmoidOf(x);
  return gate * (1 + x * (1 - gate));
}

// dy f'(x) from s, which is x, y or f'(x) as the header lists.
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
    case Unary::kGeluTanh:
    case Unary::kSilu:
      return dy * s;
  }
  return 0;
}

}  // namespace

BackwardReads WhatBackwardReads(Unary f) {
  switch (f) {
    case Unary::kExp:
    case Unary::kSqrt:
    case Unary::kTanh:
    case Unary::kSigmoid:
      return BackwardReads::kY;
    case Unary::kGelu:
    case Unary::kGeluTanh:
    case Unary::kSilu:
      return BackwardReads::kSlope;
    default:
      return BackwardReads::kX;
  }
}

void UnaryForward(Unary f, const float* x, float* y, int64_t n) { WEFT_DISPATCH(ForwardF32)(f, x, y, n); }

void UnaryForwardWithSlope(Unary f, const float* x, float* y, float* slope, int64_t n) {
  WEFT_CHECK(WhatBackwardReads(f) == BackwardReads::kSlope);
  WEFT_DISPATCH(ForwardWithSlopeF32)(f, x, y, slope, n);
}

void UnaryBackward(Unary f, const float* source, const float* dy, float* dx, int64_t n, bool add) {
  WEFT_DISPATCH(BackwardF32)(f, source, dy, dx, n, add);
}

void UnaryForward(Unary f, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = Value(f, x[i]);
}

void UnaryForwardWithSlope(Unary f, const double* x, double* y, double* slope, int64_t n) {
  WEFT_CHECK(WhatBackwardReads(f) == BackwardReads::kSlope);
  for (int64_t i = 0; i < n; ++i) {
    const double v = x[i];  // y may be x
    y[i] = Value(f, v);
    slope[i] = Slope(f, v);
  }
}

void UnaryBackward(Unary f, const double* source, const double* dy, double* dx, int64_t n, bool add) {
  if (f == Unary::kNeg) source = dy;
  for (int64_t i = 0; i < n; ++i) dx[i] = (add ? dx[i] : 0.0) + (dy[i] == 0 ? 0.0 : Gradient(f, source[i], dy[i]));
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
