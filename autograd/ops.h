// The operations. Each is one function in one place (ops/*.cc): forward and gradient together; a user writes his own the same
// way (see class Op in tape.h). Shape letters: B batch, T time, D width, N rows (tokens), F hidden, V vocabulary, H heads.
//
// Common rules. Inputs are f32 or f64, all of one dtype; results have that dtype unless said otherwise. Gradients add. Shapes
// or dtypes that do not fit stop the program, naming the op and both shapes. "Keeps" is the memory held until Reset beyond
// inputs and outputs, in bytes per element. Axes may be negative (-1 is the last). All ops are deterministic: the same bits for
// any number of threads.
// Sequences that say whose rows are whose are disjoint and in the order of their rows (key sequences: any order, and shared).
#ifndef WEFT_AUTOGRAD_OPS_H_
#define WEFT_AUTOGRAD_OPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "autograd/base/random.h"
#include "autograd/sequences.h"
#include "autograd/tape.h"

namespace weft {

// ---------------------------------------------------------------------------------------------------- arithmetic
// (ops/arithmetic.cc) Broadcasting as in NumPy: shapes are aligned at the last dimension; a missing or 1-sized dimension is
// repeated. The gradient of a repeated operand is summed over the repeats, in f64. An upstream 0 gives 0, also next to an
// infinite operand. Keep nothing. A sum or difference of equal shapes may lie in the
// memory of b, scaled values in that of x (Tape::LastUse).
Variable Add(Variable a, Variable b);  // a + b
Variable Sub(Variable a, Variable b);  // a - b
Variable Mul(Variable a, Variable b);  // a * b
Variable Div(Variable a, Variable b);  // a / b; da = dy / b, db = -dy * a / b^2
Variable Scale(Variable x, double factor);
Variable Neg(Variable x);
// x as `dtype` (f32 or f64); the gradient goes back in x's dtype.
Variable Cast(Variable x, DType dtype);

// ---------------------------------------------------------------------------------------------------- functions
// (ops/functions.cc) Element by element, any shape, same shape out; keep nothing beyond x and y. Where an upstream gradient is
// 0 the result is 0, also where the derivative is infinite (the subgradient 0: no 0 * inf = NaN).
Variable Exp(Variable x);
Variable Log(Variable x);
Variable Sqrt(Variable x);
Variable Square(Variable x);
Variable Tanh(Variable x);
Variable Sigmoid(Variable x);   // 1 / (1 + e^-x)
Variable Relu(Variable x);      // max(x, 0); derivative 0 at 0
Variable Gelu(Variable x);      // x * Phi(x), Phi by erf (Hendrycks and Gimpel 2016)
Variable GeluTanh(Variable x);  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the same paper's approximation
Variable Silu(Variable x);      // x * sigmoid(x)

// ---------------------------------------------------------------------------------------------------- products
// (ops/products.cc) Matrix product over the last two dimensions: [..., M, K] x [..., K, N] -> [..., M, N]; a transposed operand
// is stored as [..., K, M] or
// [..., N, K]. Leading dimensions are equal, or one operand has rank 2 and is shared by all. Rank 2 to 4.
Variable MatMul(Variable a, Variable b, bool transpose_a = false, bool transpose_b = false);
// y = x W^T + b: x [..., in], weight [out, in] as in PyTorch, bias [out] or not defined -> [..., out].
Variable Linear(Variable x, Variable weight, Variable bias = {});

// ---------------------------------------------------------------------------------------------------- softmax, norms
// (ops/softmax.cc, norms.cc) Over the last dimension, stable (the maximum is subtracted). A row of only -inf gives zeros
// (Softmax) or stays (LogSoftmax).
Variable Softmax(Variable x);
Variable LogSoftmax(Variable x);
// gamma * (x - mean) / sqrt(variance + eps) + beta over the last dimension D (Ba, Kiros, Hinton 2016, eq. 4); biased variance;
// statistics in f64. gamma [D]; beta [D] or not defined. Keeps two f64 a row.
Variable LayerNorm(Variable x, Variable gamma, Variable beta, double eps);
// gamma * x / sqrt(mean(x^2) + eps) (Zhang and Sennrich 2019, eq. 4). Keeps one f64 a row.
Variable RmsNorm(Variable x, Variable gamma, double eps);

// ---------------------------------------------------------------------------------------------------- reductions
// (ops/reductions.cc) Over one axis, which disappears (`keep` leaves it with size 1). f32 sums are accumulated in f64.
Variable Sum(Variable x, int axis, bool keep = false);
Variable Mean(Variable x, int axis, bool keep = false);  // REQUIRES: size of the axis > 0
// The gradient goes to the first of equal maxima. REQUIRES: size of the axis > 0. Keeps one i32 per output.
Variable Max(Variable x, int axis, bool keep = false);
// Sum of all elements, as a scalar.
Variable SumAll(Variable x);

// Pooling over sequences: x [N, D] -> [number of sequences, D]. A sequence of length 0 gives zeros. kMax: ties go to the first
// row; keeps one i32 per output element.
enum class Pooling : uint8_t { kMean, kMax, kFirst, kLast };
Variable Pool(Variable x, Sequences sequences, Pooling pooling);

// ---------------------------------------------------------------------------------------------------- shapes (ops/shapes.cc)
// The same numbers under another shape, without a copy. REQUIRES: equal element counts.
Variable Reshape(Variable x, const Shape& shape);
// Exchanges two axes (a copy).
Variable Transpose(Variable x, int axis_a, int axis_b);
// Elements start .. start + length - 1 along `axis` (a copy).
Variable Slice(Variable x, int axis, int64_t start, int64_t length);
// x cut along `axis` into pieces of these sizes, which add up to its size there.
std::vector<Variable> Split(Variable x, int axis, absl::Span<const int64_t> sizes);
// The reverse of Split: shapes equal but for `axis`. REQUIRES: at least one input.
Variable Concat(absl::Span<const Variable> xs, int axis);
// Row ids[i] of table [V, D] -> [ids.size(), D]: an embedding lookup; equal ids add up in the gradient. REQUIRES: 0 <= id < V.
// Keeps 4 bytes per id.
Variable GatherRows(Variable table, absl::Span<const int32_t> ids);

// ---------------------------------------------------------------------------------------------------- choice (ops/choice.cc)
// condition != 0 ? a : b, element by element. `condition` is i32 of the result's shape (a plain Tensor: it has no gradient); a
// and b broadcast. The branch not taken gets gradient exactly 0. Keeps 4 bytes per element: a copy of the condition.
Variable Where(const Tensor& condition, Variable a, Variable b);
// `value` where mask != 0, else x; mask i32, broadcast to x's shape. value may be -inf. Keeps a copy of the mask.
Variable MaskedFill(Variable x, const Tensor& mask, double value);

// ---------------------------------------------------------------------------------------------------- dropout (ops/dropout.cc)
// Inverted dropout (Srivastava et al. 2014, section 10): an element is zero with probability p, else x / (1 - p). The mask is a
// pure function of (key, sequence id, place in the sequence), so it does not depend on shards or threads; nothing is kept. p =
// 0 is the identity, p = 1 gives zeros. x is [N, D] whose rows belong to `sequences` (rows outside of any are copied
// unchanged). REQUIRES: 0 <= p <= 1.
Variable Dropout(Variable x, Sequences sequences, double p, RandomKey key);

// ---------------------------------------------------------------------------------------------------- attention
// (ops/attention.cc) Columns first .. first + count - 1 of a matrix [N, W] (count < 0: all from first on): queries, keys and
// values may share one packed matrix.
struct Columns {
  Columns(Variable x, int64_t first = 0, int64_t count = -1)
      : x(x), first(first), count(count) {}  // NOLINT: implicit on purpose
  Variable x;
  int64_t first;
  int64_t count;
};

struct AttentionOptions {
  int64_t heads = 1;
  int64_t kv_heads =
      0;  // 0: as many as heads; else heads % kv_heads == 0 and head h reads key/value head h / (heads / kv_heads)
  bool causal = false;  // query i of Tq sees keys up to i + (Tk - Tq): the last query is aligned with the last key
  double scale = 0;     // 0: 1 / sqrt(d_head)
  double dropout = 0;   // on the weights; keyed by `key`, sequence id, head, query, key
  RandomKey key = {};
  // For each query sequence the index of its key sequence; empty: the i-th belongs to the i-th. Several may share one.
  absl::Span<const int32_t> key_of_query = {};
  // When not null: receives the weights (after softmax, before dropout), for each query sequence, for each head, [Tq, Tk]
  // row-major, laid end to end. Must have the right size: see AttentionWeightCount.
  Tensor weights = {};
};

// Multi-head scaled dot-product attention over ragged sequences (Vaswani et al. 2017, section 3.2): for each sequence and head
// softmax(Q K^T * scale) V, with a running softmax, so memory is linear in T. q [Nq, H * d], k and v [Nk, KV * d] -> [Nq, H *
// d]. A query that sees no key gives zeros. Rows outside of all query sequences are zero. Scores are recomputed in backward;
// keeps one number per row and head.
Variable Attention(Columns q, Columns k, Columns v, Sequences queries, Sequences keys, const AttentionOptions& options);
// Elements that `options.weights` must have.
int64_t AttentionWeightCount(Sequences queries, Sequences keys, const AttentionOptions& options);

// ---------------------------------------------------------------------------------------------------- loss (ops/losses.cc)
inline constexpr int32_t kIgnoreTarget = -100;  // a target that counts nowhere, as in PyTorch

struct CrossEntropyOptions {
  double smoothing = 0;  // in [0, 1): the true class gets 1 - s + s / V, every other s / V (Szegedy et al. 2016, section 7)
  int32_t ignore = kIgnoreTarget;
};
struct CrossEntropyResult {
  Variable loss;                        // f64 scalar: the SUM over targets that are not ignored, in nats
  int64_t targets = 0;                  // how many were counted
  int64_t correct = 0;                  // how many had the largest logit (first of ties)
  absl::Span<const double> row_losses;  // [N], 0 where ignored; lives until Reset
};
// logits [N, V], one target a row. Backward starts from sums; the caller divides by the number of targets of the whole update.
// REQUIRES: each target in 0..V-1 or equal to `ignore`. Keeps one logits-sized buffer.
CrossEntropyResult CrossEntropy(Variable logits, absl::Span<const int32_t> targets, const CrossEntropyOptions& options = {});
// The same of Linear(x, weight, bias) as one op: x [N, D], weight [V, D], bias [V] or not defined. The logits are overwritten
// by their gradient in forward and used twice in backward; in inference mode they are not kept. Keeps V numbers a row.
CrossEntropyResult LinearCrossEntropy(Variable x, Variable weight, Variable bias, absl::Span<const int32_t> targets,
                                      const CrossEntropyOptions& options = {});

}  // namespace weft

#endif  // WEFT_AUTOGRAD_OPS_H_
