// Classes and case of code points, by the Unicode tables of utf8proc. Text is handled as code points here; text_file.h has the
// rule that turns a file into valid UTF-8. Pure functions, thread-safe, the same for every locale.
#ifndef WEFT_DATA_UNICODE_H_
#define WEFT_DATA_UNICODE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// The code points of UTF-8 text; each invalid byte becomes U+FFFD.
std::u32string CodePoints(absl::string_view text);

// White space as Python's str.split() has it: bidirectional types WS, B and S, and category Zs.
bool IsUnicodeSpace(char32_t c);
// General categories N (numbers of all scripts), P (punctuation) and S (symbols).
bool IsUnicodeNumber(char32_t c);
bool IsUnicodePunctuation(char32_t c);
bool IsUnicodeSymbol(char32_t c);

// Lower case, without a locale (Unicode, Default Case Conversion): U+0130 becomes two code points, and a capital sigma that
// ends a word becomes U+03C2.
std::u32string LowerCase(const std::u32string& text);

}  // namespace weft

#endif  // WEFT_DATA_UNICODE_H_
