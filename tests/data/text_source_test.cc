#include "data/text_source.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/random.h"
#include "data/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/temp_file.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// All pieces, or the error.
absl::StatusOr<std::vector<std::string>> Pieces(const std::string& path, int64_t piece_bytes) {
  auto reader = TextReader::Open(path, piece_bytes);
  if (!reader.ok()) return reader.status();
  std::vector<std::string> pieces;
  while (true) {
    const auto piece = reader->Next();
    if (!piece.ok()) return piece.status();
    if (piece->empty()) return pieces;
    pieces.emplace_back(*piece);
  }
}

// Letters of 1 to 4 bytes, spaces and all kinds of line ends.
std::string RandomText(uint64_t seed, int64_t symbols) {
  const std::vector<std::string> kinds = {"a",  "b",    "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", " ",
                                          "\t", "\r\n", "\r",       "\n",           "\r\r\n",           "x"};
  std::string text;
  for (int64_t i = 0; i < symbols; ++i) text += kinds[RandomKey{seed}.Below(i, static_cast<int64_t>(kinds.size()))];
  return text;
}

TEST(TextSourceTest, PiecesTogetherAreTheCleanTextForAnySizeOfPiece) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string bytes = absl::StrCat(seed % 2 == 0 ? "\xEF\xBB\xBF" : "", RandomText(seed, 300));
    const TempFile file("t", bytes);
    for (int64_t size : {4, 5, 6, 7, 16, 61, 1000}) {
      const auto pieces = Pieces(file.path(), size);
      ASSERT_TRUE(pieces.ok()) << pieces.status();
      EXPECT_EQ(absl::StrJoin(*pieces, ""), *CleanText(bytes, "f")) << seed << " " << size;
      for (const std::string& piece : *pieces) {
        EXPECT_EQ(FindInvalidUtf8(piece), -1);
        EXPECT_LT(static_cast<int64_t>(piece.size()), 2 * size + 4);
      }
    }
  }
}

TEST(TextSourceTest, ErrorsNameTheSamePlaceAsForTheWholeFile) {
  for (int64_t place = 0; place < 40; ++place) {
    std::string bytes = RandomText(3, 30);
    int64_t at = std::min<int64_t>(place, static_cast<int64_t>(bytes.size()));
    while (at > 0 && (static_cast<unsigned char>(bytes[at - 1]) >= 0x80)) --at;
    bytes.insert(at, "\xE2\x28");
    const TempFile file("t", bytes);
    for (int64_t size : {4, 5, 7, 16, 1000}) {
      EXPECT_EQ(Pieces(file.path(), size).status(), CleanText(bytes, FullPath(file.path())).status()) << at << " " << size;
    }
  }
  for (const std::string& bytes : {std::string("\xFF\xFE\x61\x00", 4), std::string("abc\nd\xC3")}) {
    const TempFile file("u", bytes);
    const absl::Status status = Pieces(file.path(), 4).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status, CleanText(bytes, FullPath(file.path())).status());
  }
}

TEST(TextSourceTest, PiecesEndBehindLinesElseBeforeSpacesElseBeforeTabsElseBetweenCharacters) {
  const TempFile lines("l", "one\ntwo\nthree\nfour\n");
  EXPECT_THAT(*Pieces(lines.path(), 10), ElementsAre("one\ntwo\n", "three\nfour\n"));
  const TempFile words("w", "one two three four five");
  EXPECT_THAT(*Pieces(words.path(), 10), ElementsAre("one two", " three four", " five"));
  // A space goes with the word after it, also where a tab is nearer to the end, and none ends a piece that starts with it.
  const TempFile mixed("m", "one two\txyz three four");
  EXPECT_THAT(*Pieces(mixed.path(), 10), ElementsAre("one", " two\txyz three", " four"));
  const TempFile first("f", " one\ttwo\tabcdefghijk");
  EXPECT_THAT(*Pieces(first.path(), 10), ElementsAre(" one\ttwo", "\tabcdefghijk"));
  const TempFile run("r", "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9");
  EXPECT_THAT(*Pieces(run.path(), 5), ElementsAre("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"));
  const TempFile longer("s", "abcdefghijkl");
  EXPECT_THAT(*Pieces(longer.path(), 5), ElementsAre("abcde", "fghij", "kl"));
}

