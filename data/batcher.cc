#include "data/batcher.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

int64_t Sum(absl::Span<const int64_t> values) { return std::accumulate(values.begin(), values.end(), int64_t{0}); }

template <typename T>
void Append(absl::Span<const T> values, std::vector<T>* out) {
  out->insert(out->end(), values.begin(), values.end());
}

}  // namespace

BatchView Batch::View() const {
  return {sequence_ids, source_ids, source_lengths, target_ids, target_labels, target_lengths, classes};
}

BatchView BatchView::View(int64_t first, int64_t count) const {
  WEFT_CHECK(first >= 0 && count >= 0 && first + count <= size()) << first << " + " << count << " of " << size();
  BatchView view;
  view.sequence_ids = sequence_ids.subspan(first, count);
  const auto slice = [&](absl::Span<const int64_t> lengths, absl::Span<const int32_t> ids) {
    return ids.subspan(Sum(lengths.subspan(0, first)), Sum(lengths.subspan(first, count)));
  };
  if (!source_lengths.empty()) {
    view.source_lengths = source_lengths.subspan(first, count);
    view.source_ids = slice(source_lengths, source_ids);
  }
  if (!target_lengths.empty()) {
    view.target_lengths = target_lengths.subspan(first, count);
    view.target_ids = slice(target_lengths, target_ids);
    view.target_labels = slice(target_lengths, target_labels);
  }
  if (!classes.empty()) view.classes = classes.subspan(first, count);
  return view;
}

absl::StatusOr<Batcher> Batcher::Create(const ExampleSet* examples, const BatcherOptions& options) {
  if ((options.batch_size > 0) == (options.batch_tokens > 0) || options.batch_size < 0 || options.batch_tokens < 0) {
    return absl::InvalidArgumentError(absl::StrCat("batch_size = ", options.batch_size, " and batch_tokens = ",
                                                   options.batch_tokens, ": exactly one of the two must be at least 1"));
  }
  if (options.sort_pool < 0 || (options.sort_pool > 0 && !options.shuffle)) {
    return absl::InvalidArgumentError(absl::StrCat("sort_pool: found ", options.sort_pool,
                                                   ", allowed from 0 on, and only 0 "
                                                   "without shuffle: the order of the file has no pools"));
  }
  if (examples->empty()) return absl::FailedPreconditionError("there are no examples to make batches of");
  return Batcher(examples, options);
}

Batcher::Batcher(const ExampleSet* examples, const BatcherOptions& options) : examples_(examples), options_(options) {
  const int64_t n = examples->size();
  const bool by_tokens = options.batch_tokens > 0;
  max_sequences_ =
      std::min(n, by_tokens ? std::max<int64_t>(1, options.batch_tokens / examples->min_cost()) : options.batch_size);
  window_.resize(examples->kind() == DataKind::kText ? examples->max_target_length() + 1 : examples->max_buffer());
  max_source_ = std::min(examples->total_source_tokens(), max_sequences_ * examples->max_source_length());
  max_target_ = std::min(examples->total_target_tokens(), max_sequences_ * examples->max_target_length());
  if (by_tokens && examples->kind() == DataKind::kLabels) {
    max_source_ = std::min(max_source_, std::max(options.batch_tokens, examples->max_source_length()));
  } else if (by_tokens) {
    max_target_ = std::min(max_target_, std::max(options.batch_tokens, examples->max_target_length()));
  }
}

Permutation Batcher::Order(int64_t epoch) const {
  return Permutation(RandomKey{options_.seed}.Fold("data").Fold(static_cast<uint64_t>(epoch)), examples_->size());
}

template <class At>
int64_t Batcher::Take(int64_t left, const At& at) const {
  if (options_.batch_size > 0) return std::min(left, options_.batch_size);
  int64_t count = 0, tokens = 0;
  while (count < left) {
    const int64_t cost = examples_->Cost(at(count));
    // Compared as a difference: the sum cannot overflow, and an oversized example still gets its own batch.
    if (count > 0 && cost > options_.batch_tokens - tokens) break;
    tokens += cost;
    ++count;
  }
  return count;
}

