// Tokens are Unicode code points; the vocabulary is that of the training text, sorted by code point (a plain English text of
// 65 different characters has 65 ids, as in nanoGPT's character models). Composed and decomposed letters stay different.
// Immutable, thread-safe.
#ifndef WEFT_DATA_CHAR_TOKENIZER_H_
#define WEFT_DATA_CHAR_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/tokenizer.h"

namespace weft {

class CharTokenizer : public Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Build(TextPieces texts, bool specials);
  // DataLoss for a duplicate, or a symbol that is not one code point.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromSymbols(absl::Span<const std::string> symbols, bool specials);

  absl::string_view kind() const override { return "char"; }
  int64_t TryEncode(absl::string_view text, std::vector<int32_t>* ids) const override;
  std::string Decode(absl::Span<const int32_t> ids) const override;

 protected:
  std::string Symbol(int32_t id) const override;

 private:
  CharTokenizer(std::vector<char32_t> code_points, bool specials);
  int32_t Find(char32_t code_point) const;  // -1 if absent

  std::vector<char32_t> code_points_;                 // by id
  std::array<int32_t, 128> ascii_ids_;                // -1 where absent
  std::vector<std::pair<char32_t, int32_t>> sorted_;  // code point -> id, for binary search
};

}  // namespace weft

#endif  // WEFT_DATA_CHAR_TOKENIZER_H_
