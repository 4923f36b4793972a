#include "autograd/kernels/softmax.h"

#include "autograd/ops.h"
#include "autograd/ops/tiles.h"

namespace weft {
namespace {

// Both functions work row by row over the last dimension; backward needs y and dy only.
Variable RowWise(const char* name, Variable x, bool logarithm) {
  Op op(name, {x});
  WEFT_CHECK_GE(x.shape().rank(), 1) << name << ": needs a last dimension, got shape " << x.shape();
  const Variable y = op.Output(x.dtype(), x.shape());
  DispatchFloat(name, x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = x.shape().width();
    const T* from = x.value().data<T>();
    T* to = y.value().data<T>();
    if (width == 0) return;
    ForRows(x.shape().rows(), width, [&](int64_t first, int64_t rows) {
      const int64_t i = first * width;
      if (logarithm) {
        kernels::LogSoftmaxForward(from + i, to + i, rows, width);
      } else {
        kernels::SoftmaxForward(from + i, to + i, rows, width);
      }
    });
  });
  op.Backward([name, logarithm, x, y](Gradients& g) {
    const Tensor dx = g.Into(x), dy = g.Of(y);
    DispatchFloat(name, dx.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const int64_t width = dx.shape().width();
      if (width == 0) return;
      const T *result = y.value().data<T>(), *upstream = dy.data<T>();
      T* to = dx.data<T>();
      ForRows(dx.shape().rows(), width, [&](int64_t first, int64_t rows) {
        const int64_t i = first * width;
        if (logarithm) {
          kernels::LogSoftmaxBackward(result + i, upstream + i, to + i, rows, width);
        } else {
          kernels::SoftmaxBackward(result + i, upstream + i, to + i, rows, width);
        }
      });
    });
  });
  return y;
}

}  // namespace

Variable Softmax(Variable x) { return RowWise("softmax", x, false); }
Variable LogSoftmax(Variable x) { return RowWise("log_softmax", x, true); }

}  // namespace weft
