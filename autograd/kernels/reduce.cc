// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/reduce.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/reduce.h"

#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

double SumF32(const float* x, int64_t n) {
  DoubleSum sum;
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { sum.Add(Load(x + i, part)); });
  return sum.Total();
}

double DotF32(const float* a, const float* b, int64_t n) {
  DoubleSum sum;
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { sum.AddProduct(Load(a + i, part), Load(b + i, part)); });
  return sum.Total();
}

float MaxF32(const float* x, int64_t n) { return MaxOf(x, n); }

int64_t FindF32(const float* x, float value, int64_t n) { return FirstEqual(x, value, n); }

// A sum that is 0 as long as all is finite, and NaN for good from the first infinity or NaN on.
bool AllFiniteF32(const float* x, int64_t n) {
  const DF d;
  VF sum = hn::Zero(d);
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { sum = hn::MulAdd(Load(x + i, part), hn::Zero(d), sum); });
  return hn::AllTrue(d, hn::Eq(sum, hn::Zero(d)));
}

bool AnyNanF32(const float* x, int64_t n) {
  const DF d;
  auto nan = hn::IsNaN(hn::Zero(d));
  ForEachVector(n, [&](int64_t i, auto part) HWY_ATTR { nan = hn::Or(nan, hn::IsNaN(Load(x + i, part))); });
  return !hn::AllFalse(d, nan);
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>
#include <limits>

namespace weft::kernels {
namespace {
HWY_EXPORT(SumF32);
HWY_EXPORT(DotF32);
HWY_EXPORT(MaxF32);
HWY_EXPORT(FindF32);
HWY_EXPORT(AllFiniteF32);
HWY_EXPORT(AnyNanF32);
}  // namespace

double Sum(const float* x, int64_t n) { return WEFT_DISPATCH(SumF32)(x, n); }

double SumSquares(const float* x, int64_t n) { return Dot(x, x, n); }

double Dot(const float* a, const float* b, int64_t n) { return WEFT_DISPATCH(DotF32)(a, b, n); }

float Max(const float* x, int64_t n) {
  return WEFT_DISPATCH(AnyNanF32)(x, n) ? std::numeric_limits<float>::quiet_NaN() : WEFT_DISPATCH(MaxF32)(x, n);
}

int64_t ArgMax(const float* x, int64_t n) { return WEFT_DISPATCH(FindF32)(x, Max(x, n), n); }

bool AllFinite(const float* x, int64_t n) { return WEFT_DISPATCH(AllFiniteF32)(x, n); }

double Sum(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

double SumSquares(const double* x, int64_t n) { return Dot(x, x, n); }

double Dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

double Max(const double* x, int64_t n) {
  const int64_t i = ArgMax(x, n);
  return i < 0 ? -std::numeric_limits<double>::infinity() : x[i];
}

int64_t ArgMax(const double* x, int64_t n) {
  int64_t best = n == 0 ? -1 : 0;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) return i;
    if (x[i] > x[best]) best = i;
  }
  return best;
}

bool AllFinite(const double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return false;
  }
  return true;
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
