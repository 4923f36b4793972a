#include "data/token_cache.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr TokenCacheKey kKey{.content_hash = 0x1234, .fingerprint = 0xabcd, .vocabulary = 1000};

std::vector<int32_t> All(const TokenStream& stream) {
  std::vector<int32_t> ids(stream.size());
  EXPECT_TRUE(stream.Read(0, absl::MakeSpan(ids)).ok());
  return ids;
}

// A source of the ids 0 .. 999 in two parts, which counts how often it is asked.
class Source {
 public:
  absl::Status operator()(absl::FunctionRef<absl::Status(absl::Span<const int32_t>)> take) const {
    ++calls;
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 1000; ++i) ids.push_back(i);
    const absl::Status status = take(absl::MakeConstSpan(ids).first(300));
    return status.ok() ? take(absl::MakeConstSpan(ids).subspan(300)) : status;
  }
  mutable int calls = 0;
};

TEST(TokenCacheTest, IdsAreMadeOnceAndFoundAgain) {
  const TemporaryFolder folder;
  Source source;
  std::string first, second;
  const auto made = OpenOrMakeTokens(folder.Path("a/b"), kKey, source, &first);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto found = OpenOrMakeTokens(folder.Path("a/b"), kKey, source, &second);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(source.calls, 1);
  EXPECT_TRUE(found->in_file());
  EXPECT_EQ(All(*made), All(*HoldTokens(1000, source)));
  EXPECT_EQ(All(*found), All(*made));
  EXPECT_THAT(first, HasSubstr("0000000000001234-000000000000abcd.tokens, made now"));
  EXPECT_THAT(second, HasSubstr("found there"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.Path("a/b")), {}), 1);  // nothing else is left
}

TEST(TokenCacheTest, AnotherTextOrTokenizerHasAFileOfItsOwn) {
  const TemporaryFolder folder;
  Source source;
  std::string report;
  for (const TokenCacheKey& key : {kKey, TokenCacheKey{1, kKey.fingerprint, 1000}, TokenCacheKey{kKey.content_hash, 1, 1000}}) {
    EXPECT_TRUE(OpenOrMakeTokens(folder.path(), key, source, &report).ok());
  }
  EXPECT_EQ(source.calls, 3);
}

TEST(TokenCacheTest, DamagedCutAndForeignFilesAreMadeAnew) {
  const TemporaryFolder folder;
  Source source;
  std::string report;
  ASSERT_TRUE(OpenOrMakeTokens(folder.path(), kKey, source, &report).ok());
  const std::string path = TokenCachePath(folder.path(), kKey), good = BytesOf(path);
  std::vector<std::string> bad = {"",
                                  "no cache at all",
                                  good.substr(0, 63),
                                  good.substr(0, 64),
                                  good.substr(0, good.size() - 1),
                                  good.substr(0, good.size() - 2),
                                  good + "xx"};
  for (size_t at : {0, 9, 13, 16, 24, 33, 41, 49, 57, 64, 1000, 2063}) {
    bad.push_back(good);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 1);
  }
  for (const std::string& bytes : bad) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    report.clear();
    source.calls = 0;
    const auto stream = OpenOrMakeTokens(folder.path(), kKey, source, &report);
    ASSERT_TRUE(stream.ok()) << stream.status();
    EXPECT_EQ(source.calls, 1);
    EXPECT_THAT(report, HasSubstr("made anew, since the file there was damaged or not ours"));
    EXPECT_EQ(BytesOf(path), good);
  }
}

TEST(TokenCacheTest, WhatAKilledProcessLeftIsWrittenOver) {
  const TemporaryFolder folder;
  std::ofstream(TokenCachePath(folder.path(), kKey) + ".partial") << std::string(100000, 'x');
  Source source;
  std::string report;
  const auto stream = OpenOrMakeTokens(folder.path(), kKey, source, &report);
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ(All(*stream), All(*HoldTokens(1000, source)));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(TokenCacheTest, AnErrorOfTheTextIsReturnedAndLeavesNothing) {
  const TemporaryFolder folder;
  const auto fails = [](absl::FunctionRef<absl::Status(absl::Span<const int32_t>)> take) {
    EXPECT_TRUE(take({1, 2, 3}).ok());
    return absl::FailedPreconditionError("f:2: unknown character");
  };
  std::string report;
  for (const std::string& path : {folder.path(), std::string()}) {
    ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
    const absl::Status status = CacheTokens(path, kKey, fails, &report).status();
    EXPECT_EQ(status.message(), "f:2: unknown character");
  }
  ::unsetenv("XDG_CACHE_HOME");
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) EXPECT_TRUE(entry.is_directory()) << entry.path();
}

