#include <bit>
#include <cstdint>
#include <type_traits>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/broadcast.h"

namespace weft {
namespace {

using kernels::Binary;

// value, or 0 where dy is 0: an upstream 0 stays 0 next to an infinite operand. By bits, since a branch would keep the compiler
// from vectorising the loop (a choice between values is turned into one).
template <class T>
T Guarded(T dy, T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  return std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(value) & -static_cast<Bits>(dy != 0)));
}

// out[i] = f(dy, a, b, y) at element i, but exactly 0 where dy is 0. kAdd adds.
template <bool kAdd, class T, class F>
void Terms(const T* dy, const T* a, int64_t a_step, const T* b, int64_t b_step, const T* y, T* out, int64_t n, const F& f) {
  const auto loop = [&](auto sa, auto sb) {
    for (int64_t i = 0; i < n; ++i) {
      const T term = Guarded(dy[i], f(dy[i], a[i * sa], b[i * sb], y[i]));
      out[i] = kAdd ? out[i] + term : term;
    }
  };
  constexpr std::integral_constant<int64_t, 0> kSame;
  constexpr std::integral_constant<int64_t, 1> kNext;
  if (a_step == 1) {
    b_step == 1 ? loop(kNext, kNext) : loop(kNext, kSame);
  } else {
    b_step == 1 ? loop(kSame, kNext) : loop(kSame, kSame);
  }
}

// Adds the gradient of one operand (0: a, 1: b), whose share of each element of the result is f(dy, a, b, y).
template <class T, class F>
void AddTerms(const Broadcast& plan, int operand, Variable a, Variable b, Variable y, Gradients& g, const F& f) {
  const Tensor grad = g.Into(operand == 0 ? a : b);
  if (!grad.defined()) return;
  const T *dy = g.Of(y).data<T>(), *pa = a.value().data<T>(), *pb = b.value().data<T>(), *py = y.value().data<T>();
  const int64_t a_step = plan.walk(0).step, b_step = plan.walk(1).step;
  if (!plan.Repeats(operand)) {
    T* out = grad.data<T>();
    return plan.Runs([&](int64_t i, int64_t ia, int64_t ib, int64_t n) {
      Terms<true>(dy + i, pa + ia, a_step, pb + ib, b_step, py + i, out + (operand == 0 ? ia : ib), n, f);
    });
  }
  T* terms = g.Scratch(DTypeOf<T>::value, plan.out()).template data<T>();
  plan.Runs([&](int64_t i, int64_t ia, int64_t ib, int64_t n) {
    Terms<false>(dy + i, pa + ia, a_step, pb + ib, b_step, py + i, terms + i, n, f);
  });
  plan.SumRepeats(operand, terms, 1.0, grad, g);
}

// The same for a sum or difference: the share is sign * dy.
template <class T>
void AddCopy(const Broadcast& plan, int operand, Variable x, Variable y, double sign, Gradients& g) {
  const T* dy = g.Of(y).data<T>();
  if (plan.Repeats(operand)) {
    const Tensor grad = g.Into(x);
    if (grad.defined()) plan.SumRepeats(operand, dy, sign, grad, g);
    return;
  }
  const Gradients::Sink dx = g.Onto(x);
  if (!dx.defined()) return;
  T* out = dx.grad.template data<T>();
  plan.Runs([&](int64_t i, int64_t ia, int64_t ib, int64_t n) {
    T* to = out + (operand == 0 ? ia : ib);
    dx.add ? kernels::AddScaled(static_cast<T>(sign), dy + i, to, n) : kernels::Scale(static_cast<T>(sign), dy + i, to, n);
  });
}

