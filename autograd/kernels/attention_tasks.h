// Internal to kernels/: the independent pieces of an attention, and what they share. attention.cc has the loops over pieces and
// the f64 pieces, attention_f32.cc the f32 ones.
#ifndef WEFT_AUTOGRAD_KERNELS_ATTENTION_TASKS_H_
#define WEFT_AUTOGRAD_KERNELS_ATTENTION_TASKS_H_

#include <algorithm>
#include <cstdint>

#include "autograd/base/random.h"
#include "autograd/kernels/attention.h"

namespace weft::kernels {

template <class T>
struct AttentionGradients {
  const T* out;
  int64_t ldo;
  const T* log_sum_exp;
  const T* dout;
  int64_t lddo;
  T* dq;
  int64_t lddq;
  T* dk;
  int64_t lddk;
  T* dv;
  int64_t lddv;
};

// Keys that query i of `s` sees.
inline int64_t VisibleKeys(const AttentionShape& shape, const SequenceSpan& s, int64_t i) {
  if (!shape.causal) return s.key_length;
  return std::clamp<int64_t>(i + 1 + s.key_length - s.query_length, 0, s.key_length);
}

// The stream of a sequence's and head's dropout mask; its element (i, j) is word 2^32 i + j.
inline RandomKey DropoutKey(const AttentionDropout& dropout, uint64_t id, int64_t head) {
  return RandomKey{dropout.key}.Fold(id).Fold(static_cast<uint64_t>(head));
}

// One sequence and head: its rows of out and log_sum_exp, its block of weights (or null).
void AttentionForwardTask(const AttentionArgs<float>& args, int64_t sequence, int64_t head, float* out, int64_t ldo,
                          float* log_sum_exp, float* weights);

// One sequence and key head, with all the heads that read it: adds to its rows of dq, dk and dv.
void AttentionBackwardTask(const AttentionArgs<float>& args, int64_t sequence, int64_t kv_head,
                           const AttentionGradients<float>& g);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_ATTENTION_TASKS_H_
