// One update's gradient: leaves (shards of its batches) run as parallel tasks, each on its own tape and gradient slab; the
// slabs are summed by a fixed binary tree over the leaves, merged as soon as both siblings are done. A long leaf runs in
// pieces, one after another into its slab, so that memory holds the activations of a piece only. What is added to what never
// depends on threads or timing, so the bits do not either. Tapes and slabs are kept from update to update: a steady update
// allocates nothing.
#ifndef WEFT_TRAIN_GRADIENT_H_
#define WEFT_TRAIN_GRADIENT_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/base/random.h"
#include "autograd/profile.h"
#include "data/batcher.h"
#include "layers/transformer.h"

namespace weft {

// Sums over the targets of some sequences.
struct LossSum {
  double loss = 0;      // nats
  int64_t targets = 0;  // those that count
  int64_t correct = 0;  // whose largest logit was right
  void Add(const LossSum& other) {
    loss += other.loss;
    targets += other.targets;
    correct += other.correct;
  }
  // Per target. REQUIRES: targets > 0.
  double mean_loss() const { return loss / static_cast<double>(targets); }
  // e to the mean loss: of all targets, not a mean over batches. Infinity from a loss of about 709.8 nats on.
  double perplexity() const { return std::exp(mean_loss()); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(targets); }
};

// Tokens of both sides that a leaf runs at a time, about: its activations are held for that many only, and products are hardly
// faster with more rows.
inline constexpr int64_t kPieceTokens = 896;

// Cuts a batch into at most `parts` runs of whole sequences of about equal numbers of tokens, and appends them to `out`.
// Depends on the batch alone. Views are valid until the batch changes. REQUIRES: parts >= 1, unless the batch is empty.
void SplitBatch(const BatchView& batch, int64_t parts, std::vector<BatchView>* out);

// The number of shards of a batch of that many tokens: a rule on work and parameters, never on threads. Several for small
// models (one barrier an update); few for large ones, where each leaf's slab costs memory and a pass over it.
int64_t ChooseShards(int64_t batch_tokens, int64_t parameters);

class GradientRunner {
 public:
  // Both must outlive the runner.
  GradientRunner(const Transformer& model, const Parameters& parameters);
  ~GradientRunner();

  // Forward and backward of all leaves; dropout keyed by `key`. `gradients` receives the slab with d(sum of
  // losses)/d(parameters), valid until the next call. Losses are added up in the order of the leaves. REQUIRES: at least one
  // leaf.
  LossSum Run(absl::Span<const BatchView> leaves, double label_smoothing, RandomKey key, Tensor* gradients);
  // Forward only: no dropout, no smoothing, nothing kept.
  LossSum Evaluate(absl::Span<const BatchView> leaves);

  // Parameters that the first leaf of the first Run gave no gradient: parts of the model that nothing uses.
  const std::vector<std::string>& without_gradient() const { return without_gradient_; }
  // Bytes of tapes and slabs, and of the tapes alone.
  int64_t memory() const;
  int64_t tape_memory() const;

  // From now on every pass is profiled: each tape by itself, summed by TotalProfile, with a row "gradient_merge" (counted as
  // backward) for the slabs. Seconds are those of the threads that run leaves, so several leaves at once may sum to more than
  // the time that passed. Not while Run or Evaluate is running.
  void EnableProfile();
  Profile TotalProfile() const;

  // From now on, or no longer, every op of every pass is looked at (Tape::DetectAnomalies). Not while Run is running.
  void DetectAnomalies(bool on);
  // Of the last Run: the first of the first leaf that has one.
  const std::optional<Anomaly>& anomaly() const { return anomaly_; }

 private:
  struct Worker;  // a tape with the buffers of one running leaf

  LossSum RunLeaf(const BatchView& leaf, double label_smoothing, RandomKey key, const Tensor& gradients, Worker* worker) const;
  Worker* TakeWorker();
  void GiveWorker(Worker* worker);
  int TakeSlab();

  const Transformer& model_;
  const Parameters& parameters_;
  std::mutex mutex_;  // guards the lists below
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> free_workers_;
  std::vector<Slab> slabs_;
  std::vector<int> free_slabs_;
  std::vector<int> slab_of_;     // by leaf, -1: merged away
  std::vector<char> done_;       // by node of the tree
  std::vector<LossSum> losses_;  // by leaf
  std::vector<std::string> without_gradient_;
  bool reported_ = false;
  bool profiled_ = false, detects_anomalies_ = false;
  std::vector<std::optional<Anomaly>> anomalies_;  // by leaf
  std::optional<Anomaly> anomaly_;
  Profile merges_;  // of slabs
  int result_slab_ = -1;
};

}  // namespace weft

#endif  // WEFT_TRAIN_GRADIENT_H_
