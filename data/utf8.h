// UTF-8, strictly (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. Pure functions, thread-safe.
#ifndef WEFT_DATA_UTF8_H_
#define WEFT_DATA_UTF8_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// Decodes the code point that starts at byte `offset` into `code_point` and returns its length in bytes (1..4), or 0 if the
// bytes there are not valid UTF-8. REQUIRES: 0 <= offset < text.size().
int64_t DecodeUtf8(absl::string_view text, int64_t offset, char32_t* code_point);

// Appends the 1 to 4 bytes of `code_point`. REQUIRES: a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string* text);

// Byte offset of the first invalid sequence, or -1 in valid text.
int64_t FindInvalidUtf8(absl::string_view text);

// How many bytes at the end of `text` (0..3) may be the start of a character whose rest is missing.
int64_t IncompleteUtf8Tail(absl::string_view text);

// Number of code points in `text`; each invalid byte counts as one.
int64_t CountCodePoints(absl::string_view text);

// "U+003F", and for a message: "\"?\" (U+003F)", or the code point alone where a control character would garble the message.
std::string CodePointName(char32_t code_point);
std::string QuoteCodePoint(char32_t code_point);

// `text` as a terminal can show it: control characters but those in `kept`, and bytes that are not valid UTF-8, as \xNN.
std::string EscapeControls(absl::string_view text, absl::string_view kept = "");
// What a message quotes of a user's text: escaped, in double quotes; of a longer text than `max_bytes` the characters that fit
// into so many, and "..." behind.
std::string Quote(absl::string_view text, int64_t max_bytes = 60);

}  // namespace weft

#endif  // WEFT_DATA_UTF8_H_