int64_t Batcher::TakeInOrder(Position from, std::vector<int64_t>* ids) const {
  const Permutation order = Order(from.epoch);
  const auto at = [&](int64_t i) { return options_.shuffle ? order[from.sequence + i] : from.sequence + i; };
  const int64_t count = Take(examples_->size() - from.sequence, at);
  for (int64_t i = 0; ids != nullptr && i < count; ++i) ids->push_back(at(i));
  return count;
}

int64_t Batcher::TakeFromPool(Position from, std::vector<int64_t>* ids) {
  const int64_t index = from.sequence / options_.sort_pool;
  if (pool_.epoch != from.epoch || pool_.index != index) FillPool(from.epoch, index, &pool_);
  // A place inside of a batch, which no batcher of these options stops at, takes the rest of the batch.
  const int64_t begin = from.sequence - index * options_.sort_pool;
  const int64_t end = *std::upper_bound(pool_.ends.begin(), pool_.ends.end(), begin);
  ids->insert(ids->end(), pool_.examples.begin() + begin, pool_.examples.begin() + end);
  return end - begin;
}

void Batcher::FillPool(int64_t epoch, int64_t index, Pool* pool) const {
  const Permutation order = Order(epoch);
  const int64_t first = index * options_.sort_pool, count = std::min(options_.sort_pool, examples_->size() - first);
  pool->epoch = epoch;
  pool->index = index;
  pool->sorted.clear();
  pool->starts.clear();
  pool->examples.clear();
  pool->ends.clear();
  // Room for the largest pool at once.
  const int64_t largest = std::min(options_.sort_pool, examples_->size());
  pool->sorted.reserve(largest);
  pool->starts.reserve(largest + 1);
  pool->examples.reserve(largest);
  pool->ends.reserve(largest);

  for (int64_t i = 0; i < count; ++i) {
    const int64_t example = order[first + i];
    pool->sorted.push_back({examples_->TargetLength(example), examples_->SourceLength(example), i, example});
  }
  std::sort(pool->sorted.begin(), pool->sorted.end());
  pool->starts.push_back(0);
  while (pool->starts.back() < count) {
    const int64_t start = pool->starts.back();
    pool->starts.push_back(start + Take(count - start, [&](int64_t i) { return pool->sorted[start + i].example; }));
  }
  const auto batches = static_cast<int64_t>(pool->starts.size()) - 1;
  const RandomKey key = RandomKey{options_.seed}.Fold("pool").Fold(static_cast<uint64_t>(epoch));
  const Permutation shuffled(key.Fold(static_cast<uint64_t>(index)), batches);
  for (int64_t i = 0; i < batches; ++i) {
    const int64_t batch = shuffled[i];
    for (int64_t j = pool->starts[batch]; j < pool->starts[batch + 1]; ++j) pool->examples.push_back(pool->sorted[j].example);
    pool->ends.push_back(static_cast<int64_t>(pool->examples.size()));
  }
}

