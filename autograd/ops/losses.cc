#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/loss.h"
#include "autograd/ops.h"
#include "autograd/ops/column_sums.h"
#include "autograd/ops/tiles.h"

namespace weft {
namespace {

using kernels::Gemm;
using kernels::Trans;

// What both ops need of a row of logits, and where it goes. Memory is the tape's.
struct RowResults {
  double* losses;   // [N]
  int32_t* argmax;  // [N]
};

void CheckTargets(const char* op, absl::Span<const int32_t> targets, int64_t rows, int64_t classes,
                  const CrossEntropyOptions& options) {
  WEFT_CHECK(static_cast<int64_t>(targets.size()) == rows)
      << op << ": " << targets.size() << " targets for " << rows << " rows of logits";
  WEFT_CHECK(options.smoothing >= 0 && options.smoothing < 1)
      << op << ": smoothing " << options.smoothing << " is not in [0, 1)";
  WEFT_CHECK(rows == 0 || classes > 0) << op << ": " << rows << " rows of logits without a class";
  for (int64_t row = 0; row < rows; ++row) {
    WEFT_CHECK((targets[row] >= 0 && targets[row] < classes) || targets[row] == options.ignore)
        << op << ": target " << targets[row] << " of row " << row << " is not in 0.." << classes - 1 << ", nor the ignored "
        << options.ignore;
  }
}

RowResults AllocateResults(Tape& tape, int64_t rows) {
  return {tape.Allocate(DType::kF64, {rows}).data<double>(), tape.Allocate(DType::kI32, {rows}).data<int32_t>()};
}

// Sums the rows' results, one after another, into `loss` and the counts.
CrossEntropyResult Collect(Variable loss, const RowResults& rows, absl::Span<const int32_t> targets, int32_t ignore) {
  CrossEntropyResult result;
  result.loss = loss;
  result.row_losses = {rows.losses, targets.size()};
  double sum = 0;
  for (size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] == ignore) continue;
    sum += rows.losses[row];
    ++result.targets;
    if (rows.argmax[row] == targets[row]) ++result.correct;
  }
  *loss.value().data<double>() = sum;
  return result;
}

}  // namespace

CrossEntropyResult CrossEntropy(Variable logits, absl::Span<const int32_t> targets, const CrossEntropyOptions& options) {
  Op op("cross_entropy", {logits});
  const Shape shape = logits.shape();
  WEFT_CHECK(shape.rank() == 2) << "cross_entropy: logits " << shape << " are not [N, V]";
  const int64_t rows = shape[0], classes = shape[1];
  CheckTargets("cross_entropy", targets, rows, classes, options);
  Variable loss = op.Output(DType::kF64, {});
  const RowResults results = AllocateResults(op.tape(), rows);
  // The kernel turns logits into their gradient, in a copy.
  const bool keep = op.needs_backward();
  const Tensor gradient = keep ? op.tape().Allocate(logits.dtype(), shape) : logits.value();
  DispatchFloat("cross_entropy", logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* xs = logits.value().data<T>();
    T* ps = gradient.data<T>();
    ForRows(rows, classes, [&](int64_t first, int64_t count) {
      if (keep) std::copy_n(xs + first * classes, count * classes, ps + first * classes);
      kernels::CrossEntropyRows(ps + first * classes, classes, targets.data() + first, options.ignore, count, classes,
                                options.smoothing, keep, results.losses + first, results.argmax + first);
    });
  });
  op.Backward([=](Gradients& g) {
    const Tensor dx = g.Into(logits);
    if (!dx.defined()) return;
    const double upstream = *g.Of(loss).data<double>();
    DispatchFloat("cross_entropy", logits.dtype(), [&](auto zero) {
      using T = decltype(zero);
      ForRows(rows, classes, [&](int64_t first, int64_t count) {
        kernels::AddScaled(static_cast<T>(upstream), gradient.data<T>() + first * classes, dx.data<T>() + first * classes,
                           count * classes);
      });
    });
  });
  return Collect(loss, results, targets, options.ignore);
}

