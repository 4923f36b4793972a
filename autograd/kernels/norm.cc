// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/norm.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/norm.h"

#include <algorithm>
#include <cmath>

#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

// h = (x - mean) rstd in floats, within a few units in the last place: the mean is subtracted in two parts, so that nothing is
// lost where a row lies far from zero, and x is scaled by a power of two, so that huge and tiny rows stay in the range of
// floats. RMS normalisation has mean 0.
struct Standardize {
  float scale, high, low, factor;

  Standardize() = default;
  HWY_INLINE Standardize(double mean, double rstd)
      : scale(rstd < 1         ? 0.125f
              : rstd < 0x1p100 ? 1.0f
                               : 0x1p64f),
        high(scale * static_cast<float>(mean)),
        low(static_cast<float>(scale * (mean - static_cast<float>(mean)))),
        factor(static_cast<float>(rstd / scale)) {}
  HWY_INLINE VF operator()(VF x) const {
    const DF d;
    const VF centred = hn::Sub(hn::MulSub(x, hn::Set(d, scale), hn::Set(d, high)), hn::Set(d, low));
    return hn::Mul(centred, hn::Set(d, factor));
  }
};

HWY_INLINE double MeanOf(const float* x, int64_t width) {
  DoubleSum sum;
  ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR { sum.Add(Load(x + i, part)); });
  return sum.Total() / static_cast<double>(width);
}

// Mean of (x - mean)^2.
HWY_INLINE double MeanSquareOf(const float* x, double mean, int64_t width) {
  const VD means = hn::Set(DD(), mean);
  DoubleSum sum;
  ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
    const Wide w = Widen(Load(x + i, part));
    const Wide centred = Keep(Wide{hn::Sub(w.low, means), hn::Sub(w.high, means)}, part);
    sum.AddProduct(centred, centred);
  });
  return sum.Total() / static_cast<double>(width);
}

// `mean` null: no centring.
void NormForwardF32(const float* x, const float* gamma, const float* beta, float* y, double* mean, double* rstd, int64_t rows,
                    int64_t width, double eps) {
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const double m = mean == nullptr ? 0.0 : MeanOf(x, width);
    const double s = 1.0 / std::sqrt(MeanSquareOf(x, m, width) + eps);
    if (mean != nullptr) mean[r] = m;
    rstd[r] = s;
    const Standardize standardize(m, s);
    ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
      VF v = standardize(Load(x + i, part));
      if (gamma != nullptr) v = hn::Mul(v, Load(gamma + i, part));
      if (beta != nullptr) v = hn::Add(v, Load(beta + i, part));
      Store(v, y + i, part);
    });
  }
}

HWY_INLINE void AddRowGradient(const float* x, const float* gamma, bool centred, Standardize standardize, double rstd,
                               const float* dy, float* dx, int64_t width) {
  const DF d;
  DoubleSum sum_g, sum_gh;
  ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
    VF g = Load(dy + i, part);
    if (gamma != nullptr) g = hn::Mul(g, Load(gamma + i, part));
    const Wide wide_g = Widen(g);
    sum_g.Add(wide_g);
    sum_gh.AddProduct(wide_g, Keep(Widen(standardize(Load(x + i, part))), part));
  });
  const double n = static_cast<double>(width);
  const VF mean_g = hn::Set(d, centred ? static_cast<float>(sum_g.Total() / n) : 0.0f);
  const VF mean_gh = hn::Set(d, static_cast<float>(sum_gh.Total() / n));
  const VF scale = hn::Set(d, static_cast<float>(rstd));
  ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
    VF g = Load(dy + i, part);
    if (gamma != nullptr) g = hn::Mul(g, Load(gamma + i, part));
    const VF h = standardize(Load(x + i, part));
    const VF inner = hn::NegMulAdd(h, mean_gh, hn::Sub(g, mean_g));
    Store(hn::MulAdd(scale, inner, Load(dx + i, part)), dx + i, part);
  });
}

// Column sums of dy h and of dy over some rows, in double; one addition to dgamma and dbeta each.
HWY_INLINE void AddColumnGradients(const float* x, const Standardize* standardize, const float* dy, float* dgamma, float* dbeta,
                                   int64_t rows, int64_t width) {
  ForEachVector(width, [&](int64_t i, auto part) HWY_ATTR {
    DoubleSum sum_h, sum;
    for (int64_t r = 0; r < rows; ++r) {
      const Wide g = Widen(Load(dy + r * width + i, part));
      sum_h.AddProduct(g, Widen(standardize[r](Load(x + r * width + i, part))));
      sum.Add(g);
    }
    if (dgamma != nullptr) Store(hn::Add(Load(dgamma + i, part), Narrow({sum_h.low, sum_h.high})), dgamma + i, part);
    if (dbeta != nullptr) Store(hn::Add(Load(dbeta + i, part), Narrow({sum.low, sum.high})), dbeta + i, part);
  });
}

// Rows go in groups, so that the column sums find x and dy still in the cache.
constexpr int64_t kRowGroup = 16;

