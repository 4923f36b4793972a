// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/optimizer.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/optimizer.h"

#include <cmath>

#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE VF Const(double value) { return hn::Set(DF(), static_cast<float>(value)); }

void AdamF32(const AdamStep& step, const float* g, float* p, float* m, float* v, int64_t n) {
  const VF scale = Const(step.grad_scale), eps = Const(step.eps);
  const VF l2 = Const(step.decoupled ? 0.0 : step.weight_decay);
  const VF keep = Const(step.decoupled ? 1.0 - step.lr * step.weight_decay : 1.0);
  const VF beta1 = Const(step.beta1), rest1 = Const(1.0 - step.beta1);
  const VF beta2 = Const(step.beta2), rest2 = Const(1.0 - step.beta2);
  const VF rate = Const(step.lr / step.bias_correction1), inverse_root2 = Const(1.0 / std::sqrt(step.bias_correction2));
  const bool add_l2 = !step.decoupled && step.weight_decay != 0;
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF weight = Load(p + i, part);
    VF gradient = hn::Mul(scale, Load(g + i, part));
    if (add_l2) gradient = hn::MulAdd(l2, weight, gradient);
    const VF mean = hn::MulAdd(beta1, Load(m + i, part), hn::Mul(rest1, gradient));
    const VF square = hn::MulAdd(beta2, Load(v + i, part), hn::Mul(rest2, hn::Mul(gradient, gradient)));
    const VF denominator = hn::MulAdd(hn::Sqrt(square), inverse_root2, eps);
    Store(mean, m + i, part);
    Store(square, v + i, part);
    Store(hn::NegMulAdd(rate, hn::Div(mean, denominator), hn::Mul(keep, weight)), p + i, part);
  });
}

void SgdF32(const SgdStep& step, const float* g, float* p, float* buffer, int64_t n) {
  const VF scale = Const(step.grad_scale), decay = Const(step.weight_decay), rate = Const(step.lr);
  const VF momentum = Const(step.momentum);
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF weight = Load(p + i, part);
    VF direction = hn::Mul(scale, Load(g + i, part));
    if (step.weight_decay != 0) direction = hn::MulAdd(decay, weight, direction);
    if (step.momentum != 0) {
      const VF blended = step.first_step ? direction : hn::MulAdd(momentum, Load(buffer + i, part), direction);
      Store(blended, buffer + i, part);
      direction = step.nesterov ? hn::MulAdd(momentum, blended, direction) : blended;
    }
    Store(hn::NegMulAdd(rate, direction, weight), p + i, part);
  });
}

void LionF32(const LionStep& step, const float* g, float* p, float* m, int64_t n) {
  const DF d;
  const VF scale = Const(step.grad_scale), keep = Const(1.0 - step.lr * step.weight_decay), rate = Const(step.lr);
  const VF beta1 = Const(step.beta1), rest1 = Const(1.0 - step.beta1);
  const VF beta2 = Const(step.beta2), rest2 = Const(1.0 - step.beta2);
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF gradient = hn::Mul(scale, Load(g + i, part)), mean = Load(m + i, part);
    const VF blended = hn::MulAdd(beta1, mean, hn::Mul(rest1, gradient));
    const VF sign = hn::IfThenZeroElse(hn::Eq(blended, hn::Zero(d)), hn::CopySign(hn::Set(d, 1.0f), blended));
    Store(hn::MulAdd(beta2, mean, hn::Mul(rest2, gradient)), m + i, part);
    Store(hn::NegMulAdd(rate, sign, hn::Mul(keep, Load(p + i, part))), p + i, part);
  });
}

void AddSquaresF32(const float* g, double* sums, int64_t n) {
  const DD d;
  const hn::Rebind<float, DD> narrow;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VD x = hn::PromoteTo(d, hn::LoadU(narrow, g + i));
    hn::StoreU(hn::MulAdd(x, x, hn::LoadU(d, sums + i)), d, sums + i);
  }
  // The square of a float is exact in double, so fused or not is no difference.
  for (; i < n; ++i) sums[i] += static_cast<double>(g[i]) * g[i];
}

