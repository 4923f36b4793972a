#include "data/byte_tokenizer.h"

#include "autograd/base/check.h"

namespace weft {

int64_t ByteTokenizer::TryEncode(absl::string_view text, std::vector<int32_t>* ids) const {
  for (char c : text) ids->push_back(static_cast<unsigned char>(c));
  return -1;
}

std::string ByteTokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  for (int32_t id : ids) {
    WEFT_CHECK(0 <= id && id < size()) << "id " << id << " of a vocabulary of " << size();
    if (id < symbol_count()) text.push_back(static_cast<char>(id));
  }
  return text;
}

}  // namespace weft