absl::Status Batcher::Next(Batch* batch) {
  batch->epoch = position_.epoch;
  batch->sequence_ids.clear();
  batch->source_ids.clear();
  batch->source_lengths.clear();
  batch->target_ids.clear();
  batch->target_labels.clear();
  batch->target_lengths.clear();
  batch->classes.clear();
  // Room for the largest batch at once, so that a later, longer one does not allocate.
  const DataKind kind = examples_->kind();
  batch->sequence_ids.reserve(max_sequences_);
  batch->source_ids.reserve(max_source_);
  batch->target_ids.reserve(max_target_);
  batch->target_labels.reserve(max_target_);
  if (kind != DataKind::kText) batch->source_lengths.reserve(max_sequences_);
  if (kind != DataKind::kLabels) batch->target_lengths.reserve(max_sequences_);
  if (kind == DataKind::kLabels) batch->classes.reserve(max_sequences_);

  const int64_t count =
      options_.sort_pool > 0 ? TakeFromPool(position_, &batch->sequence_ids) : TakeInOrder(position_, &batch->sequence_ids);
  const ExampleSampler& sampler = examples_->sampler();
  const RandomKey key = RandomKey{options_.seed}.Fold("subword").Fold(static_cast<uint64_t>(position_.epoch));
  for (int64_t example : batch->sequence_ids) {
    if (kind == DataKind::kText) {
      const absl::Span<int32_t> window = absl::MakeSpan(window_).first(examples_->TargetLength(example) + 1);
      WEFT_RETURN_IF_ERROR(examples_->ReadWindow(example, window));
      Append<int32_t>(window.subspan(0, window.size() - 1), &batch->target_ids);
      Append<int32_t>(window.subspan(1), &batch->target_labels);
      batch->target_lengths.push_back(examples_->TargetLength(example));
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(const ExampleIds plain, examples_->ReadIds(example, &window_));
    const absl::Span<const int32_t> source = sampler.Ids(ExampleSampler::kSource, example, key, plain.source, &drawn_);
    Append(source, &batch->source_ids);
    batch->source_lengths.push_back(static_cast<int64_t>(source.size()));
    if (kind == DataKind::kPairs) {
      const absl::Span<const int32_t> target = sampler.Ids(ExampleSampler::kTarget, example, key, plain.target, &drawn_);
      batch->target_ids.push_back(examples_->bos());
      Append(target, &batch->target_ids);
      Append(target, &batch->target_labels);
      batch->target_labels.push_back(examples_->eos());
      batch->target_lengths.push_back(static_cast<int64_t>(target.size()) + 1);
    }
    if (kind == DataKind::kLabels) batch->classes.push_back(examples_->Class(example));
  }
  position_.sequence += count;
  if (position_.sequence == examples_->size()) position_ = {position_.epoch + 1, 0};
  return absl::OkStatus();
}

absl::Status Batcher::Seek(Position position) {
  if (position.epoch < 0 || position.sequence < 0 || position.sequence >= examples_->size()) {
    return absl::FailedPreconditionError(absl::StrCat("no place in this data: epoch ", position.epoch, ", sequence ",
                                                      position.sequence, " of ", examples_->size()));
  }
  position_ = position;
  return absl::OkStatus();
}

int64_t Batcher::CountBatches(int64_t epoch) const {
  const int64_t n = examples_->size();
  const int64_t largest_run = options_.sort_pool > 0 ? std::min(options_.sort_pool, n) : n;
  // Of so many examples in a row, at `size` a batch.
  const auto batches_of = [&](int64_t size) {
    const auto of_run = [&](int64_t run) { return (run + size - 1) / size; };
    return n / largest_run * of_run(largest_run) + of_run(n % largest_run);
  };
  if (options_.batch_size > 0) return batches_of(options_.batch_size);
  if (examples_->kind() == DataKind::kText && examples_->min_cost() == examples_->max_target_length()) {
    return batches_of(std::max<int64_t>(1, options_.batch_tokens / examples_->min_cost()));
  }
  int64_t batches = 0;
  if (options_.sort_pool > 0) {
    Pool pool;
    for (int64_t i = 0; i * options_.sort_pool < n; ++i) {
      FillPool(epoch, i, &pool);
      batches += static_cast<int64_t>(pool.ends.size());
    }
  } else {
    for (int64_t i = 0; i < n; ++batches) i += TakeInOrder({epoch, i}, nullptr);
  }
  return batches;
}

ValidationBatches::ValidationBatches(const ExampleSet* examples, int64_t batch_size)
    : batcher_(examples, {.batch_size = batch_size, .shuffle = false}) {
  WEFT_CHECK(!examples->empty() && batch_size > 0) << examples->size() << " examples in batches of " << batch_size;
}

absl::StatusOr<bool> ValidationBatches::Next(Batch* batch) {
  if (batcher_.position().epoch > 0) return false;
  WEFT_RETURN_IF_ERROR(batcher_.Next(batch));
  return true;
}

}  // namespace weft
