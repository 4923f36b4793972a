#include "data/text_file.h"

#include <cerrno>
#include <string>

#include "data/file.h"
#include "data/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/temp_file.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(TextFileTest, ByteOrderMarkAndNewlinesDoNotReachTheText) {
  const TempFile windows("windows",
                         "\xEF\xBB\xBF"
                         "a\r\nb\r\n");
  const TempFile unix_file("unix", "a\nb\n");
  ASSERT_TRUE(ReadTextFile(windows.path()).ok());
  EXPECT_EQ(*ReadTextFile(windows.path()), *ReadTextFile(unix_file.path()));
  EXPECT_EQ(Lines(*ReadTextFile(windows.path())).size(), 2);
  EXPECT_EQ(NormalizeNewlines("a\rb\r\r\nc\n\r"), "a\nb\n\nc\n\n");
}

TEST(TextFileTest, OnlyTheFirstByteOrderMarkGoes) { EXPECT_EQ(*CleanText("\xEF\xBB\xBF\xEF\xBB\xBFx", "f"), "\xEF\xBB\xBFx"); }

TEST(TextFileTest, AFileThatCannotBeReadIsNamedByItsFullPath) {
  const absl::Status folder = ReadBytes("/tmp").status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(folder), "/tmp: is a folder, expected a file");
  const absl::Status missing = ReadBytes("/tmp/../no/such/file").status();
  EXPECT_EQ(missing, FileError("/no/such/file", "cannot read", ENOENT));
  EXPECT_EQ(Message(missing), "/no/such/file: cannot read: No such file or directory");
}

TEST(TextFileTest, OneLineIsALineThatIsReadBackAsItIs) {
  for (const char* text : {"", "plain é 😀", "a\u2028b\fc", "a\nb\r\n", "\xC3", "\xE2\x82z\xFF"}) {
    const std::string line = OneLine(text);
    EXPECT_EQ(*CleanText(line + "\n", "f"), line + "\n");
    EXPECT_EQ(Lines(line + "\n").size(), 1);
  }
  EXPECT_EQ(OneLine("é😀"), "é😀");
  EXPECT_EQ(OneLine("a\nb\r\n"), "a b  ");
  EXPECT_EQ(OneLine("\xE2\x82z\xFF"), "\uFFFD\uFFFDz\uFFFD");
}

TEST(TextFileTest, LinesEndAtNewlinesOnly) {
  EXPECT_THAT(Lines("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(Lines("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(Lines("\n\n"), ElementsAre("", ""));
  EXPECT_TRUE(Lines("").empty());
  EXPECT_THAT(Lines("a\xE2\x80\xA8"
                    "b\fc"),
              ElementsAre("a\xE2\x80\xA8"
                          "b\fc"));
}

TEST(TextFileTest, InvalidUtf8IsNamedByLineOffsetAndBytes) {
  const absl::Status status = CleanText("ab\r\ncd\rx\xC3\x28zz", "notes.txt").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(status), "notes.txt:3: invalid UTF-8 at byte offset 8: found the bytes C3 28 7A 7A");
}

TEST(TextFileTest, OverlongFormsSurrogatesAndTruncatedSequencesAreInvalid) {
  for (const char* bad :
       {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "\xE2\x82", "\x80", "\xFF"}) {
    EXPECT_EQ(FindInvalidUtf8(std::string("ok") + bad), 2) << testing::PrintToString(bad);
  }
  EXPECT_EQ(FindInvalidUtf8("\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"), -1);
}

TEST(TextFileTest, EveryCodePointSurvivesUtf8) {
  for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 97) {
    if (0xD800 <= c && c <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(c, &text);
    char32_t decoded = 0;
    ASSERT_EQ(DecodeUtf8(text, 0, &decoded), static_cast<int64_t>(text.size()));
    ASSERT_EQ(decoded, c);
  }
}

TEST(TextFileTest, Utf16GetsAHint) {
  for (const std::string& bytes : {std::string("\xFF\xFE"
                                               "a\0",
                                               4),
                                   std::string("\xFE\xFF\0a", 4)}) {
    const absl::Status status = CleanText(bytes, "f").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Message(status), HasSubstr("UTF-16"));
  }
}

TEST(TextFileTest, UnreadablePathsAreNamedInFull) {
  const absl::Status missing = ReadTextFile("no_such_folder/no_such_file.txt").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(missing), testing::StartsWith("/"));
  EXPECT_THAT(Message(missing), HasSubstr("no_such_folder/no_such_file.txt"));
  const absl::Status folder = ReadTextFile(testing::TempDir()).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(folder), HasSubstr("folder"));
  EXPECT_EQ(ReadTextFile("").status().code(), absl::StatusCode::kNotFound);
}

TEST(TextFileTest, ControlCharactersStay) {
  const std::string bytes("a\0b\x01\x7F\n", 6);
  const TempFile file("nul", bytes);
  EXPECT_EQ(*ReadTextFile(file.path()), bytes);
}

TEST(TextFileTest, HashIsFnv1a) {
  // Published test vectors of FNV-1a, 64 bits.
  EXPECT_EQ(HashBytes(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(HashBytes("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(HashBytes("foobar"), 0x85944171f73967e8ull);
  EXPECT_EQ(HashBytes("bar", HashBytes("foo")), HashBytes("foobar"));
}

}  // namespace
}  // namespace weft
