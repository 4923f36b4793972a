// Fused scaled dot-product attention over ragged sequences: out = dropout(softmax(scale q k^T)) v for each sequence and head
// (Vaswani et al. 2017, section 3.2.1). The T x T scores are never stored: f32 walks over tiles with a running maximum and sum
// (Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, algorithm 1) and backward recomputes them from the log of the sum
// (Dao et al. 2022, appendix B). f64 is the plain loop and the reference. Nothing is owned. Thread-safe. Invariants:
//  - the bits of a query's row depend on the row, its sequence's visible keys and values, and the dropout key only: not on
//  other
//    sequences, on how many queries there are, or on threads;
//  - causal: query i of Tq sees the keys up to i + (Tk - Tq); what it does not see cannot change it, NaN included (forward);
//  - a query with no visible key gives zeros, and no gradient;
//  - no allocation in a steady state.
#ifndef WEFT_AUTOGRAD_KERNELS_ATTENTION_H_
#define WEFT_AUTOGRAD_KERNELS_ATTENTION_H_

#include <cstdint>

#include "absl/types/span.h"

namespace weft::kernels {

struct AttentionShape {
  int64_t heads = 1;
  int64_t kv_heads = 1;  // divides heads; head h reads key head h / (heads / kv_heads)
  int64_t d_head = 1;
  bool causal = false;
  double scale = 1;  // of q . k, normally 1 / sqrt(d_head)
};

// One sequence of queries and the keys it looks at, in rows.
struct SequenceSpan {
  int64_t query_start = 0;
  int64_t query_length = 0;  // Tq
  int64_t key_start = 0;
  int64_t key_length = 0;  // Tk
  uint64_t id = 0;         // selects the dropout mask
};

// Dropout of the weights, inverted: a kept one is divided by 1 - p. Element (sequence, head, i, j) is kept when word
// 2^32 i + j of RandomKey{key}.Fold(id).Fold(head) is at least floor(p 2^32), i and j from the start of the sequence.
struct AttentionDropout {
  double p = 0;  // in [0, 1]; 0: off
  uint64_t key = 0;
};

// q is [rows, heads * d_head], k and v are [key rows, kv_heads * d_head], with leading dimensions in elements.
// REQUIRES: the query rows of different sequences are disjoint; key rows may be shared or overlap.
template <class T>
struct AttentionArgs {
  AttentionShape shape;
  absl::Span<const SequenceSpan> sequences;
  const T* q = nullptr;
  int64_t ldq = 0;
  const T* k = nullptr;
  int64_t ldk = 0;
  const T* v = nullptr;
  int64_t ldv = 0;
  AttentionDropout dropout;
};

// Writes the query rows of the sequences: out [rows, heads * d_head]; log_sum_exp [rows, heads], the log of the softmax's
// denominator (-infinity when no key is visible). `weights` may be null; else it gets, for each sequence and then each head, a
// [Tq, Tk] block, laid end to end: after softmax, before dropout.
void AttentionForward(const AttentionArgs<float>& args, float* out, int64_t ldo, float* log_sum_exp, float* weights);
void AttentionForward(const AttentionArgs<double>& args, double* out, int64_t ldo, double* log_sum_exp, double* weights);

// Adds the gradients of sum(out * dout) to dq, dk and dv (laid out as q, k, v; each may be null). `out` and `log_sum_exp` are
// those of the forward pass. Sequences with common key rows are summed in their order.
void AttentionBackward(const AttentionArgs<float>& args, const float* out, int64_t ldo, const float* log_sum_exp,
                       const float* dout, int64_t lddo, float* dq, int64_t lddq, float* dk, int64_t lddk, float* dv,
                       int64_t lddv);
void AttentionBackward(const AttentionArgs<double>& args, const double* out, int64_t ldo, const double* log_sum_exp,
                       const double* dout, int64_t lddo, double* dq, int64_t lddq, double* dk, int64_t lddk, double* dv,
                       int64_t lddv);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_ATTENTION_H_
