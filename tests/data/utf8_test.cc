#include "data/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(QuoteTest, ControlCharactersAndInvalidBytesAreEscaped) {
  EXPECT_EQ(Quote("caf\xC3\xA9 \\ \xE6\x97\xA5"), "\"caf\xC3\xA9 \\ \xE6\x97\xA5\"");
  EXPECT_EQ(Quote(std::string("a\0b", 3)), "\"a\\x00b\"");
  EXPECT_EQ(Quote("\x1B[31m\t\x7F\n"), "\"\\x1B[31m\\x09\\x7F\\x0A\"");
  EXPECT_EQ(Quote("\xC2\x9B"), "\"\\xC2\\x9B\"");  // U+009B, which starts an escape sequence too
  EXPECT_EQ(Quote("\xFFz\xE2\x82"), "\"\\xFFz\\xE2\\x82\"");
  EXPECT_EQ(Quote(""), "\"\"");
}

TEST(QuoteTest, LongTextIsCutAtACharacter) {
  EXPECT_EQ(Quote("abc", 3), "\"abc\"");
  EXPECT_EQ(Quote("abcd", 3), "\"abc\"...");
  const std::string euro = "\xE2\x82\xAC";
  EXPECT_EQ(Quote("a" + euro + euro, 4), "\"a" + euro + "\"...");
  EXPECT_EQ(Quote("a" + euro + euro, 5), "\"a" + euro + "\"...");
  EXPECT_EQ(Quote("a" + euro + euro, 6), "\"a" + euro + "\"...");
  EXPECT_EQ(Quote("a" + euro + euro, 7), "\"a" + euro + euro + "\"");
  EXPECT_EQ(Quote(std::string(1000000, 'x')).size(), 65u);
}

TEST(EscapeControlsTest, SomeMayBeKept) { EXPECT_EQ(EscapeControls("a\tb\nc\rd", "\t\n"), "a\tb\nc\\x0Dd"); }

}  // namespace
}  // namespace weft
