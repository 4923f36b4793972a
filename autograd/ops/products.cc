#include "autograd/kernels/gemm.h"
#include "autograd/ops.h"
#include "autograd/ops/column_sums.h"

namespace weft {
namespace {

using kernels::Gemm;
using kernels::Trans;

Trans Flip(bool transposed) { return transposed ? Trans::kNo : Trans::kYes; }
Trans Keep(bool transposed) { return transposed ? Trans::kYes : Trans::kNo; }

// A stack of `batch` matrices; a shared one (step 0) is the same for all.
template <class T>
struct Stack {
  T* data;
  int64_t width;  // of a stored row
  int64_t step;   // elements from one matrix to the next, or 0

  T* At(int64_t i) const { return data + i * step; }
};

// c(i)[m, n] = op(a(i))[m, k] op(b(i))[k, n], or += it. A shared c receives the sum over i, one after another.
template <class T>
void Multiply(int64_t batch, Trans ta, Trans tb, int64_t m, int64_t n, int64_t k, Stack<const T> a, Stack<const T> b,
              Stack<T> c, bool accumulate) {
  // Below this many multiplications a product does not split over threads by itself, so its neighbours run beside it.
  constexpr int64_t kSmall = int64_t{1} << 20;
  const int64_t work = m * n * k;
  const auto one = [&](int64_t i, bool parallel) {
    kernels::GemmOptions<T> options;
    options.accumulate = accumulate;
    options.parallel = parallel;
    Gemm(ta, tb, m, n, k, a.At(i), a.width, b.At(i), b.width, c.At(i), c.width, options);
  };
  if (batch > 1 && c.step != 0 && work <= kSmall && work * batch > kSmall / 16) {
    // Tiles of about 64 K multiplications.
    const int64_t per_tile = std::max<int64_t>(1, kSmall / 16 / std::max<int64_t>(work, 1));
    ParallelFor((batch + per_tile - 1) / per_tile, [&](int64_t tile) {
      for (int64_t i = tile * per_tile; i < std::min(batch, (tile + 1) * per_tile); ++i) one(i, false);
    });
  } else {
    for (int64_t i = 0; i < batch; ++i) one(i, true);
  }
}

// How MatMul's operands fit together.
struct MatMulPlan {
  bool ta, tb;
  int64_t batch = 1, m, k, n;
  Shape result;
};

MatMulPlan PlanMatMul(const Shape& a, const Shape& b, bool ta, bool tb) {
  const auto refuse = [&](const char* why) {
    WEFT_CHECK(false) << "matmul: " << a << (ta ? "^T" : "") << " x " << b << (tb ? "^T" : "") << ": " << why;
  };
  if (a.rank() < 2 || b.rank() < 2) refuse("needs rank 2 to 4");
  MatMulPlan plan;
  plan.ta = ta;
  plan.tb = tb;
  plan.m = a[ta ? -1 : -2];
  plan.k = a[ta ? -2 : -1];
  plan.n = b[tb ? -2 : -1];
  if (b[tb ? -1 : -2] != plan.k) refuse("inner dimensions differ");
  if (a.rank() > 2 && b.rank() > 2 && a.dims().first(a.rank() - 2) != b.dims().first(b.rank() - 2)) {
    refuse("leading dimensions differ");
  }
  const Shape& lead = a.rank() > 2 ? a : b;
  for (int64_t d : lead.dims().first(lead.rank() - 2)) plan.batch *= d;
  plan.result = lead.With(-2, plan.m).With(-1, plan.n);
  // A stack of untransposed matrices times one shared matrix is a single product.
  if (a.rank() > 2 && b.rank() == 2 && !ta) {
    plan.m *= plan.batch;
    plan.batch = 1;
  }
  return plan;
}

template <class T>
Stack<const T> StackOf(const Tensor& x, bool shared) {
  const int64_t width = x.shape()[-1];
  return {x.data<T>(), width, shared ? 0 : x.shape()[-2] * width};
}

template <class T>
Stack<T> WritableStackOf(const Tensor& x, bool shared) {
  const int64_t width = x.shape()[-1];
  return {x.data<T>(), width, shared ? 0 : x.shape()[-2] * width};
}

}  // namespace

Variable MatMul(Variable a, Variable b, bool transpose_a, bool transpose_b) {
  Op op("matmul", {a, b});
  WEFT_CHECK(a.dtype() == b.dtype()) << "matmul: " << a.dtype() << a.shape() << " x " << b.dtype() << b.shape();
  const MatMulPlan plan = PlanMatMul(a.shape(), b.shape(), transpose_a, transpose_b);
  const bool shared_a = a.shape().rank() == 2, shared_b = b.shape().rank() == 2;
  const double flops = 2.0 * plan.batch * plan.m * plan.n * plan.k;
  op.Flops(flops, flops * (a.requires_grad() + b.requires_grad()));
  Variable y = op.Output(a.dtype(), plan.result);
  DispatchFloat("matmul", a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Multiply<T>(plan.batch, Keep(plan.ta), Keep(plan.tb), plan.m, plan.n, plan.k, StackOf<T>(a.value(), shared_a),
                StackOf<T>(b.value(), shared_b), WritableStackOf<T>(y.value(), false), false);
  });
  op.Backward([=](Gradients& g) {
    DispatchFloat("matmul", a.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Stack<const T> dy = StackOf<T>(g.Of(y), false);
      const Stack<const T> as = StackOf<T>(a.value(), shared_a), bs = StackOf<T>(b.value(), shared_b);
      const int64_t batch = plan.batch, m = plan.m, n = plan.n, k = plan.k;
      if (Tensor grad = g.Into(a); grad.defined()) {
        // dA = dY op(B)^T, or for a stored transposed one dA^T = op(B) dY^T.
        const Stack<T> da = WritableStackOf<T>(grad, shared_a);
        if (!plan.ta) {
          Multiply<T>(batch, Trans::kNo, Flip(plan.tb), m, k, n, dy, bs, da, true);
        } else {
          Multiply<T>(batch, Keep(plan.tb), Trans::kYes, k, m, n, bs, dy, da, true);
        }
      }
      if (Tensor grad = g.Into(b); grad.defined()) {
        // dB = op(A)^T dY, or dB^T = dY^T op(A).
        const Stack<T> db = WritableStackOf<T>(grad, shared_b);
        if (!plan.tb) {
          Multiply<T>(batch, Flip(plan.ta), Trans::kNo, k, n, m, as, dy, db, true);
        } else {
          Multiply<T>(batch, Trans::kYes, Keep(plan.ta), n, k, m, dy, as, db, true);
        }
      }
    });
  });
  return y;
}

