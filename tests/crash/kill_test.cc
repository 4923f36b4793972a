#include <signal.h>
#include <unistd.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "tests/crash/crash_test.h"

namespace weft {
namespace {

using testing::HasSubstr;

// 50 lives of one run, each ended by kill -9 at a random moment: while it reads, resumes, trains, validates or, mostly, saves.
// What it left is sound each time, and the last life ends with the very bytes of a run that nothing disturbed.
TEST_F(CrashTest, FiftyKillsAndResumesEqualTheUninterruptedRun) {
  std::mt19937 random(94);
  const Args endless = Steps(1'000'000);
  pid_t pid = StartTraining("killed", endless);
  ASSERT_GE(WaitForStep(pid, "killed", 1), 1) << Wait(pid).err;
  int64_t newest = 0, progress = 0;
  for (int kill = 0; kill < 50; ++kill) {
    // Some lives end while they still start, others after a few saves, counted from their own first one.
    const bool early = kill % 5 == 4;
    if (!early) WaitForStep(pid, "killed", newest + 1);
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    ASSERT_FALSE(HasEnded(pid)) << "after " << kill << " kills: " << Wait(pid).err;
    ::kill(pid, SIGKILL);
    ASSERT_EQ(Wait(pid).code, 128 + SIGKILL);
    ExpectSound("killed", /*temporaries=*/true);
    const int64_t last = Pointer("killed", "last");
    ASSERT_GE(last, newest) << "a checkpoint was lost";
    progress += last > newest ? 1 : 0;
    newest = last;
    pid = StartTraining("killed", Join(endless, {"--resume"}));
  }
  EXPECT_GE(progress, 40);
  WaitForStep(pid, "killed", newest + 1);
  ::kill(pid, SIGINT);
  const Outcome stopped = Wait(pid);
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  ExpectSound("killed", /*temporaries=*/false);

  const int64_t end = Pointer("killed", "last") + 3;
  ASSERT_THAT(Train("killed", Steps(end, {"--resume"})), Succeeds());
  ASSERT_THAT(Train("whole", Steps(end)), Succeeds());
  ExpectSameEnd("killed", "whole", end);
  ExpectSound("killed", /*temporaries=*/false);
}

// A crash between saving the best checkpoint and pointing to it.
TEST_F(CrashTest, ResumePointsToTheBestCheckpointThatACrashLeftUnnamed) {
  ASSERT_THAT(Train("run", Steps(10)), Succeeds());
  const std::string best = Read("run/best");
  ASSERT_NE(best, "");
  for (const std::string& old : {std::string(), std::string("checkpoints/step-1.weft\n"), std::string("torn")}) {
    Write("run/best", old);
    if (old.empty()) ::unlink(Path("run/best").c_str());
    ASSERT_THAT(Train("run", Steps(10, {"--resume"})), Succeeds());
    EXPECT_EQ(Read("run/best"), best);
  }
}

// B094: a damaged newest checkpoint is named, and an older one can be chosen by hand.
TEST_F(CrashTest, ADamagedLastCheckpointIsNamedAndAnEarlierOneCanBeChosen) {
  ASSERT_THAT(Train("run", Steps(10)), Succeeds());
  Write("run/checkpoints/step-10.weft", CheckpointBytes("run", 10).substr(0, 5000));
  const Outcome refused = Train("run", Steps(12, {"--resume"}));
  EXPECT_THAT(refused, Fails(1, "step-10.weft: damaged: cut off"));
  EXPECT_THAT(refused.err, HasSubstr("write checkpoints/step-9.weft into"));
  Write("run/last", "checkpoints/step-9.weft\n");
  ASSERT_THAT(Train("run", Steps(12, {"--resume"})), Succeeds());
  ASSERT_THAT(Train("whole", Steps(12)), Succeeds());
  ExpectSameEnd("run", "whole", 12);
}

// An update of seconds, so that the first signal is still waiting for its end when the second comes.
TEST_F(CrashTest, TheSecondSignalOfEitherKindQuitsAtOnce) {
  for (const auto& [first, second] : {std::pair<int, int>{SIGINT, SIGINT}, {SIGTERM, SIGINT}, {SIGINT, SIGTERM}}) {
    const std::string run = absl::StrCat("run", first, second);
    const pid_t pid = StartTraining(run, {"--set", "data.train_size=32000", "--set", "train.batch_size=500", "--set",
                                          "train.accumulate=64", "--set", "model.d_model=256"});
    for (int i = 0; i < 10000 && !Exists(run + "/metrics.jsonl") && !HasEnded(pid); ++i) ::usleep(1000);
    ::kill(pid, first);
    ::usleep(50'000);
    ASSERT_FALSE(HasEnded(pid)) << Wait(pid).err;
    ::kill(pid, second);
    const Outcome ended = Wait(pid);
    EXPECT_EQ(ended.code, 128 + second);
    EXPECT_EQ(ended.out, "");  // no summary, nothing saved
    EXPECT_FALSE(Exists(run + "/last"));
  }
}

// B097: the lock of a live run holds for every mode; that of a killed one is gone with it.
TEST_F(CrashTest, B097_TwoLiveRunsNeverShareAFolder) {
  const pid_t pid = StartTraining("run", Steps(1'000'000));
  ASSERT_GE(WaitForStep(pid, "run", 1), 1) << Wait(pid).err;
  for (const char* mode : {"--resume", "--overwrite"}) {
    EXPECT_THAT(Train("run", Steps(5, {mode})), Fails(1, "run: another process is training in this run folder"));
  }
  EXPECT_THAT(Train("run", Steps(5)), Fails(2, "go on with --resume, start over with --overwrite"));
  ASSERT_FALSE(HasEnded(pid));
  ::kill(pid, SIGKILL);
  Wait(pid);
  EXPECT_THAT(Train("run", Steps(Pointer("run", "last") + 2, {"--resume"})), Succeeds());
}

}  // namespace
}  // namespace weft
