#include "tests/crash/disk.h"

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/crash/crash_test.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr int64_t kCheckpointBytes = 40'000;  // about, of this job

class DiskTest : public CrashTest {
 protected:
  // Ended with 1, and said which file of the run, why, what to do, and where it can go on.
  void ExpectExplained(const Outcome& outcome, const std::string& run, const std::string& cause, const std::string& cure) {
    EXPECT_THAT(outcome, Fails(1, cause));
    EXPECT_THAT(outcome.err, HasSubstr(Path(run) + "/"));
    EXPECT_THAT(outcome.err, HasSubstr(cure));
  }
};

// A disk of 2 MB holds 50 checkpoints. Where no mount is possible a limit of file sizes stands in for it: it fails on the
// first.
TEST_F(DiskTest, AFullDiskEndsTheRunWithItsCheckpointsIntact) {
  std::filesystem::create_directory(Path("disk"));
  std::optional<SmallDisk> disk;
  RunSettings full;
  if (OwnMounts()) {
    disk.emplace(Path("disk"), 2);
  } else {
    full.file_size_limit = kCheckpointBytes / 2;
  }
  const std::string cause = disk.has_value() ? "No space left on device" : "File too large";
  const std::string cure = disk.has_value() ? "free some space" : "raise the limit";
  const Args keep = {"--set", "checkpoint.keep_last=1000"};
  ASSERT_THAT(Train("disk/run", Steps(3, keep)), Succeeds());
  for (int attempt = 0; attempt < 2; ++attempt) {  // the second one fails at once
    const int64_t last = Pointer("disk/run", "last");
    const Outcome outcome = Wait(StartTraining("disk/run", Steps(1000, Join(keep, {"--resume"})), full));
    ExpectExplained(outcome, "disk/run", cause, cure);
    ExpectSound("disk/run", /*temporaries=*/false);
    EXPECT_GE(Pointer("disk/run", "last"), last);
  }
  // Space again: older checkpoints go, as their owner might make them. The pointers' own stay.
  const int64_t last = Pointer("disk/run", "last"), best = Pointer("disk/run", "best");
  for (int64_t step = 1; step < last; ++step) {
    if (step != best) std::filesystem::remove(Path(absl::StrCat("disk/run/checkpoints/step-", step, ".weft")));
  }
  const int64_t end = last + 4;
  ASSERT_THAT(Train("disk/run", Steps(end, Join(keep, {"--resume"}))), Succeeds());
  ASSERT_THAT(Train("whole", Steps(end, keep)), Succeeds());
  ExpectSameEnd("disk/run", "whole", end);
}

// The same with so much space left that each kind of file is the first to fail: config.toml, metrics.jsonl, log.txt, a
// checkpoint, `last` or `best`. A limit of sizes from one line upwards stands in where no mount is possible.
TEST_F(DiskTest, WhateverFileFailsFirstNothingSavedIsLost) {
  std::filesystem::create_directory(Path("disk"));
  ASSERT_THAT(Train("whole", Steps(40)), Succeeds());
  for (int64_t left = 0; left <= 6 * kCheckpointBytes; left += left < 20'000 ? 4096 : 4 * 4096) {
    SCOPED_TRACE(absl::StrCat(left, " bytes left"));
    const bool own = OwnMounts();
    std::optional<SmallDisk> disk;
    if (own) disk.emplace(Path("disk"), 2);
    ASSERT_THAT(Train("disk/run", Steps(5, {"--overwrite"})), Succeeds());
    RunSettings full;
    if (own) {
      Write("disk/filler", std::string(static_cast<size_t>(SmallDisk::Free(Path("disk")) - left), 'x'));
    } else {
      full.file_size_limit = 2000 + left;
    }
    const Outcome outcome = Wait(StartTraining("disk/run", Steps(40, {"--resume"}), full));
    if (outcome.code != 0) {
      ExpectExplained(outcome, "disk/run", own ? "No space left on device" : "File too large",
                      own ? "free some space" : "raise");
    }
    ExpectSound("disk/run", /*temporaries=*/false);
    EXPECT_GE(Pointer("disk/run", "last"), 5);
    std::filesystem::remove(Path("disk/filler"));
    ASSERT_THAT(Train("disk/run", Steps(40, {"--resume"})), Succeeds());
    ExpectSameEnd("disk/run", "whole", 40);
  }
}

