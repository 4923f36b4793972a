#include <algorithm>
#include <cmath>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"

namespace weft {
namespace {

void CheckRows(Variable x, Sequences sequences) {
  WEFT_CHECK(x.shape().rank() == 2) << "pool: x " << x.shape() << " is not [N, D]";
  for (const Sequence& s : sequences) {
    WEFT_CHECK(s.start >= 0 && s.length >= 0 && s.start + s.length <= x.shape()[0])
        << "pool: rows " << s.start << " to " << s.start + s.length << " of x " << x.shape();
  }
}

// y = mean of `rows` rows, summed in f64, a block of columns at a time.
template <class T>
void MeanOfRows(const T* x, int64_t rows, int64_t width, T* y) {
  constexpr int64_t kColumns = 128;
  for (int64_t first = 0; first < width; first += kColumns) {
    const int64_t columns = std::min(kColumns, width - first);
    double sums[kColumns] = {};
    for (int64_t t = 0; t < rows; ++t) {
      for (int64_t j = 0; j < columns; ++j) sums[j] += x[t * width + first + j];
    }
    for (int64_t j = 0; j < columns; ++j) y[first + j] = static_cast<T>(sums[j] / rows);
  }
}

template <class T>
void PoolOne(const Sequence& s, Pooling pooling, const T* x, int64_t width, T* y, int32_t* argmax) {
  if (argmax != nullptr) std::fill_n(argmax, width, 0);
  if (s.length == 0) {
    kernels::Fill(T(0), y, width);
    return;
  }
  const T* first = x + s.start * width;
  switch (pooling) {
    case Pooling::kFirst:
      std::copy_n(first, width, y);
      break;
    case Pooling::kLast:
      std::copy_n(first + (s.length - 1) * width, width, y);
      break;
    case Pooling::kMean:
      MeanOfRows(first, s.length, width, y);
      break;
    case Pooling::kMax:
      std::copy_n(first, width, y);
      for (int64_t t = 1; t < s.length; ++t) {
        for (int64_t j = 0; j < width; ++j) {
          const T value = first[t * width + j];
          if (value > y[j] || (std::isnan(value) && !std::isnan(y[j]))) {
            y[j] = value;
            if (argmax != nullptr) argmax[j] = static_cast<int32_t>(t);
          }
        }
      }
      break;
  }
}

template <class T>
void AddPoolGradient(const Sequence& s, Pooling pooling, const T* dy, const int32_t* argmax, int64_t width, T* dx) {
  if (s.length == 0) return;
  T* first = dx + s.start * width;
  switch (pooling) {
    case Pooling::kFirst:
      kernels::AddScaled(T(1), dy, first, width);
      break;
    case Pooling::kLast:
      kernels::AddScaled(T(1), dy, first + (s.length - 1) * width, width);
      break;
    case Pooling::kMean:
      for (int64_t t = 0; t < s.length; ++t) kernels::AddScaled(static_cast<T>(1.0 / s.length), dy, first + t * width, width);
      break;
    case Pooling::kMax:
      for (int64_t j = 0; j < width; ++j) first[argmax[j] * width + j] += dy[j];
      break;
  }
}

}  // namespace

Variable Pool(Variable x, Sequences sequences, Pooling pooling) {
  Op op("pool", {x});
  CheckRows(x, sequences);
  const auto count = static_cast<int64_t>(sequences.size());
  const int64_t width = x.shape()[1];
  Variable y = op.Output(x.dtype(), {count, width});
  const Sequences kept = op.needs_backward() ? op.tape().Copy(sequences) : sequences;
  int32_t* argmax = nullptr;
  if (pooling == Pooling::kMax && op.needs_backward()) argmax = op.tape().Allocate(DType::kI32, {count, width}).data<int32_t>();
  DispatchFloat("pool", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i) {
      PoolOne(sequences[i], pooling, x.value().data<T>(), width, y.value().data<T>() + i * width,
              argmax ? argmax + i * width : nullptr);
    }
  });
  op.Backward([=](Gradients& g) {
    const Tensor dx = g.Into(x);
    if (!dx.defined()) return;
    DispatchFloat("pool", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      // One after another: sequences may share rows.
      for (int64_t i = 0; i < count; ++i) {
        AddPoolGradient(kept[i], pooling, g.Of(y).data<T>() + i * width, argmax ? argmax + i * width : nullptr, width,
                        dx.data<T>());
      }
    });
  });
  return y;
}

}  // namespace weft
