#include "train/run_dir.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "gtest/gtest.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

using Mode = RunDir::Mode;
using Names = std::vector<std::string>;

RunDir Fresh(const std::string& path) {
  absl::StatusOr<RunDir> run = RunDir::Create(path, Mode::kFresh);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

// A stand-in for a checkpoint: RunDir looks at names only.
void Save(RunDir* run, int64_t step) {
  PutBytes(run->CheckpointPath(step), absl::StrCat(step));
  ASSERT_TRUE(run->SetLast(step).ok());
}

TEST(RunDir, MakesParentsAndNames) {
  const TemporaryFolder folder;
  const RunDir run = Fresh(folder.Path("a/b"));
  EXPECT_EQ(NamesIn(folder.Path("a/b")), (Names{"checkpoints", "lock"}));
  EXPECT_EQ(run.CheckpointPath(40), folder.Path("a/b/checkpoints/step-40.weft"));
}

TEST(RunDir, B097_RefusesAFolderInUseUnlessToldWhatToDo) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.Path("run"));
  PutBytes(folder.Path("run/notes.txt"), "mine");
  const absl::Status status = RunDir::Create(folder.Path("run"), Mode::kFresh).status();
  EXPECT_EQ(ExitCode(status), 2);
  for (const std::string& part :
       {folder.Path("run"), std::string("--resume"), std::string("--overwrite"), std::string("notes.txt")}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  }
  EXPECT_EQ(NamesIn(folder.Path("run")), Names{"notes.txt"});  // untouched
  PutBytes(folder.Path("file"), "");
  for (Mode mode : {Mode::kFresh, Mode::kOverwrite, Mode::kResume}) {
    EXPECT_EQ(ExitCode(RunDir::Create(folder.Path("file"), mode).status()), 2);
  }
}

TEST(RunDir, B097_ResumeOfNothingIsAnErrorAndMakesNothing) {
  const TemporaryFolder folder;
  const absl::Status missing = RunDir::Create(folder.Path("run"), Mode::kResume).status();
  EXPECT_EQ(ExitCode(missing), 2);
  EXPECT_TRUE(absl::StrContains(missing.message(), "nothing to resume")) << missing;
  EXPECT_TRUE(NamesIn(folder.path()).empty());
  std::filesystem::create_directory(folder.Path("run"));
  EXPECT_EQ(ExitCode(RunDir::Create(folder.Path("run"), Mode::kResume).status()), 2);
  EXPECT_TRUE(NamesIn(folder.Path("run")).empty());
}

TEST(RunDir, B097_TwoLiveRunsAreRefused) {
  const TemporaryFolder folder;
  {
    RunDir first = Fresh(folder.Path("run"));
    Save(&first, 1);
    for (Mode mode : {Mode::kResume, Mode::kOverwrite}) {
      const absl::Status status = RunDir::Create(folder.Path("run"), mode).status();
      EXPECT_EQ(ExitCode(status), 1);
      EXPECT_TRUE(absl::StrContains(status.message(), "another process")) << status;
    }
    EXPECT_FALSE(RunDir::Create(folder.Path("run"), Mode::kFresh).ok());
    EXPECT_EQ(BytesOf(first.CheckpointPath(1)), "1");
  }
  EXPECT_TRUE(RunDir::Create(folder.Path("run"), Mode::kResume).ok());
  EXPECT_FALSE(RunDir::Create(folder.Path("run"), Mode::kFresh).ok());
}

TEST(RunDir, TheLockMovesWithItsOwner) {
  const TemporaryFolder folder;
  RunDir first = Fresh(folder.Path("run"));
  RunDir second = std::move(first);
  EXPECT_FALSE(RunDir::Create(folder.Path("run"), Mode::kFresh).ok());
}

