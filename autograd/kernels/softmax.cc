// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/softmax.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/softmax.h"

#include <cmath>

#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

// What is subtracted from a row: its largest element; 0 for a row of only -inf, since -inf - -inf would be NaN.
HWY_INLINE float ShiftOf(const float* x, int64_t width) {
  const float most = MaxOf(x, width);
  return most == -kInfinity ? 0.0f : most;
}

void SoftmaxForwardF32(const float* x, float* y, int64_t rows, int64_t width) {
  const DF d;
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const VF shift = hn::Set(d, ShiftOf(x, width));
    DoubleSum sum;
    ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
      const VF e = ExpUpTo88(hn::Sub(Load(x + i, part, -kInfinity), shift));
      sum.Add(e);
      Store(e, y + i, part);
    });
    const double total = sum.Total();
    const VF inverse = hn::Set(d, total == 0 ? 0.0f : static_cast<float>(1.0 / total));
    ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR { Store(hn::Mul(Load(y + i, part), inverse), y + i, part); });
  }
}

void SoftmaxBackwardF32(const float* y, const float* dy, float* dx, int64_t rows, int64_t width) {
  const DF d;
  for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += width) {
    DoubleSum sum;
    ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR { sum.AddProduct(Load(dy + i, part), Load(y + i, part)); });
    const VF mean = hn::Set(d, static_cast<float>(sum.Total()));
    ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
      const VF centred = hn::Sub(Load(dy + i, part), mean);
      Store(hn::MulAdd(Load(y + i, part), centred, Load(dx + i, part)), dx + i, part);
    });
  }
}

void LogSoftmaxForwardF32(const float* x, float* y, int64_t rows, int64_t width) {
  const DF d;
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const VF shift = hn::Set(d, ShiftOf(x, width));
    DoubleSum sum;
    ForEachVector(width,
                  [&](int64_t i, auto part) HWY_ATTR { sum.Add(ExpUpTo88(hn::Sub(Load(x + i, part, -kInfinity), shift))); });
    const double total = sum.Total();
    const VF log_sum = hn::Set(d, total == 0 ? 0.0f : static_cast<float>(std::log(total)));
    ForEachVector(
        width, [&](int64_t i, auto part) HWY_ATTR { Store(hn::Sub(hn::Sub(Load(x + i, part), shift), log_sum), y + i, part); });
  }
}

void LogSoftmaxBackwardF32(const float* y, const float* dy, float* dx, int64_t rows, int64_t width) {
  const DF d;
  for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += width) {
    DoubleSum sum;
    ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR { sum.Add(Load(dy + i, part)); });
    const VF total = hn::Set(d, static_cast<float>(sum.Total()));
    ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
      const VF g = hn::NegMulAdd(Exp(Load(y + i, part)), total, Load(dy + i, part));
      Store(hn::Add(Load(dx + i, part), g), dx + i, part);
    });
  }
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "autograd/kernels/reduce.h"

namespace weft::kernels {
namespace {
HWY_EXPORT(SoftmaxForwardF32);
HWY_EXPORT(SoftmaxBackwardF32);
HWY_EXPORT(LogSoftmaxForwardF32);
HWY_EXPORT(LogSoftmaxBackwardF32);

double ShiftOf(const double* x, int64_t width) {
  const double most = Max(x, width);
  return most == -std::numeric_limits<double>::infinity() ? 0.0 : most;
}
}  // namespace

void SoftmaxForward(const float* x, float* y, int64_t rows, int64_t width) {
  WEFT_DISPATCH(SoftmaxForwardF32)(x, y, rows, width);
}

void SoftmaxBackward(const float* y, const float* dy, float* dx, int64_t rows, int64_t width) {
  WEFT_DISPATCH(SoftmaxBackwardF32)(y, dy, dx, rows, width);
}

void LogSoftmaxForward(const float* x, float* y, int64_t rows, int64_t width) {
  WEFT_DISPATCH(LogSoftmaxForwardF32)(x, y, rows, width);
}

void LogSoftmaxBackward(const float* y, const float* dy, float* dx, int64_t rows, int64_t width) {
  WEFT_DISPATCH(LogSoftmaxBackwardF32)(y, dy, dx, rows, width);
}

void SoftmaxForward(const double* x, double* y, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const double shift = ShiftOf(x, width);
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += y[i] = std::exp(x[i] - shift);
    for (int64_t i = 0; i < width; ++i) y[i] = sum == 0 ? 0.0 : y[i] / sum;
  }
}

void SoftmaxBackward(const double* y, const double* dy, double* dx, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += width) {
    const double mean = Dot(dy, y, width);
    for (int64_t i = 0; i < width; ++i) dx[i] += y[i] * (dy[i] - mean);
  }
}

void LogSoftmaxForward(const double* x, double* y, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const double shift = ShiftOf(x, width);
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += std::exp(x[i] - shift);
    const double log_sum = sum == 0 ? 0.0 : std::log(sum);
    for (int64_t i = 0; i < width; ++i) y[i] = x[i] - shift - log_sum;
  }
}

void LogSoftmaxBackward(const double* y, const double* dy, double* dx, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += width) {
    const double total = Sum(dy, width);
    for (int64_t i = 0; i < width; ++i) dx[i] += dy[i] - std::exp(y[i]) * total;
  }
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
