#include "data/text_stream.h"

#include <utility>

namespace weft {

TextStream::TextStream(const Tokenizer& tokenizer, absl::Span<const int32_t> prompt) : tokenizer_(tokenizer) {
  // A prompt that ends in a joiner stands printed; what follows is joined to it by starting without a space.
  if (!prompt.empty() && tokenizer.UnfinishedTail(tokenizer.Decode({prompt.back()})) == 0) before_ = {prompt.back()};
}

std::string TextStream::Waiting() const {
  std::vector<int32_t> all = before_;
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  return tokenizer_.Decode(all).substr(tokenizer_.Decode(before_).size());
}

std::string TextStream::Push(int32_t id) {
  waiting_.push_back(id);
  return tokenizer_.UnfinishedTail(Waiting()) > 0 ? "" : Finish();
}

std::string TextStream::Finish() {
  std::string text = Waiting();
  if (!text.empty()) before_ = std::move(waiting_);
  waiting_.clear();
  return text;
}

std::string ContinuationText(const Tokenizer& tokenizer, absl::Span<const int32_t> prompt, absl::Span<const int32_t> ids) {
  TextStream stream(tokenizer, prompt);
  std::string text;
  for (int32_t id : ids) text += stream.Push(id);
  return text + stream.Finish();
}

}  // namespace weft
