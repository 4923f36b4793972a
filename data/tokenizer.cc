#include "data/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/check.h"
#include "autograd/base/fields.h"
#include "autograd/base/status.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/sentencepiece_tokenizer.h"
#include "data/text_file.h"
#include "data/tokenizer_file.h"
#include "data/utf8.h"
#include "data/word_tokenizer.h"

namespace weft {
namespace {

// The largest vocabulary we read back: ids are int32 and specials follow.
constexpr size_t kMaxSymbols = size_t{1} << 30;

constexpr char kKinds[] = "char, byte, word, bpe or unigram";

bool OfPieces(absl::string_view kind) { return kind == "bpe" || kind == "unigram"; }

// A number as eight bytes, the same on every machine.
std::string NumberBytes(uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(number >> (8 * i)));
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromSerialized(const SerializedTokenizer& serialized) {
  const std::vector<std::string>& symbols = serialized.symbols;
  if (symbols.size() > kMaxSymbols) return absl::DataLossError(absl::StrCat("tokenizer: ", symbols.size(), " symbols"));
  std::vector<absl::string_view> sorted(symbols.begin(), symbols.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return absl::DataLossError(
        absl::StrCat(EscapeControls(serialized.kind), " tokenizer: the symbol ", Quote(*twice), " appears twice"));
  }
  if (OfPieces(serialized.kind) && serialized.joiner.empty()) return SentencePieceTokenizer::FromSerialized(serialized);
  if (!serialized.scores.empty() || serialized.byte_fallback || !serialized.normalization.empty()) {
    return absl::DataLossError(
        absl::StrCat(EscapeControls(serialized.kind), " tokenizer: has settings of the kinds bpe and unigram"));
  }
  if (serialized.kind == "word") {
    return WordTokenizer::FromSymbols(symbols, serialized.specials, serialized.unknown, serialized.joiner);
  }
  if (serialized.unknown || !serialized.joiner.empty()) {
    return absl::DataLossError(absl::StrCat(EscapeControls(serialized.kind), " tokenizer: has ",
                                            serialized.unknown ? "an <unk>" : "a joiner", ", which its kind cannot have"));
  }
  if (serialized.kind == "char") return CharTokenizer::FromSymbols(symbols, serialized.specials);
  if (serialized.kind == "byte") {
    if (symbols.empty()) return ByteTokenizer::Make(serialized.specials);
    return absl::DataLossError(absl::StrCat("byte tokenizer: ", symbols.size(), " symbols stored, expected none"));
  }
  return absl::DataLossError(absl::StrCat("tokenizer: kind ", Quote(serialized.kind), ", expected ", kKinds));
}

SerializedTokenizer Tokenizer::Serialize() const {
  SerializedTokenizer out;
  out.kind = std::string(kind());
  out.specials = specials_;
  out.unknown = unknown_;
  AddSettings(&out);
  for (int32_t id = static_cast<int32_t>(implied_symbols()); id < symbol_count_; ++id) out.symbols.push_back(Symbol(id));
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
  SerializedTokenizer settings;
  AddSettings(&settings);
  if (!settings.joiner.empty()) hash = HashBytes(settings.joiner, HashBytes("joiner ", hash));
  if (settings.scores.empty()) return hash;
  hash = HashBytes(absl::StrCat(settings.byte_fallback, " ", settings.normalization), hash);
  for (float score : settings.scores) {
    uint32_t bits;
    std::memcpy(&bits, &score, sizeof(bits));
    hash = HashBytes(NumberBytes(bits), hash);
  }
  return hash;
}

int64_t Tokenizer::TrySample(absl::string_view text, const SubwordSampling& /*sampling*/, RandomKey /*key*/,
                             std::vector<int32_t>* ids) const {
  return TryEncode(text, ids);
}

int64_t Tokenizer::UnfinishedTail(absl::string_view text) const { return IncompleteUtf8Tail(text); }

std::string DescribeMismatch(const Tokenizer& found, const Tokenizer& expected) {
  const auto describe = [](const Tokenizer& tokenizer) {
    return absl::StrFormat("%s of %d ids, hash %016x", tokenizer.kind(), tokenizer.size(), tokenizer.Fingerprint());
  };
  return absl::StrCat("found the tokenizer ", describe(found), ", expected ", describe(expected));
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
    symbol = word == "\n" ? "word U+000A (a newline)" : absl::StrCat("word ", Quote(word));
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
                                                          absl::Span<const absl::string_view> texts, std::string* notes) {
  const auto pieces = [&](absl::FunctionRef<absl::Status(absl::string_view)> take) -> absl::Status {
    for (absl::string_view text : texts) WEFT_RETURN_IF_ERROR(take(text));
    return absl::OkStatus();
  };
  return BuildTokenizer(options, pieces, notes);
}

absl::Status CheckTokenizerOptions(const TokenizerOptions& options) {
  const bool pieces = OfPieces(options.kind), word = options.kind == "word";
  const auto refuse = [&](auto... what) { return absl::InvalidArgumentError(absl::StrCat("tokenizer", what...)); };
  if (!pieces && !word && options.kind != "char" && options.kind != "byte") {
    return refuse(" kind: found ", Quote(options.kind), ", allowed ", kKinds);
  }
  if (options.min_count < 1 || options.max_size < 0 || options.vocab_size < 0) {
    return refuse(": found min_count = ", options.min_count, ", max_size = ", options.max_size,
                  " and vocab_size = ", options.vocab_size, ", allowed from 1, from 0 and from 0 on");
  }
  const bool cut = options.min_count > 1 || options.max_size > 0;
  if (!word && (cut || !options.joiner.empty())) {
    return refuse(" kind ", options.kind, ": min_count, max_size and joiner belong to the kind word");
  }
  if (cut && !options.unknown) return refuse(" kind word: min_count above 1 and max_size need unknown = true");
  if (options.joiner.find_first_of(" \t\n") != std::string::npos) {
    return refuse(" kind word: found a space, tab or newline in joiner, which no word has");
  }
  if (options.unknown && !word && (!pieces || options.byte_fallback)) {
    return refuse(" kind ", options.kind, ": has no unknown symbols, so unknown = true has no meaning",
                  pieces ? " without byte_fallback = false" : "");
  }
  const SubwordSampling& sampling = options.sampling;
  if (!(sampling.bpe_dropout >= 0 && sampling.bpe_dropout <= 1) || !(sampling.alpha >= 0 && std::isfinite(sampling.alpha))) {
    return refuse(": found sampling by bpe_dropout = ", sampling.bpe_dropout, ", alpha = ", sampling.alpha,
                  ", allowed from 0 to 1, and above 0");
  }
  if ((sampling.bpe_dropout > 0 && options.kind != "bpe") || (sampling.alpha > 0 && options.kind != "unigram")) {
    return refuse(" kind ", options.kind, ": sampling by bpe_dropout belongs to the kind bpe, by alpha to unigram");
  }
  if (!pieces && options.vocab_size > 0) return refuse(" kind ", options.kind, ": vocab_size belongs to bpe and unigram");
  if (!pieces || !options.file.empty()) return absl::OkStatus();
  if (options.vocab_size == 0) return refuse(" kind ", options.kind, ": vocab_size is missing");
  if (!(options.character_coverage >= kMinCharacterCoverage && options.character_coverage <= 1)) {
    return refuse(": found character_coverage = ", FormatDouble(options.character_coverage), ", allowed from ",
                  kMinCharacterCoverage, " to 1");
  }
  if (options.character_coverage < 1 && !options.byte_fallback && !options.unknown) {
    return refuse(": character_coverage below 1 needs byte_fallback = true or unknown = true for the characters it leaves out");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> BuildTokenizer(const TokenizerOptions& options, TextPieces texts,
                                                          std::string* notes) {
  WEFT_RETURN_IF_ERROR(CheckTokenizerOptions(options));
  if (!options.file.empty()) {
    WEFT_ASSIGN_OR_RETURN(SerializedTokenizer stored, LoadTokenizerFile(options.file));
    if (stored.kind != options.kind) {
      return absl::FailedPreconditionError(absl::StrCat(FullPath(options.file), ": is a tokenizer of kind ",
                                                        EscapeControls(stored.kind), ", expected ", options.kind));
    }
    stored.specials = options.specials;
    return Tokenizer::FromSerialized(stored);
  }
  if (options.kind == "byte") return ByteTokenizer::Make(options.specials);
  if (OfPieces(options.kind)) return SentencePieceTokenizer::Build(options, texts, notes);
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      options.kind == "char" ? CharTokenizer::Build(texts, options.specials) : WordTokenizer::Build(options, texts);
  WEFT_RETURN_IF_ERROR(tokenizer.status());
  if ((*tokenizer)->Serialize().symbols.empty()) {
    const bool cut = options.min_count > 1 || options.max_size > 0;
    return absl::FailedPreconditionError(
        absl::StrCat(options.kind, " tokenizer: the training text has no symbols", cut ? " that are frequent enough" : ""));
  }
  return tokenizer;
}

}  // namespace weft
