// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/elementwise.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/elementwise.h"

#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

template <class Op>
HWY_INLINE void Combine(const float* a, int64_t a_step, const float* b, int64_t b_step, float* out, int64_t n, const Op& op) {
  const DF d;
  if (n == 0) return;
  if (a_step == 1 && b_step == 1) {
    ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { Store(op(Load(a + i, part), Load(b + i, part)), out + i, part); });
  } else if (a_step == 1) {
    const VF vb = hn::Set(d, *b);
    ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { Store(op(Load(a + i, part), vb), out + i, part); });
  } else if (b_step == 1) {
    const VF va = hn::Set(d, *a);
    ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { Store(op(va, Load(b + i, part)), out + i, part); });
  } else {
    const VF value = op(hn::Set(d, *a), hn::Set(d, *b));
    ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { Store(value, out + i, part); });
  }
}

void BinaryF32(Binary op, const float* a, int64_t a_step, const float* b, int64_t b_step, float* out, int64_t n) {
  switch (op) {
    case Binary::kAdd:
      return Combine(a, a_step, b, b_step, out, n, [](VF u, VF v) HWY_ATTR { return hn::Add(u, v); });
    case Binary::kSub:
      return Combine(a, a_step, b, b_step, out, n, [](VF u, VF v) HWY_ATTR { return hn::Sub(u, v); });
    case Binary::kMul:
      return Combine(a, a_step, b, b_step, out, n, [](VF u, VF v) HWY_ATTR { return hn::Mul(u, v); });
    case Binary::kDiv:
      return Combine(a, a_step, b, b_step, out, n, [](VF u, VF v) HWY_ATTR { return hn::Div(u, v); });
  }
}

void AddScaledF32(float scale, const float* x, float* y, int64_t n) {
  const VF s = hn::Set(DF(), scale);
  ForEachVector(
      n, [&](int64_t i, auto part) HWY_ATTR { Store(hn::MulAdd(s, Load(x + i, part), Load(y + i, part)), y + i, part); });
}

void AddProductF32(const float* a, const float* b, float* y, int64_t n) {
  ForEachVector(n, [&](int64_t i, auto part)
                       HWY_ATTR { Store(hn::MulAdd(Load(a + i, part), Load(b + i, part), Load(y + i, part)), y + i, part); });
}

void ScaleF32(float scale, const float* x, float* y, int64_t n) {
  const VF s = hn::Set(DF(), scale);
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { Store(hn::Mul(s, Load(x + i, part)), y + i, part); });
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "autograd/base/check.h"

namespace weft::kernels {
namespace {
HWY_EXPORT(BinaryF32);
HWY_EXPORT(AddScaledF32);
HWY_EXPORT(AddProductF32);
HWY_EXPORT(ScaleF32);

bool IsStep(int64_t step) { return step == 0 || step == 1; }
}  // namespace

void BinaryForward(Binary op, const float* a, int64_t a_step, const float* b, int64_t b_step, float* out, int64_t n) {
  WEFT_CHECK(IsStep(a_step) && IsStep(b_step)) << "steps " << a_step << " and " << b_step;
  WEFT_DISPATCH(BinaryF32)(op, a, a_step, b, b_step, out, n);
}

void AddScaled(float scale, const float* x, float* y, int64_t n) { WEFT_DISPATCH(AddScaledF32)(scale, x, y, n); }

void AddProduct(const float* a, const float* b, float* y, int64_t n) { WEFT_DISPATCH(AddProductF32)(a, b, y, n); }

void Scale(float scale, const float* x, float* y, int64_t n) { WEFT_DISPATCH(ScaleF32)(scale, x, y, n); }

void Fill(float value, float* y, int64_t n) { std::fill_n(y, n, value); }

void BinaryForward(Binary op, const double* a, int64_t a_step, const double* b, int64_t b_step, double* out, int64_t n) {
  WEFT_CHECK(IsStep(a_step) && IsStep(b_step)) << "steps " << a_step << " and " << b_step;
  for (int64_t i = 0; i < n; ++i) {
    const double u = a[i * a_step], v = b[i * b_step];
    switch (op) {
      case Binary::kAdd:
        out[i] = u + v;
        break;
      case Binary::kSub:
        out[i] = u - v;
        break;
      case Binary::kMul:
        out[i] = u * v;
        break;
      case Binary::kDiv:
        out[i] = u / v;
        break;
    }
  }
}

void AddScaled(double scale, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

void AddProduct(const double* a, const double* b, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
}

void Scale(double scale, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = scale * x[i];
}

void Fill(double value, double* y, int64_t n) { std::fill_n(y, n, value); }

}  // namespace weft::kernels
#endif  // HWY_ONCE
