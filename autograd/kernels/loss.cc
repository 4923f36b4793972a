// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/loss.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/loss.h"

#include <cmath>

#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

// One row that is not ignored; returns its loss.
double RowLossF32(float* x, int32_t target, int64_t width, double smoothing, bool gradient) {
  const DF d;
  const float most = MaxOf(x, width), shift = most == -kInfinity ? 0.0f : most;
  const VF shifts = hn::Set(d, shift);
  const double target_logit = static_cast<double>(x[target]) - shift;
  double smooth_loss = 0;
  if (smoothing != 0) {
    DoubleSum sum;
    ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR { sum.Add(hn::Sub(Load(x + i, part, shift), shifts)); });
    smooth_loss = -smoothing / static_cast<double>(width) * sum.Total();
  }
  DoubleSum sum;
  ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
    const VF e = Exp(hn::Sub(Load(x + i, part, -kInfinity), shifts));
    sum.Add(e);
    if (gradient) Store(e, x + i, part);
  });
  const double total = sum.Total();
  const double log_total = total == 0 ? 0.0 : std::log(total);
  if (gradient) {
    const VF inverse = hn::Set(d, total == 0 ? 0.0f : static_cast<float>(1.0 / total));
    const VF share = hn::Set(d, static_cast<float>(smoothing / static_cast<double>(width)));
    ForEachVector(
        width, [&](int64_t i, auto part) HWY_ATTR { Store(hn::Sub(hn::Mul(Load(x + i, part), inverse), share), x + i, part); });
    x[target] -= static_cast<float>(1.0 - smoothing);
  }
  return log_total - (smoothing == 1 ? 0.0 : (1.0 - smoothing) * target_logit) + smooth_loss;
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <limits>

#include "autograd/kernels/reduce.h"

namespace weft::kernels {
namespace {
HWY_EXPORT(RowLossF32);

double RowLoss(float* x, int32_t target, int64_t width, double smoothing, bool gradient) {
  return WEFT_DISPATCH(RowLossF32)(x, target, width, smoothing, gradient);
}

double RowLoss(double* x, int32_t target, int64_t width, double smoothing, bool gradient) {
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
    if (argmax != nullptr) argmax[r] = static_cast<int32_t>(ArgMax(row, width));
    if (targets[r] == ignore) {
      losses[r] = 0;
      if (gradient) std::fill_n(row, width, T{0});
    } else {
      losses[r] = RowLoss(row, targets[r], width, smoothing, gradient);
    }
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
