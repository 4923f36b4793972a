// A tokenizer turns text into token ids and back. Kinds: char, byte, word, and by SentencePiece bpe and unigram. Symbols have
// the ids 0..n-1; special tokens follow them (<bos>, <eos>, <unk>, then <sep>), so that a symbol's id never depends on which
// specials exist. There is no pad token: batches are ragged. Special tokens never arise from text: "<eos>" in a file is five
// characters or one plain word. A symbol that the vocabulary lacks is an error, never silently another id (word, bpe and
// unigram can reserve a real <unk> id). No Unicode normalisation happens unless the options name one, and no change of newlines
// (see NormalizeNewlines in data/text_file.h). Immutable once it is in use, so every method is thread-safe.
#ifndef WEFT_DATA_TOKENIZER_H_
#define WEFT_DATA_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/base/random.h"

namespace weft {

// How training texts are segmented anew in each epoch. One of the two is set, or none: always the plain encoding.
struct SubwordSampling {
  double bpe_dropout = 0;  // bpe: probability in [0, 1] that a merge is left out at a step
  double alpha = 0;        // unigram: a segmentation x is drawn with P(x)^alpha / Z; > 0
  bool on() const { return bpe_dropout > 0 || alpha > 0; }
};

// What TokenizerOptions::normalization may name besides "none".
inline constexpr absl::string_view kNormalizations[] = {"nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"};

// The smallest TokenizerOptions::character_coverage that the library learns with.
inline constexpr double kMinCharacterCoverage = 0.98;

// How to build a tokenizer.
struct TokenizerOptions {
  std::string kind = "char";  // char | byte | word | bpe | unigram
  bool specials = false;      // reserve <bos> and <eos>: what a decoder of pairs needs; LoadData sets it
  bool unknown = false;       // word, bpe, unigram: reserve <unk> for what is outside the vocabulary, in place of refusing it
  int64_t min_count = 1;      // word: drop rarer words (needs unknown = true when above 1)
  int64_t max_size = 0;       // word: keep that many of the most frequent words, 0 = all (needs unknown = true when set)
  std::string joiner = "";    // word: a word that ends in it is printed without the space that follows
  // bpe, unigram:
  int64_t vocab_size = 0;              // symbols, without special tokens; required
  bool byte_fallback = true;           // 256 bytes stand for characters without a piece; false: those are unknown
  double character_coverage = 1;       // part of the characters of the text that get a piece, the most frequent; in [0.98, 1]
  std::string normalization = "none";  // of every text before it is encoded
  SubwordSampling sampling = {};       // of training texts; no part of the tokenizer itself
  // Path of a tokenizer file of this kind (data/tokenizer_file.h) to use in place of building one; of the other options only
  // specials and sampling then hold.
  std::string file = "";
};

// What a checkpoint stores of a tokenizer.
struct SerializedTokenizer {
  std::string kind;
  std::vector<std::string> symbols = {};  // in order of id, without the bytes of byte and of byte_fallback
  bool specials = false;
  bool unknown = false;
  std::string joiner = {};  // word
  // bpe, unigram; of the others none, false and "".
  std::vector<float> scores = {};  // of each symbol
  bool byte_fallback = false;
  std::string normalization = {};
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Restores a tokenizer. DataLoss for an unknown kind, a duplicate or malformed symbol: a checkpoint that is not ours.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromSerialized(const SerializedTokenizer& serialized);
  SerializedTokenizer Serialize() const;
  // 64 bits that differ between different vocabularies or settings, stable across runs and machines.
  uint64_t Fingerprint() const;

