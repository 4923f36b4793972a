// Tokens are pieces of words, learned by SentencePiece: kinds "bpe" and "unigram". A space belongs to the word that follows it,
// and no piece reaches into the next word or line, so the encoding of a word depends on nothing around it. Pieces hold the text
// as it is: no marker stands for a space, and Decode(Encode(x)) == x for every text unless a normalisation is named.
// Ids: with byte_fallback 0..255 are bytes, which stand for characters without a piece (and 10 for a newline); then the pieces
// in the library's order; without byte_fallback, then "\n" and those characters of the text that the library cannot learn (tab,
// NUL, U+2581, U+2585). Special tokens follow. Without byte_fallback a character that has no piece is unknown.
// Immutable, thread-safe.
#ifndef WEFT_DATA_SENTENCEPIECE_TOKENIZER_H_
#define WEFT_DATA_SENTENCEPIECE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "data/piece_segmenter.h"
#include "data/piece_training.h"
#include "data/tokenizer.h"

namespace weft {

class Normalizer;

class SentencePieceTokenizer : public Tokenizer {
 public:
  // Learns from texts; InvalidArgument for a vocab_size that they cannot give. What was left out is appended to `notes`.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Build(const TokenizerOptions& options, TextPieces texts,
                                                          std::string* notes);
  // DataLoss for pieces, scores or settings that Build cannot have made.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromSerialized(const SerializedTokenizer& serialized);
  ~SentencePieceTokenizer() override;

  absl::string_view kind() const override { return bpe_ ? "bpe" : "unigram"; }
  int64_t implied_symbols() const override { return bytes_; }
  int64_t TryEncode(absl::string_view text, std::vector<int32_t>* ids) const override;
  int64_t TrySample(absl::string_view text, const SubwordSampling& sampling, RandomKey key,
                    std::vector<int32_t>* ids) const override;
  std::string Decode(absl::Span<const int32_t> ids) const override;

 protected:
  std::string Symbol(int32_t id) const override;
  void AddSettings(SerializedTokenizer* serialized) const override;

 private:
  SentencePieceTokenizer(const SerializedTokenizer& serialized, std::unique_ptr<Normalizer> normalizer);
  // Appends the ids of `line` (without newline, normalised) or returns the byte offset of an unknown character. `cut(word,
  // spans)` appends the pieces of a word.
  template <class Cut>
  int64_t EncodeLine(absl::string_view line, const Cut& cut, std::vector<PieceSpan>* spans, std::vector<int32_t>* ids) const;
  template <class Cut>
  int64_t EncodeLines(absl::string_view text, const Cut& cut, std::vector<int32_t>* ids) const;
  // Where in `line` the unknown character at `offset` of its normalised form comes from.
  int64_t UnknownBeforeNormalization(absl::string_view line) const;

  const bool bpe_;
  const int32_t bytes_;  // ids of bytes: 256 or 0
  const std::string normalization_;
  const std::vector<std::string> pieces_;
  const std::vector<float> scores_;
  const PieceSegmenter segmenter_;
  const std::unique_ptr<Normalizer> normalizer_;  // null: none
  int32_t newline_;                               // its id, -1: unknown
};

}  // namespace weft

#endif  // WEFT_DATA_SENTENCEPIECE_TOKENIZER_H_
