#include "data/tokenizer.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Tokenizer> Build(const TokenizerOptions& options, const std::vector<absl::string_view>& texts) {
  auto tokenizer = BuildTokenizer(options, texts);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// Spaces, newlines, letters that other tokenizers use as markers, composed and decomposed letters, an emoji with joiner, NUL.
std::vector<std::string> HardTexts() {
  return {"",
          " ",
          "  a",
          "a  ",
          "a\n\nb\t",
          "Ġa",
          "▁a",
          "\xC3\xA9 e\xCC\x81",
          std::string(300, ' '),
          "👩\u200D🚀",
          std::string("a\0b\n", 4),
          "\x01\x7F",
          "<eos><bos>"};
}

TEST(TokenizerTest, CharAndByteRoundTripEveryText) {
  const std::vector<std::string> texts = HardTexts();
  const std::vector<absl::string_view> views(texts.begin(), texts.end());
  for (const char* kind : {"char", "byte"}) {
    const auto tokenizer = Build({.kind = kind, .specials = true}, views);
    for (const std::string& text : texts) {
      const auto ids = tokenizer->Encode(text);
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_EQ(tokenizer->Decode(*ids), text) << kind;
      for (int32_t id : *ids) {
        EXPECT_NE(id, tokenizer->bos());
        EXPECT_NE(id, tokenizer->eos());
      }
    }
  }
}

TEST(TokenizerTest, CharIdsFollowTheCodePoints) {
  const auto tokenizer = Build({.kind = "char"}, {"cab\n", "é日"});
  EXPECT_EQ(tokenizer->size(), 6);
  EXPECT_EQ(tokenizer->bos(), -1);
  EXPECT_EQ(tokenizer->eos(), -1);
  EXPECT_THAT(*tokenizer->Encode("\nabcé日"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(tokenizer->TokenText(5), "日");
}

TEST(TokenizerTest, SpecialsFollowTheSymbolsAndPrintNothing) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, {"abc"});
  EXPECT_EQ(tokenizer->size(), 5);
  EXPECT_EQ(tokenizer->bos(), 3);
  EXPECT_EQ(tokenizer->eos(), 4);
  EXPECT_EQ(tokenizer->Decode({3, 0, 2, 4}), "ac");
  EXPECT_EQ(tokenizer->TokenText(4), "<eos>");
  const auto bytes = Build({.kind = "byte", .specials = true}, {});
  EXPECT_EQ(bytes->size(), 258);
  EXPECT_THAT(*bytes->Encode(absl::string_view("a\0\xFF", 3)), ElementsAre('a', 0, 255));
}

TEST(TokenizerTest, UnknownCharactersAreNamedWithTheirPlace) {
  const auto tokenizer = Build({.kind = "char"}, {"abcé\n"});
  const absl::Status status = tokenizer->Encode("éa?c").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"?\" (U+003F) at character 3, byte offset 3"));
  const absl::Status control = tokenizer->Encode(absl::string_view("\0", 1)).status();
  EXPECT_THAT(std::string(control.message()), HasSubstr("character U+0000 at character 1, byte offset 0"));
}

TEST(TokenizerTest, InvalidUtf8InAPromptIsRefused) {
  const auto tokenizer = Build({.kind = "char"}, {"abc"});
  const absl::Status status = tokenizer->Encode("ab\xFF").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte offset 2"));
  EXPECT_EQ(BuildTokenizer({.kind = "word"}, {"ab\xFF"}).status().code(), absl::StatusCode::kDataLoss);
}

TEST(TokenizerTest, WordsAreSortedByFrequencyThenText) {
  const auto tokenizer = Build({.kind = "word"}, {"b a  c b", "\tc b\nd"});
  EXPECT_EQ(tokenizer->size(), 5);
  // b three times, c twice, then newline, a, d once each, by text.
  EXPECT_THAT(*tokenizer->Encode("b c\na d"), ElementsAre(0, 1, 2, 3, 4));
}

TEST(TokenizerTest, WordsAreJoinedByOneSpaceAndNoneAtNewlines) {
  const auto tokenizer = Build({.kind = "word"}, {"a b\nc"});
  for (absl::string_view text : {"a b", "a b\nc", "\n\na\n", "", "c\nb a"}) {
    EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode(text)), text);
  }
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("  a \t b \n c ")), "a b\nc");
}

