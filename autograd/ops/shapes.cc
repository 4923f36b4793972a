#include <algorithm>
#include <cstring>
#include <utility>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/axis.h"
#include "autograd/ops/tiles.h"

namespace weft {
namespace {

// Copies (or adds) `rows` pieces of n elements; consecutive pieces are from_step and to_step elements apart.
template <bool kAdd, class T>
void MovePieces(int64_t rows, int64_t n, const T* from, int64_t from_step, T* to, int64_t to_step) {
  if (n == 0) return;
  ForRows(rows, n, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const T* source = from + row * from_step;
      T* target = to + row * to_step;
      if constexpr (kAdd) {
        kernels::AddScaled(T(1), source, target, n);
      } else {
        std::memcpy(target, source, n * sizeof(T));
      }
    }
  });
}

// `part` is places start .. start + part size - 1 along the axis of `whole`. Copies or adds from the part into the whole, or
// back.
enum class Move : uint8_t { kTakePart, kAddPart, kPutPart, kAddIntoPart };
void MovePart(const char* op, Move move, int axis, int64_t start, const Tensor& whole, const Tensor& part) {
  const AlongAxis all(op, whole.shape(), axis), some(op, part.shape(), axis);
  DispatchFloat(op, whole.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = some.size * some.inner, step = all.size * all.inner;
    T *w = whole.data<T>() + start * all.inner, *p = part.data<T>();
    switch (move) {
      case Move::kTakePart:
        return MovePieces<false, T>(all.outer, n, w, step, p, n);
      case Move::kAddIntoPart:
        return MovePieces<true, T>(all.outer, n, w, step, p, n);
      case Move::kPutPart:
        return MovePieces<false, T>(all.outer, n, p, n, w, step);
      case Move::kAddPart:
        return MovePieces<true, T>(all.outer, n, p, n, w, step);
    }
  });
}

// A tensor [a, m, b, n, c] whose dimensions m and n change places.
struct Swap {
  int64_t a = 1, m = 1, b = 1, n = 1, c = 1;
};

// to[a, n, b, m, c] = (or +=) from[a, m, b, n, c].
template <bool kAdd, class T>
void SwapAxes(const Swap& s, const T* from, T* to) {
  constexpr int64_t kBlock = 16;  // 16 x 16 blocks: both sides stay within a few cache lines
  const int64_t m_blocks = (s.m + kBlock - 1) / kBlock;
  ForRows(s.a * m_blocks, std::min(s.m, kBlock) * s.b * s.n * s.c, [&](int64_t first, int64_t count) {
    for (int64_t tile = first; tile < first + count; ++tile) {
      const int64_t a = tile / m_blocks, m0 = tile % m_blocks * kBlock, m1 = std::min(m0 + kBlock, s.m);
      for (int64_t b = 0; b < s.b; ++b) {
        for (int64_t n0 = 0; n0 < s.n; n0 += kBlock) {
          const int64_t n1 = std::min(n0 + kBlock, s.n);
          for (int64_t n = n0; n < n1; ++n) {
            for (int64_t m = m0; m < m1; ++m) {
              const T* source = from + (((a * s.m + m) * s.b + b) * s.n + n) * s.c;
              T* target = to + (((a * s.n + n) * s.b + b) * s.m + m) * s.c;
              for (int64_t c = 0; c < s.c; ++c) target[c] = kAdd ? target[c] + source[c] : source[c];
            }
          }
        }
      }
    }
  });
}

}  // namespace

Variable Reshape(Variable x, const Shape& shape) {
  Op op("reshape", {x});
  WEFT_CHECK_EQ(x.shape().elements(), shape.elements()) << "reshape: shape " << x.shape() << " as " << shape;
  const Variable y = op.View(x, x.value().Reshaped(shape));
  op.Backward([x, y](Gradients& g) {
    const Tensor dx = g.Into(x), dy = g.Of(y);
    DispatchFloat("reshape", dx.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = dy.data<T>();
      T* to = dx.data<T>();
      ForTiles(dx.elements(), kTileElements, [&](int64_t i, int64_t n) { kernels::AddScaled(T(1), from + i, to + i, n); });
    });
  });
  return y;
}

Variable Transpose(Variable x, int axis_a, int axis_b) {
  Op op("transpose", {x});
  const Shape shape = x.shape();
  int m = AlongAxis("transpose", shape, axis_a).axis, n = AlongAxis("transpose", shape, axis_b).axis;
  if (m > n) std::swap(m, n);
  Swap swap;
  for (int i = 0; i < shape.rank(); ++i) {
    (i < m ? swap.a : i == m ? swap.m : i < n ? swap.b : i == n ? swap.n : swap.c) *= shape[i];
  }
  const Variable y = op.Output(x.dtype(), shape.With(m, shape[n]).With(n, shape[m]));
  DispatchFloat("transpose", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    SwapAxes<false>(swap, x.value().data<T>(), y.value().data<T>());
  });
  op.Backward([swap, x, y](Gradients& g) {
    const Tensor dx = g.Into(x), dy = g.Of(y);
    const Swap back = {swap.a, swap.n, swap.b, swap.m, swap.c};
    DispatchFloat("transpose", dx.dtype(), [&](auto zero) {
      using T = decltype(zero);
      SwapAxes<true>(back, dy.data<T>(), dx.data<T>());
    });
  });
  return y;
}

