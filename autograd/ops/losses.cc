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

// Logits that LinearCrossEntropy holds for its backward pass, at most; beyond it computes them a second time.
constexpr int64_t kMaxLogitBytes = 128 << 20;
// And then in chunks of about so many.
constexpr int64_t kChunkElements = int64_t{1} << 22;

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
  const absl::Span<const int32_t> ids = op.tape().Copy(targets);
  // With a gradient to come, the logits become their own gradient and are held, if they are not too many. Else those of some
  // rows at a time are computed, in backward once more. A row's bits are the same: f32 products do not depend on the number of
  // rows.
  const bool training = op.needs_backward();
  const bool keep = training && rows * classes * DTypeSize(x.dtype()) <= kMaxLogitBytes;
  const int64_t chunk =
      keep ? rows : std::min(rows, std::clamp<int64_t>(kChunkElements / std::max<int64_t>(classes, 1), 64, 256));
  const Tensor logits = op.tape().Allocate(x.dtype(), {chunk, classes});
  // Rows start .. start + n - 1: their losses, and with `gradient` p - q in `logits`.
  const auto rows_of_loss = [=](int64_t start, int64_t n, bool gradient) {
    DispatchFloat("linear_cross_entropy", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      kernels::GemmOptions<T> gemm;
      if (bias.defined()) gemm.bias = bias.value().data<T>();
      T* const ps = logits.data<T>();
      Gemm(Trans::kNo, Trans::kYes, n, classes, width, x.value().data<T>() + start * width, width, weight.value().data<T>(),
           width, ps, classes, gemm);
      ForRows(n, classes, [&](int64_t first, int64_t count) {
        kernels::CrossEntropyRows(ps + first * classes, classes, ids.data() + start + first, options.ignore, count, classes,
                                  options.smoothing, gradient, results.losses + start + first, results.argmax + start + first);
      });
    });
  };
  for (int64_t start = 0; start < rows; start += chunk) rows_of_loss(start, std::min(chunk, rows - start), keep);
  op.Flops(2.0 * static_cast<double>(rows * classes * width), (keep ? 4.0 : 6.0) * static_cast<double>(rows * classes * width));
  op.Backward([=](Gradients& g) {
    const double upstream = *g.Of(loss).data<double>();
    DispatchFloat("linear_cross_entropy", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Gradients::Sink dx = g.Onto(x), dw = g.Onto(weight);
      const Tensor db = g.Into(bias);
      T* const ps = logits.data<T>();  // p - q: the gradient of the logits
      for (int64_t start = 0; start < rows; start += chunk) {
        const int64_t n = std::min(chunk, rows - start);
        if (!keep) rows_of_loss(start, n, true);
        if (upstream != 1) {  // in place: a backward function runs once
          ForRows(n, classes, [&](int64_t first, int64_t count) {
            kernels::Scale(static_cast<T>(upstream), ps + first * classes, ps + first * classes, count * classes);
          });
        }
        kernels::GemmOptions<T> gemm;
        if (dx.defined()) {
          gemm.accumulate = dx.add;
          Gemm(Trans::kNo, Trans::kNo, n, width, classes, ps, classes, weight.value().data<T>(), width,
               dx.grad.data<T>() + start * width, width, gemm);
        }
        if (dw.defined()) {
          gemm.accumulate = dw.add || start > 0;
          Gemm(Trans::kYes, Trans::kNo, classes, width, n, ps, classes, x.value().data<T>() + start * width, width,
               dw.grad.data<T>(), width, gemm);
        }
        if (db.defined()) AddColumnSums(ps, n, classes, db.data<T>());
      }
    });
    g.Recycle(logits);
  });
  return Collect(loss, results, targets, options.ignore);
}

}  // namespace weft