TEST(TokenCacheTest, AFolderThatCannotBeUsedIsAnErrorIfItWasNamedElseTheIdsStayInMemory) {
  const TemporaryFolder folder;
  std::ofstream(folder.Path("file")) << "x";
  Source source;
  std::string report;
  const absl::Status status = CacheTokens(folder.Path("file/cache"), kKey, source, &report).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.Path("file/cache")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("data.cache"));
  EXPECT_EQ(source.calls, 0);

  const char* old_temporary = std::getenv("TMPDIR");
  const std::string restore = old_temporary == nullptr ? "" : old_temporary;
  ::setenv("XDG_CACHE_HOME", folder.Path("file").c_str(), 1);
  ::setenv("TMPDIR", folder.Path("missing").c_str(), 1);
  const auto held = CacheTokens("", kKey, source, &report);
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  std::string second;
  const auto beside = CacheTokens("", kKey, source, &second);
  ::unsetenv("XDG_CACHE_HOME");
  restore.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", restore.c_str(), 1);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_FALSE(held->in_file());
  EXPECT_EQ(held->size(), 1000);
  EXPECT_THAT(report, HasSubstr("in memory"));
  EXPECT_THAT(report, HasSubstr("set data.cache"));
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_TRUE(beside->in_file());
  EXPECT_THAT(second, HasSubstr(folder.Path("weft-cache-")));
}

// Another user can make the folder first in a folder for all: a link to it, a file, or a folder that is open to others.
TEST(TokenCacheTest, ATemporaryFolderThatOthersCanWriteToIsNotUsed) {
  const TemporaryFolder folder;
  const char* old_temporary = std::getenv("TMPDIR");
  const std::string restore = old_temporary == nullptr ? "" : old_temporary;
  std::ofstream(folder.Path("file")) << "x";
  ::setenv("XDG_CACHE_HOME", folder.Path("file").c_str(), 1);
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  const std::vector<CacheFolder> candidates = DefaultCacheFolders();
  const std::string cache = candidates.back().path;
  Source source;
  const auto use = [&](std::string* report) {
    const auto stream = CacheTokens("", kKey, source, report);
    EXPECT_TRUE(stream.ok()) << stream.status();
    return stream.ok() && stream->in_file();
  };
  std::string made, found;
  EXPECT_TRUE(use(&made));
  EXPECT_EQ(fs::status(cache).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(use(&found));
  EXPECT_THAT(found, HasSubstr("found there"));
  for (const fs::perms open : {fs::perms::group_write, fs::perms::others_write}) {
    std::string report;
    fs::permissions(cache, fs::perms::owner_all | open);
    EXPECT_FALSE(use(&report));
    EXPECT_THAT(report, HasSubstr("in memory"));
    EXPECT_THAT(report, HasSubstr(cache + ": found a folder of user "));
    EXPECT_THAT(report, HasSubstr(open == fs::perms::group_write ? "mode 720, allowed" : "mode 702, allowed"));
  }
  fs::permissions(cache, fs::perms::owner_all);
  std::string link, file, foreign;
  fs::rename(cache, folder.Path("elsewhere"));
  fs::create_directory_symlink(folder.Path("elsewhere"), cache);
  EXPECT_FALSE(use(&link));
  EXPECT_THAT(link, HasSubstr(cache + ": found a link of user "));
  fs::remove(cache);
  std::ofstream(cache) << "x";
  EXPECT_FALSE(use(&file));
  EXPECT_THAT(file, HasSubstr(cache + ": found a file of user "));
  fs::remove(cache);
  fs::rename(folder.Path("elsewhere"), cache);
  // Only root can give a folder away, so that only root's run of this test can see another user's.
  if (::chown(cache.c_str(), 12345, static_cast<gid_t>(-1)) == 0) {
    EXPECT_FALSE(use(&foreign));
    EXPECT_THAT(foreign, HasSubstr("found a folder of user 12345 with mode 700, allowed a folder of user 0"));
  }
  ::unsetenv("XDG_CACHE_HOME");
  restore.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", restore.c_str(), 1);
}

TEST(TokenCacheTest, OfTwoProcessesAtOnceOneMakesTheFileAndBothUseIt) {
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Exits with how often it made the ids, slowly enough for all to want it at the same time; 9 for a wrong stream.
      Source source;
      std::string report;
      const auto slow = [&](absl::FunctionRef<absl::Status(absl::Span<const int32_t>)> take) {
        ::usleep(100000);
        return source(take);
      };
      const auto stream = OpenOrMakeTokens(folder.path(), kKey, slow, &report);
      const int made = source.calls;
      ::_exit(stream.ok() && All(*stream) == All(*HoldTokens(1000, source)) ? made : 9);
    }
    children.push_back(child);
  }
  int made = 0;
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    made += WEXITSTATUS(status);
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace weft
