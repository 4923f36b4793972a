#include "data/normalizer.h"

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/random.h"
#include "data/sentencepiece_library.h"
#include "data/utf8.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr const char* kNames[] = {"nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"};

// Code points in which the rules differ: letters, marks that join what is before them, jamo, blanks, controls, wide forms.
char32_t CodePointOf(int64_t kind, int64_t draw) {
  constexpr char32_t kFirst[] = {'a',    0xC0,   0x300, 0x370,  0x1100, 0x1161, 0x11A8,
                                 0xAC00, 0x2000, 0x1,   0xFF00, 0x1E00, 0x3040, ' '};
  constexpr int64_t kCount[] = {26, 0x180, 0x70, 0x90, 19, 21, 27, 600, 0x60, 0x1F, 0xEF, 0x200, 0xC0, 1};
  static_assert(std::size(kFirst) == std::size(kCount));
  const auto k = static_cast<size_t>(kind % static_cast<int64_t>(std::size(kFirst)));
  return kFirst[k] + static_cast<char32_t>(draw % kCount[k]);
}

std::vector<std::string> RandomTexts() {
  std::vector<std::string> texts;
  for (uint64_t t = 0; t < 400; ++t) {
    const RandomKey key = RandomKey{7}.Fold(t);
    std::string& text = texts.emplace_back();
    const int64_t size = key.Below(0, 60);
    for (int64_t i = 0; i < size; ++i) AppendUtf8(CodePointOf(key.Below(3 * i + 1, 14), key.Below(3 * i + 2, 1 << 20)), &text);
  }
  return texts;
}

TEST(NormalizerTest, RandomTextsComeOutAsByTheLibrary) {
  const std::vector<std::string> texts = RandomTexts();
  for (const char* name : kNames) {
    const auto normalizer = Normalizer::Make(name);
    ASSERT_NE(normalizer, nullptr) << name;
    const std::vector<std::string> expected = library::NormalizeByLibrary(name, texts);
    ASSERT_EQ(expected.size(), texts.size());
    int64_t changed = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ((*normalizer)(texts[i]), expected[i]) << name << " " << texts[i];
      changed += expected[i] != texts[i] ? 1 : 0;
    }
    EXPECT_GT(changed, 300);
  }
  EXPECT_EQ(Normalizer::Make("nfd"), nullptr);
}

TEST(NormalizerTest, EveryCharacterComesOutAsByTheLibrary) {
  std::vector<std::string> texts;
  for (char32_t c = 1; c < 0x30000; c += c < 0x3400 || (0xF900 <= c && c < 0x10000) ? 1 : 7) {
    const bool surrogate = 0xD800 <= c && c <= 0xDFFF;
    if (surrogate || c == 0x2581) continue;
    if (texts.empty() || texts.back().size() > 300) texts.emplace_back();
    AppendUtf8(c, &texts.back());
    texts.back() += ' ';  // neighbours join to nothing
  }
  for (const char* name : kNames) {
    const auto normalizer = Normalizer::Make(name);
    const std::vector<std::string> expected = library::NormalizeByLibrary(name, texts);
    ASSERT_EQ(expected.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ((*normalizer)(texts[i]), expected[i]) << name;
  }
}

TEST(NormalizerTest, AMarkerOfTheLibraryStays) {
  for (const char* name : kNames)
    EXPECT_EQ((*Normalizer::Make(name))("\u2581a \u2581\u2581\uFF21\u2581"),
              absl::StrCat("\u2581a \u2581\u2581", (*Normalizer::Make(name))("A"), "\u2581"));
}

// What a text that is read in pieces rests on (data/text_source.h).
TEST(NormalizerTest, PartsThatAreCutBeforeSpacesComeOutAsTheWhole) {
  for (const char* name : kNames) {
    const auto normalizer = Normalizer::Make(name);
    for (const std::string& text : RandomTexts()) {
      std::string parts;
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find(' ', begin + 1), text.size());
        parts += (*normalizer)(text.substr(begin, end - begin));
        begin = end;
      }
      EXPECT_EQ(parts, (*normalizer)(text)) << name;
    }
  }
}

TEST(NormalizerTest, ALongRunOfOneCharacterTakesLinearTime) {
  // By the library's own way a million letters take half a minute; in linear time some hundredths of a second.
  for (const std::string letter : {"c", "\u65E5", "\uFF41", "\u0301"}) {
    std::string text;
    for (int64_t i = 0; i < 1000000; ++i) text += letter;
    const auto normalizer = Normalizer::Make("nfkc");
    const std::string one = (*normalizer)(letter);
    const auto start = std::chrono::steady_clock::now();
    const std::string normalized = (*normalizer)(text);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    ASSERT_EQ(normalized.size(), 1000000 * one.size());
    for (size_t i = 0; i < normalized.size(); i += one.size()) ASSERT_EQ(normalized.compare(i, one.size(), one), 0) << i;
  }
}

}  // namespace
}  // namespace weft
