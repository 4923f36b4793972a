#include <algorithm>
#include <cmath>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/axis.h"
#include "autograd/ops/tiles.h"

namespace weft {
namespace {

constexpr int64_t kColumns = 256;  // columns that are reduced together, on the stack, when the axis is not the last

Shape Reduced(const Shape& shape, int axis, bool keep) {
  if (keep) return shape.With(axis, 1);
  int64_t dims[Shape::kMaxRank];
  int rank = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis) dims[rank++] = shape[i];
  }
  return Shape(absl::MakeConstSpan(dims, rank));
}

// Calls f(outer index, first column, columns) for blocks of at most kColumns columns, in parallel when the whole is large.
template <class F>
void ForColumns(const AlongAxis& along, const F& f) {
  const int64_t blocks = (along.inner + kColumns - 1) / kColumns;
  ForRows(along.outer * blocks, along.size * std::min(along.inner, kColumns), [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      const int64_t column = i % blocks * kColumns;
      f(i / blocks, column, std::min(kColumns, along.inner - column));
    }
  });
}

template <class T>
void AddConstant(T value, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += value;
}

template <class T>
void SumForward(const AlongAxis& along, const T* x, double factor, T* y) {
  if (along.inner == 1) {
    return ForRows(along.outer, along.size, [&](int64_t first, int64_t count) {
      for (int64_t o = first; o < first + count; ++o) {
        y[o] = static_cast<T>(factor * kernels::Sum(x + o * along.size, along.size));
      }
    });
  }
  ForColumns(along, [&](int64_t o, int64_t column, int64_t n) {
    double sums[kColumns] = {};
    const T* from = x + o * along.size * along.inner + column;
    for (int64_t k = 0; k < along.size; ++k, from += along.inner) {
      for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(from[i]);
    }
    T* to = y + o * along.inner + column;
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(factor * sums[i]);
  });
}

template <class T>
void SumBackward(const AlongAxis& along, const T* dy, double factor, T* dx) {
  const T scale = static_cast<T>(factor);
  if (along.inner == 1) {
    return ForRows(along.outer, along.size, [&](int64_t first, int64_t count) {
      for (int64_t o = first; o < first + count; ++o) AddConstant(scale * dy[o], dx + o * along.size, along.size);
    });
  }
  ForRows(along.outer * along.size, along.inner, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      kernels::AddScaled(scale, dy + row / along.size * along.inner, dx + row * along.inner, along.inner);
    }
  });
}

Variable SumAxis(const char* name, Variable x, int axis, bool keep, bool mean) {
  Op op(name, {x});
  const AlongAxis along(name, x.shape(), axis);
  WEFT_CHECK(!mean || along.size > 0) << name << ": axis " << axis << " of shape " << x.shape() << " is empty";
  const double factor = mean ? 1.0 / static_cast<double>(along.size) : 1.0;
  const Variable y = op.Output(x.dtype(), Reduced(x.shape(), along.axis, keep));
  DispatchFloat(name, x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    SumForward(along, x.value().data<T>(), factor, y.value().data<T>());
  });
  op.Backward([along, factor, name, x, y](Gradients& g) {
    const Tensor dx = g.Into(x), dy = g.Of(y);
    DispatchFloat(name, dx.dtype(), [&](auto zero) {
      using T = decltype(zero);
      SumBackward(along, dy.data<T>(), factor, dx.data<T>());
    });
  });
  return y;
}

// Places along the axis of the largest elements: the first of equals; of the first NaN if there is one.
template <class T>
void MaxForward(const AlongAxis& along, const T* x, T* y, int32_t* places) {
  if (along.inner == 1) {
    return ForRows(along.outer, along.size, [&](int64_t first, int64_t count) {
      for (int64_t o = first; o < first + count; ++o) {
        const int64_t place = kernels::ArgMax(x + o * along.size, along.size);
        y[o] = x[o * along.size + place];
        if (places) places[o] = static_cast<int32_t>(place);
      }
    });
  }
  ForColumns(along, [&](int64_t o, int64_t column, int64_t n) {
    int32_t best[kColumns] = {};
    const T* from = x + o * along.size * along.inner + column;
    T* to = y + o * along.inner + column;
    std::copy(from, from + n, to);
    for (int64_t k = 1; k < along.size; ++k) {
      from += along.inner;
      for (int64_t i = 0; i < n; ++i) {
        if (!(from[i] > to[i] || (std::isnan(from[i]) && !std::isnan(to[i])))) continue;
        to[i] = from[i];
        best[i] = static_cast<int32_t>(k);
      }
    }
    if (places) std::copy(best, best + n, places + o * along.inner + column);
  });
}

}  // namespace

Variable Sum(Variable x, int axis, bool keep) { return SumAxis("sum", x, axis, keep, false); }
Variable Mean(Variable x, int axis, bool keep) { return SumAxis("mean", x, axis, keep, true); }

Variable Max(Variable x, int axis, bool keep) {
  Op op("max", {x});
  const AlongAxis along("max", x.shape(), axis);
  WEFT_CHECK_GT(along.size, 0) << "max: axis " << axis << " of shape " << x.shape() << " is empty";
  const Variable y = op.Output(x.dtype(), Reduced(x.shape(), along.axis, keep));
  const Tensor places = op.needs_backward() ? op.tape().Allocate(DType::kI32, y.shape()) : Tensor();
  DispatchFloat("max", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    MaxForward(along, x.value().data<T>(), y.value().data<T>(), places.defined() ? places.data<int32_t>() : nullptr);
  });
  op.Backward([along, places, x, y](Gradients& g) {
    const Tensor dx = g.Into(x), dy = g.Of(y);
    DispatchFloat("max", dx.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* to = dx.data<T>();
      const T* upstream = dy.data<T>();
      const int32_t* place = places.data<int32_t>();
      for (int64_t o = 0; o < along.outer; ++o) {
        for (int64_t i = 0; i < along.inner; ++i) {
          const int64_t at = o * along.inner + i;
          to[(o * along.size + place[at]) * along.inner + i] += upstream[at];
        }
      }
    });
  });
  return y;
}

Variable SumAll(Variable x) {
  Op op("sum_all", {x});
  const Variable y = op.Output(x.dtype(), Shape());
  const int64_t n = x.shape().elements(), tiles = (n + kTileElements - 1) / kTileElements;
  // One f64 a tile, joined in order.
  const Tensor parts = op.tape().Allocate(DType::kF64, {tiles});
  DispatchFloat("sum_all", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.value().data<T>();
    double* sums = parts.data<double>();
    ForTiles(n, kTileElements,
             [&](int64_t first, int64_t count) { sums[first / kTileElements] = kernels::Sum(from + first, count); });
    *y.value().data<T>() = static_cast<T>(kernels::Sum(sums, tiles));
  });
  op.Backward([x, y](Gradients& g) {
    const Tensor dx = g.Into(x), dy = g.Of(y);
    DispatchFloat("sum_all", dx.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T upstream = *dy.data<T>();
      T* to = dx.data<T>();
      ForTiles(dx.elements(), kTileElements, [&](int64_t first, int64_t count) { AddConstant(upstream, to + first, count); });
    });
  });
  return y;
}

}  // namespace weft
