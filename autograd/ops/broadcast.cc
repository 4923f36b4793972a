#include "autograd/ops/broadcast.h"

#include <algorithm>

#include "autograd/kernels/elementwise.h"

namespace weft {
namespace {

constexpr int kRank = Shape::kMaxRank;

struct Dims {
  int64_t size[kRank];
};

// Four dimensions, missing ones are 1.
Dims Aligned(const Shape& shape) {
  Dims dims;
  for (int i = 0; i < kRank; ++i) {
    const int from_end = kRank - i;
    dims.size[i] = from_end <= shape.rank() ? shape[-from_end] : 1;
  }
  return dims;
}

// Steps of an operand along the aligned dimensions, 0 where it is repeated.
Dims Strides(const Shape& shape) {
  const Dims dims = Aligned(shape);
  Dims strides;
  int64_t stride = 1;
  for (int i = kRank - 1; i >= 0; --i) {
    strides.size[i] = dims.size[i] == 1 ? 0 : stride;
    stride *= dims.size[i];
  }
  return strides;
}

bool Fits(const Shape& operand, const Shape& out) {
  if (operand.rank() > out.rank()) return false;
  const Dims from = Aligned(operand), to = Aligned(out);
  for (int i = 0; i < kRank; ++i) {
    if (from.size[i] != to.size[i] && from.size[i] != 1) return false;
  }
  return true;
}

}  // namespace

Shape BroadcastShape(const char* op, const Shape& a, const Shape& b) {
  const Dims da = Aligned(a), db = Aligned(b);
  int64_t out[kRank];
  for (int i = 0; i < kRank; ++i) {
    WEFT_CHECK(da.size[i] == db.size[i] || da.size[i] == 1 || db.size[i] == 1)
        << op << ": shapes " << a << " and " << b << " do not broadcast";
    out[i] = da.size[i] == 1 ? db.size[i] : da.size[i];
  }
  const int rank = std::max(a.rank(), b.rank());
  return Shape(absl::MakeConstSpan(out + kRank - rank, rank));
}

Broadcast::Broadcast(const char* op, const Shape& out, const Shape& a, const Shape& b) : out_(out) {
  WEFT_CHECK(Fits(a, out) && Fits(b, out)) << op << ": shapes " << a << " and " << b << " do not broadcast to " << out;
  walk_[0].elements = a.elements();
  walk_[1].elements = b.elements();
  if (out.elements() == 0) {
    rows_ = width_ = 0;
    return;
  }
  const Dims size = Aligned(out), sa = Strides(a), sb = Strides(b);
  // Merged dimensions, the innermost first.
  struct Group {
    int64_t size, a, b;
  } groups[kRank];
  int count = 0;
  for (int i = kRank - 1; i >= 0; --i) {
    if (size.size[i] == 1) continue;
    Group* last = count > 0 ? &groups[count - 1] : nullptr;
    if (last && sa.size[i] == last->a * last->size && sb.size[i] == last->b * last->size) {
      last->size *= size.size[i];
    } else {
      groups[count++] = {size.size[i], sa.size[i], sb.size[i]};
    }
  }
  if (count == 0) groups[count++] = {1, 1, 1};  // one element
  width_ = groups[0].size;
  walk_[0].step = groups[0].a;
  walk_[1].step = groups[0].b;
  for (int i = 1; i < count; ++i) {
    const int outer = 3 - i;
    size_[outer] = groups[i].size;
    walk_[0].outer[outer] = groups[i].a;
    walk_[1].outer[outer] = groups[i].b;
    rows_ *= groups[i].size;
  }
}

template <class T>
void Broadcast::SumRepeats(int operand, const T* terms, double factor, const Tensor& grad, Gradients& gradients) const {
  const Walk& walk = walk_[operand];
  const int64_t elements = rows_ * width_, n = walk.elements;
  if (elements == 0) return;
  constexpr int64_t kMaxBlocks = 8;
  const int64_t blocks = elements > kTileElements && n * 4 * kMaxBlocks <= elements ? std::min(rows_, kMaxBlocks) : 1;
  const Tensor sums = gradients.Scratch(DType::kF64, {blocks, n});
  sums.Zero();
  const auto sum_block = [&](int64_t block) {
    double* sum = sums.data<double>() + block * n;
    const int64_t first = rows_ * block / blocks, end = rows_ * (block + 1) / blocks;
    Rows(first, end - first, [&](int64_t row, int64_t a, int64_t b) {
      const T* from = terms + row * width_;
      double* to = sum + (operand == 0 ? a : b);
      if (walk.step == 0) {
        *to += kernels::Sum(from, width_);
      } else {
        for (int64_t i = 0; i < width_; ++i) to[i] += static_cast<double>(from[i]);
      }
    });
  };
  if (blocks == 1) {
    sum_block(0);
  } else {
    ParallelFor(blocks, sum_block);
  }
  double* total = sums.data<double>();
  for (int64_t block = 1; block < blocks; ++block) kernels::AddScaled(1.0, total + block * n, total, n);
  T* to = grad.data<T>();
  for (int64_t i = 0; i < n; ++i) to[i] += static_cast<T>(factor * total[i]);
}

template void Broadcast::SumRepeats(int, const float*, double, const Tensor&, Gradients&) const;
template void Broadcast::SumRepeats(int, const double*, double, const Tensor&, Gradients&) const;

}  // namespace weft
