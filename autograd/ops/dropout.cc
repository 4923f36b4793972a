#include "autograd/kernels/dropout.h"

#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/tiles.h"

namespace weft {
namespace {

void CheckSequences(Variable x, Sequences sequences) {
  WEFT_CHECK(x.shape().rank() == 2) << "dropout: x " << x.shape() << " is not [N, D]";
  int64_t end = 0;
  for (const Sequence& s : sequences) {
    WEFT_CHECK(s.start >= end && s.length >= 0)
        << "dropout: sequences must be disjoint and in ascending order; one starts at row " << s.start
        << ", the one before it ends at " << end;
    end = s.start + s.length;
  }
  WEFT_CHECK_LE(end, x.shape()[0]) << "dropout: sequences reach beyond x " << x.shape();
}

// Cuts rows first .. last - 1 at the borders of sequences and calls inside(row, count, sequence) or outside(row, count) for
// each part.
template <class Inside, class Outside>
void ForParts(Sequences sequences, int64_t first, int64_t last, Inside&& inside, Outside&& outside) {
  const auto end_of = [](const Sequence& s) { return int64_t{s.start} + s.length; };
  auto s = std::partition_point(sequences.begin(), sequences.end(), [&](const Sequence& s) { return end_of(s) <= first; });
  for (int64_t row = first; row < last;) {
    while (s != sequences.end() && end_of(*s) <= row) ++s;
    if (s != sequences.end() && s->start <= row) {
      const int64_t end = std::min(last, end_of(*s));
      inside(row, end - row, *s);
      row = end;
    } else {
      const int64_t end = s == sequences.end() ? last : std::min<int64_t>(last, s->start);
      outside(row, end - row);
      row = end;
    }
  }
}

// Number of the first element of `row` in its sequence's list of random words.
uint64_t FirstElement(const Sequence& s, int64_t row, int64_t width) {
  return static_cast<uint64_t>(row - s.start + s.position) * static_cast<uint64_t>(width);
}

}  // namespace

Variable Dropout(Variable x, Sequences sequences, double p, RandomKey key) {
  WEFT_CHECK(p >= 0 && p <= 1) << "dropout: probability " << p << " is not in [0, 1]";
  if (p == 0) return x;
  Op op("dropout", {x});
  CheckSequences(x, sequences);
  Variable y = op.Output(x.dtype(), x.shape());
  op.OutputIsFree();
  const int64_t rows = x.shape()[0], width = x.shape()[1];
  DispatchFloat("dropout", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* xs = x.value().data<T>();
    T* ys = y.value().data<T>();
    ForRows(rows, width, [&](int64_t first, int64_t count) {
      ForParts(
          sequences, first, first + count,
          [&](int64_t row, int64_t n, const Sequence& s) {
            kernels::DropoutForward(key.Fold(s.id).bits, FirstElement(s, row, width), p, xs + row * width, ys + row * width,
                                    n * width);
          },
          [&](int64_t row, int64_t n) { std::copy_n(xs + row * width, n * width, ys + row * width); });
    });
  });
  const Sequences kept = op.needs_backward() ? op.tape().Copy(sequences) : Sequences();
  op.Backward([=](Gradients& g) {
    const Tensor upstream = g.Of(y);
    const bool in_place = g.HandOver(y, x);
    const Tensor grad = in_place ? upstream : g.Into(x);
    if (!grad.defined()) return;
    DispatchFloat("dropout", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* dy = upstream.data<T>();
      T* dx = grad.data<T>();
      ForRows(rows, width, [&](int64_t first, int64_t count) {
        ForParts(
            kept, first, first + count,
            [&](int64_t row, int64_t n, const Sequence& s) {
              const uint64_t bits = key.Fold(s.id).bits;
              const T* from = dy + row * width;
              T* to = dx + row * width;
              if (in_place) {  // what was dropped of x is dropped of its gradient
                kernels::DropoutForward(bits, FirstElement(s, row, width), p, from, to, n * width);
              } else {
                kernels::DropoutBackward(bits, FirstElement(s, row, width), p, from, to, n * width);
              }
            },
            [&](int64_t row, int64_t n) {
              if (!in_place) kernels::AddScaled(T(1), dy + row * width, dx + row * width, n * width);
            });
      });
    });
  });
  return y;
}

}  // namespace weft
