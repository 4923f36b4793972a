#include "data/batcher.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"

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
  if (examples->empty()) return absl::FailedPreconditionError("there are no examples to make batches of");
  return Batcher(examples, options);
}

Batcher::Batcher(const ExampleSet* examples, const BatcherOptions& options) : examples_(examples), options_(options) {
  const int64_t n = examples->size();
  const bool by_tokens = options.batch_tokens > 0;
  max_sequences_ =
      std::min(n, by_tokens ? std::max<int64_t>(1, options.batch_tokens / examples->min_cost()) : options.batch_size);
  max_source_ = std::min(examples->total_source_tokens(), max_sequences_ * examples->max_source_length());
  max_target_ = std::min(examples->total_target_tokens(), max_sequences_ * examples->max_target_length());
  if (by_tokens && examples->kind() == DataKind::kLabels) {
    max_source_ = std::min(max_source_, std::max(options.batch_tokens, examples->max_source_length()));
  } else if (by_tokens) {
    max_target_ = std::min(max_target_, std::max(options.batch_tokens, examples->max_target_length()));
  }
}

int64_t Batcher::ExampleAt(int64_t epoch, int64_t sequence) const {
  WEFT_CHECK(epoch >= 0 && 0 <= sequence && sequence < examples_->size()) << "epoch " << epoch << " sequence " << sequence;
  return options_.shuffle ? Order(epoch)[sequence] : sequence;
}

Permutation Batcher::Order(int64_t epoch) const {
  return Permutation(RandomKey{options_.seed}.Fold("data").Fold(static_cast<uint64_t>(epoch)), examples_->size());
}

int64_t Batcher::Take(Position from, std::vector<int64_t>* ids) const {
  const Permutation order = Order(from.epoch);
  const int64_t left = examples_->size() - from.sequence;
  int64_t count = 0;
  int64_t tokens = 0;
  while (count < left) {
    if (options_.batch_size > 0 && count == options_.batch_size) break;
    const int64_t place = from.sequence + count;
    const int64_t example = options_.shuffle ? order[place] : place;
    if (options_.batch_tokens > 0) {
      const int64_t cost = examples_->Cost(example);
      // Compared as a difference: the sum cannot overflow, and an oversized example still gets its own batch.
      if (count > 0 && cost > options_.batch_tokens - tokens) break;
      tokens += cost;
    }
    if (ids != nullptr) ids->push_back(example);
    ++count;
  }
  return count;
}

void Batcher::Next(Batch* batch) {
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

  const int64_t count = Take(position_, &batch->sequence_ids);
  const ExampleSampler& sampler = examples_->sampler();
  const RandomKey key = RandomKey{options_.seed}.Fold("subword").Fold(static_cast<uint64_t>(position_.epoch));
  for (int64_t example : batch->sequence_ids) {
    if (kind == DataKind::kText) {
      const absl::Span<const int32_t> window = examples_->Window(example);
      Append(window.subspan(0, window.size() - 1), &batch->target_ids);
      Append(window.subspan(1), &batch->target_labels);
    } else {
      const absl::Span<const int32_t> source =
          sampler.Ids(ExampleSampler::kSource, example, key, examples_->Source(example), &drawn_);
      Append(source, &batch->source_ids);
      batch->source_lengths.push_back(static_cast<int64_t>(source.size()));
    }
    if (kind == DataKind::kPairs) {
      const absl::Span<const int32_t> target =
          sampler.Ids(ExampleSampler::kTarget, example, key, examples_->Target(example), &drawn_);
      batch->target_ids.push_back(examples_->bos());
      Append(target, &batch->target_ids);
      Append(target, &batch->target_labels);
      batch->target_labels.push_back(examples_->eos());
      batch->target_lengths.push_back(static_cast<int64_t>(target.size()) + 1);
    }
    if (kind == DataKind::kText) batch->target_lengths.push_back(examples_->TargetLength(example));
    if (kind == DataKind::kLabels) batch->classes.push_back(examples_->Class(example));
  }
  position_.sequence += count;
  if (position_.sequence == examples_->size()) position_ = {position_.epoch + 1, 0};
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
  if (options_.batch_size > 0) return (examples_->size() - 1) / options_.batch_size + 1;
  int64_t batches = 0;
  for (int64_t i = 0; i < examples_->size(); ++batches) i += Take({epoch, i}, nullptr);
  return batches;
}

ValidationBatches::ValidationBatches(const ExampleSet* examples, int64_t batch_size)
    : batcher_(examples, {.batch_size = batch_size, .shuffle = false}) {
  WEFT_CHECK(!examples->empty() && batch_size > 0) << examples->size() << " examples in batches of " << batch_size;
}

bool ValidationBatches::Next(Batch* batch) {
  if (batcher_.position().epoch > 0) return false;
  batcher_.Next(batch);
  return true;
}

}  // namespace weft
