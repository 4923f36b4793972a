// Broadcasting of two operands into one result, as in NumPy: shapes are aligned at the last dimension, and a missing or 1-sized
// dimension is repeated. A Broadcast is the plan of one such loop: neighbouring dimensions that all operands walk alike are
// merged, so equal shapes are one row, [N, D] with [D] is N rows of D, a scalar is one row with step 0. Plain data, captured by
// backward functions. Internal to autograd/ops.
#ifndef WEFT_AUTOGRAD_OPS_BROADCAST_H_
#define WEFT_AUTOGRAD_OPS_BROADCAST_H_

#include <cstdint>

#include "autograd/ops/tiles.h"
#include "autograd/tape.h"

namespace weft {

// The result's shape. REQUIRES: the shapes broadcast; the message of a failure names `op` and both.
Shape BroadcastShape(const char* op, const Shape& a, const Shape& b);

class Broadcast {
 public:
  // How an operand is walked: element i of row (r0, r1, r2) is at r0 * outer[0] + r1 * outer[1] + r2 * outer[2] + i * step.
  struct Walk {
    int64_t outer[3] = {0, 0, 0};
    int64_t step = 0;      // 0 or 1
    int64_t elements = 0;  // of the operand
  };

  // REQUIRES: a and b broadcast to `out`.
  Broadcast(const char* op, const Shape& out, const Shape& a, const Shape& b);

  const Shape& out() const { return out_; }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }  // elements of a row
  // Of operand 0 (a) or 1 (b).
  const Walk& walk(int operand) const { return walk_[operand]; }
  // Whether an element of the operand is used more than once (or, in an empty result, never).
  bool Repeats(int operand) const { return walk_[operand].elements != rows_ * width_; }

  // Calls f(row, offset of a, offset of b) for rows first .. first + count - 1, in order.
  template <class F>
  void Rows(int64_t first, int64_t count, const F& f) const {
    int64_t r2 = first % size_[2], r1 = first / size_[2] % size_[1], r0 = first / size_[2] / size_[1];
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t *a = walk_[0].outer, *b = walk_[1].outer;
      f(row, r0 * a[0] + r1 * a[1] + r2 * a[2], r0 * b[0] + r1 * b[1] + r2 * b[2]);
      if (++r2 < size_[2]) continue;
      r2 = 0;
      if (++r1 < size_[1]) continue;
      r1 = 0;
      ++r0;
    }
  }

  // Calls f(offset in the result, offset of a, offset of b, n) for runs of n elements that cover the result, in parallel.
  template <class F>
  void Runs(const F& f) const {
    if (width_ == 0) return;
    if (rows_ == 1) {
      return ForTiles(width_, kTileElements,
                      [&](int64_t first, int64_t n) { f(first, first * walk_[0].step, first * walk_[1].step, n); });
    }
    ForRows(rows_, width_, [&](int64_t first, int64_t count) {
      Rows(first, count, [&](int64_t row, int64_t a, int64_t b) { f(row * width_, a, b, width_); });
    });
  }

  // grad += factor * (terms, summed over the repeats of the operand). `terms` has the result's shape. Sums are f64, over rows
  // in order: in up to 8 fixed blocks of rows when the operand is much smaller than the result.
  template <class T>
  void SumRepeats(int operand, const T* terms, double factor, const Tensor& grad, Gradients& gradients) const;

 private:
  Shape out_;
  int64_t rows_ = 1;
  int64_t width_ = 1;
  int64_t size_[3] = {1, 1, 1};  // of the outer dimensions; their product is rows_
  Walk walk_[2];
};

}  // namespace weft

#endif  // WEFT_AUTOGRAD_OPS_BROADCAST_H_
