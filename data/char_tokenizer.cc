#include "data/char_tokenizer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/text_file.h"
#include "data/utf8.h"

namespace weft {

absl::StatusOr<std::unique_ptr<Tokenizer>> CharTokenizer::Build(TextPieces texts, bool specials) {
  std::vector<bool> seen;  // by code point, up to the largest
  WEFT_RETURN_IF_ERROR(texts([&](absl::string_view text) -> absl::Status {
    char32_t code_point;
    for (int64_t i = 0; i < static_cast<int64_t>(text.size());) {
      const int64_t length = DecodeUtf8(text, i, &code_point);
      if (length == 0) return ValidateUtf8(text, "training text");
      if (code_point >= seen.size()) seen.resize(code_point + 1, false);
      seen[code_point] = true;
      i += length;
    }
    return absl::OkStatus();
  }));
  std::vector<char32_t> code_points;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) code_points.push_back(static_cast<char32_t>(i));
  }
  return std::unique_ptr<Tokenizer>(new CharTokenizer(std::move(code_points), specials));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> CharTokenizer::FromSymbols(absl::Span<const std::string> symbols, bool specials) {
  std::vector<char32_t> code_points;
  for (const std::string& symbol : symbols) {
    char32_t code_point;
    if (symbol.empty() || DecodeUtf8(symbol, 0, &code_point) != static_cast<int64_t>(symbol.size())) {
      return absl::DataLossError(absl::StrCat("char tokenizer: symbol ", code_points.size(), " is not one code point"));
    }
    code_points.push_back(code_point);
  }
  return std::unique_ptr<Tokenizer>(new CharTokenizer(std::move(code_points), specials));
}

CharTokenizer::CharTokenizer(std::vector<char32_t> code_points, bool specials)
    : Tokenizer(static_cast<int64_t>(code_points.size()), specials, /*unknown=*/false), code_points_(std::move(code_points)) {
  ascii_ids_.fill(-1);
  for (size_t id = 0; id < code_points_.size(); ++id) {
    if (code_points_[id] < 128) ascii_ids_[code_points_[id]] = static_cast<int32_t>(id);
    sorted_.emplace_back(code_points_[id], static_cast<int32_t>(id));
  }
  std::sort(sorted_.begin(), sorted_.end());
}

int32_t CharTokenizer::Find(char32_t code_point) const {
  if (code_point < 128) return ascii_ids_[code_point];
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair<char32_t, int32_t>(code_point, -1));
  return found != sorted_.end() && found->first == code_point ? found->second : -1;
}

int64_t CharTokenizer::TryEncode(absl::string_view text, std::vector<int32_t>* ids) const {
  char32_t code_point;
  for (int64_t i = 0; i < static_cast<int64_t>(text.size());) {
    const int64_t length = DecodeUtf8(text, i, &code_point);
    const int32_t id = length == 0 ? -1 : Find(code_point);
    if (id < 0) return i;
    ids->push_back(id);
    i += length;
  }
  return -1;
}

std::string CharTokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  for (int32_t id : ids) {
    WEFT_CHECK(0 <= id && id < size()) << "id " << id << " of a vocabulary of " << size();
    if (id < symbol_count()) AppendUtf8(code_points_[id], &text);
  }
  return text;
}

std::string CharTokenizer::Symbol(int32_t id) const {
  std::string symbol;
  AppendUtf8(code_points_[id], &symbol);
  return symbol;
}

}  // namespace weft
