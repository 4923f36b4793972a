// Tokens are bytes: 256 ids, any text, nothing to learn and nothing unknown. Decode may give invalid UTF-8 where a model
// generates it. Immutable, thread-safe.
#ifndef WEFT_DATA_BYTE_TOKENIZER_H_
#define WEFT_DATA_BYTE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace weft {

class ByteTokenizer : public Tokenizer {
 public:
  static std::unique_ptr<Tokenizer> Make(bool specials) { return std::unique_ptr<Tokenizer>(new ByteTokenizer(specials)); }

  absl::string_view kind() const override { return "byte"; }
  int64_t implied_symbols() const override { return symbol_count(); }
  int64_t TryEncode(absl::string_view text, std::vector<int32_t>* ids) const override;
  std::string Decode(absl::Span<const int32_t> ids) const override;

 protected:
  std::string Symbol(int32_t id) const override { return std::string(1, static_cast<char>(id)); }

 private:
  explicit ByteTokenizer(bool specials) : Tokenizer(256, specials, /*unknown=*/false) {}
};

}  // namespace weft

#endif  // WEFT_DATA_BYTE_TOKENIZER_H_
