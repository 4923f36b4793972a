#include "autograd/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"

namespace weft {
namespace {

using kernels::AttentionArgs;
using kernels::AttentionShape;
using kernels::SequenceSpan;

// One operand with `count` resolved: columns first .. first + count - 1 of x [N, ld].
struct Operand {
  Variable x;
  int64_t first, count, ld;

  template <class T>
  const T* Data() const {
    return x.value().data<T>() + first;
  }
  // Whether the gradients of both would be added to the same elements.
  bool Overlaps(const Operand& other) const {
    return x.slot == other.x.slot && first < other.first + other.count && other.first < first + count;
  }
};

Operand Resolve(const char* name, const Columns& columns) {
  const Shape& shape = columns.x.shape();
  WEFT_CHECK(shape.rank() == 2) << "attention: " << name << " " << shape << " is not [N, W]";
  const int64_t count = columns.count < 0 ? shape[1] - columns.first : columns.count;
  WEFT_CHECK(columns.first >= 0 && count >= 0 && columns.first + count <= shape[1])
      << "attention: columns " << columns.first << " to " << columns.first + count << " of " << name << " " << shape;
  return {columns.x, columns.first, count, shape[1]};
}

AttentionShape CheckShapes(const Operand& q, const Operand& k, const Operand& v, const AttentionOptions& options) {
  AttentionShape shape;
  shape.heads = options.heads;
  shape.kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  shape.causal = options.causal;
  WEFT_CHECK(shape.heads > 0 && shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0)
      << "attention: heads " << shape.heads << " is not a multiple of kv_heads " << shape.kv_heads;
  WEFT_CHECK(q.count > 0 && q.count % shape.heads == 0)
      << "attention: q " << q.x.shape() << ": " << q.count << " columns do not divide into " << shape.heads << " heads";
  shape.d_head = q.count / shape.heads;
  WEFT_CHECK(k.count == shape.kv_heads * shape.d_head && v.count == k.count && k.x.shape()[0] == v.x.shape()[0])
      << "attention: q " << q.x.shape() << " with " << shape.heads << " heads of " << shape.d_head << " columns needs "
      << shape.kv_heads << " key heads of the same size, got " << k.count << " columns of k " << k.x.shape() << " and "
      << v.count << " of v " << v.x.shape();
  WEFT_CHECK(q.x.dtype() == k.x.dtype() && q.x.dtype() == v.x.dtype())
      << "attention: q " << q.x.dtype() << q.x.shape() << ", k " << k.x.dtype() << k.x.shape() << ", v " << v.x.dtype()
      << v.x.shape();
  WEFT_CHECK(options.dropout >= 0 && options.dropout <= 1) << "attention: dropout " << options.dropout << " is not in [0, 1]";
  shape.scale = options.scale == 0 ? 1 / std::sqrt(static_cast<double>(shape.d_head)) : options.scale;
  return shape;
}

int64_t KeyOf(int64_t query, Sequences queries, Sequences keys, const AttentionOptions& options) {
  const absl::Span<const int32_t> map = options.key_of_query;
  WEFT_CHECK(map.empty() ? queries.size() == keys.size() : queries.size() == map.size())
      << "attention: " << queries.size() << " query sequences, " << keys.size() << " key sequences, " << map.size()
      << " key_of_query";
  const int64_t key = map.empty() ? query : map[query];
  WEFT_CHECK(key >= 0 && key < static_cast<int64_t>(keys.size()))
      << "attention: key_of_query[" << query << "] is " << key << " of " << keys.size() << " key sequences";
  return key;
}

// Pairs each query sequence with its keys, in the tape's memory.
absl::Span<const SequenceSpan> PairSequences(Tape& tape, Sequences queries, Sequences keys, int64_t query_rows,
                                             int64_t key_rows, const AttentionOptions& options) {
  static_assert(sizeof(SequenceSpan) % sizeof(double) == 0 && alignof(SequenceSpan) <= Arena::kAlignment);
  const auto count = static_cast<int64_t>(queries.size());
  const int64_t doubles = count * static_cast<int64_t>(sizeof(SequenceSpan) / sizeof(double));
  auto* spans = static_cast<SequenceSpan*>(tape.Allocate(DType::kF64, {doubles}).raw());
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Sequence& query = queries[i];
    const Sequence& key = keys[KeyOf(i, queries, keys, options)];
    WEFT_CHECK(query.start >= end && query.length >= 0)
        << "attention: query sequences must be disjoint and in ascending order; number " << i << " starts at row "
        << query.start << ", the one before it ends at " << end;
    end = int64_t{query.start} + query.length;
    WEFT_CHECK(key.start >= 0 && key.length >= 0 && key.start + key.length <= key_rows)
        << "attention: keys at rows " << key.start << " to " << key.start + key.length << " of " << key_rows;
    new (spans + i) SequenceSpan{query.start, query.length, key.start, key.length, query.id};
  }
  WEFT_CHECK_LE(end, query_rows) << "attention: query sequences reach beyond the rows of q";
  return {spans, static_cast<size_t>(count)};
}

// Pairs of query and key that the mask lets through, of one head.
double VisiblePairs(absl::Span<const SequenceSpan> spans, bool causal) {
  double pairs = 0;
  for (const SequenceSpan& span : spans) {
    const auto q = static_cast<double>(span.query_length), k = static_cast<double>(span.key_length);
    // Query i sees keys 0 .. i + k - q; with more queries than keys, the first q - k see none.
    const double seeing = std::min(q, k);
    pairs += causal ? seeing * (k - seeing) + seeing * (seeing + 1) / 2 : q * k;
  }
  return pairs;
}

template <class T>
AttentionArgs<T> Args(const AttentionShape& shape, absl::Span<const SequenceSpan> spans, const Operand& q, const Operand& k,
                      const Operand& v, kernels::AttentionDropout dropout) {
  return {shape, spans, q.Data<T>(), q.ld, k.Data<T>(), k.ld, v.Data<T>(), v.ld, dropout};
}

// Where the kernel adds the gradient of one operand. Its pieces run in any order, so operands that are the same columns of one
// matrix (attention of x to itself) each get memory of their own, joined afterwards.
template <class T>
class Target {
 public:
  Target(Gradients& g, const Operand& operand, bool apart) : operand_(operand), grad_(g.Into(operand.x)) {
    if (!grad_.defined()) return;
    if (apart) {
      scratch_ = g.Scratch(grad_.dtype(), {grad_.shape()[0], operand.count});
      scratch_.Zero();
    }
    data = apart ? scratch_.data<T>() : grad_.data<T>() + operand.first;
    ld = apart ? operand.count : operand.ld;
  }
  void Join() const {
    if (!scratch_.defined()) return;
    for (int64_t row = 0; row < grad_.shape()[0]; ++row) {
      kernels::AddScaled(T(1), data + row * ld, grad_.data<T>() + row * operand_.ld + operand_.first, operand_.count);
    }
  }

