// A tokenizer turns text into token ids and back. Kinds, one file each: char, byte, word. Symbols have the ids 0..n-1; special
// tokens follow them (<bos>, <eos>, <unk>, then <sep>), so that a symbol's id never depends on which specials exist. There is
// no pad token: batches are ragged. Special tokens never arise from text: "<eos>" in a file is five characters or one plain
// word. A symbol that the vocabulary lacks is an error, never silently another id (the word kind can reserve a real <unk> id).
// No Unicode normalisation and no change of newlines happens here (see NormalizeNewlines in data/text_file.h).
// Immutable once it is in use, so every method is thread-safe.
#ifndef WEFT_DATA_TOKENIZER_H_
#define WEFT_DATA_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// How to build a tokenizer.
struct TokenizerOptions {
  std::string kind = "char";  // char | byte | word
  bool specials = false;      // reserve <bos> and <eos>: what a decoder of pairs needs; LoadData sets it
  bool unknown = false;       // word: reserve <unk> for words outside the vocabulary, in place of refusing them
  int64_t min_count = 1;      // word: drop rarer words (needs unknown = true when above 1)
  int64_t max_size = 0;       // word: keep that many of the most frequent words, 0 = all (needs unknown = true when set)
};

// What a checkpoint stores of a tokenizer.
struct SerializedTokenizer {
  std::string kind;
  std::vector<std::string> symbols = {};  // in order of id; empty for byte
  bool specials = false;
  bool unknown = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Restores a tokenizer. DataLoss for an unknown kind, a duplicate or malformed symbol: a checkpoint that is not ours.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromSerialized(const SerializedTokenizer& serialized);
  SerializedTokenizer Serialize() const;
  // 64 bits that differ between different vocabularies, stable across runs and machines.
  uint64_t Fingerprint() const;

  // "char", "byte" or "word".
  virtual absl::string_view kind() const = 0;
  // Size of the vocabulary, special tokens included: ids are 0..size()-1.
  int64_t size() const { return symbol_count_ + (specials_ ? 2 : 0) + (unknown_ ? 1 : 0) + (separator_ ? 1 : 0); }
  // Ids of the special tokens, -1 where the tokenizer has none.
  int32_t bos() const { return specials_ ? static_cast<int32_t>(symbol_count_) : -1; }
  int32_t eos() const { return specials_ ? static_cast<int32_t>(symbol_count_ + 1) : -1; }
  int32_t unk() const { return unknown_ ? static_cast<int32_t>(symbol_count_ + (specials_ ? 2 : 0)) : -1; }
  // Between the columns of a source that has several (data/columns.h).
  int32_t sep() const { return separator_ ? static_cast<int32_t>(size() - 1) : -1; }
  // Makes <sep> the last id. Not part of the serialized form: the config of a checkpoint says whether there are several
  // columns. REQUIRES: the tokenizer is new, nothing has been encoded with it.
  void ReserveSeparator() { separator_ = true; }

  // The ids of `text`, without special tokens (but <unk> where reserved). FailedPrecondition for a symbol outside the
  // vocabulary or for invalid UTF-8, naming the symbol, its code point, its character position (from 1) and its byte offset
  // (from 0).
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const;
  // The same for large texts: appends to `ids` and returns -1, or the byte offset of the first symbol that has no id.
  virtual int64_t TryEncode(absl::string_view text, std::vector<int32_t>* ids) const = 0;
  // The error for the symbol at `offset`, where TryEncode stopped.
  absl::Status UnknownSymbol(absl::string_view text, int64_t offset) const;

  // The text of `ids`. <bos>, <eos> and <sep> print nothing, <unk> prints "<unk>". Decode(Encode(x)) == x for every valid text
  // with the kinds char and byte; word gives x with runs of spaces and tabs written as one space and none next to a newline.
  // REQUIRES: every id in 0..size()-1.
  virtual std::string Decode(absl::Span<const int32_t> ids) const = 0;
  // A text in the tokenizer's own spelling as Decode would write it: what a decoded answer is compared with.
  virtual std::string Detokenize(absl::string_view text) const { return std::string(text); }
  // The text of one token: its symbol (one raw byte for byte), or "<bos>", "<eos>", "<unk>", "<sep>". REQUIRES: id in
  // 0..size()-1.
  std::string TokenText(int32_t id) const;

 protected:
  Tokenizer(int64_t symbol_count, bool specials, bool unknown)
      : symbol_count_(symbol_count), specials_(specials), unknown_(unknown) {}
  // The text of symbol `id`. REQUIRES: id in 0..symbol_count()-1.
  virtual std::string Symbol(int32_t id) const = 0;
  int64_t symbol_count() const { return symbol_count_; }

 private:
  const int64_t symbol_count_;
  const bool specials_;
  const bool unknown_;
  bool separator_ = false;
};

// Builds a tokenizer from the training texts. InvalidArgument for an unknown kind or options that contradict
// each other; FailedPrecondition for texts without any symbol, DataLoss for invalid UTF-8.
absl::StatusOr<std::unique_ptr<Tokenizer>> BuildTokenizer(const TokenizerOptions& options,
                                                          absl::Span<const absl::string_view> texts);

}  // namespace weft

#endif  // WEFT_DATA_TOKENIZER_H_
