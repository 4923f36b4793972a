// Batches of examples, ragged: the ids of all sequences laid end to end, with their lengths; nothing is padded.
// The order of epoch e is a keyed permutation of (seed, e), computed on the fly and never stored, so the place in the data is
// {epoch, sequence} and nothing else: a batcher set to the position of another one continues with the same batches, also in
// the middle of an epoch. A batch never crosses the end of an epoch; the last one may be smaller.
// With sort_pool = N each run of N examples of that order is a pool: sorted by length, cut into batches of neighbours, and
// the batches shuffled, so that the sequences of a batch are about equally long. Pools keep the position as small as it was:
// the pool that a place is in is made again from its number.
// With subword sampling the ids of a training example are drawn when its batch is filled; its plain length composes batches.
// A Batcher reads its ExampleSet, which must outlive it. Not thread-safe; Next allocates only while the Batch is new.
#ifndef WEFT_DATA_BATCHER_H_
#define WEFT_DATA_BATCHER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/base/random.h"
#include "data/examples.h"

namespace weft {

// Views of consecutive sequences of a batch: what one shard trains on. Fields as in Batch.
struct BatchView {
  absl::Span<const int64_t> sequence_ids;
  absl::Span<const int32_t> source_ids;
  absl::Span<const int64_t> source_lengths;
  absl::Span<const int32_t> target_ids;
  absl::Span<const int32_t> target_labels;
  absl::Span<const int64_t> target_lengths;
  absl::Span<const int32_t> classes;

  int64_t size() const { return static_cast<int64_t>(sequence_ids.size()); }
  // Terms of the loss: target tokens, or sequences for a classifier.
  int64_t loss_terms() const { return static_cast<int64_t>(target_labels.size() + classes.size()); }
  // Sequences first..first+count-1 of these. REQUIRES: 0 <= first, 0 <= count, first + count <= size().
  BatchView View(int64_t first, int64_t count) const;
};

// B sequences. Which fields are filled depends on the kind of data:
//   text    target_*: ids x_0..x_{t-1}, labels x_1..x_t
//   pairs   source_* and target_*: ids = <bos> target, labels = target <eos>
//   labels  source_* and classes
struct Batch {
  int64_t epoch = 0;
  std::vector<int64_t> sequence_ids;    // [B] index of each example in its set; keys its dropout
  std::vector<int32_t> source_ids;      // [sum of source_lengths]
  std::vector<int64_t> source_lengths;  // [B], or empty for text
  std::vector<int32_t> target_ids;      // [sum of target_lengths] inputs of the decoder
  std::vector<int32_t> target_labels;   // [sum of target_lengths] what it shall predict there
  std::vector<int64_t> target_lengths;  // [B], or empty for labels
  std::vector<int32_t> classes;         // [B], or empty for text and pairs

  int64_t size() const { return static_cast<int64_t>(sequence_ids.size()); }
  int64_t loss_terms() const { return static_cast<int64_t>(target_labels.size() + classes.size()); }
  // All of it, and sequences first..first+count-1. Valid until the batch changes. REQUIRES: as BatchView::View.
  BatchView View() const;
  BatchView View(int64_t first, int64_t count) const { return View().View(first, count); }
};

// The place of the next example: epoch (from 0), and how many examples of that epoch are done.
struct Position {
  int64_t epoch = 0;
  int64_t sequence = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

struct BatcherOptions {
  // Exactly one of the two is set (> 0).
  int64_t batch_size = 0;    // sequences
  int64_t batch_tokens = 0;  // target tokens with <eos>, source tokens for labels; a longer example gets a batch of its own
  bool shuffle = true;       // false: the order of the file, every epoch the same (validation)
  int64_t sort_pool = 0;     // examples of a pool; 0: no pools. Needs shuffle
  uint64_t seed = 0;
};

class Batcher {
 public:
  // InvalidArgument unless exactly one batch size is positive, and for a pool without shuffling; FailedPrecondition for an
  // empty set.
  static absl::StatusOr<Batcher> Create(const ExampleSet* examples, const BatcherOptions& options);

  // Fills `batch` with the next examples and moves on. After the last batch of an epoch, position() is {epoch + 1, 0}. On an
  // error, which only data on disk can give (ExampleSet::ReadWindow, ReadIds), the position stays and `batch` means nothing.
  absl::Status Next(Batch* batch);

  Position position() const { return position_; }
  // Goes to `position`. FailedPrecondition for one that this set does not have (a checkpoint of other data).
  absl::Status Seek(Position position);

  // Number of batches of an epoch. O(1) with batch_size, and for windows of one length; else O(examples), since batches of so
  // many tokens depend on the epoch's order. The same from any position.
  int64_t CountBatches(int64_t epoch) const;
  const ExampleSet& examples() const { return *examples_; }

 private:
  friend class ValidationBatches;
  Batcher(const ExampleSet* examples, const BatcherOptions& options);
  // A run of examples of an epoch in the order of training.
  struct Pool {
    struct Entry {
      int64_t target_length, source_length, place, example;
      friend auto operator<=>(const Entry&, const Entry&) = default;
    };
    int64_t epoch = -1, index = -1;
    std::vector<Entry> sorted;      // by length; equal ones as in the epoch's order
    std::vector<int64_t> starts;    // of the batches in `sorted`, with the end
    std::vector<int64_t> examples;  // batch by batch as shuffled
    std::vector<int64_t> ends;      // of the batches in `examples`
  };

  // The order of `epoch` if it is shuffled.
  Permutation Order(int64_t epoch) const;
  // How many of the `left` examples at(0), at(1), .. the next batch takes.
  template <class At>
  int64_t Take(int64_t left, const At& at) const;
  // The same without pools, for the batch that starts at `from`; appends the examples to `ids` unless null.
  int64_t TakeInOrder(Position from, std::vector<int64_t>* ids) const;
  // The same with pools.
  int64_t TakeFromPool(Position from, std::vector<int64_t>* ids);
  // Makes pool `index` of `epoch`.
  void FillPool(int64_t epoch, int64_t index, Pool* pool) const;

  const ExampleSet* examples_;
  BatcherOptions options_;
  Position position_;
  std::vector<int32_t> drawn_;  // an encoding of subword sampling
  // Bounds of one batch: sequences, source ids, target ids.
  int64_t max_sequences_ = 0;
  int64_t max_source_ = 0;
  int64_t max_target_ = 0;
  Pool pool_;                    // that of the last batch
  std::vector<int32_t> window_;  // of text, or an example that is on disk
};

// Every example of a set once, in file order: for validation. `examples` must outlive it.
// ValidationBatches batches(&set, 64); while (*batches.Next(&batch)) ...
class ValidationBatches {
 public:
  // REQUIRES: a set that is not empty, batch_size > 0 (sequences).
  ValidationBatches(const ExampleSet* examples, int64_t batch_size);
  // False when the set is done; `batch` is then unchanged. Errors as of Batcher::Next.
  absl::StatusOr<bool> Next(Batch* batch);

 private:
  Batcher batcher_;
};

}  // namespace weft

#endif  // WEFT_DATA_BATCHER_H_
