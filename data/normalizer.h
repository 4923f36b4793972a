// The named normalisations of text, nfkc, nfkc_cf, nmt_nfkc and nmt_nfkc_cf, by the rules of the SentencePiece library: at each
// place the longest rule that fits replaces what it fits, else one character stays. That is what the library does before it
// encodes; it has no call for it alone, and its own encoding takes time that grows with the square of a run of characters.
// U+2581 stays as it is, since Weft has no marker for a space. No rule has a space behind its start, and none starts with one,
// so a text may be normalised in parts that are cut before spaces.
// The rules come from the library at run time, never from a file. Immutable, thread-safe.
#ifndef WEFT_DATA_NORMALIZER_H_
#define WEFT_DATA_NORMALIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

class Normalizer {
 public:
  // Null for a name that the library does not have.
  static std::unique_ptr<Normalizer> Make(const std::string& name);
  // In time linear in the size. REQUIRES: valid UTF-8.
  std::string operator()(absl::string_view text) const;

 private:
  Normalizer() = default;
  // How many bytes at the start of `text` the longest rule replaces, 0 for none, and by what.
  size_t LongestRule(absl::string_view text, absl::string_view* replacement) const;
  void Append(absl::string_view text, std::string* out) const;

  // What the rules replace, as a double array: the units of Darts-clone, which the library uses. A node is the place of its
  // unit; its child by a byte is at (node's offset) xor byte, if the unit there has that label. The child by 0 has the value,
  // the place of the replacement.
  std::vector<uint32_t> units_;
  std::string replacements_;  // a NUL behind each
};

}  // namespace weft

#endif  // WEFT_DATA_NORMALIZER_H_