Variable Combine(const char* name, Binary kind, Variable a, Variable b) {
  WEFT_CHECK(a.defined() && b.defined()) << name << ": an operand is not defined";
  Op op(name, {a, b});
  WEFT_CHECK(a.dtype() == b.dtype()) << name << ": operands are " << a.dtype() << a.shape() << " and " << b.dtype()
                                     << b.shape();
  const Broadcast plan(name, BroadcastShape(name, a.shape(), b.shape()), a.shape(), b.shape());
  const Tensor va = a.value(), vb = b.value();
  // A sum does not read its operands in backward.
  const bool over_b = (kind == Binary::kAdd || kind == Binary::kSub) && va.shape() == vb.shape();
  const Variable y = over_b ? op.Overwrite(b) : op.Output(a.dtype(), plan.out());
  DispatchFloat(name, a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *pa = va.data<T>(), *pb = vb.data<T>();
    T* out = y.value().data<T>();
    plan.Runs([&](int64_t i, int64_t ia, int64_t ib, int64_t n) {
      kernels::BinaryForward(kind, pa + ia, plan.walk(0).step, pb + ib, plan.walk(1).step, out + i, n);
    });
  });
  op.Backward([kind, plan, a, b, y](Gradients& g) {
    DispatchFloat("arithmetic", y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      switch (kind) {
        case Binary::kAdd:
        case Binary::kSub:
          AddCopy<T>(plan, 1, b, y, kind == Binary::kAdd ? 1.0 : -1.0, g);
          if (a.shape() == y.shape() && g.HandOver(y, a)) break;  // dy is read no more
          AddCopy<T>(plan, 0, a, y, 1.0, g);
          break;
        case Binary::kMul:
          AddTerms<T>(plan, 0, a, b, y, g, [](T dy, T, T b, T) { return dy * b; });
          AddTerms<T>(plan, 1, a, b, y, g, [](T dy, T a, T, T) { return dy * a; });
          break;
        case Binary::kDiv:
          AddTerms<T>(plan, 0, a, b, y, g, [](T dy, T, T b, T) { return dy / b; });
          // a / b^2 as y / b: the square could overflow
          AddTerms<T>(plan, 1, a, b, y, g, [](T dy, T, T b, T y) { return -dy * (y / b); });
          break;
      }
    });
  });
  return y;
}

Variable Multiple(const char* name, Variable x, double factor) {
  Op op(name, {x});
  const Tensor input = x.value();
  const Variable y = op.Overwrite(x);
  DispatchFloat(name, input.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = input.data<T>();
    T* to = y.value().data<T>();
    ForTiles(input.elements(), kTileElements,
             [&](int64_t i, int64_t n) { kernels::Scale(static_cast<T>(factor), from + i, to + i, n); });
  });
  op.Backward([name, x, y, factor](Gradients& g) {
    const Gradients::Sink dx = g.Onto(x);
    DispatchFloat(name, y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* to = dx.grad.template data<T>();
      const T *from = g.Of(y).template data<T>(), c = static_cast<T>(factor);
      ForTiles(dx.grad.elements(), kTileElements, [&](int64_t i, int64_t n) {
        dx.add ? kernels::AddScaled(c, from + i, to + i, n) : kernels::Scale(c, from + i, to + i, n);
      });
    });
  });
  return y;
}

}  // namespace

Variable Add(Variable a, Variable b) { return Combine("add", Binary::kAdd, a, b); }
Variable Sub(Variable a, Variable b) { return Combine("sub", Binary::kSub, a, b); }
Variable Mul(Variable a, Variable b) { return Combine("mul", Binary::kMul, a, b); }
Variable Div(Variable a, Variable b) { return Combine("div", Binary::kDiv, a, b); }
Variable Scale(Variable x, double factor) { return Multiple("scale", x, factor); }
Variable Neg(Variable x) { return Multiple("neg", x, -1.0); }

Variable Cast(Variable x, DType dtype) {
  Op op("cast", {x});
  const Variable y = op.Output(dtype, x.shape());
  // Calls f(from, to) with typed pointers; both directions are needed for both dtypes.
  const auto typed = [](const Tensor& from, const Tensor& to, const auto& f) {
    DispatchFloat("cast", from.dtype(), [&](auto source) {
      DispatchFloat("cast", to.dtype(), [&](auto target) { f(from.data<decltype(source)>(), to.data<decltype(target)>()); });
    });
  };
  typed(x.value(), y.value(), [n = x.shape().elements()](const auto* from, auto* to) {
    using T = std::remove_reference_t<decltype(*to)>;
    ForTiles(n, kTileElements, [&](int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; ++i) to[i] = static_cast<T>(from[i]);
    });
  });
  op.Backward([x, y, typed](Gradients& g) {
    const Tensor dx = g.Into(x);
    typed(g.Of(y), dx, [n = dx.elements()](const auto* from, auto* to) {
      using T = std::remove_reference_t<decltype(*to)>;
      ForTiles(n, kTileElements, [&](int64_t first, int64_t count) {
        for (int64_t i = first; i < first + count; ++i) to[i] += static_cast<T>(from[i]);
      });
    });
  });
  return y;
}

}  // namespace weft
