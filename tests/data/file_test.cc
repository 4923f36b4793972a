#include "data/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "autograd/base/status.h"
#include "gtest/gtest.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

TEST(AtomicWrite, ReplacesTheWholeFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(AtomicWrite(folder.Path("f"), "a much longer old text").ok());
  ASSERT_TRUE(AtomicWrite(folder.Path("f"), {"new", "", " text"}).ok());
  EXPECT_EQ(*ReadFile(folder.Path("f")), "new text");
  EXPECT_EQ(NamesIn(folder.path()), std::vector<std::string>{"f"});
}

TEST(AtomicWrite, AFailureNamesThePathAndKeepsTheOldFile) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.Path("f/inside"));
  const absl::Status status = AtomicWrite(folder.Path("f"), "text");
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_TRUE(absl::StrContains(status.message(), folder.Path("f"))) << status;
  EXPECT_EQ(NamesIn(folder.path()), std::vector<std::string>{"f"});
  EXPECT_EQ(AtomicWrite(folder.Path("none/f"), "text").code(), absl::StatusCode::kNotFound);
}

TEST(AtomicWrite, FullDiskIsReportedAndLeavesNoTemporary) {
  const TemporaryFolder folder;
  ASSERT_TRUE(AtomicWrite(folder.Path("f"), "old").ok());
  // /dev/full takes the place of the temporary: each write to it fails with "no space left".
  std::filesystem::create_symlink("/dev/full", folder.Path("f.tmp-" + std::to_string(::getpid())));
  const absl::Status status = AtomicWrite(folder.Path("f"), "new");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(*ReadFile(folder.Path("f")), "old");
  EXPECT_EQ(NamesIn(folder.path()), std::vector<std::string>{"f"});
}

TEST(AtomicWrite, KnowsTheNamesOfItsTemporaries) {
  EXPECT_TRUE(IsTemporaryName("step-1.weft.tmp-123"));
  for (const char* name : {"step-1.weft", "a.tmp-", "a.tmp-x", ".tmp-1", "a.tmp"}) EXPECT_FALSE(IsTemporaryName(name)) << name;
}

TEST(InputFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(InputFile::Open(folder.Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(InputFile::Open(folder.path()).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(::mkfifo(folder.Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(InputFile::Open(folder.Path("pipe")).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(InputFile, ReportsWhereAFileEnds) {
  const TemporaryFolder folder;
  PutBytes(folder.Path("f"), "12345");
  const absl::StatusOr<InputFile> file = InputFile::Open(folder.Path("f"));
  ASSERT_TRUE(file.ok());
  char bytes[4];
  EXPECT_TRUE(file->ReadAt(1, bytes, 4).ok());
  EXPECT_EQ(std::string(bytes, 4), "2345");
  const absl::Status status = file->ReadAt(2, bytes, 4);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(status.message(), "ends at byte 5")) << status;
}

}  // namespace
}  // namespace weft