TEST(TokenizerTest, UnknownWordsAreRefusedUnlessReserved) {
  const auto strict = Build({.kind = "word"}, {"a b a"});
  const absl::Status status = strict->Encode("a größe").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("word \"größe\" at character 3, byte offset 2"));
  const auto open = Build({.kind = "word", .specials = true, .unknown = true, .min_count = 2}, {"a b a"});
  EXPECT_EQ(open->size(), 4);
  EXPECT_EQ(open->unk(), 3);
  EXPECT_THAT(*open->Encode("a b <unk>"), ElementsAre(0, 3, 3));
  EXPECT_EQ(open->Decode({1, 0, 3, 2}), "a <unk>");
}

TEST(TokenizerTest, MaxSizeKeepsTheMostFrequentWords) {
  const auto tokenizer = Build({.kind = "word", .unknown = true, .max_size = 2}, {"c c c b b a"});
  EXPECT_EQ(tokenizer->size(), 3);
  EXPECT_THAT(*tokenizer->Encode("a b c"), ElementsAre(2, 1, 0));
}

TEST(TokenizerTest, ContradictoryOptionsAreRefused) {
  const std::vector<TokenizerOptions> bad = {{.kind = "chars"},
                                             {.kind = ""},
                                             {.kind = "word", .min_count = 2},
                                             {.kind = "word", .max_size = 5},
                                             {.kind = "word", .unknown = true, .min_count = 0},
                                             {.kind = "word", .unknown = true, .max_size = -1},
                                             {.kind = "char", .unknown = true},
                                             {.kind = "byte", .min_count = 3}};
  for (const TokenizerOptions& options : bad) {
    EXPECT_EQ(BuildTokenizer(options, {"a b"}).status().code(), absl::StatusCode::kInvalidArgument) << options.kind;
  }
  EXPECT_EQ(BuildTokenizer({.kind = "char"}, {""}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(BuildTokenizer({.kind = "word"}, {"  "}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(TokenizerTest, SavedTokenizersComeBackTheSame) {
  const std::string text = std::string("a b\nc é\0", 9) + "\x01\x7F";
  const std::vector<TokenizerOptions> all = {{.kind = "char"},
                                             {.kind = "char", .specials = true},
                                             {.kind = "byte"},
                                             {.kind = "word", .specials = true, .unknown = true}};
  std::vector<uint64_t> fingerprints;
  for (const TokenizerOptions& options : all) {
    const auto tokenizer = Build(options, {text});
    const auto restored = Tokenizer::FromSerialized(tokenizer->Serialize());
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ((*restored)->size(), tokenizer->size());
    EXPECT_EQ((*restored)->bos(), tokenizer->bos());
    EXPECT_EQ((*restored)->unk(), tokenizer->unk());
    EXPECT_EQ(*(*restored)->Encode(text), *tokenizer->Encode(text));
    EXPECT_EQ((*restored)->Fingerprint(), tokenizer->Fingerprint());
    EXPECT_THAT(fingerprints, testing::Not(testing::Contains(tokenizer->Fingerprint())));
    fingerprints.push_back(tokenizer->Fingerprint());
  }
}

TEST(TokenizerTest, RestoredIdsFollowTheStoredOrder) {
  const auto tokenizer = Tokenizer::FromSerialized({.kind = "char", .symbols = {"z", "é", "a"}});
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_THAT(*(*tokenizer)->Encode("aéz"), ElementsAre(2, 1, 0));
}

TEST(TokenizerTest, DamagedSavedTokenizersAreRefused) {
  const std::vector<SerializedTokenizer> bad = {{.kind = "char", .symbols = {"a", "b", "a"}},
                                                {.kind = "char", .symbols = {"ab"}},
                                                {.kind = "char", .symbols = {""}},
                                                {.kind = "char", .symbols = {"\xFF"}},
                                                {.kind = "char", .symbols = {"a"}, .unknown = true},
                                                {.kind = "byte", .symbols = {"a"}},
                                                {.kind = "word", .symbols = {"a", "a"}},
                                                {.kind = "word", .symbols = {"a b"}},
                                                {.kind = "word", .symbols = {""}},
                                                {.kind = "bytes"}};
  for (const SerializedTokenizer& serialized : bad) {
    EXPECT_EQ(Tokenizer::FromSerialized(serialized).status().code(), absl::StatusCode::kDataLoss) << serialized.kind;
  }
}

TEST(TokenizerDeathTest, IdsOutsideTheVocabularyAreABug) {
  const auto tokenizer = Build({.kind = "char"}, {"abc"});
  EXPECT_DEATH(tokenizer->Decode({3}), "vocabulary of 3");
  EXPECT_DEATH(tokenizer->TokenText(-1), "vocabulary of 3");
}

}  // namespace
}  // namespace weft