CrossEntropyResult LinearCrossEntropy(Variable x, Variable weight, Variable bias, absl::Span<const int32_t> targets,
                                      const CrossEntropyOptions& options) {
  Op op("linear_cross_entropy", {x, weight, bias});
  const Shape xs = x.shape(), ws = weight.shape();
  WEFT_CHECK(xs.rank() == 2 && ws.rank() == 2 && xs[1] == ws[1] && x.dtype() == weight.dtype())
      << "linear_cross_entropy: x " << x.dtype() << xs << " does not fit weight " << weight.dtype() << ws << " (V, D)";
  const int64_t rows = xs[0], width = xs[1], classes = ws[0];
  WEFT_CHECK(!bias.defined() || (bias.shape() == Shape({classes}) && bias.dtype() == x.dtype()))
      << "linear_cross_entropy: bias " << bias.dtype() << bias.shape() << " does not fit weight " << weight.dtype() << ws;
  CheckTargets("linear_cross_entropy", targets, rows, classes, options);
  const double flops = 2.0 * rows * width * classes;
  op.Flops(flops, flops * (x.requires_grad() + weight.requires_grad()));
  Variable loss = op.Output(DType::kF64, {});
  const RowResults results = AllocateResults(op.tape(), rows);
  // With a gradient to come, all logits are held, else those of a chunk of rows. A row's bits are the same (f32 products do not
  // depend on the number of rows).
  constexpr int64_t kChunkElements = int64_t{1} << 22;
  const bool keep = op.needs_backward();
  const int64_t chunk =
      keep ? rows : std::min(rows, std::clamp<int64_t>(kChunkElements / std::max<int64_t>(classes, 1), 64, 256));
  const Tensor logits = op.tape().Allocate(x.dtype(), {chunk, classes});
  DispatchFloat("linear_cross_entropy", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::GemmOptions<T> gemm;
    if (bias.defined()) gemm.bias = bias.value().data<T>();
    T* const ps = logits.data<T>();
    for (int64_t start = 0; start < rows; start += chunk) {
      const int64_t n = std::min(chunk, rows - start);
      Gemm(Trans::kNo, Trans::kYes, n, classes, width, x.value().data<T>() + start * width, width, weight.value().data<T>(),
           width, ps, classes, gemm);
      ForRows(n, classes, [&](int64_t first, int64_t count) {
        kernels::CrossEntropyRows(ps + first * classes, classes, targets.data() + start + first, options.ignore, count, classes,
                                  options.smoothing, keep, results.losses + start + first, results.argmax + start + first);
      });
    }
  });
  op.Backward([=](Gradients& g) {
    const double upstream = *g.Of(loss).data<double>();
    DispatchFloat("linear_cross_entropy", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* const ps = logits.data<T>();  // p - q: the gradient of the logits
      if (upstream != 1) {             // in place: a backward function runs once
        ForRows(rows, classes, [&](int64_t first, int64_t count) {
          kernels::Scale(static_cast<T>(upstream), ps + first * classes, ps + first * classes, count * classes);
        });
      }
      kernels::GemmOptions<T> add;
      add.accumulate = true;
      if (Tensor dx = g.Into(x); dx.defined()) {
        Gemm(Trans::kNo, Trans::kNo, rows, width, classes, ps, classes, weight.value().data<T>(), width, dx.data<T>(), width,
             add);
      }
      if (Tensor dw = g.Into(weight); dw.defined()) {
        Gemm(Trans::kYes, Trans::kNo, classes, width, rows, ps, classes, x.value().data<T>(), width, dw.data<T>(), width, add);
      }
      if (Tensor db = g.Into(bias); db.defined()) AddColumnSums(ps, rows, classes, db.data<T>());
    });
  });
  return Collect(loss, results, targets, options.ignore);
}

}  // namespace weft
