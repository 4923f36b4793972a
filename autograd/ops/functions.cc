#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/tiles.h"

namespace weft {
namespace {

using kernels::Unary;

// What backward needs is x, y or, of functions that share most of their work with it, the slope: then forward writes it into
// the tape, and backward is one multiply-add an element.
Variable Apply(const char* name, Unary function, Variable x) {
  Op op(name, {x});
  const Tensor input = x.value();
  const kernels::BackwardReads reads = kernels::WhatBackwardReads(function);
  const bool reads_x = reads == kernels::BackwardReads::kX;
  const Variable y = reads_x ? op.Output(input.dtype(), input.shape()) : op.Overwrite(x);
  Tensor source = reads_x ? input : y.value();
  const bool keep_slope = reads == kernels::BackwardReads::kSlope && op.needs_backward();
  if (keep_slope) source = op.tape().Allocate(input.dtype(), input.shape());
  DispatchFloat(name, input.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = input.data<T>();
    T *to = y.value().data<T>(), *slope = source.data<T>();
    ForTiles(input.elements(), kTileElements, [&](int64_t i, int64_t n) {
      if (keep_slope) {
        kernels::UnaryForwardWithSlope(function, from + i, to + i, slope + i, n);
      } else {
        kernels::UnaryForward(function, from + i, to + i, n);
      }
    });
  });
  op.Backward([name, function, source, keep_slope, x, y](Gradients& g) {
    const Tensor dy = g.Of(y);
    const Gradients::Sink dx = g.HandOver(y, x) ? Gradients::Sink{dy, false} : g.Onto(x);
    DispatchFloat(name, dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *read = source.data<T>(), *upstream = dy.data<T>();
      T* to = dx.grad.template data<T>();
      ForTiles(dy.elements(), kTileElements,
               [&](int64_t i, int64_t n) { kernels::UnaryBackward(function, read + i, upstream + i, to + i, n, dx.add); });
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
