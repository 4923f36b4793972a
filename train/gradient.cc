#include "train/gradient.h"

#include <algorithm>

#include "autograd/base/parallel.h"
#include "autograd/kernels/elementwise.h"

namespace weft {
namespace {

// Fills `sequences` with the places of sequences of these lengths, laid end to end.
void Layout(absl::Span<const int64_t> lengths, absl::Span<const int64_t> ids, std::vector<Sequence>* sequences) {
  sequences->clear();
  int32_t start = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto length = static_cast<int32_t>(lengths[i]);
    sequences->push_back({start, length, 0, static_cast<uint64_t>(ids[i])});
    start += length;
  }
}

// into += from, in fixed tiles.
void AddSlab(const Tensor& from, const Tensor& into) {
  constexpr int64_t kTile = 1 << 15;
  const int64_t n = into.elements();
  DispatchFloat("gradient sum", into.dtype(), [&](auto zero) {
    using T = decltype(zero);
    ParallelFor((n + kTile - 1) / kTile, [&](int64_t tile) {
      const int64_t begin = tile * kTile;
      kernels::AddScaled(T{1}, from.data<T>() + begin, into.data<T>() + begin, std::min(kTile, n - begin));
    });
  });
}

// In the order of the leaves.
LossSum Total(absl::Span<const LossSum> losses) {
  LossSum total;
  for (const LossSum& loss : losses) total.Add(loss);
  return total;
}

}  // namespace

void SplitBatch(const BatchView& batch, int64_t parts, std::vector<BatchView>* out) {
  const int64_t n = batch.size();
  const auto tokens = [&](int64_t i) {
    return (batch.source_lengths.empty() ? 0 : batch.source_lengths[i]) +
           (batch.target_lengths.empty() ? 0 : batch.target_lengths[i]);
  };
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) total += tokens(i);
  parts = std::min(parts, n);
  int64_t first = 0, seen = 0;
  for (int64_t i = 0, part = 1; i < n; ++i) {
    seen += tokens(i);
    // A part ends where its share of the tokens is reached, and early enough to leave a sequence for each part after it.
    const bool full = seen * parts >= total * part, last_chance = n - (i + 1) == parts - part;
    if (i + 1 == n || (part < parts && (full || last_chance))) {
      out->push_back(batch.View(first, i + 1 - first));
      first = i + 1;
      ++part;
    }
  }
}

int64_t ChooseShards(int64_t batch_tokens, int64_t parameters) {
  // Each leaf costs passes over a slab (filled, merged) and makes products smaller: measured on two cores, 0.8 M to 11 M
  // parameters, two are 3 to 10 % faster than four and 8 % faster than one. Large products split over further threads. Slabs
  // above 64 MB would dominate the memory.
  constexpr int64_t kTokensPerShard = 128;
  const int64_t most = parameters > (16 << 20) ? 1 : 2;
  return std::clamp<int64_t>(batch_tokens / kTokensPerShard, 1, most);
}

struct GradientRunner::Worker {
  explicit Worker(const Parameters& parameters) : context(parameters) {}
  Context context;
  std::vector<BatchView> pieces;
  std::vector<Sequence> source, target;
  std::optional<Anomaly> anomaly;  // of the last leaf
  Profile profile;
};

GradientRunner::GradientRunner(const Transformer& model, const Parameters& parameters)
    : model_(model), parameters_(parameters) {}
GradientRunner::~GradientRunner() = default;

GradientRunner::Worker* GradientRunner::TakeWorker() {
  std::lock_guard lock(mutex_);
  if (free_workers_.empty()) {
    workers_.push_back(std::make_unique<Worker>(parameters_));
    free_workers_.reserve(workers_.size());
    if (profiled_) workers_.back()->context.tape().set_profile(&workers_.back()->profile);
    workers_.back()->context.tape().DetectAnomalies(detects_anomalies_);
    return workers_.back().get();
  }
  Worker* worker = free_workers_.back();
  free_workers_.pop_back();
  return worker;
}

void GradientRunner::GiveWorker(Worker* worker) {
  std::lock_guard lock(mutex_);
  free_workers_.push_back(worker);
}

int GradientRunner::TakeSlab() {
  std::lock_guard lock(mutex_);
  if (free_slabs_.empty()) {
    slabs_.emplace_back(parameters_.dtype(), parameters_.slab_size());
    return static_cast<int>(slabs_.size()) - 1;
  }
  const int slab = free_slabs_.back();
  free_slabs_.pop_back();
  return slab;
}