TEST(TextSourceTest, TheHashIsThatOfTheCleanText) {
  for (const std::string& bytes : {std::string("ab\ncd"), std::string("ab\r\ncd"),
                                   std::string("\xEF\xBB\xBF"
                                               "ab\ncd")}) {
    const TempFile file("t", bytes);
    for (int64_t in_memory : {0, 1000}) {
      const auto source = TextSource::Open(file.path(), in_memory);
      ASSERT_TRUE(source.ok()) << source.status();
      EXPECT_EQ(source->is_streamed(), in_memory == 0);
      ContentPass pass(*source, 7);
      std::string text;
      ASSERT_TRUE(pass.ForEach([&](absl::string_view piece) {
                        absl::StrAppend(&text, piece);
                        return absl::OkStatus();
                      })
                      .ok());
      const auto content = pass.Finish();
      ASSERT_TRUE(content.ok());
      EXPECT_EQ(text, "ab\ncd");
      EXPECT_EQ(content->bytes, 5);
      EXPECT_EQ(content->hash, HashBytes("ab\ncd", HashBytes("5:", 7)));
      const auto nothing = [](absl::string_view) { return absl::OkStatus(); };
      EXPECT_TRUE(source->ForEachOf(*content, nothing).ok());
      const absl::Status changed = source->ForEachOf({5, content->hash + 1, 7}, nothing);
      EXPECT_EQ(changed.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(changed.message()), HasSubstr("changed while it was read"));
    }
  }
}

TEST(TextSourceTest, FilesThatCannotBeReadAreRefusedLikeSmallOnes) {
  EXPECT_EQ(TextSource::Open("no_such_file.txt", 0).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(TextSource::Open(testing::TempDir(), 0).status().code(), absl::StatusCode::kFailedPrecondition);
  const TempFile empty("e", ""), mark("m", "\xEF\xBB\xBF");
  for (const std::string& path : {empty.path(), mark.path()}) {
    EXPECT_THAT(std::string(TextSource::Open(path, 1000).status().message()), HasSubstr(": is empty"));
  }
  const auto streamed = TextSource::Open(mark.path(), 0);
  ContentPass pass(*streamed, kHashSeed);
  ASSERT_TRUE(pass.ForEach([](absl::string_view) { return absl::OkStatus(); }).ok());
  EXPECT_THAT(std::string(pass.Finish().status().message()), HasSubstr(": is empty"));
}

TEST(LineReaderTest, LinesAreThoseOfTheWholeTextForAnySizeOfPiece) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string bytes = absl::StrCat("a", RandomText(seed, 300));
    const std::string text = *CleanText(bytes, "f");
    const TempFile file("t", bytes);
    for (int64_t size : {4, 7, 61, 1000, -1}) {  // -1: held
      const auto source = TextSource::Open(file.path(), size < 0 ? 1 << 20 : 0, size);
      ASSERT_TRUE(source.ok()) << source.status();
      ContentPass pass(*source, 7);
      ASSERT_TRUE(pass.ForEach([](absl::string_view) { return absl::OkStatus(); }).ok());
      EXPECT_EQ(pass.lines(), static_cast<int64_t>(Lines(text).size()));
      auto reader = LineReader::Open(*source, *pass.Finish());
      ASSERT_TRUE(reader.ok()) << reader.status();
      std::vector<std::string> lines;
      absl::string_view line;
      for (auto more = reader->Next(&line); more.value_or(false); more = reader->Next(&line)) lines.emplace_back(line);
      EXPECT_THAT(lines, testing::ElementsAreArray(Lines(text))) << seed << " " << size;
    }
  }
}

TEST(LineReaderTest, AFileThatChangedMeanwhileIsRefused) {
  const TempFile file("t", "a\nb\n");
  const auto source = TextSource::Open(file.path(), 0);
  ASSERT_TRUE(source.ok()) << source.status();
  ContentPass pass(*source, kHashSeed);
  ASSERT_TRUE(pass.ForEach([](absl::string_view) { return absl::OkStatus(); }).ok());
  const TempFile changed("t", "a\nc\n");
  auto reader = LineReader::Open(*source, *pass.Finish());
  ASSERT_TRUE(reader.ok()) << reader.status();
  absl::string_view line;
  EXPECT_TRUE(*reader->Next(&line));
  EXPECT_TRUE(*reader->Next(&line));
  EXPECT_THAT(std::string(reader->Next(&line).status().message()), HasSubstr("changed while it was read"));
}

}  // namespace
}  // namespace weft