double SumSquaredProductsF32(const float* factors, const float* g, int64_t n) {
  DoubleSum sum;
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF product = hn::Mul(Load(factors + i, part), Load(g + i, part));
    sum.AddProduct(product, product);
  });
  return sum.Total();
}

void ScaledStepF32(double keep, double rate, const float* factors, const float* g, float* p, int64_t n) {
  const VF keep_part = Const(keep), step = Const(rate);
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR {
    const VF product = hn::Mul(Load(factors + i, part), Load(g + i, part));
    Store(hn::NegMulAdd(step, product, hn::Mul(keep_part, Load(p + i, part))), p + i, part);
  });
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::kernels {
namespace {
HWY_EXPORT(AdamF32);
HWY_EXPORT(SgdF32);
HWY_EXPORT(LionF32);
HWY_EXPORT(AddSquaresF32);
HWY_EXPORT(SumSquaredProductsF32);
HWY_EXPORT(ScaledStepF32);
}  // namespace

void Adam(const AdamStep& step, const float* g, float* p, float* m, float* v, int64_t n) {
  WEFT_DISPATCH(AdamF32)(step, g, p, m, v, n);
}

void Adam(const AdamStep& step, const double* g, double* p, double* m, double* v, int64_t n) {
  const double rate = step.lr / step.bias_correction1, root2 = std::sqrt(step.bias_correction2);
  for (int64_t i = 0; i < n; ++i) {
    double gradient = step.grad_scale * g[i];
    if (step.decoupled) {
      p[i] *= 1.0 - step.lr * step.weight_decay;
    } else if (step.weight_decay != 0) {
      gradient += step.weight_decay * p[i];
    }
    m[i] = step.beta1 * m[i] + (1.0 - step.beta1) * gradient;
    v[i] = step.beta2 * v[i] + (1.0 - step.beta2) * gradient * gradient;
    p[i] -= rate * (m[i] / (std::sqrt(v[i]) / root2 + step.eps));
  }
}

void Sgd(const SgdStep& step, const float* g, float* p, float* buffer, int64_t n) {
  WEFT_DISPATCH(SgdF32)(step, g, p, buffer, n);
}

void Sgd(const SgdStep& step, const double* g, double* p, double* buffer, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double direction = step.grad_scale * g[i];
    if (step.weight_decay != 0) direction += step.weight_decay * p[i];
    if (step.momentum != 0) {
      buffer[i] = step.first_step ? direction : step.momentum * buffer[i] + direction;
      direction = step.nesterov ? direction + step.momentum * buffer[i] : buffer[i];
    }
    p[i] -= step.lr * direction;
  }
}

void Lion(const LionStep& step, const float* g, float* p, float* m, int64_t n) { WEFT_DISPATCH(LionF32)(step, g, p, m, n); }

void Lion(const LionStep& step, const double* g, double* p, double* m, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double gradient = step.grad_scale * g[i];
    const double blended = step.beta1 * m[i] + (1.0 - step.beta1) * gradient;
    const double sign = blended > 0 ? 1 : blended < 0 ? -1 : 0;
    m[i] = step.beta2 * m[i] + (1.0 - step.beta2) * gradient;
    p[i] = (1.0 - step.lr * step.weight_decay) * p[i] - step.lr * sign;
  }
}

void AddSquares(const float* g, double* sums, int64_t n) { WEFT_DISPATCH(AddSquaresF32)(g, sums, n); }

void AddSquares(const double* g, double* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += g[i] * g[i];
}

double SumSquaredProducts(const float* factors, const float* g, int64_t n) {
  return WEFT_DISPATCH(SumSquaredProductsF32)(factors, g, n);
}

double SumSquaredProducts(const double* factors, const double* g, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += factors[i] * g[i] * (factors[i] * g[i]);
  return sum;
}

void ScaledStep(double keep, double rate, const float* factors, const float* g, float* p, int64_t n) {
  WEFT_DISPATCH(ScaledStepF32)(keep, rate, factors, g, p, n);
}

void ScaledStep(double keep, double rate, const double* factors, const double* g, double* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = keep * p[i] - rate * (factors[i] * g[i]);
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
