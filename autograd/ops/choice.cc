#include <cmath>

#include "autograd/ops.h"
#include "autograd/ops/broadcast.h"

namespace weft {
namespace {

// Adds the gradient of one operand of where: dy at the elements that took it, exactly 0 elsewhere (also where dy is not
// finite).
template <class T>
void AddTaken(const Broadcast& plan, int operand, const int32_t* condition, Variable x, Variable y, Gradients& g) {
  const Tensor grad = g.Into(x);
  if (!grad.defined()) return;
  const T* dy = g.Of(y).data<T>();
  const bool taken = operand == 0;
  if (!plan.Repeats(operand)) {
    T* out = grad.data<T>();
    return plan.Runs([&](int64_t at, int64_t ia, int64_t ib, int64_t n) {
      T* to = out + (operand == 0 ? ia : ib);
      for (int64_t i = 0; i < n; ++i) to[i] += (condition[at + i] != 0) == taken ? dy[at + i] : T(0);
    });
  }
  T* terms = g.Scratch(DTypeOf<T>::value, plan.out()).template data<T>();
  plan.Runs([&](int64_t at, int64_t, int64_t, int64_t n) {
    for (int64_t i = at; i < at + n; ++i) terms[i] = (condition[i] != 0) == taken ? dy[i] : T(0);
  });
  plan.SumRepeats(operand, terms, 1.0, grad, g);
}

}  // namespace

Variable Where(const Tensor& condition, Variable a, Variable b) {
  WEFT_CHECK(a.defined() && b.defined()) << "where: an operand is not defined";
  Op op("where", {a, b});
  WEFT_CHECK(condition.defined() && condition.dtype() == DType::kI32) << "where: the condition must be i32";
  WEFT_CHECK(a.dtype() == b.dtype()) << "where: operands are " << a.dtype() << a.shape() << " and " << b.dtype() << b.shape();
  const Broadcast plan("where", condition.shape(), a.shape(), b.shape());
  const Variable y = op.Output(a.dtype(), plan.out());
  const int32_t* chosen = condition.data<int32_t>();
  DispatchFloat("where", a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *pa = a.value().data<T>(), *pb = b.value().data<T>();
    T* out = y.value().data<T>();
    const int64_t a_step = plan.walk(0).step, b_step = plan.walk(1).step;
    plan.Runs([&](int64_t at, int64_t ia, int64_t ib, int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[at + i] = chosen[at + i] != 0 ? pa[ia + i * a_step] : pb[ib + i * b_step];
    });
  });
  if (op.needs_backward()) {
    const int32_t* kept = op.tape().Copy(absl::Span<const int32_t>(condition.span<int32_t>())).data();
    op.Backward([plan, kept, a, b, y](Gradients& g) {
      DispatchFloat("where", y.dtype(), [&](auto zero) {
        using T = decltype(zero);
        AddTaken<T>(plan, 0, kept, a, y, g);
        AddTaken<T>(plan, 1, kept, b, y, g);
      });
    });
  }
  return y;
}

Variable MaskedFill(Variable x, const Tensor& mask, double value) {
  Op op("masked_fill", {x});
  if (std::isinf(value)) op.OutputMayBeInfinite();
  WEFT_CHECK(mask.defined() && mask.dtype() == DType::kI32) << "masked_fill: the mask must be i32";
  const Broadcast plan("masked_fill", x.shape(), x.shape(), mask.shape());
  const Variable y = op.Output(x.dtype(), x.shape());
  const int64_t step = plan.walk(1).step;
  const int32_t* masked = mask.data<int32_t>();
  DispatchFloat("masked_fill", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *from = x.value().data<T>(), fill = static_cast<T>(value);
    T* to = y.value().data<T>();
    plan.Runs([&](int64_t at, int64_t, int64_t im, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[at + i] = masked[im + i * step] != 0 ? fill : from[at + i];
    });
  });
  if (op.needs_backward()) {
    const int32_t* kept = op.tape().Copy(absl::Span<const int32_t>(mask.span<int32_t>())).data();
    op.Backward([plan, step, kept, x, y](Gradients& g) {
      const Tensor dx = g.Into(x), dy = g.Of(y);
      DispatchFloat("masked_fill", dx.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* from = dy.data<T>();
        T* to = dx.data<T>();
        plan.Runs([&](int64_t at, int64_t, int64_t im, int64_t n) {
          for (int64_t i = 0; i < n; ++i) to[at + i] += kept[im + i * step] != 0 ? T(0) : from[at + i];
        });
      });
    });
  }
  return y;
}

}  // namespace weft