TEST(RunDir, OverwriteRemovesOnlyWhatWeftWrote) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("run");
  {
    RunDir run = Fresh(path);
    Save(&run, 1);
    Save(&run, 20);
    ASSERT_TRUE(run.SetBest(1).ok());
    ASSERT_TRUE(run.Log("hello").ok());
  }
  std::filesystem::create_directory(path + "/tensorboard");
  const Names foreign = {"notes.txt", "checkpoints/step-007.weft", "checkpoints/step-1.weft.bak", "tensorboard/mine.txt"};
  for (const std::string& name : foreign) PutBytes(path + "/" + name, "mine");
  for (const char* name : {"config.toml", "metrics.jsonl", "tensorboard/events.out.tfevents.1.host"}) {
    PutBytes(path + "/" + name, "ours");
  }
  const absl::StatusOr<RunDir> run = RunDir::Create(path, Mode::kOverwrite);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(NamesIn(path), (Names{"checkpoints", "lock", "notes.txt", "tensorboard"}));
  EXPECT_EQ(NamesIn(path + "/checkpoints"), (Names{"step-007.weft", "step-1.weft.bak"}));
  EXPECT_EQ(NamesIn(path + "/tensorboard"), Names{"mine.txt"});
}

// TensorBoard reads whatever has "tfevents" in its name.
TEST(RunDir, TemporariesOfEventFilesAreRemoved) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("run");
  {
    RunDir run = Fresh(path);
    Save(&run, 1);
  }
  std::filesystem::create_directory(path + "/tensorboard");
  for (const char* name : {"events.out.tfevents.00000001", "events.out.tfevents.00000001.tmp-12", "mine.tmp-12"}) {
    PutBytes(path + "/tensorboard/" + name, "x");
  }
  ASSERT_TRUE(RunDir::Create(path, Mode::kResume).ok());
  EXPECT_EQ(NamesIn(path + "/tensorboard"), (Names{"events.out.tfevents.00000001", "mine.tmp-12"}));
}

TEST(GlanceAtRun, SeesALiveRunAndItsPointersAndChangesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("run");
  EXPECT_EQ(GlanceAtRun(path).status().code(), absl::StatusCode::kNotFound);
  {
    RunDir run = Fresh(path);
    EXPECT_EQ(GlanceAtRun(path).status().code(), absl::StatusCode::kNotFound);  // no config yet
    PutBytes(run.config_path(), "");
    Save(&run, 5);
    const absl::StatusOr<RunGlance> glance = GlanceAtRun(path);
    ASSERT_TRUE(glance.ok()) << glance.status();
    EXPECT_TRUE(glance->live);
    EXPECT_EQ(glance->last, 5);
    EXPECT_FALSE(glance->best.has_value());
  }
  EXPECT_FALSE(GlanceAtRun(path)->live);
  EXPECT_FALSE(GlanceAtRun(path)->live);  // looking left no lock behind
  EXPECT_TRUE(RunDir::Create(path, Mode::kResume).ok());
}

TEST(RunDir, CheckpointsAreSortedByNumberAndOthersIgnored) {
  const TemporaryFolder folder;
  RunDir run = Fresh(folder.Path("run"));
  for (int64_t step : {10000, 9900, 0, 100}) Save(&run, step);
  for (const char* name : {"step-01.weft", "step--1.weft", "step-.weft", "step-5.weft.tmp-1", "x-5.weft",
                           "step-99999999999999999999.weft", "step-+5.weft"}) {
    PutBytes(run.checkpoints_path() + "/" + name, "");
  }
  EXPECT_EQ(*run.ListCheckpoints(), (std::vector<int64_t>{0, 100, 9900, 10000}));
}

TEST(RunDir, B059_RotationGoesByNumberAndKeepsTheBestAndForeignFiles) {
  const TemporaryFolder folder;
  RunDir run = Fresh(folder.Path("run"));
  PutBytes(run.CheckpointPath(99999), "of an old run");
  PutBytes(run.checkpoints_path() + "/step-9000.weft.bak", "mine");
  for (int64_t step : {8000, 9000, 9900, 10000, 10100}) {
    Save(&run, step);
    if (step == 9000) {
      ASSERT_TRUE(run.SetBest(step).ok());
    }
    ASSERT_TRUE(run.Rotate(3, {}).ok());
  }
  EXPECT_EQ(*run.ListCheckpoints(), (std::vector<int64_t>{9000, 9900, 10000, 10100, 99999}));
  EXPECT_TRUE(std::filesystem::exists(run.checkpoints_path() + "/step-9000.weft.bak"));
  EXPECT_EQ(*run.LastStep(), 10100);
  // Of the two that rotation would drop, the named one stays.
  ASSERT_TRUE(run.Rotate(1, {9900}).ok());
  EXPECT_EQ(*run.ListCheckpoints(), (std::vector<int64_t>{9000, 9900, 10100, 99999}));
}

