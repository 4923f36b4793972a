// Tokens are words: what stands between spaces or tabs, one or several. A newline is a word of its own. Decode joins words by
// one space, with none next to a newline, so Decode(Encode(x)) == x for text that is written so already. With a joiner ("@@")
// for text that came split ("viel@@ er"), a word that ends in it and the next one of its line are printed as one.
// The vocabulary is that of the training text, most frequent first, equal counts by text; min_count and max_size cut it, and
// <unk> then stands for the rest. Immutable, thread-safe.
#ifndef WEFT_DATA_WORD_TOKENIZER_H_
#define WEFT_DATA_WORD_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "data/tokenizer.h"

namespace weft {

class WordTokenizer : public Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Build(const TokenizerOptions& options, TextPieces texts);
  // DataLoss for a duplicate, or a symbol that no text can give (empty, or with a space in it).
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromSymbols(absl::Span<const std::string> symbols, bool specials,
                                                                bool unknown, absl::string_view joiner);

  absl::string_view kind() const override { return "word"; }
  int64_t TryEncode(absl::string_view text, std::vector<int32_t>* ids) const override;
  std::string Decode(absl::Span<const int32_t> ids) const override;
  std::string Detokenize(absl::string_view text) const override;
  int64_t UnfinishedTail(absl::string_view text) const override;

  // The word that starts at or after `*offset`, which moves behind it; empty at the end of the text.
  static absl::string_view NextWord(absl::string_view text, int64_t* offset);

 protected:
  std::string Symbol(int32_t id) const override { return words_[id]; }
  void AddSettings(SerializedTokenizer* serialized) const override { serialized->joiner = joiner_; }

 private:
  WordTokenizer(std::vector<std::string> words, bool specials, bool unknown, absl::string_view joiner);
  bool EndsInJoiner(absl::string_view text) const;

  std::vector<std::string> words_;  // by id
  const std::string joiner_;        // "": none
  absl::flat_hash_map<std::string, int32_t> ids_;
};

}  // namespace weft

#endif  // WEFT_DATA_WORD_TOKENIZER_H_
