// The examples of one split (train, or validation) as token ids in flat storage, those of large files on disk. Three kinds:
//   text    a stream of N ids, seen through windows of T; the targets of a window are its ids moved by one
//   pairs   source ids -> target ids, in validation with references to score generated answers against
//   labels  source ids -> class
// Source ids carry no special tokens. Target ids are stored bare; the batcher adds <bos> and <eos>. Neither side of a pair, and
// no labelled text, is empty. Of pairs and labels on disk, places and lengths stay in memory: 16 bytes an example. Filled by
// the loaders (data/load.h), immutable afterwards and then safe to share between threads.
#ifndef WEFT_DATA_EXAMPLES_H_
#define WEFT_DATA_EXAMPLES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/example_sampler.h"
#include "data/token_stream.h"

namespace weft {

enum class DataKind { kText, kPairs, kLabels };
// "text", "pairs" or "labels".
absl::string_view DataKindName(DataKind kind);

// Many lists of ids in one vector.
class IdLists {
 public:
  void Add(absl::Span<const int32_t> ids);
  int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }
  absl::Span<const int32_t> operator[](int64_t i) const {
    return absl::MakeConstSpan(ids_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }
  int64_t length(int64_t i) const { return starts_[i + 1] - starts_[i]; }

 private:
  std::vector<int32_t> ids_;
  std::vector<int64_t> starts_ = {0};
};

// The lengths of many lists: the shortest, the longest (0 without any) and their sum.
struct LengthRange {
  void Add(int64_t length);
  int64_t count = 0, shortest = 0, longest = 0, total = 0;
};

// Views of one example.
struct ExampleIds {
  absl::Span<const int32_t> source;
  absl::Span<const int32_t> target;  // bare; empty for labels
};

class ExampleSet {
 public:
  // An id in a reference that equals no generated id: a word that the target vocabulary lacks.
  static constexpr int32_t kNoId = -1;

  ExampleSet() = default;
  // Training windows: all N - T start positions, overlapping. REQUIRES: stream longer than `window`, window >= 1.
  static ExampleSet OverlappingWindows(TokenStream stream, int64_t window);
  // Validation windows: end to end, so that every id but the first is a target exactly once; the last window may be shorter.
  // REQUIRES: at least 2 ids, window >= 1.
  static ExampleSet ConsecutiveWindows(TokenStream stream, int64_t window);
  // An empty set to fill. `bos` and `eos` are those of the target tokenizer.
  static ExampleSet Pairs(int32_t bos, int32_t eos);
  static ExampleSet Labels();

  DataKind kind() const { return kind_; }
  // Number of examples; for text the number of windows.
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Text: the ids of window i with the one that follows: TargetLength(i) + 1 of them. Errors of TokenStream::Read: never for a
  // stream in memory. REQUIRES: `out` has that size.
  absl::Status ReadWindow(int64_t i, absl::Span<int32_t> out) const;
  // Pairs and labels: the ids of example i, wherever they are, valid as long as the set and until `buffer`, which holds them if
  // they are not in memory, changes. DataLoss for a damaged file, errors of reading: never for a set in memory.
  absl::StatusOr<ExampleIds> ReadIds(int64_t i, std::vector<int32_t>* buffer) const;
  // Whether they are in memory: always in validation sets. The most ids that ReadIds puts into a buffer, 0 in memory.
  bool in_memory() const { return starts_.empty(); }
  int64_t max_buffer() const { return in_memory() ? 0 : source_lengths_.longest + 1 + target_lengths_.longest; }
  // Pairs and labels. REQUIRES: in_memory().
  absl::Span<const int32_t> Source(int64_t i) const;
  // Pairs: bare, without <bos> and <eos>. REQUIRES: in_memory().
  absl::Span<const int32_t> Target(int64_t i) const;
  // Labels.
  int32_t Class(int64_t i) const { return classes_[i]; }