// Without checkpoint.every, the first file that reaches a limit is metrics.jsonl, after hundreds of updates.
TEST_F(DiskTest, AFailedLineOfMetricsStillSavesTheUpdatesBehindIt) {
  const Args often = {"--set", "train.steps=100000", "--set", "train.log_every=1",      "--set", "valid.every=0",
                      "--set", "checkpoint.every=0", "--set", "train.tensorboard=false"};
  const Outcome outcome = Wait(StartTraining("run", often, {.file_size_limit = 60'000}));
  ExpectExplained(outcome, "run", "run/metrics.jsonl: cannot write: File too large",
                  "raise the limit of file sizes (ulimit -f)");
  const int64_t last = Pointer("run", "last");
  EXPECT_GT(last, 100);
  EXPECT_THAT(outcome.err, HasSubstr(absl::StrCat("The run ended after step ", last, "; go on with --resume, from ")));
  ExpectSound("run", /*temporaries=*/false);
  EXPECT_THAT(Train("run", Join(often, {"--resume", "--set", absl::StrCat("train.steps=", last + 3)})), Succeeds());
}

// Nothing is said or saved worse when only the log cannot be written.
TEST_F(DiskTest, ALogThatCannotBeWrittenDoesNotFailTheRun) {
  ASSERT_THAT(Train("run", Steps(3)), Succeeds());
  std::filesystem::remove(Path("run/log.txt"));
  std::filesystem::create_symlink("/dev/full", Path("run/log.txt"));
  EXPECT_THAT(Train("run", Steps(6, {"--resume"})), Succeeds());
  EXPECT_EQ(Pointer("run", "last"), 6);
  const Outcome diverged = Train("run", Steps(9, {"--resume", "--set", "optimizer.lr=1e30", "--set", "train.clip_norm=0"}));
  EXPECT_EQ(diverged.code, 3) << diverged.err;
}

class ReadOnlyTest : public DiskTest {
 protected:
  // Trains in "run" until `make` has turned a folder read-only, then `undo`es it and finishes.
  template <class Make, class Undo>
  void Interrupt(const std::string& cause, const std::string& cure, Make make, Undo undo) {
    const pid_t pid = StartTraining("run", Steps(1'000'000), {.obey_modes = true});
    ASSERT_GE(WaitForStep(pid, "run", 5), 5) << Wait(pid).err;
    make();
    const Outcome outcome = Wait(pid);
    undo();
    ExpectExplained(outcome, "run", cause, cure);
    EXPECT_THAT(outcome.err, HasSubstr("go on with --resume, from "));
    ExpectSound("run", /*temporaries=*/true);  // nothing can be removed from such a folder either
    const int64_t end = Pointer("run", "last") + 4;
    ASSERT_THAT(Train("run", Steps(end, {"--resume"})), Succeeds());
    ASSERT_THAT(Train("whole", Steps(end)), Succeeds());
    ExpectSameEnd("run", "whole", end);
    ExpectSound("run", /*temporaries=*/false);
  }
  void InterruptByMode(const std::string& folder) {
    Interrupt(
        "Permission denied", "change the permissions", [&] { ASSERT_EQ(::chmod(Path(folder).c_str(), 0555), 0); },
        [&] { ASSERT_EQ(::chmod(Path(folder).c_str(), 0755), 0); });
  }
};

// Where no mount is possible, both folders lose their write permission instead.
TEST_F(ReadOnlyTest, AFileSystemThatTurnsReadOnlyEndsTheRunResumably) {
  if (!OwnMounts()) {
    InterruptByMode("run");
    return;
  }
  std::optional<ReadOnlyFolder> folder;
  Interrupt(
      "Read-only file system", "make the file system writable", [&] { folder.emplace(Path("run")); }, [&] { folder.reset(); });
}

// The checkpoint can be written, its pointer cannot.
TEST_F(ReadOnlyTest, APointerThatCannotBeWrittenKeepsTheOldOne) { InterruptByMode("run"); }

TEST_F(ReadOnlyTest, ACheckpointThatCannotBeWrittenKeepsTheOldOnes) { InterruptByMode("run/checkpoints"); }

}  // namespace
}  // namespace weft
