// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/loss.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/loss.h"

#include <cmath>
#include <limits>

#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

// Writes exp(x - shift) over x when `store`; adds it to `total`, and x - shift to `differences` when kSmoothed.
template <bool kSmoothed>
HWY_INLINE void ExpPass(float* x, float shift, int64_t width, bool store, DoubleSum& total, DoubleSum& differences) {
  const VF shifts = hn::Set(DF(), shift);
  ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
    const VF e = ExpUpTo88(hn::Sub(Load(x + i, part, -kInfinity), shifts));
    total.Add(e);
    if (kSmoothed) differences.Add(hn::Sub(Load(x + i, part, shift), shifts));
    if (store) Store(e, x + i, part);
  });
}

// One row that is not ignored; returns its loss.
double RowLossF32(float* x, int32_t target, int64_t width, double smoothing, bool gradient, int32_t* argmax) {
  const DF d;
  const float most = MaxOf(x, width), shift = most == -kInfinity ? 0.0f : most;
  int64_t first = argmax == nullptr ? 0 : FirstEqual(x, most, width);  // -1 in a row of NaN
  if (argmax != nullptr && most == kInfinity) {
    if (const int64_t nan = FirstEqual(x, std::numeric_limits<float>::quiet_NaN(), width); nan >= 0) first = nan;
  }
  const double target_logit = static_cast<double>(x[target]) - shift;
  DoubleSum sum, differences;
  if (smoothing == 0) {
    ExpPass<false>(x, shift, width, gradient, sum, differences);
  } else {
    ExpPass<true>(x, shift, width, gradient, sum, differences);
  }
  const double total = sum.Total();
  if (argmax != nullptr) {
    // Below an infinity, only a NaN makes the sum one: in the row or, in the same place, in the exponentials that replaced it.
    if (total != total && most < kInfinity) first = FirstEqual(x, std::numeric_limits<float>::quiet_NaN(), width);
    *argmax = static_cast<int32_t>(first);
  }
  const double log_total = total == 0 ? 0.0 : std::log(total);
  if (gradient) {
    const VF inverse = hn::Set(d, total == 0 ? 0.0f : static_cast<float>(1.0 / total));
    const VF share = hn::Set(d, static_cast<float>(smoothing / static_cast<double>(width)));
    ForEachVector(
        width, [&](int64_t i, auto part) HWY_ATTR { Store(hn::Sub(hn::Mul(Load(x + i, part), inverse), share), x + i, part); });
    x[target] -= static_cast<float>(1.0 - smoothing);
  }
  const double smooth_loss = smoothing == 0 ? 0.0 : -smoothing / static_cast<double>(width) * differences.Total();
  return log_total - (smoothing == 1 ? 0.0 : (1.0 - smoothing) * target_logit) + smooth_loss;
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "autograd/kernels/reduce.h"

namespace weft::kernels {
namespace {
HWY_EXPORT(RowLossF32);

double RowLoss(float* x, int32_t target, int64_t width, double smoothing, bool gradient, int32_t* argmax) {
  return WEFT_DISPATCH(RowLossF32)(x, target, width, smoothing, gradient, argmax);
}

double RowLoss(double* x, int32_t target, int64_t width, double smoothing, bool gradient, int32_t* argmax) {
  if (argmax != nullptr) *argmax = static_cast<int32_t>(ArgMax(x, width));
  const double most = Max(x, width);
  const double shift = most == -std::numeric_limits<double>::infinity() ? 0.0 : most;
  const double share = smoothing / static_cast<double>(width);
  double total = 0, loss = smoothing == 1 ? 0.0 : -(1.0 - smoothing) * (x[target] - shift);
  for (int64_t i = 0; i < width; ++i) {
    total += std::exp(x[i] - shift);
    if (smoothing != 0) loss -= share * (x[i] - shift);
  }
  if (total != 0) loss += std::log(total);
  if (gradient) {
    for (int64_t i = 0; i < width; ++i) x[i] = (total == 0 ? 0.0 : std::exp(x[i] - shift) / total) - share;
    x[target] -= 1.0 - smoothing;
  }
  return loss;
}

template <class T>
void Rows(T* logits, int64_t ld, const int32_t* targets, int32_t ignore, int64_t rows, int64_t width, double smoothing,
          bool gradient, double* losses, int32_t* argmax) {
  for (int64_t r = 0; r < rows; ++r) {
    T* row = logits + r * ld;
    int32_t* best = argmax == nullptr ? nullptr : argmax + r;
    if (targets[r] != ignore) {
      losses[r] = RowLoss(row, targets[r], width, smoothing, gradient, best);
      continue;
    }
    losses[r] = 0;
    if (best != nullptr) *best = static_cast<int32_t>(ArgMax(row, width));
    if (gradient) std::fill_n(row, width, T{0});
  }
}
}  // namespace

void CrossEntropyRows(float* logits, int64_t ld, const int32_t* targets, int32_t ignore, int64_t rows, int64_t width,
                      double smoothing, bool gradient, double* losses, int32_t* argmax) {
  Rows(logits, ld, targets, ignore, rows, width, smoothing, gradient, losses, argmax);
}

void CrossEntropyRows(double* logits, int64_t ld, const int32_t* targets, int32_t ignore, int64_t rows, int64_t width,
                      double smoothing, bool gradient, double* losses, int32_t* argmax) {
  Rows(logits, ld, targets, ignore, rows, width, smoothing, gradient, losses, argmax);
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
