#include "data/token_stream.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/temp_file.h"

namespace weft {
namespace {

using testing::HasSubstr;

std::vector<int32_t> All(const TokenStream& stream) {
  std::vector<int32_t> ids(stream.size());
  EXPECT_TRUE(stream.Read(0, absl::MakeSpan(ids)).ok());
  return ids;
}

// Ids that need each width, and more of them than one read of a file takes.
std::vector<int32_t> Ids(int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < 20001; ++i) ids.push_back(static_cast<int32_t>((i * 7919) % vocabulary));
  ids[5] = static_cast<int32_t>(vocabulary - 1);
  return ids;
}

TEST(TokenStreamTest, IdsComeBackFromMemoryAndFilesInEveryWidth) {
  for (int64_t vocabulary : {2, 256, 257, 65536, 65537, 1000000}) {
    EXPECT_EQ(TokenWidth(vocabulary), vocabulary <= 256 ? 1 : vocabulary <= 65536 ? 2 : 4);
    const std::vector<int32_t> ids = Ids(vocabulary);
    EXPECT_EQ(All(ids), ids);
    std::string packed = "head";
    PackTokens(ids, TokenWidth(vocabulary), &packed);
    EXPECT_EQ(packed.size(), 4 + ids.size() * TokenWidth(vocabulary));
    const TempFile file("ids", packed);
    const TokenStream stream =
        TokenStream::FromFile(*InputFile::Open(file.path()), 4, static_cast<int64_t>(ids.size()), vocabulary);
    EXPECT_TRUE(stream.in_file());
    EXPECT_EQ(All(stream), ids);
    std::vector<int32_t> some(3);
    ASSERT_TRUE(stream.Read(10000, absl::MakeSpan(some)).ok());
    EXPECT_EQ(some, std::vector<int32_t>(ids.begin() + 10000, ids.begin() + 10003));
    EXPECT_EQ(*stream.Count(ids[3]), std::count(ids.begin(), ids.end(), ids[3]));
  }
}

TEST(TokenStreamTest, ASliceIsAStreamOfItsOwnAlsoWhenTheFileIsGone) {
  const std::vector<int32_t> ids = Ids(300);
  std::string packed;
  PackTokens(ids, 2, &packed);
  TokenStream part;
  {
    const TempFile file("ids", packed);
    const TokenStream whole = TokenStream::FromFile(*InputFile::Open(file.path()), 0, static_cast<int64_t>(ids.size()), 300);
    part = *whole.Slice(100, 50);
  }
  EXPECT_EQ(All(part), std::vector<int32_t>(ids.begin() + 100, ids.begin() + 150));
  EXPECT_EQ(All(*TokenStream(ids).Slice(100, 50)), All(part));
  EXPECT_EQ(TokenStream(ids).Slice(7, 0)->size(), 0);
  std::vector<int32_t> out(1);
  EXPECT_DEATH(part.Read(50, absl::MakeSpan(out)).IgnoreError(), "50 \\+ 1 of 50");
}

TEST(TokenStreamTest, AFileThatWasCutOrOverwrittenIsAnErrorThatNamesIt) {
  const TempFile file("ids", std::string("\x00\x01\x02\x03", 4));
  const TokenStream stream = TokenStream::FromFile(*InputFile::Open(file.path()), 0, 4, 3);
  std::vector<int32_t> out(3);
  EXPECT_TRUE(stream.Read(0, absl::MakeSpan(out)).ok());
  const absl::Status foreign = stream.Read(1, absl::MakeSpan(out));
  EXPECT_EQ(foreign.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(foreign.message()), HasSubstr(file.path() + ": found a token id outside of the vocabulary of 3"));
  std::filesystem::resize_file(file.path(), 2);
  EXPECT_EQ(stream.Read(0, absl::MakeSpan(out)).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace weft