  // Pairs in validation: the accepted answers of example i, the target first (0 in training sets, which keep none).
  // Unknown words are kNoId, so that an <unk> in an answer matches nothing.
  int64_t reference_count(int64_t i) const {
    return references_.size() == 0 ? 0 : reference_starts_[i + 1] - reference_starts_[i];
  }
  absl::Span<const int32_t> Reference(int64_t i, int64_t r) const { return references_[reference_starts_[i] + r]; }
  const std::string& ReferenceText(int64_t i, int64_t r) const { return reference_texts_[reference_starts_[i] + r]; }
  // Pairs and labels in validation: the source as it was read; empty in training sets.
  absl::string_view SourceText(int64_t i) const { return source_texts_.empty() ? absl::string_view() : source_texts_[i]; }

  // Lengths as the model sees them in a batch, in tokens: SourceLength is 0 for text; TargetLength counts the <eos> (= <bos>)
  // of a pair, is the number of targets of a window, and 0 for labels.
  int64_t SourceLength(int64_t i) const {
    return kind_ == DataKind::kText ? 0 : in_memory() ? source_.length(i) : stored_source_lengths_[i];
  }
  int64_t TargetLength(int64_t i) const;
  // What a batch of `batch_tokens` counts: target tokens, or source tokens for labels.
  int64_t Cost(int64_t i) const { return kind_ == DataKind::kLabels ? SourceLength(i) : TargetLength(i); }
  int64_t max_source_length() const { return source_lengths_.longest; }
  int64_t max_target_length() const;
  int64_t min_cost() const;
  // All source or target tokens of one pass over the set.
  int64_t total_source_tokens() const { return source_lengths_.total; }
  int64_t total_target_tokens() const;

  int32_t bos() const { return bos_; }
  int32_t eos() const { return eos_; }

  // Filling. REQUIRES: source and target not empty. `references` empty: a training example without texts.
  void AddPair(absl::Span<const int32_t> source, absl::Span<const int32_t> target);
  void AddPair(absl::Span<const int32_t> source, absl::Span<const int32_t> target, absl::string_view source_text,
               absl::Span<const std::vector<int32_t>> references, absl::Span<const absl::string_view> reference_texts);
  void AddLabel(absl::Span<const int32_t> source, int32_t class_id);
  void AddLabel(absl::Span<const int32_t> source, int32_t class_id, absl::string_view source_text);
  // Of examples in a list of stored_lines.h: room for so many; the place and the lengths of each; at last the list itself,
  // whose ids are below these sizes of vocabularies. REQUIRES: no examples in memory; lengths from 1 to 2^31 - 1.
  void ReserveStored(int64_t examples);
  void AddStoredPair(int64_t start, int64_t source_length, int64_t target_length);
  void AddStoredLabel(int64_t start, int64_t source_length, int32_t class_id);
  void StoreIn(TokenStream stream, int64_t source_vocabulary, int64_t target_vocabulary);

  // Subword sampling, of training sets. With a sampler that is on, Sample follows each AddPair and AddLabel.
  void SetSampler(ExampleSampler sampler) { sampler_ = std::move(sampler); }
  void Sample(absl::string_view source_text, absl::string_view target_text) { sampler_.Add(source_text, target_text); }
  const ExampleSampler& sampler() const { return sampler_; }
  ExampleSampler& sampler() { return sampler_; }

 private:
  void AddStored(int64_t start, int64_t source_length);

  DataKind kind_ = DataKind::kText;
  int64_t size_ = 0;
  TokenStream stream_;  // text, and stored lines
  // text
  int64_t window_ = 0;
  int64_t stride_ = 1;  // from one window's start to the next
  // pairs, labels
  int32_t bos_ = -1;
  int32_t eos_ = -1;
  LengthRange source_lengths_;
  LengthRange target_lengths_;
  IdLists source_;
  IdLists target_;
  std::vector<int32_t> classes_;
  // in place of source_ and target_: in the stream, the source of an example and, behind a mark, its target
  std::vector<int64_t> starts_;
  std::vector<int32_t> stored_source_lengths_;
  std::vector<int32_t> stored_target_lengths_;  // pairs
  int64_t source_vocabulary_ = 0;
  int64_t target_vocabulary_ = 0;
  IdLists references_;
  std::vector<int64_t> reference_starts_ = {0};
  std::vector<std::string> reference_texts_;
  std::vector<std::string> source_texts_;
  ExampleSampler sampler_;
};

}  // namespace weft

#endif  // WEFT_DATA_EXAMPLES_H_
