#include "data/utf8.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

// C0, DEL and C1.
bool IsControl(char32_t code_point) { return code_point < 0x20 || (0x7F <= code_point && code_point < 0xA0); }

}  // namespace

int64_t DecodeUtf8(absl::string_view text, int64_t offset, char32_t* code_point) {
  const auto byte = [&](int64_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[offset + i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) {
    *code_point = lead;
    return 1;
  }
  const int64_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  // 80..BF are continuation bytes, C0 and C1 could only start overlong forms, F5.. lies above U+10FFFF.
  if (lead < 0xC2 || lead > 0xF4 || offset + length > static_cast<int64_t>(text.size())) return 0;
  uint32_t value = lead & (0x7Fu >> length);
  for (int64_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = (value << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = 0xD800 <= value && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return 0;
  *code_point = value;
  return length;
}

void AppendUtf8(char32_t code_point, std::string* text) {
  const uint32_t value = code_point;
  if (value < 0x80) {
    text->push_back(static_cast<char>(value));
    return;
  }
  const int length = value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
  const uint32_t lead_marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
  text->push_back(static_cast<char>(lead_marks[length] | (value >> (6 * (length - 1)))));
  for (int i = length - 2; i >= 0; --i) text->push_back(static_cast<char>(0x80 | ((value >> (6 * i)) & 0x3F)));
}

int64_t FindInvalidUtf8(absl::string_view text) {
  char32_t code_point;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < size;) {
    if (i + 8 <= size) {  // most text has one-byte characters in runs
      uint64_t eight;
      std::memcpy(&eight, text.data() + i, sizeof(eight));
      if ((eight & 0x8080808080808080) == 0) {
        i += 8;
        continue;
      }
    }
    const int64_t length = DecodeUtf8(text, i, &code_point);
    if (length == 0) return i;
    i += length;
  }
  return -1;
}

int64_t IncompleteUtf8Tail(absl::string_view text) {
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t length = 1; length <= 3 && length <= size; ++length) {
    const auto byte = static_cast<unsigned char>(text[size - length]);
    if ((byte & 0xC0) == 0x80) continue;  // goes on with an earlier byte
    const int64_t needed = byte >= 0xF0 ? 4 : (byte >= 0xE0 ? 3 : 2);
    return byte >= 0xC2 && byte <= 0xF4 && needed > length ? length : 0;
  }
  return 0;
}

int64_t CountCodePoints(absl::string_view text) {
  int64_t count = 0;
  char32_t code_point;
  for (int64_t i = 0; i < static_cast<int64_t>(text.size()); ++count) {
    i += std::max<int64_t>(1, DecodeUtf8(text, i, &code_point));
  }
  return count;
}

std::string CodePointName(char32_t code_point) { return absl::StrFormat("U+%04X", static_cast<uint32_t>(code_point)); }

std::string QuoteCodePoint(char32_t code_point) {
  if (IsControl(code_point)) return CodePointName(code_point);
  std::string symbol;
  AppendUtf8(code_point, &symbol);
  return absl::StrCat("\"", symbol, "\" (", CodePointName(code_point), ")");
}

std::string EscapeControls(absl::string_view text, absl::string_view kept) {
  std::string out;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    char32_t code_point;
    const int64_t length = DecodeUtf8(text, at, &code_point);
    const absl::string_view character = text.substr(at, std::max<int64_t>(1, length));
    if (length > 0 && (!IsControl(code_point) || absl::StrContains(kept, character))) {
      absl::StrAppend(&out, character);
    } else {
      for (const char c : character) absl::StrAppendFormat(&out, "\\x%02X", static_cast<unsigned char>(c));
    }
    at += static_cast<int64_t>(character.size());
  }
  return out;
}

std::string Quote(absl::string_view text, int64_t max_bytes) {
  absl::string_view shown = text.substr(0, max_bytes);
  const bool cut = shown.size() < text.size();
  if (cut) shown.remove_suffix(IncompleteUtf8Tail(shown));
  return absl::StrCat("\"", EscapeControls(shown), cut ? "\"..." : "\"");
}

}  // namespace weft
