#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/tiles.h"

namespace weft {
namespace {

using kernels::Unary;

Variable Apply(const char* name, Unary function, Variable x) {
  Op op(name, {x});
  const Variable y = op.Output(x.dtype(), x.shape());
  DispatchFloat(name, x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.value().data<T>();
    T* to = y.value().data<T>();
    ForTiles(x.shape().elements(), kTileElements,
             [&](int64_t i, int64_t n) { kernels::UnaryForward(function, from + i, to + i, n); });
  });
  op.Backward([name, function, x, y](Gradients& g) {
    const Tensor dx = g.Into(x), dy = g.Of(y);
    DispatchFloat(name, dx.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *px = x.value().data<T>(), *py = y.value().data<T>(), *upstream = dy.data<T>();
      T* to = dx.data<T>();
      ForTiles(dx.elements(), kTileElements,
               [&](int64_t i, int64_t n) { kernels::UnaryBackward(function, px + i, py + i, upstream + i, to + i, n); });
    });
  });
  return y;
}

}  // namespace

Variable Exp(Variable x) { return Apply("exp", Unary::kExp, x); }
Variable Log(Variable x) { return Apply("log", Unary::kLog, x); }
Variable Sqrt(Variable x) { return Apply("sqrt", Unary::kSqrt, x); }
Variable Square(Variable x) { return Apply("square", Unary::kSquare, x); }
Variable Tanh(Variable x) { return Apply("tanh", Unary::kTanh, x); }
Variable Sigmoid(Variable x) { return Apply("sigmoid", Unary::kSigmoid, x); }
Variable Relu(Variable x) { return Apply("relu", Unary::kRelu, x); }
Variable Gelu(Variable x) { return Apply("gelu", Unary::kGelu, x); }
Variable GeluTanh(Variable x) { return Apply("gelu_tanh", Unary::kGeluTanh, x); }
Variable Silu(Variable x) { return Apply("silu", Unary::kSilu, x); }

}  // namespace weft