LossSum GradientRunner::RunLeaf(const BatchView& leaf, double label_smoothing, RandomKey key, const Tensor& gradients,
                                Worker* worker) const {
  const auto tokens = static_cast<int64_t>(leaf.source_ids.size() + leaf.target_ids.size());
  worker->pieces.clear();
  SplitBatch(leaf, (tokens + kPieceTokens - 1) / kPieceTokens, &worker->pieces);
  worker->anomaly.reset();
  LossSum sum;
  for (const BatchView& piece : worker->pieces) {
    Context& context = worker->context;
    const bool is_first = &piece == &worker->pieces.front();
    context.Begin(gradients, key, is_first);
    Layout(piece.source_lengths, piece.sequence_ids, &worker->source);
    Layout(piece.target_lengths, piece.sequence_ids, &worker->target);
    const ModelInput input{piece.source_ids, worker->source, piece.target_ids, worker->target,
                           piece.classes.empty() ? piece.target_labels : piece.classes};
    const CrossEntropyResult result = model_.Loss(context, input, label_smoothing);
    if (gradients.defined()) {
      context.tape().Backward(result.loss);
      if (is_first) context.ZeroRest();
    }
    sum.Add({result.loss.value().At(0), result.targets, result.correct});
    if (!worker->anomaly.has_value()) worker->anomaly = context.tape().anomaly();
  }
  return sum;
}

LossSum GradientRunner::Run(absl::Span<const BatchView> leaves, double label_smoothing, RandomKey key, Tensor* gradients) {
  const auto count = static_cast<int64_t>(leaves.size());
  WEFT_CHECK_GT(count, 0) << "an update without leaves";
  if (result_slab_ >= 0) free_slabs_.push_back(std::exchange(result_slab_, -1));
  losses_.assign(count, {});
  anomalies_.assign(count, std::nullopt);
  slab_of_.assign(count, -1);
  done_.assign(2 * count + 64, 0);  // the levels have count, ceil(count / 2), ... nodes
  slabs_.reserve(count + 1);        // so that growing moves no slab in use

  ParallelFor(count, [&](int64_t leaf) {
    Worker* worker = TakeWorker();
    const int slab = TakeSlab();
    const Tensor sum = slabs_[slab].tensor();
    losses_[leaf] = RunLeaf(leaves[leaf], label_smoothing, key, sum, worker);
    anomalies_[leaf] = worker->anomaly;
    if (leaf == 0 && !reported_) without_gradient_ = worker->context.WithoutGradient();
    GiveWorker(worker);

    // Up the tree: whoever finishes second of two siblings adds the right one's slab into the left one's.
    slab_of_[leaf] = slab;
    int64_t node = leaf, nodes = count, level_start = 0, width = 1;
    while (nodes > 1) {
      const int64_t sibling = node ^ 1;
      if (sibling < nodes) {
        int left, right;
        {
          std::lock_guard lock(mutex_);
          done_[level_start + node] = 1;
          if (!done_[level_start + sibling]) return;
          left = slab_of_[(node & ~int64_t{1}) * width];
          right = slab_of_[(node | 1) * width];
        }
        Profile merge;  // of its own, since others may merge at the same time
        const Tensor from = slabs_[right].tensor(), into = slabs_[left].tensor();
        const ProfileMark mark = merge.Begin(0);
        AddSlab(from, into);
        if (profiled_) {
          ProfilePass& pass = merge.Row("gradient_merge").backward;
          merge.End(mark, 0, &pass);
          pass.bytes += 3 * static_cast<double>(into.bytes());
        }
        std::lock_guard lock(mutex_);
        merges_.Add(merge);
        slab_of_[(node | 1) * width] = -1;
        free_slabs_.push_back(right);
      }
      level_start += nodes;
      nodes = (nodes + 1) / 2;
      node /= 2;
      width *= 2;
    }
  });
  reported_ = true;
  result_slab_ = slab_of_[0];
  *gradients = slabs_[result_slab_].tensor();
  const auto found = std::find_if(anomalies_.begin(), anomalies_.end(), [](const auto& a) { return a.has_value(); });
  anomaly_ = found == anomalies_.end() ? std::nullopt : *found;

  return Total(losses_);
}

LossSum GradientRunner::Evaluate(absl::Span<const BatchView> leaves) {
  losses_.assign(leaves.size(), {});
  ParallelFor(static_cast<int64_t>(leaves.size()), [&](int64_t leaf) {
    Worker* worker = TakeWorker();
    losses_[leaf] = RunLeaf(leaves[leaf], 0, {}, Tensor(), worker);
    GiveWorker(worker);
  });
  return Total(losses_);
}

void GradientRunner::EnableProfile() {
  profiled_ = true;
  for (const auto& worker : workers_) worker->context.tape().set_profile(&worker->profile);
}

void GradientRunner::DetectAnomalies(bool on) {
  detects_anomalies_ = on;
  for (const auto& worker : workers_) worker->context.tape().DetectAnomalies(on);
}

Profile GradientRunner::TotalProfile() const {
  Profile total;
  for (const auto& worker : workers_) total.Add(worker->profile);
  total.Add(merges_);
  return total;
}

int64_t GradientRunner::tape_memory() const {
  int64_t bytes = 0;
  for (const auto& worker : workers_) bytes += worker->context.tape().memory();
  return bytes;
}

int64_t GradientRunner::memory() const {
  int64_t bytes = tape_memory();
  for (const Slab& slab : slabs_) bytes += slab.tensor().bytes();
  return bytes;
}

}  // namespace weft