void NormBackwardF32(const float* x, const float* gamma, const double* mean, const double* rstd, const float* dy, float* dx,
                     float* dgamma, float* dbeta, int64_t rows, int64_t width) {
  const bool centred = mean != nullptr;
  for (int64_t first = 0; first < rows; first += kRowGroup) {
    const int64_t count = std::min(kRowGroup, rows - first), start = first * width;
    Standardize standardize[kRowGroup];
    for (int64_t r = 0; r < count; ++r) standardize[r] = Standardize(centred ? mean[first + r] : 0.0, rstd[first + r]);
    for (int64_t r = 0; r < count && dx != nullptr; ++r) {
      const int64_t row = start + r * width;
      AddRowGradient(x + row, gamma, centred, standardize[r], rstd[first + r], dy + row, dx + row, width);
    }
    if (dgamma == nullptr && dbeta == nullptr) continue;
    AddColumnGradients(x + start, standardize, dy + start, dgamma, dbeta, count, width);
  }
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::kernels {
namespace {
HWY_EXPORT(NormForwardF32);
HWY_EXPORT(NormBackwardF32);

// `mean` null: no centring.
void ForwardF64(const double* x, const double* gamma, const double* beta, double* y, double* mean, double* rstd, int64_t rows,
                int64_t width, double eps) {
  const double n = static_cast<double>(width);
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    double m = 0, square = 0;
    if (mean != nullptr) {
      for (int64_t i = 0; i < width; ++i) m += x[i];
      mean[r] = m /= n;
    }
    for (int64_t i = 0; i < width; ++i) square += (x[i] - m) * (x[i] - m);
    rstd[r] = 1.0 / std::sqrt(square / n + eps);
    for (int64_t i = 0; i < width; ++i) {
      y[i] = (x[i] - m) * rstd[r] * (gamma != nullptr ? gamma[i] : 1.0) + (beta != nullptr ? beta[i] : 0.0);
    }
  }
}

void BackwardF64(const double* x, const double* gamma, const double* mean, const double* rstd, const double* dy, double* dx,
                 double* dgamma, double* dbeta, int64_t rows, int64_t width) {
  const double n = static_cast<double>(width);
  for (int64_t r = 0; r < rows; ++r) {
    const double m = mean != nullptr ? mean[r] : 0.0, s = rstd[r];
    const double* row = x + r * width;
    const double* drow = dy + r * width;
    double sum_g = 0, sum_gh = 0;
    for (int64_t i = 0; i < width; ++i) {
      const double h = (row[i] - m) * s, g = drow[i] * (gamma != nullptr ? gamma[i] : 1.0);
      sum_g += g;
      sum_gh += g * h;
      if (dgamma != nullptr) dgamma[i] += drow[i] * h;
      if (dbeta != nullptr) dbeta[i] += drow[i];
    }
    if (dx == nullptr) continue;
    const double mean_g = mean != nullptr ? sum_g / n : 0.0;
    for (int64_t i = 0; i < width; ++i) {
      const double h = (row[i] - m) * s, g = drow[i] * (gamma != nullptr ? gamma[i] : 1.0);
      dx[r * width + i] += s * (g - mean_g - h * sum_gh / n);
    }
  }
}
}  // namespace

void LayerNormForward(const float* x, const float* gamma, const float* beta, float* y, double* mean, double* rstd, int64_t rows,
                      int64_t width, double eps) {
  WEFT_DISPATCH(NormForwardF32)(x, gamma, beta, y, mean, rstd, rows, width, eps);
}

void LayerNormForward(const double* x, const double* gamma, const double* beta, double* y, double* mean, double* rstd,
                      int64_t rows, int64_t width, double eps) {
  ForwardF64(x, gamma, beta, y, mean, rstd, rows, width, eps);
}

void LayerNormBackward(const float* x, const float* gamma, const double* mean, const double* rstd, const float* dy, float* dx,
                       float* dgamma, float* dbeta, int64_t rows, int64_t width) {
  WEFT_DISPATCH(NormBackwardF32)(x, gamma, mean, rstd, dy, dx, dgamma, dbeta, rows, width);
}

void LayerNormBackward(const double* x, const double* gamma, const double* mean, const double* rstd, const double* dy,
                       double* dx, double* dgamma, double* dbeta, int64_t rows, int64_t width) {
  BackwardF64(x, gamma, mean, rstd, dy, dx, dgamma, dbeta, rows, width);
}

void RmsNormForward(const float* x, const float* gamma, float* y, double* rstd, int64_t rows, int64_t width, double eps) {
  WEFT_DISPATCH(NormForwardF32)(x, gamma, nullptr, y, nullptr, rstd, rows, width, eps);
}

void RmsNormForward(const double* x, const double* gamma, double* y, double* rstd, int64_t rows, int64_t width, double eps) {
  ForwardF64(x, gamma, nullptr, y, nullptr, rstd, rows, width, eps);
}

void RmsNormBackward(const float* x, const float* gamma, const double* rstd, const float* dy, float* dx, float* dgamma,
                     int64_t rows, int64_t width) {
  WEFT_DISPATCH(NormBackwardF32)(x, gamma, nullptr, rstd, dy, dx, dgamma, nullptr, rows, width);
}

void RmsNormBackward(const double* x, const double* gamma, const double* rstd, const double* dy, double* dx, double* dgamma,
                     int64_t rows, int64_t width) {
  BackwardF64(x, gamma, nullptr, rstd, dy, dx, dgamma, nullptr, rows, width);
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
