#include "autograd/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "autograd/base/check.h"
#include "autograd/base/parallel.h"
#include "autograd/kernels/attention_tasks.h"
#include "autograd/kernels/scratch.h"

namespace weft::kernels {
namespace {

// Multiply-adds below which everything stays on the calling thread.
constexpr int64_t kForkWork = int64_t{1} << 19;
// Pieces are handed out in at most this many runs, so that many tiny ones do not cost a task each.
constexpr int64_t kMaxRuns = 64;

template <class T>
void Validate(const AttentionArgs<T>& args) {
  const AttentionShape& shape = args.shape;
  WEFT_CHECK(shape.heads > 0 && shape.kv_heads > 0 && shape.d_head > 0 && shape.heads % shape.kv_heads == 0)
      << "attention: heads " << shape.heads << ", kv_heads " << shape.kv_heads << ", d_head " << shape.d_head;
  WEFT_CHECK(args.dropout.p >= 0 && args.dropout.p <= 1) << "attention dropout " << args.dropout.p;
  WEFT_CHECK_GE(args.ldq, shape.heads * shape.d_head);
  WEFT_CHECK_GE(args.ldk, shape.kv_heads * shape.d_head);
  WEFT_CHECK_GE(args.ldv, shape.kv_heads * shape.d_head);
  for (const SequenceSpan& s : args.sequences) {
    WEFT_CHECK(s.query_start >= 0 && s.query_length >= 0 && s.key_start >= 0 && s.key_length >= 0)
        << "attention: queries " << s.query_start << "+" << s.query_length << ", keys " << s.key_start << "+" << s.key_length;
  }
}

// Runs piece(0..n-1) in runs of equal count; `work` in multiply-adds decides whether to fork.
void RunPieces(int64_t n, int64_t work, absl::FunctionRef<void(int64_t)> piece) {
  const int64_t runs = work < kForkWork ? 1 : std::min(n, kMaxRuns);
  ParallelFor(runs, [&](int64_t run) {
    for (int64_t i = run * n / runs; i < (run + 1) * n / runs; ++i) piece(i);
  });
}

template <class T>
int64_t Work(const AttentionArgs<T>& args) {
  int64_t pairs = 0;
  for (const SequenceSpan& s : args.sequences) pairs += s.query_length * s.key_length;
  return 2 * pairs * args.shape.heads * args.shape.d_head;
}

// Rows of one head in the f64 pieces.
struct Rows {
  const double* q;
  const double* k;
  const double* v;
  int64_t d, ldk, ldv;

