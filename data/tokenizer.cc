#include "data/tokenizer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/text_file.h"
#include "data/utf8.h"
#include "data/word_tokenizer.h"

namespace weft {
namespace {

// The largest vocabulary we read back: ids are int32 and specials follow.
constexpr size_t kMaxSymbols = size_t{1} << 30;

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromSerialized(const SerializedTokenizer& serialized) {
  const std::vector<std::string>& symbols = serialized.symbols;
  if (symbols.size() > kMaxSymbols) return absl::DataLossError(absl::StrCat("tokenizer: ", symbols.size(), " symbols"));
  std::vector<absl::string_view> sorted(symbols.begin(), symbols.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return absl::DataLossError(absl::StrCat(serialized.kind, " tokenizer: the symbol \"", *twice, "\" appears twice"));
  }
  if (serialized.unknown && serialized.kind != "word") {
    return absl::DataLossError(absl::StrCat(serialized.kind, " tokenizer: has an <unk>, which only the kind word has"));
  }
  if (serialized.kind == "word") return WordTokenizer::FromSymbols(symbols, serialized.specials, serialized.unknown);
  if (serialized.kind == "char") return CharTokenizer::FromSymbols(symbols, serialized.specials);
  if (serialized.kind == "byte") {
    if (symbols.empty()) return ByteTokenizer::Make(serialized.specials);
    return absl::DataLossError(absl::StrCat("byte tokenizer: ", symbols.size(), " symbols stored, expected none"));
  }
  return absl::DataLossError(absl::StrCat("tokenizer: kind \"", serialized.kind, "\", expected char, byte or word"));
}

SerializedTokenizer Tokenizer::Serialize() const {
  SerializedTokenizer out;
  out.kind = std::string(kind());
  out.specials = specials_;
  out.unknown = unknown_;
  if (kind() == "byte") return out;
  for (int32_t id = 0; id < symbol_count_; ++id) out.symbols.push_back(Symbol(id));
  return out;
}

uint64_t Tokenizer::Fingerprint() const {
  uint64_t hash = HashBytes(absl::StrCat(kind(), " ", specials_, " ", unknown_, " ", symbol_count_));
  if (separator_) hash = HashBytes("<sep>", hash);
  for (int32_t id = 0; id < symbol_count_; ++id) {
    const std::string symbol = Symbol(id);
    // The length keeps {"ab", "c"} and {"a", "bc"} apart.
    hash = HashBytes(symbol, HashBytes(absl::StrCat(symbol.size(), ":"), hash));
  }
  return hash;
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(absl::string_view text) const {
  if (kind() != "byte") WEFT_RETURN_IF_ERROR(ValidateUtf8(text, "text"));
  std::vector<int32_t> ids;
  const int64_t offset = TryEncode(text, &ids);
  if (offset >= 0) return UnknownSymbol(text, offset);
  return ids;
}

absl::Status Tokenizer::UnknownSymbol(absl::string_view text, int64_t offset) const {
  WEFT_CHECK(0 <= offset && offset < static_cast<int64_t>(text.size())) << "offset " << offset << " in " << text.size();
  char32_t code_point;
  if (DecodeUtf8(text, offset, &code_point) == 0) return ValidateUtf8(text, "text");
  std::string symbol = absl::StrCat("character ", QuoteCodePoint(code_point));
  if (kind() == "word") {
    int64_t end = offset;
    const absl::string_view word = WordTokenizer::NextWord(text, &end);
    symbol = word == "\n" ? "word U+000A (a newline)" : absl::StrCat("word \"", word, "\"");
    if (CountCodePoints(word) == 1 && word != "\n") absl::StrAppend(&symbol, " (", CodePointName(code_point), ")");
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "unknown ", symbol, " at character ", CountCodePoints(text.substr(0, offset)) + 1, ", byte offset ", offset,
      "; it is none of the ", symbol_count_, " symbols of the ", kind(), " vocabulary, which its training text gave"));
}

std::string Tokenizer::TokenText(int32_t id) const {
  WEFT_CHECK(0 <= id && id < size()) << "id " << id << " of a vocabulary of " << size();
  if (id < symbol_count_) return Symbol(id);
  return id == bos() ? "<bos>" : id == eos() ? "<eos>" : id == unk() ? "<unk>" : "<sep>";
}

absl::StatusOr<std::unique_ptr<Tokenizer>> BuildTokenizer(const TokenizerOptions& options,
                                                          absl::Span<const absl::string_view> texts) {
  if (options.kind != "char" && options.kind != "byte" && options.kind != "word") {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer kind: found \"", options.kind, "\", allowed char, byte or word"));
  }
  if (options.min_count < 1 || options.max_size < 0) {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer: found min_count = ", options.min_count,
                                                   " and max_size = ", options.max_size, ", allowed from 1 and from 0 on"));
  }
  const bool cut = options.min_count > 1 || options.max_size > 0;
  if (options.kind != "word" && (cut || options.unknown)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer kind ", options.kind, ": min_count, max_size and unknown belong to the kind word"));
  }
  if (cut && !options.unknown) {
    return absl::InvalidArgumentError("tokenizer kind word: min_count above 1 and max_size need unknown = true");
  }
  if (options.kind == "byte") return ByteTokenizer::Make(options.specials);
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      options.kind == "char" ? CharTokenizer::Build(texts, options.specials) : WordTokenizer::Build(options, texts);
  WEFT_RETURN_IF_ERROR(tokenizer.status());
  if ((*tokenizer)->Serialize().symbols.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.kind, " tokenizer: the training text has no symbols", cut ? " that are frequent enough" : ""));
  }
  return tokenizer;
}

}  // namespace weft