Variable Slice(Variable x, int axis, int64_t start, int64_t length) {
  Op op("slice", {x});
  const Shape shape = x.shape();
  const AlongAxis along("slice", shape, axis);
  WEFT_CHECK(0 <= start && 0 <= length && length <= along.size - start)
      << "slice: " << length << " places from " << start << " on, along axis " << axis << " of shape " << shape;
  const Variable y = op.Output(x.dtype(), shape.With(along.axis, length));
  MovePart("slice", Move::kTakePart, along.axis, start, x.value(), y.value());
  op.Backward(
      [axis = along.axis, start, x, y](Gradients& g) { MovePart("slice", Move::kAddPart, axis, start, g.Into(x), g.Of(y)); });
  return y;
}

std::vector<Variable> Split(Variable x, int axis, absl::Span<const int64_t> sizes) {
  Op op("split", {x});
  const Shape shape = x.shape();
  const AlongAxis along("split", shape, axis);
  int64_t total = 0;
  for (int64_t size : sizes) {
    WEFT_CHECK_GE(size, 0) << "split: a piece of shape " << shape;
    total += size;
  }
  WEFT_CHECK(total == along.size && !sizes.empty())
      << "split: " << sizes.size() << " pieces of " << total << " places in all, along axis " << axis << " of shape " << shape;
  std::vector<Variable> pieces;
  pieces.reserve(sizes.size());
  int64_t start = 0;
  for (int64_t size : sizes) {
    pieces.push_back(op.Output(x.dtype(), shape.With(along.axis, size)));
    MovePart("split", Move::kTakePart, along.axis, start, x.value(), pieces.back().value());
    start += size;
  }
  if (op.needs_backward()) {
    op.Backward([axis = along.axis, x, ys = op.tape().Copy(absl::MakeConstSpan(pieces))](Gradients& g) {
      const Tensor dx = g.Into(x);
      int64_t start = 0;
      for (const Variable& y : ys) {
        const Tensor dy = g.Of(y);
        if (dy.defined()) MovePart("split", Move::kAddPart, axis, start, dx, dy);
        start += y.shape()[axis];
      }
    });
  }
  return pieces;
}

Variable Concat(absl::Span<const Variable> xs, int axis) {
  WEFT_CHECK(!xs.empty()) << "concat: no input";
  for (const Variable& x : xs) WEFT_CHECK(x.defined()) << "concat: an input is not defined";
  Op op("concat", xs);
  const Shape shape = xs[0].shape();
  const AlongAxis along("concat", shape, axis);
  int64_t total = 0;
  for (const Variable& x : xs) {
    WEFT_CHECK(x.shape().rank() == shape.rank() && x.shape().With(along.axis, along.size) == shape &&
               x.dtype() == xs[0].dtype())
        << "concat: " << xs[0].dtype() << shape << " and " << x.dtype() << x.shape() << " along axis " << axis;
    total += x.shape()[along.axis];
  }
  const Variable y = op.Output(xs[0].dtype(), shape.With(along.axis, total));
  int64_t start = 0;
  for (const Variable& x : xs) {
    MovePart("concat", Move::kPutPart, along.axis, start, y.value(), x.value());
    start += x.shape()[along.axis];
  }
  if (op.needs_backward()) {
    op.Backward([axis = along.axis, inputs = op.tape().Copy(xs), y](Gradients& g) {
      int64_t start = 0;
      for (const Variable& x : inputs) {
        const Tensor dx = g.Into(x);
        if (dx.defined()) MovePart("concat", Move::kAddIntoPart, axis, start, g.Of(y), dx);
        start += x.shape()[axis];
      }
    });
  }
  return y;
}

Variable GatherRows(Variable table, absl::Span<const int32_t> ids) {
  Op op("gather_rows", {table});
  const Shape shape = table.shape();
  WEFT_CHECK_EQ(shape.rank(), 2) << "gather_rows: table of shape " << shape;
  const int64_t width = shape[1], count = static_cast<int64_t>(ids.size());
  for (int64_t i = 0; i < count; ++i) {
    WEFT_CHECK(0 <= ids[i] && ids[i] < shape[0])
        << "gather_rows: id " << ids[i] << " at place " << i << ", table of shape " << shape;
  }
  const Variable y = op.Output(table.dtype(), {count, width});
  op.OutputIsFree();
  const auto moved = static_cast<double>(y.value().bytes());  // not the whole table
  op.Bytes(2 * moved, 3 * moved);
  DispatchFloat("gather_rows", table.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = table.value().data<T>();
    T* to = y.value().data<T>();
    ForRows(count, width, [&](int64_t first, int64_t rows) {
      for (int64_t i = first; i < first + rows; ++i) std::copy_n(from + ids[i] * width, width, to + i * width);
    });
  });
  if (op.needs_backward()) {
    op.Backward([table, y, ids = op.tape().Copy(ids)](Gradients& g) {
      const Tensor grad = g.Into(table), dy = g.Of(y);
      DispatchFloat("gather_rows", grad.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const int64_t width = grad.shape()[1];
        const T* from = dy.data<T>();
        T* to = grad.data<T>();
        // Equal ids meet in the same element, so the tiles are blocks of columns: in each, rows are added in the order of the
        // ids.
        const int64_t columns = dy.elements() > kTileElements ? 128 : std::max<int64_t>(1, width);
        ForTiles(width, columns, [&](int64_t first, int64_t n) {
          for (size_t i = 0; i < ids.size(); ++i) {
            kernels::AddScaled(T(1), from + i * width + first, to + ids[i] * width + first, n);
          }
        });
      });
    });
  }
  return y;
}

}  // namespace weft
