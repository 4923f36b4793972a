#include "data/file.h"

#include <fcntl.h>
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

TEST(WriteOutput, ReplacesAFileButNotTheLinkToIt) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.Path("d"));
  std::filesystem::create_symlink("d/b", folder.Path("a"));
  std::filesystem::create_symlink("c", folder.Path("d/b"));
  for (const char* text : {"new where the links lead", "once more"}) {
    ASSERT_TRUE(WriteOutput(folder.Path("a"), text).ok());
    EXPECT_EQ(*ReadFile(folder.Path("d/c")), text);
    EXPECT_TRUE(std::filesystem::is_symlink(folder.Path("a")) && std::filesystem::is_symlink(folder.Path("d/b")));
    EXPECT_EQ(NamesIn(folder.path()), (std::vector<std::string>{"a", "d"}));
    EXPECT_EQ(NamesIn(folder.Path("d")), (std::vector<std::string>{"b", "c"}));
  }
  std::filesystem::create_symlink("loop", folder.Path("loop"));
  for (const absl::Status& status : {WriteOutput(folder.Path("loop"), "text"), CheckOutput(folder.Path("loop"))}) {
    EXPECT_TRUE(absl::StrContains(status.message(), "loop: cannot open: ")) << status;
  }
}

TEST(WriteOutput, WritesIntoWhatIsNoFile) {
  const TemporaryFolder folder;
  const std::string pipe = folder.Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const FileHandle reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_TRUE(CheckOutput(pipe).ok());
  ASSERT_TRUE(WriteOutput(pipe, {"some ", "text"}).ok());
  char bytes[20];
  ASSERT_EQ(::read(reader.fd(), bytes, sizeof(bytes)), 9);
  EXPECT_EQ(std::string(bytes, 9), "some text");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  // Were it replaced, the write would succeed.
  std::filesystem::create_symlink("/dev/full", folder.Path("full"));
  EXPECT_EQ(WriteOutput(folder.Path("full"), "text").code(), absl::StatusCode::kResourceExhausted);
  // A file without a name.
  PutBytes(folder.Path("gone"), "old and longer");
  const FileHandle gone(::open(folder.Path("gone").c_str(), O_RDWR));
  std::filesystem::remove(folder.Path("gone"));
  ASSERT_TRUE(WriteOutput("/dev/fd/" + std::to_string(gone.fd()), "new").ok());
  EXPECT_EQ(::pread(gone.fd(), bytes, sizeof(bytes), 0), 3);
  EXPECT_EQ(NamesIn(folder.path()), (std::vector<std::string>{"full", "pipe"}));
}

TEST(CheckOutput, RefusesWhatCannotBeWrittenAndChangesNothing) {
  const TemporaryFolder folder;
  EXPECT_EQ(CheckOutput(folder.path()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckOutput(folder.Path("none/f")).code(), absl::StatusCode::kNotFound);
  PutBytes(folder.Path("f"), "old");
  for (const char* name : {"f", "g"}) EXPECT_TRUE(CheckOutput(folder.Path(name)).ok());
  EXPECT_EQ(*ReadFile(folder.Path("f")), "old");
  EXPECT_EQ(NamesIn(folder.path()), std::vector<std::string>{"f"});
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