  T* data = nullptr;
  int64_t ld = 0;

 private:
  const Operand& operand_;
  Tensor grad_, scratch_;
};

}  // namespace

int64_t AttentionWeightCount(Sequences queries, Sequences keys, const AttentionOptions& options) {
  int64_t count = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(queries.size()); ++i) {
    count += options.heads * queries[i].length * keys[KeyOf(i, queries, keys, options)].length;
  }
  return count;
}

Variable Attention(Columns q_columns, Columns k_columns, Columns v_columns, Sequences queries, Sequences keys,
                   const AttentionOptions& options) {
  Op op("attention", {q_columns.x, k_columns.x, v_columns.x});
  const Operand q = Resolve("q", q_columns), k = Resolve("k", k_columns), v = Resolve("v", v_columns);
  const AttentionShape shape = CheckShapes(q, k, v, options);
  const int64_t rows = q.x.shape()[0], width = q.count;
  const absl::Span<const SequenceSpan> spans = PairSequences(op.tape(), queries, keys, rows, k.x.shape()[0], options);
  const DType dtype = q.x.dtype();
  const Tensor weights = options.weights;
  if (weights.defined()) {
    const int64_t count = AttentionWeightCount(queries, keys, options);
    WEFT_CHECK(weights.elements() == count && weights.dtype() == dtype)
        << "attention: weights " << weights.dtype() << weights.shape() << " cannot hold " << count << " elements of " << dtype;
  }
  const kernels::AttentionDropout dropout{options.dropout, options.key.bits};

  const double flops = 4.0 * width * VisiblePairs(spans, shape.causal);
  op.Flops(flops, 2 * flops);  // backward has four such products, and forms the scores again, which is not counted
  Variable y = op.Output(dtype, {rows, width});
  const Tensor log_sum_exp = op.tape().Allocate(dtype, {rows, shape.heads});
  int64_t covered = 0;
  for (const Sequence& s : queries) covered += s.length;
  if (covered < rows) y.value().Zero();
  DispatchFloat("attention", dtype, [&](auto zero) {
    using T = decltype(zero);
    kernels::AttentionForward(Args<T>(shape, spans, q, k, v, dropout), y.value().data<T>(), width, log_sum_exp.data<T>(),
                              weights.defined() ? weights.data<T>() : nullptr);
  });
  op.Backward([=](Gradients& g) {
    DispatchFloat("attention", dtype, [&](auto zero) {
      using T = decltype(zero);
      const Target<T> dq(g, q, false), dk(g, k, k.Overlaps(q)), dv(g, v, v.Overlaps(q) || v.Overlaps(k));
      kernels::AttentionBackward(Args<T>(shape, spans, q, k, v, dropout), y.value().data<T>(), width, log_sum_exp.data<T>(),
                                 g.Of(y).data<T>(), width, dq.data, dq.ld, dk.data, dk.ld, dv.data, dv.ld);
      dk.Join();
      dv.Join();
    });
  });
  return y;
}

}  // namespace weft
