#include "tests/crash/crash_test.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "data/file.h"
#include "train/checkpoint.h"

namespace weft {

CrashTest::Args CrashTest::Steps(int64_t steps, const Args& more) {
  return Join({"--set", absl::StrCat("train.steps=", steps), "--set", "checkpoint.every=1", "--set", "valid.every=5", "--set",
               "train.log_every=1"},
              more);
}

pid_t CrashTest::StartTraining(const std::string& run, const Args& more, const RunSettings& settings) {
  return Start(Join({"train", "job.toml", "--quiet", "--set", "run.dir=" + run}, more), settings);
}

int64_t CrashTest::Pointer(const std::string& run, const std::string& name) {
  const std::string text = BytesOf(Path(run + "/" + name));
  absl::string_view rest = text;
  int64_t step = -1;
  if (text.empty()) return -1;
  EXPECT_TRUE(absl::ConsumePrefix(&rest, "checkpoints/step-") && absl::ConsumeSuffix(&rest, ".weft\n") &&
              absl::SimpleAtoi(rest, &step))
      << name << ": \"" << text << "\"";
  return step;
}

int64_t CrashTest::WaitForStep(pid_t pid, const std::string& run, int64_t step) {
  for (int i = 0; i < 20000 && Pointer(run, "last") < step && !HasEnded(pid); ++i) ::usleep(1000);
  return Pointer(run, "last");
}

std::string CrashTest::CheckpointBytes(const std::string& run, int64_t step) {
  return Read(absl::StrCat(run, "/checkpoints/step-", step, ".weft"));
}

void CrashTest::ExpectSound(const std::string& run, bool temporaries) {
  for (const std::string& name : NamesIn(Path(run))) EXPECT_TRUE(temporaries || !IsTemporaryName(name)) << name;
  if (!Exists(run + "/checkpoints")) return;
  for (const std::string& name : NamesIn(Path(run + "/checkpoints"))) {
    if (IsTemporaryName(name)) {
      EXPECT_TRUE(temporaries) << name;
      continue;
    }
    const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(Path(run + "/checkpoints/" + name));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  }
  for (const char* name : {"last", "best"}) {
    const int64_t step = Pointer(run, name);
    if (step >= 0) {
      EXPECT_TRUE(Exists(absl::StrCat(run, "/checkpoints/step-", step, ".weft"))) << name << " names step " << step;
    }
  }
}

void CrashTest::ExpectSameEnd(const std::string& run, const std::string& other, int64_t step) {
  EXPECT_EQ(Pointer(run, "last"), step);
  EXPECT_EQ(Pointer(run, "best"), Pointer(other, "best"));
  EXPECT_FALSE(CheckpointBytes(run, step).empty());
  EXPECT_TRUE(CheckpointBytes(run, step) == CheckpointBytes(other, step)) << "step " << step;
}

}  // namespace weft
