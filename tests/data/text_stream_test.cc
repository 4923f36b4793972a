// Texts in pieces: no piece cuts a character, and all of them are the text of all tokens.
#include "data/text_stream.h"

#include "autograd/base/random.h"
#include "data/utf8.h"
#include "gmock/gmock.h"

namespace weft {
namespace {

using testing::ElementsAre;

std::unique_ptr<Tokenizer> Make(const char* kind, absl::string_view text = "a") {
  auto tokenizer = BuildTokenizer({.kind = kind}, {text});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<int32_t> Ids(absl::string_view bytes) {
  std::vector<int32_t> ids;
  for (char byte : bytes) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

std::vector<std::string> Pieces(const Tokenizer& tokenizer, absl::Span<const int32_t> ids) {
  TextStream stream(tokenizer);
  std::vector<std::string> pieces;
  for (int32_t id : ids) pieces.push_back(stream.Push(id));
  pieces.push_back(stream.Finish());
  return pieces;
}

TEST(TextStream, B079_CharactersSplitOverTokensComeOutWhole) {
  const auto bytes = Make("byte");
  EXPECT_THAT(Pieces(*bytes, Ids("\xE5\x9C\xB0")), ElementsAre("", "", "\xE5\x9C\xB0", ""));
  EXPECT_THAT(Pieces(*bytes, Ids("\xF0\x9F\x98\x80")), ElementsAre("", "", "", "\xF0\x9F\x98\x80", ""));
  EXPECT_THAT(Pieces(*bytes, Ids("\x80"
                                 "a")),
              ElementsAre("\x80", "a", ""));  // stray: nothing to wait for
  // The end comes in the middle of a character: what is there comes out once.
  EXPECT_THAT(Pieces(*bytes, Ids("a\xE5\x9C")), ElementsAre("a", "", "", "\xE5\x9C"));
}

TEST(TextStream, B079_PiecesAreTheTextOfAllTokens) {
  const auto bytes = Make("byte");
  for (uint64_t seed = 0; seed < 200; ++seed) {
    // Lead and continuation bytes of all kinds, in any order.
    const std::vector<int32_t> some =
        Ids("\xF0\x9F\x98\x80\xE5\x9C\xB0\xC3\xA9\xC0\xFF"
            "a\n");
    std::vector<int32_t> ids;
    for (int i = 0; i < 30; ++i) ids.push_back(some[RandomKey{seed}.Below(i, static_cast<int64_t>(some.size()))]);
    const std::string whole = bytes->Decode(ids);
    EXPECT_EQ(ContinuationText(*bytes, {}, ids), whole);
    TextStream stream(*bytes);
    std::string printed;
    for (int32_t id : ids) {
      printed += stream.Push(id);
      // What is held back is less than a character; only broken bytes, one lead byte after another, may wait longer.
      if (FindInvalidUtf8(whole) < 0) {
        EXPECT_EQ(IncompleteUtf8Tail(printed), 0);
      }
    }
    EXPECT_EQ(printed + stream.Finish(), whole);
  }
}

TEST(TextStream, WordsGetTheSpacesThatTheWholeTextHas) {
  const auto words = Make("word", "the cat\nsat down");
  const std::vector<int32_t> ids = *words->Encode("the cat sat\ndown the cat");
  EXPECT_THAT(Pieces(*words, ids), ElementsAre("the", " cat", " sat", "\n", "down", " the", " cat", ""));
  const auto all = absl::MakeConstSpan(ids);
  for (size_t cut = 0; cut <= ids.size(); ++cut) {
    EXPECT_EQ(words->Decode(all.first(cut)) + ContinuationText(*words, all.first(cut), all.subspan(cut)), words->Decode(ids));
  }
}

TEST(Utf8, IncompleteTailsAreCounted) {
  EXPECT_EQ(IncompleteUtf8Tail(""), 0);
  EXPECT_EQ(IncompleteUtf8Tail("a"), 0);
  EXPECT_EQ(IncompleteUtf8Tail("a\xC3"), 1);
  EXPECT_EQ(IncompleteUtf8Tail("\xC3\xA9"), 0);
  EXPECT_EQ(IncompleteUtf8Tail("\xE5\x9C"), 2);
  EXPECT_EQ(IncompleteUtf8Tail("\xF0\x9F\x98"), 3);
  EXPECT_EQ(IncompleteUtf8Tail("\xF0\x9F\x98\x80"), 0);
  for (const char* broken : {"\x80", "\x80\x80\x80\x80", "\xC0", "\xC1", "\xF5", "\xFF", "\xC3\x80\x80"}) {
    EXPECT_EQ(IncompleteUtf8Tail(broken), 0) << broken;
  }
}

}  // namespace
}  // namespace weft