  Rows(const AttentionArgs<double>& args, const SequenceSpan& s, int64_t i, int64_t head) : d(args.shape.d_head) {
    const int64_t kv_head = head / (args.shape.heads / args.shape.kv_heads);
    q = args.q + (s.query_start + i) * args.ldq + head * d;
    k = args.k + s.key_start * args.ldk + kv_head * d;
    v = args.v + s.key_start * args.ldv + kv_head * d;
    ldk = args.ldk;
    ldv = args.ldv;
  }
};

double Dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void AddScaled(double factor, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// 0 for a dropped weight, else 1 / (1 - p).
double DropoutFactor(double p, RandomKey key, int64_t i, int64_t j) {
  if (p == 0) return 1;
  const uint64_t word = (static_cast<uint64_t>(i) << 32) + static_cast<uint64_t>(j);
  const bool kept = static_cast<double>(key.Word(word)) >= std::floor(p * 0x1p32);
  return kept ? 1 / (1 - p) : 0;
}

void AttentionForwardTask(const AttentionArgs<double>& args, int64_t sequence, int64_t head, double* out, int64_t ldo,
                          double* log_sum_exp, double* weights) {
  const AttentionShape& shape = args.shape;
  const SequenceSpan& s = args.sequences[sequence];
  const RandomKey key = DropoutKey(args.dropout, s.id, head);
  Scratch<double> scores(s.key_length);
  double* p = scores.data();
  for (int64_t i = 0; i < s.query_length; ++i) {
    const Rows rows(args, s, i, head);
    const int64_t visible = VisibleKeys(shape, s, i);
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < visible; ++j) {
      p[j] = shape.scale * Dot(rows.q, rows.k + j * rows.ldk, rows.d);
      maximum = std::max(maximum, p[j]);
    }
    for (int64_t j = 0; j < visible; ++j) sum += p[j] = std::exp(p[j] - maximum);
    double* y = out + (s.query_start + i) * ldo + head * rows.d;
    std::fill_n(y, rows.d, 0.0);
    for (int64_t j = 0; j < visible; ++j) {
      p[j] /= sum;
      AddScaled(p[j] * DropoutFactor(args.dropout.p, key, i, j), rows.v + j * rows.ldv, y, rows.d);
    }
    log_sum_exp[(s.query_start + i) * shape.heads + head] = maximum + std::log(sum);
    if (weights != nullptr) {
      std::copy_n(p, visible, weights + i * s.key_length);
      std::fill_n(weights + i * s.key_length + visible, s.key_length - visible, 0.0);
    }
  }
}

// With w the weights, m the dropout factors, D_i = sum_j w_ij m_ij (dout_i . v_j) = dout_i . out_i:
// dscore_ij = w_ij (m_ij dout_i . v_j - D_i), dq_i = scale sum_j dscore_ij k_j, dk_j = scale sum_i dscore_ij q_i,
// dv_j = sum_i w_ij m_ij dout_i.
void AttentionBackwardTask(const AttentionArgs<double>& args, int64_t sequence, int64_t kv_head,
                           const AttentionGradients<double>& g) {
  const AttentionShape& shape = args.shape;
  const SequenceSpan& s = args.sequences[sequence];
  const int64_t d = shape.d_head, group = shape.heads / shape.kv_heads;
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const RandomKey key = DropoutKey(args.dropout, s.id, head);
    for (int64_t i = 0; i < s.query_length; ++i) {
      const Rows rows(args, s, i, head);
      const int64_t row = s.query_start + i;
      const double* dy = g.dout + row * g.lddo + head * d;
      const double mean = Dot(dy, g.out + row * g.ldo + head * d, d);
      const int64_t visible = VisibleKeys(shape, s, i);
      for (int64_t j = 0; j < visible; ++j) {
        const double* k = rows.k + j * rows.ldk;
        const double w = std::exp(shape.scale * Dot(rows.q, k, d) - g.log_sum_exp[row * shape.heads + head]);
        const double factor = DropoutFactor(args.dropout.p, key, i, j);
        // A softmax over one key is 1 whatever the score: exactly 0, not the rounding of the difference.
        const double dscore = visible == 1 ? 0 : shape.scale * w * (factor * Dot(dy, rows.v + j * rows.ldv, d) - mean);
        const int64_t key_row = s.key_start + j;
        if (g.dq != nullptr) AddScaled(dscore, k, g.dq + row * g.lddq + head * d, d);
        if (g.dk != nullptr) AddScaled(dscore, rows.q, g.dk + key_row * g.lddk + kv_head * d, d);
        if (g.dv != nullptr) AddScaled(w * factor, dy, g.dv + key_row * g.lddv + kv_head * d, d);
      }
    }
  }
}

template <class T>
void ForwardAll(const AttentionArgs<T>& args, T* out, int64_t ldo, T* log_sum_exp, T* weights) {
  Validate(args);
  const int64_t heads = args.shape.heads, count = static_cast<int64_t>(args.sequences.size());
  WEFT_CHECK_GE(ldo, heads * args.shape.d_head);
  Scratch<int64_t, 4096> weight_starts(count);
  int64_t start = 0;
  for (int64_t s = 0; s < count; ++s) {
    weight_starts.data()[s] = start;
    start += heads * args.sequences[s].query_length * args.sequences[s].key_length;
  }
  RunPieces(count * heads, Work(args), [&](int64_t piece) {
    const int64_t s = piece / heads, head = piece % heads;
    const int64_t block = args.sequences[s].query_length * args.sequences[s].key_length;
    AttentionForwardTask(args, s, head, out, ldo, log_sum_exp,
                         weights == nullptr ? nullptr : weights + weight_starts.data()[s] + head * block);
  });
}

// Orders 0..count-1 such that sequences with common key rows are neighbours, in their original order, and writes where each
// such group starts. Returns the number of groups; starts[groups] = count.
int64_t GroupByKeys(absl::Span<const SequenceSpan> sequences, int64_t* order, int64_t* starts) {
  const int64_t count = static_cast<int64_t>(sequences.size());
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order, order + count, [&](int64_t a, int64_t b) {
    return std::make_pair(sequences[a].key_start, a) < std::make_pair(sequences[b].key_start, b);
  });
  int64_t groups = 0, end = -1;
  for (int64_t i = 0; i < count; ++i) {
    const SequenceSpan& s = sequences[order[i]];
    if (s.key_start >= end) starts[groups++] = i;
    end = std::max(end, s.key_start + s.key_length);
  }
  starts[groups] = count;
  for (int64_t i = 0; i < groups; ++i) std::sort(order + starts[i], order + starts[i + 1]);
  return groups;
}

template <class T>
void BackwardAll(const AttentionArgs<T>& args, const AttentionGradients<T>& g) {
  Validate(args);
  const int64_t count = static_cast<int64_t>(args.sequences.size()), kv_heads = args.shape.kv_heads;
  Scratch<int64_t, 4096> order(count), starts(count + 1);
  const int64_t groups = GroupByKeys(args.sequences, order.data(), starts.data());
  RunPieces(groups * kv_heads, 5 * Work(args) / 2, [&](int64_t piece) {
    const int64_t group = piece / kv_heads, kv_head = piece % kv_heads;
    for (int64_t i = starts.data()[group]; i < starts.data()[group + 1]; ++i) {
      AttentionBackwardTask(args, order.data()[i], kv_head, g);
    }
  });
}

}  // namespace

void AttentionForward(const AttentionArgs<float>& args, float* out, int64_t ldo, float* log_sum_exp, float* weights) {
  ForwardAll(args, out, ldo, log_sum_exp, weights);
}
void AttentionForward(const AttentionArgs<double>& args, double* out, int64_t ldo, double* log_sum_exp, double* weights) {
  ForwardAll(args, out, ldo, log_sum_exp, weights);
}

void AttentionBackward(const AttentionArgs<float>& args, const float* out, int64_t ldo, const float* log_sum_exp,
                       const float* dout, int64_t lddo, float* dq, int64_t lddq, float* dk, int64_t lddk, float* dv,
                       int64_t lddv) {
  BackwardAll<float>(args, {out, ldo, log_sum_exp, dout, lddo, dq, lddq, dk, lddk, dv, lddv});
}
void AttentionBackward(const AttentionArgs<double>& args, const double* out, int64_t ldo, const double* log_sum_exp,
                       const double* dout, int64_t lddo, double* dq, int64_t lddq, double* dk, int64_t lddk, double* dv,
                       int64_t lddv) {
  BackwardAll<double>(args, {out, ldo, log_sum_exp, dout, lddo, dq, lddq, dk, lddk, dv, lddv});
}

}  // namespace weft::kernels
