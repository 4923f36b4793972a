#include "data/examples.h"

#include <algorithm>
#include <utility>

#include "autograd/base/check.h"

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
  const int64_t length = static_cast<int64_t>(ids.size());
  min_length_ = size() == 0 ? length : std::min(min_length_, length);
  max_length_ = std::max(max_length_, length);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  starts_.push_back(static_cast<int64_t>(ids_.size()));
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

int64_t ExampleSet::TargetLength(int64_t i) const {
  switch (kind_) {
    case DataKind::kText:
      WEFT_CHECK(0 <= i && i < size_) << "window " << i << " of " << size_;
      return std::min(window_, stream_.size() - 1 - i * stride_);  // the last of the consecutive ones may be shorter
    case DataKind::kPairs:
      return target_.length(i) + 1;
    case DataKind::kLabels:
      return 0;
  }
  return 0;
}

int64_t ExampleSet::max_target_length() const {
  if (size_ == 0) return 0;
  return kind_ == DataKind::kText ? window_ : kind_ == DataKind::kPairs ? target_.max_length() + 1 : 0;
}

int64_t ExampleSet::min_cost() const {
  if (size_ == 0) return 0;
  switch (kind_) {
    case DataKind::kText:
      return TargetLength(size_ - 1);  // only the last one can be shorter
    case DataKind::kPairs:
      return target_.min_length() + 1;
    case DataKind::kLabels:
      return source_.min_length();
  }
  return 0;
}

int64_t ExampleSet::total_target_tokens() const {
  if (size_ == 0) return 0;
  switch (kind_) {
    case DataKind::kText:
      return (size_ - 1) * window_ + TargetLength(size_ - 1);
    case DataKind::kPairs:
      return target_.total() + size_;
    case DataKind::kLabels:
      return 0;
  }
  return 0;
}

void ExampleSet::AddPair(absl::Span<const int32_t> source, absl::Span<const int32_t> target) {
  WEFT_CHECK(kind_ == DataKind::kPairs && !source.empty() && !target.empty()) << "a pair with an empty side";
  source_.Add(source);
  target_.Add(target);
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
  classes_.push_back(class_id);
  ++size_;
}

void ExampleSet::AddLabel(absl::Span<const int32_t> source, int32_t class_id, absl::string_view source_text) {
  WEFT_CHECK_EQ(static_cast<int64_t>(source_texts_.size()), size_);
  AddLabel(source, class_id);
  source_texts_.emplace_back(source_text);
}

}  // namespace weft