  // "char", "byte", "word", "bpe" or "unigram".
  virtual absl::string_view kind() const = 0;
  // Size of the vocabulary, special tokens included: ids are 0..size()-1.
  int64_t size() const { return symbol_count_ + (specials_ ? 2 : 0) + (unknown_ ? 1 : 0) + (separator_ ? 1 : 0); }
  // How many of the first symbols follow from the kind and its settings (bytes), so that they are not stored.
  virtual int64_t implied_symbols() const { return 0; }
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
  // TryEncode by a random segmentation, a function of `key` alone. Kinds without one, and sampling that is off, encode as ever.
  virtual int64_t TrySample(absl::string_view text, const SubwordSampling& sampling, RandomKey key,
                            std::vector<int32_t>* ids) const;
  // The error for the symbol at `offset`, where TryEncode stopped.
  absl::Status UnknownSymbol(absl::string_view text, int64_t offset) const;

  // The text of `ids`. <bos>, <eos> and <sep> print nothing, <unk> prints "<unk>". Decode(Encode(x)) == x for every valid text
  // with the kinds char and byte, and bpe and unigram without normalisation (and without <unk>); word gives x with runs of
  // spaces and tabs written as one space and none next to a newline, and words joined where they end in the joiner.
  // REQUIRES: every id in 0..size()-1.
  virtual std::string Decode(absl::Span<const int32_t> ids) const = 0;
  // A reference as generated text is compared with it: for word with a joiner the words joined as Decode joins them; else as it
  // is. So what else the tokenizer loses of a text (by normalisation, <unk>, runs of spaces) counts as an error of the model.
  virtual std::string Detokenize(absl::string_view text) const { return std::string(text); }
  // How many bytes at the end of `text`, which Decode made, may still change when more tokens follow: those of an incomplete
  // character, and of a last word that ends in the joiner.
  virtual int64_t UnfinishedTail(absl::string_view text) const;
  // The text of one token: its symbol (one raw byte for byte), or "<bos>", "<eos>", "<unk>", "<sep>". REQUIRES: id in
  // 0..size()-1.
  std::string TokenText(int32_t id) const;

 protected:
  Tokenizer(int64_t symbol_count, bool specials, bool unknown)
      : symbol_count_(symbol_count), specials_(specials), unknown_(unknown) {}
  // The text of symbol `id`. REQUIRES: id in 0..symbol_count()-1.
  virtual std::string Symbol(int32_t id) const = 0;
  // Fills in what Serialize shall say besides symbols and special tokens.
  virtual void AddSettings(SerializedTokenizer* /*serialized*/) const {}
  int64_t symbol_count() const { return symbol_count_; }

 private:
  const int64_t symbol_count_;
  const bool specials_;
  const bool unknown_;
  bool separator_ = false;
};

// Texts that are too large, or too many, to be held at once: calls its argument with one after the other, and returns its first
// error, or one of its own. May be called several times. A piece of a file counts as a text: no token goes from one to the
// next.
using TextPieces = absl::FunctionRef<absl::Status(absl::FunctionRef<absl::Status(absl::string_view piece)> take)>;

// InvalidArgument for an unknown kind or options that contradict each other, whatever the texts.
absl::Status CheckTokenizerOptions(const TokenizerOptions& options);
// Builds a tokenizer from the training texts, or reads options.file. Errors of CheckTokenizerOptions; InvalidArgument for a
// vocab_size that the texts cannot give; FailedPrecondition for texts without any symbol, DataLoss for invalid UTF-8; those of
// LoadTokenizerFile and of `texts`. What the log should say of left out text is appended to `notes` unless null, a line each.
absl::StatusOr<std::unique_ptr<Tokenizer>> BuildTokenizer(const TokenizerOptions& options, TextPieces texts,
                                                          std::string* notes = nullptr);
absl::StatusOr<std::unique_ptr<Tokenizer>> BuildTokenizer(const TokenizerOptions& options,
                                                          absl::Span<const absl::string_view> texts,
                                                          std::string* notes = nullptr);
// "found tokenizer HASH, expected HASH": the fingerprints of two that differ, for a message.
std::string DescribeMismatch(const Tokenizer& found, const Tokenizer& expected);

}  // namespace weft

#endif  // WEFT_DATA_TOKENIZER_H_
