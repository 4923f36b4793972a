#include "data/examples.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"

namespace weft {

absl::string_view DataKindName(DataKind kind) {
  switch (kind) {
    case DataKind::kText:
      return "text";
    case DataKind::kPairs:
      return "pairs";
    case DataKind::kLabels:
      return "labels";
  }
  WEFT_CHECK(false) << "data kind " << static_cast<int>(kind);
}

void IdLists::Add(absl::Span<const int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  starts_.push_back(static_cast<int64_t>(ids_.size()));
}

void LengthRange::Add(int64_t length) {
  shortest = count == 0 ? length : std::min(shortest, length);
  longest = std::max(longest, length);
  total += length;
  ++count;
}

ExampleSet ExampleSet::OverlappingWindows(TokenStream stream, int64_t window) {
  const int64_t tokens = stream.size();
  WEFT_CHECK_GE(window, 1);
  WEFT_CHECK_GT(tokens, window);
  ExampleSet set;
  set.stream_ = std::move(stream);
  set.window_ = window;
  set.stride_ = 1;
  set.size_ = tokens - window;
  return set;
}

ExampleSet ExampleSet::ConsecutiveWindows(TokenStream stream, int64_t window) {
  const int64_t targets = stream.size() - 1;
  WEFT_CHECK_GE(window, 1);
  WEFT_CHECK_GE(targets, 1);
  ExampleSet set;
  set.stream_ = std::move(stream);
  set.window_ = std::min(window, targets);
  set.stride_ = set.window_;
  set.size_ = (targets - 1) / set.window_ + 1;
  return set;
}

ExampleSet ExampleSet::Pairs(int32_t bos, int32_t eos) {
  WEFT_CHECK(bos >= 0 && eos >= 0) << "the target tokenizer of pairs needs <bos> and <eos>";
  ExampleSet set;
  set.kind_ = DataKind::kPairs;
  set.bos_ = bos;
  set.eos_ = eos;
  return set;
}

ExampleSet ExampleSet::Labels() {
  ExampleSet set;
  set.kind_ = DataKind::kLabels;
  return set;
}

absl::Status ExampleSet::ReadWindow(int64_t i, absl::Span<int32_t> out) const {
  WEFT_CHECK_EQ(static_cast<int64_t>(out.size()), TargetLength(i) + 1);
  return stream_.Read(i * stride_, out);
}

absl::Span<const int32_t> ExampleSet::Source(int64_t i) const {
  WEFT_CHECK(in_memory()) << "the ids are on disk, see ReadIds";
  return source_[i];
}

absl::Span<const int32_t> ExampleSet::Target(int64_t i) const {
  WEFT_CHECK(in_memory()) << "the ids are on disk, see ReadIds";
  return target_[i];
}

absl::StatusOr<ExampleIds> ExampleSet::ReadIds(int64_t i, std::vector<int32_t>* buffer) const {
  const bool pairs = kind_ == DataKind::kPairs;
  if (in_memory()) return ExampleIds{source_[i], pairs ? target_[i] : absl::Span<const int32_t>()};
  const int64_t source_length = stored_source_lengths_[i];
  buffer->resize(source_length + (pairs ? 1 + stored_target_lengths_[i] : 0));
  WEFT_RETURN_IF_ERROR(stream_.Read(starts_[i], absl::MakeSpan(*buffer)));
  const absl::Span<const int32_t> all = *buffer;
  const ExampleIds ids{all.first(source_length), pairs ? all.subspan(source_length + 1) : absl::Span<const int32_t>()};
  // The file had its checksum when it was opened, but may have been written over meanwhile.
  const auto below = [](absl::Span<const int32_t> side, int64_t vocabulary) {
    return side.empty() || *std::max_element(side.begin(), side.end()) < vocabulary;
  };
  if (below(ids.source, source_vocabulary_) && below(ids.target, target_vocabulary_)) return ids;
  return absl::DataLossError(absl::StrCat(stream_.name(), ": found a token id outside of the vocabulary behind token ",
                                          starts_[i], "; remove the file, it is made anew"));
}

int64_t ExampleSet::TargetLength(int64_t i) const {
  switch (kind_) {
    case DataKind::kText:
      WEFT_CHECK(0 <= i && i < size_) << "window " << i << " of " << size_;
      return std::min(window_, stream_.size() - 1 - i * stride_);  // the last of the consecutive ones may be shorter
    case DataKind::kPairs:
      return (in_memory() ? target_.length(i) : stored_target_lengths_[i]) + 1;
    case DataKind::kLabels:
      return 0;
  }
  return 0;
}

int64_t ExampleSet::max_target_length() const {
  if (size_ == 0) return 0;
  return kind_ == DataKind::kText ? window_ : kind_ == DataKind::kPairs ? target_lengths_.longest + 1 : 0;
}

int64_t ExampleSet::min_cost() const {
  if (size_ == 0) return 0;
  switch (kind_) {
    case DataKind::kText:
      return TargetLength(size_ - 1);  // only the last one can be shorter
    case DataKind::kPairs:
      return target_lengths_.shortest + 1;
    case DataKind::kLabels:
      return source_lengths_.shortest;
  }
  return 0;
}

int64_t ExampleSet::total_target_tokens() const {
  if (size_ == 0) return 0;
  switch (kind_) {
    case DataKind::kText:
      return (size_ - 1) * window_ + TargetLength(size_ - 1);
    case DataKind::kPairs:
      return target_lengths_.total + size_;
    case DataKind::kLabels:
      return 0;
  }
  return 0;
}

void ExampleSet::AddPair(absl::Span<const int32_t> source, absl::Span<const int32_t> target) {
  WEFT_CHECK(kind_ == DataKind::kPairs && !source.empty() && !target.empty()) << "a pair with an empty side";
  source_.Add(source);
  target_.Add(target);
  source_lengths_.Add(static_cast<int64_t>(source.size()));
  target_lengths_.Add(static_cast<int64_t>(target.size()));
  ++size_;
}

void ExampleSet::AddPair(absl::Span<const int32_t> source, absl::Span<const int32_t> target, absl::string_view source_text,
                         absl::Span<const std::vector<int32_t>> references,
                         absl::Span<const absl::string_view> reference_texts) {
  WEFT_CHECK(!references.empty() && references.size() == reference_texts.size()) << "references of a pair";
  WEFT_CHECK_EQ(static_cast<int64_t>(source_texts_.size()), size_);
  AddPair(source, target);
  source_texts_.emplace_back(source_text);
  for (const std::vector<int32_t>& reference : references) references_.Add(reference);
  for (absl::string_view text : reference_texts) reference_texts_.emplace_back(text);
  reference_starts_.push_back(references_.size());
}

void ExampleSet::AddLabel(absl::Span<const int32_t> source, int32_t class_id) {
  WEFT_CHECK(kind_ == DataKind::kLabels && !source.empty() && class_id >= 0) << "a label of class " << class_id;
  source_.Add(source);
  source_lengths_.Add(static_cast<int64_t>(source.size()));
  classes_.push_back(class_id);
  ++size_;
}

void ExampleSet::AddLabel(absl::Span<const int32_t> source, int32_t class_id, absl::string_view source_text) {
  WEFT_CHECK_EQ(static_cast<int64_t>(source_texts_.size()), size_);
  AddLabel(source, class_id);
  source_texts_.emplace_back(source_text);
}

void ExampleSet::ReserveStored(int64_t examples) {
  // A vector that grows would take twice the memory for a while; room that is not used takes none.
  starts_.reserve(examples);
  stored_source_lengths_.reserve(examples);
  if (kind_ == DataKind::kPairs) stored_target_lengths_.reserve(examples);
  if (kind_ == DataKind::kLabels) classes_.reserve(examples);
}

void ExampleSet::AddStored(int64_t start, int64_t source_length) {
  WEFT_CHECK(size_ == static_cast<int64_t>(starts_.size()) && source_length >= 1) << "a source of " << source_length;
  starts_.push_back(start);
  stored_source_lengths_.push_back(static_cast<int32_t>(source_length));
  source_lengths_.Add(source_length);
  ++size_;
}

void ExampleSet::AddStoredPair(int64_t start, int64_t source_length, int64_t target_length) {
  WEFT_CHECK(kind_ == DataKind::kPairs && target_length >= 1) << "a target of " << target_length;
  AddStored(start, source_length);
  stored_target_lengths_.push_back(static_cast<int32_t>(target_length));
  target_lengths_.Add(target_length);
}

void ExampleSet::AddStoredLabel(int64_t start, int64_t source_length, int32_t class_id) {
  WEFT_CHECK(kind_ == DataKind::kLabels && class_id >= 0) << "a label of class " << class_id;
  AddStored(start, source_length);
  classes_.push_back(class_id);
}

void ExampleSet::StoreIn(TokenStream stream, int64_t source_vocabulary, int64_t target_vocabulary) {
  stream_ = std::move(stream);
  source_vocabulary_ = source_vocabulary;
  target_vocabulary_ = target_vocabulary;
}

}  // namespace weft
