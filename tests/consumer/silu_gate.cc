#include "silu_gate.h"

#include <cmath>

#include "autograd/op_checks.h"

namespace consumer {

weft::Variable SiluGate(weft::Variable a, weft::Variable b) {
  WEFT_CHECK(a.shape() == b.shape() && a.dtype() == b.dtype())
      << "silu_gate: a is " << a.dtype() << a.shape() << ", b is " << b.dtype() << b.shape();
  weft::Op op("silu_gate", {a, b});
  const weft::Variable y = op.Output(a.dtype(), a.shape());
  weft::DispatchFloat("silu_gate", a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *av = a.value().data<T>(), *bv = b.value().data<T>();
    T* yv = y.value().data<T>();
    for (int64_t i = 0; i < a.value().elements(); ++i) yv[i] = av[i] / (1 + std::exp(-av[i])) * bv[i];
  });
  op.Backward([a, b, y](weft::Gradients& gradients) {
    weft::DispatchFloat("silu_gate", a.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *av = a.value().data<T>(), *bv = b.value().data<T>(), *dy = gradients.Of(y).data<T>();
      const int64_t n = a.value().elements();
      if (const weft::Tensor da = gradients.Into(a); da.defined()) {
        for (int64_t i = 0; i < n; ++i) {
          const T s = 1 / (1 + std::exp(-av[i]));
          da.data<T>()[i] += dy[i] * bv[i] * s * (1 + av[i] * (1 - s));
        }
      }
      if (const weft::Tensor db = gradients.Into(b); db.defined()) {
        for (int64_t i = 0; i < n; ++i) db.data<T>()[i] += dy[i] * av[i] / (1 + std::exp(-av[i]));
      }
    });
  });
  return y;
}

// `my_weft gradcheck` knows the op from here on.
const weft::OpCheckRegistration kSiluGateCheck(weft::MakeOpCheck("silu_gate", {{"a", {3, 5}}, {"b", {3, 5}}},
                                                                 [](auto x) { return SiluGate(x[0], x[1]); }));

}  // namespace consumer
