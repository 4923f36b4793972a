#include "train/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/base/parallel.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/scratch.h"

namespace weft {
namespace {

using kernels::Gemm;
using kernels::Trans;

constexpr int kIterations = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kLeastNorm = 1e-30;  // its inverse is still a float

// out = orthogonal(x) of [rows, columns], ||x|| <= 1. Works on the Gram matrix a of the shorter side: with p = kA + kB a + kC
// a^2, the iterate p x has the Gram matrix p a p, so the steps multiply small squares only, and x once by q, the product of all
// p. Where one side is four times the other that is 25 n^3 multiply-adds in place of 45 for the steps on x itself; for a
// square 19 in place of 15. Rounding a (6e-8 of ||x||^2) matters where a singular value is below a thousandth, which the steps
// multiply by about kA each in any case.
template <class T>
void Orthogonal(int64_t rows, int64_t columns, const T* x, T* out) {
  const bool wide = rows <= columns;
  const int64_t n = std::min(rows, columns), size = n * n;
  const auto multiply = [n](const T* left, const T* right, T* product) {
    Gemm(Trans::kNo, Trans::kNo, n, n, n, left, n, right, n, product, n);
  };
  kernels::Scratch<T> squares(4 * size);
  T *a = squares.data(), *p = a + size, *q = p + size, *spare = q + size;
  Gemm(wide ? Trans::kNo : Trans::kYes, wide ? Trans::kYes : Trans::kNo, n, n, wide ? columns : rows, x, columns, x, columns, a,
       n);
  for (int i = 0; i < kIterations; ++i) {
    multiply(a, a, p);
    kernels::Scale(static_cast<T>(kC), p, p, size);
    kernels::AddScaled(static_cast<T>(kB), a, p, size);
    for (int64_t j = 0; j < n; ++j) p[j * n + j] += static_cast<T>(kA);
    if (i + 1 < kIterations) {
      multiply(p, a, spare);
      multiply(spare, p, a);
    }
    if (i == 0) {
      std::swap(q, p);
    } else {
      multiply(p, q, spare);
      std::swap(q, spare);
    }
  }
  if (wide) {
    Gemm(Trans::kNo, Trans::kNo, n, columns, n, q, n, x, columns, out, columns);
  } else {
    Gemm(Trans::kNo, Trans::kNo, rows, n, n, x, columns, q, n, out, columns);
  }
}

}  // namespace

Muon::Muon(const Parameters& parameters, const std::vector<ParameterRule>& rules, double momentum) : momentum_(momentum) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const ParameterInfo& info = parameters.list()[i];
    if (rules[i].frozen || !info.hidden || info.shape.elements() == 0) continue;
    matrices_.push_back({info.offset, info.shape[0], info.shape[1], rules[i].lr_scale, rules[i].weight_decay});
  }
  std::stable_sort(matrices_.begin(), matrices_.end(),
                   [](const Matrix& x, const Matrix& y) { return x.rows * x.columns > y.rows * y.columns; });
  finite_.resize(matrices_.size());
}

bool Muon::Step(const Tensor& values, const Tensor& gradients, const Tensor& momenta, double grad_scale, double lr) {
  DispatchFloat("Muon", values.dtype(), [&](auto type) {
    using T = decltype(type);
    ParallelFor(static_cast<int64_t>(matrices_.size()), [&](int64_t i) {
      const int64_t at = matrices_[i].offset;
      finite_[i] =
          Update(matrices_[i], gradients.data<T>() + at, grad_scale, lr, values.data<T>() + at, momenta.data<T>() + at);
    });
  });
  return std::find(finite_.begin(), finite_.end(), 0) == finite_.end();
}

template <class T>
bool Muon::Update(const Matrix& matrix, const T* gradients, double grad_scale, double lr, T* values, T* momenta) const {
  const int64_t n = matrix.rows * matrix.columns;
  kernels::Scratch<T> scratch(2 * n);
  T *x = scratch.data(), *o = x + n;
  const T mu = static_cast<T>(momentum_), rest = static_cast<T>((1 - momentum_) * grad_scale);
  kernels::Scale(mu, momenta, momenta, n);
  kernels::AddScaled(rest, gradients, momenta, n);
  kernels::Scale(mu, momenta, x, n);
  kernels::AddScaled(rest, gradients, x, n);
  const double norm = std::sqrt(kernels::SumSquares(x, n));
  kernels::Scale(static_cast<T>(norm > kLeastNorm ? 1 / norm : 0), x, x, n);
  Orthogonal(matrix.rows, matrix.columns, x, o);
  const double rate = lr * matrix.lr_scale, longer = static_cast<double>(std::max(matrix.rows, matrix.columns));
  kernels::Scale(static_cast<T>(1 - rate * matrix.weight_decay), values, values, n);
  kernels::AddScaled(static_cast<T>(-rate * 0.2 * std::sqrt(longer)), o, values, n);
  return kernels::AllFinite(values, n);
}

}  // namespace weft