TEST(RunDir, RotationNeverRemovesTheCheckpointThatLastPointsTo) {
  const TemporaryFolder folder;
  RunDir run = Fresh(folder.Path("run"));
  for (int64_t step : {10, 20, 30}) Save(&run, step);
  ASSERT_TRUE(run.SetLast(10).ok());
  ASSERT_TRUE(run.Rotate(1, {}).ok());
  EXPECT_EQ(*run.ListCheckpoints(), (std::vector<int64_t>{10, 20, 30}));
}

TEST(RunDir, ResumeFindsTheNewestWhereACrashLeftNoPointer) {
  const TemporaryFolder folder;
  {
    const RunDir run = Fresh(folder.Path("run"));
    PutBytes(run.CheckpointPath(9), "");
    PutBytes(run.CheckpointPath(10), "");
    PutBytes(run.CheckpointPath(11) + ".tmp-4242", "torn");
  }
  const absl::StatusOr<RunDir> run = RunDir::Create(folder.Path("run"), Mode::kResume);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(*run->LastStep(), 10);
  EXPECT_FALSE(run->BestStep()->has_value());
  EXPECT_EQ(NamesIn(run->checkpoints_path()), (Names{"step-10.weft", "step-9.weft"}));
}

TEST(RunDir, LogAppendsAcrossRuns) {
  const TemporaryFolder folder;
  for (Mode mode : {Mode::kFresh, Mode::kResume}) {
    absl::StatusOr<RunDir> run = RunDir::Create(folder.Path("run"), mode);
    ASSERT_TRUE(run.ok()) << run.status();
    Save(&*run, 1);
    ASSERT_TRUE(run->Log("one").ok());
    ASSERT_TRUE(run->Log("two").ok());
  }
  EXPECT_EQ(BytesOf(folder.Path("run/log.txt")), "one\ntwo\none\ntwo\n");
}

TEST(ResolveCheckpoint, MeansTheBestElseTheLast) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("run");
  RunDir run = Fresh(path);
  EXPECT_TRUE(absl::StrContains(ResolveCheckpoint(path).status().message(), "no run folder with a checkpoint"));
  PutBytes(run.CheckpointPath(5), "");
  EXPECT_EQ(*ResolveCheckpoint(path), run.CheckpointPath(5));
  Save(&run, 7);
  EXPECT_EQ(*ResolveCheckpoint(path), run.CheckpointPath(7));
  ASSERT_TRUE(run.SetBest(5).ok());
  EXPECT_EQ(*ResolveCheckpoint(path), run.CheckpointPath(5));
  EXPECT_EQ(*ResolveCheckpoint(run.CheckpointPath(7)), run.CheckpointPath(7));
}

TEST(ResolveCheckpoint, NamesWhatIsMissingOrDamaged) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("run");
  EXPECT_EQ(ResolveCheckpoint(path).status().code(), absl::StatusCode::kNotFound);
  RunDir run = Fresh(path);
  Save(&run, 7);
  ASSERT_TRUE(run.SetBest(8).ok());
  const absl::Status dangling = ResolveCheckpoint(path).status();
  EXPECT_TRUE(absl::StrContains(dangling.message(), "step-8.weft: does not exist")) << dangling;
  PutBytes(path + "/best", "../../etc/passwd\n");
  const absl::Status damaged = ResolveCheckpoint(path).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(damaged.message(), "run/best: damaged")) << damaged;
}

}  // namespace
}  // namespace weft