Variable Linear(Variable x, Variable weight, Variable bias) {
  Op op("linear", {x, weight, bias});
  const Shape xs = x.shape();
  const Shape ws = weight.shape();
  WEFT_CHECK(ws.rank() == 2 && xs.rank() >= 1 && xs.width() == ws[1] && x.dtype() == weight.dtype())
      << "linear: x " << x.dtype() << xs << " does not fit weight " << weight.dtype() << ws << " (out, in)";
  const int64_t rows = xs.rows(), in = ws[1], out = ws[0];
  WEFT_CHECK(!bias.defined() || (bias.shape() == Shape({out}) && bias.dtype() == x.dtype()))
      << "linear: bias " << bias.dtype() << bias.shape() << " does not fit weight " << weight.dtype() << ws << " (out, in)";
  op.Flops(2.0 * rows * in * out, 2.0 * rows * in * out * (x.requires_grad() + weight.requires_grad()));
  Variable y = op.Output(x.dtype(), xs.With(-1, out));
  op.OutputIsFree();
  DispatchFloat("linear", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::GemmOptions<T> options;
    if (bias.defined()) options.bias = bias.value().data<T>();
    Gemm(Trans::kNo, Trans::kYes, rows, out, in, x.value().data<T>(), in, weight.value().data<T>(), in, y.value().data<T>(),
         out, options);
  });
  op.Backward([=](Gradients& g) {
    DispatchFloat("linear", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* dy = g.Of(y).data<T>();
      kernels::GemmOptions<T> options;
      if (const auto dx = g.Onto(x); dx.defined()) {  // dx = dy W
        options.accumulate = dx.add;
        Gemm(Trans::kNo, Trans::kNo, rows, in, out, dy, out, weight.value().data<T>(), in, dx.grad.template data<T>(), in,
             options);
      }
      if (const auto dw = g.Onto(weight); dw.defined()) {  // dW = dy^T x
        options.accumulate = dw.add;
        Gemm(Trans::kYes, Trans::kNo, out, in, rows, dy, out, x.value().data<T>(), in, dw.grad.template data<T>(), in, options);
      }
      if (Tensor db = g.Into(bias); db.defined()) AddColumnSums(dy, rows, out, db.data<T>());
    });
  });
  return y;
}

}  // namespace weft
