#include "data/scores/tokens.h"

#include <utility>

#include "autograd/base/check.h"
#include "data/unicode.h"

namespace weft {
namespace {

using Class = bool (*)(char32_t);

bool IsDigit(char32_t c) { return '0' <= c && c <= '9'; }
bool IsNoDigit(char32_t c) { return !IsDigit(c); }
bool IsNoNumber(char32_t c) { return !IsUnicodeNumber(c); }
bool IsPeriodOrComma(char32_t c) { return c == '.' || c == ','; }
bool IsDash(char32_t c) { return c == '-'; }
// ASCII's punctuation and symbols except ' , - .
bool Is13aMark(char32_t c) {
  return (' ' <= c && c <= '&') || ('(' <= c && c <= '+') || c == '/' || (':' <= c && c <= '@') || ('[' <= c && c <= '`') ||
         ('{' <= c && c <= '~');
}

// Spaces around every code point of the class.
std::u32string SetApart(const std::u32string& text, Class marks) {
  std::u32string spaced;
  for (char32_t c : text) {
    if (marks(c)) {
      spaced += {U' ', c, U' '};
    } else {
      spaced.push_back(c);
    }
  }
  return spaced;
}

enum class Side { kBefore, kAfter };

// Splits each `first` `second` pair by a space, with one more on a side; from the left, and no code point is in two pairs, as a
// regular expression replaces.
std::u32string SplitPairs(const std::u32string& text, Class first, Class second, Side side) {
  std::u32string spaced;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      spaced.push_back(text[i]);
      continue;
    }
    if (side == Side::kBefore) spaced.push_back(U' ');
    spaced += {text[i], U' ', text[i + 1]};
    if (side == Side::kAfter) spaced.push_back(U' ');
    ++i;
  }
  return spaced;
}

// Into a new string, since a replacement in place moves all that follows, each time.
void ReplaceAll(const std::u32string& from, const std::u32string& to, std::u32string* text) {
  size_t at = text->find(from);
  if (at == std::u32string::npos) return;
  std::u32string replaced;
  size_t begin = 0;
  for (; at != std::u32string::npos; at = text->find(from, begin)) {
    replaced.append(*text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  *text = std::move(replaced.append(*text, begin));
}

std::u32string Space13a(std::u32string line) {
  ReplaceAll(U"<skipped>", U"", &line);
  ReplaceAll(U"&quot;", U"\"", &line);
  ReplaceAll(U"&amp;", U"&", &line);
  ReplaceAll(U"&lt;", U"<", &line);
  ReplaceAll(U"&gt;", U">", &line);
  line = SetApart(U' ' + line + U' ', Is13aMark);
  line = SplitPairs(line, IsNoDigit, IsPeriodOrComma, Side::kAfter);
  line = SplitPairs(line, IsPeriodOrComma, IsNoDigit, Side::kBefore);
  return SplitPairs(line, IsDigit, IsDash, Side::kAfter);
}

std::u32string SpaceIntl(std::u32string line) {
  line = SplitPairs(line, IsNoNumber, IsUnicodePunctuation, Side::kAfter);
  line = SplitPairs(line, IsUnicodePunctuation, IsNoNumber, Side::kBefore);
  return SetApart(line, IsUnicodeSymbol);
}

}  // namespace

std::vector<std::u32string> Words(const std::u32string& text) {
  std::vector<std::u32string> words;
  bool inside = false;
  for (char32_t c : text) {
    const bool space = IsUnicodeSpace(c);
    if (!space && !inside) words.emplace_back();
    if (!space) words.back().push_back(c);
    inside = !space;
  }
  return words;
}

std::vector<std::u32string> ScoreTokens(ScoreTokenizer tokenizer, std::u32string line) {
  // A space at the end would set a last period apart from its number.
  while (!line.empty() && IsUnicodeSpace(line.back())) line.pop_back();
  switch (tokenizer) {
    case ScoreTokenizer::k13a:
      return Words(Space13a(std::move(line)));
    case ScoreTokenizer::kIntl:
      return Words(SpaceIntl(std::move(line)));
    case ScoreTokenizer::kChar:
      return Words(SetApart(line, [](char32_t) { return true; }));
    case ScoreTokenizer::kNone:
      return Words(line);
  }
  WEFT_CHECK(false) << "tokenizer " << static_cast<int>(tokenizer);
}

std::vector<int32_t> WordNumbers::Of(const std::vector<std::u32string>& words) {
  std::vector<int32_t> numbers;
  numbers.reserve(words.size());
  for (const std::u32string& word : words) {
    numbers.push_back(numbers_.try_emplace(word, static_cast<int32_t>(numbers_.size())).first->second);
  }
  return numbers;
}

}  // namespace weft
