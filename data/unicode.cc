#include "data/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>

#include "data/utf8.h"

namespace weft {
namespace {

utf8proc_category_t Category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool Within(utf8proc_category_t category, utf8proc_category_t first, utf8proc_category_t last) {
  return first <= category && category <= last;
}

// Cased and Case_Ignorable of Unicode's chapter 3.13, as far as utf8proc's categories and the few code points beside them tell.
bool IsCased(char32_t c) {
  return Within(Category(c), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LT) || c == 0xAA || c == 0xBA ||
         (0x2160 <= c && c <= 0x217F) || (0x24B6 <= c && c <= 0x24E9);
}

bool IsCaseIgnorable(char32_t c) {
  constexpr char32_t kInsideWords[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                       0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::find(std::begin(kInsideWords), std::end(kInsideWords), c) != std::end(kInsideWords);
  }
}

// Final_Sigma: a cased letter before, none after, case-ignorable code points between them left out.
bool IsFinalSigma(const std::u32string& text, size_t place) {
  size_t before = place;
  while (before > 0 && IsCaseIgnorable(text[before - 1])) --before;
  if (before == 0 || !IsCased(text[before - 1])) return false;
  size_t after = place + 1;
  while (after < text.size() && IsCaseIgnorable(text[after])) ++after;
  return after == text.size() || !IsCased(text[after]);
}

}  // namespace

std::u32string CodePoints(absl::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  for (int64_t i = 0; i < static_cast<int64_t>(text.size());) {
    char32_t c;
    const int64_t length = DecodeUtf8(text, i, &c);
    points.push_back(length > 0 ? c : U'\uFFFD');
    i += std::max<int64_t>(1, length);
  }
  return points;
}

bool IsUnicodeSpace(char32_t c) {
  return (0x09 <= c && c <= 0x0D) || (0x1C <= c && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (0x2000 <= c && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsUnicodeNumber(char32_t c) { return Within(Category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }
bool IsUnicodePunctuation(char32_t c) { return Within(Category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO); }
bool IsUnicodeSymbol(char32_t c) { return Within(Category(c), UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO); }

std::u32string LowerCase(const std::u32string& text) {
  std::u32string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c == 0x130) {
      lower += U"i\u0307";
    } else if (c == 0x3A3) {
      lower.push_back(IsFinalSigma(text, i) ? 0x3C2 : 0x3C3);
    } else {
      lower.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return lower;
}

}  // namespace weft
