// `weft status`: each way in which a run can be or have ended, from what it leaves in its folder.
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class StatusTest : public CliTest {
 protected:
  StatusTest() { Write("job.toml", kReverse); }

  Json Status(const std::string& run) {
    const Outcome outcome = Weft({"status", run, "--json"});
    EXPECT_THAT(outcome, Succeeds());
    return Json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  }
};

TEST_F(StatusTest, AFinishedRunTellsItsNumbers) {
  ASSERT_THAT(Train("run"), Succeeds());
  const std::vector<std::string> lines = absl::StrSplit(Read("run/metrics.jsonl"), '\n');
  const Json last = Json::parse(lines[3]);
  const Json status = Status("run/");
  EXPECT_EQ(status["run"], "run");
  EXPECT_EQ(status["state"], "finished");
  EXPECT_EQ(status["step"], 20);
  EXPECT_EQ(status["steps"], 20);
  for (const char* key : {"epoch", "loss", "learning_rate", "tokens_per_second"}) EXPECT_EQ(status[key], last[key]) << key;
  EXPECT_EQ(status["eval"]["step"], 20);
  EXPECT_EQ(status["eval"]["per"], last["eval_per"]);
  EXPECT_EQ(absl::StrCat("checkpoints/step-", status["best"]["step"].get<int>(), ".weft\n"), Read("run/best"));
  EXPECT_EQ(status["checkpoint"], "run/checkpoints/step-20.weft");
  EXPECT_TRUE(status["seconds_left"].is_null());
  EXPECT_THAT(status["message"].get<std::string>(), HasSubstr("finished at step 20 after 20 updates"));

  const Outcome text = Weft({"status", "run"});
  EXPECT_THAT(text, Succeeds());
  for (const char* part :
       {"state          finished\n", "step           20 of 20, epoch 2\n", "speed ", " tokens/s\n", "best           loss "}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  EXPECT_THAT(text.out, Not(HasSubstr("time left")));
}

TEST_F(StatusTest, ALiveRunIsRunningAndAfterASignalInterrupted) {
  const pid_t pid = StartEndless("run");
  const Outcome outcome = Weft({"status", "run", "--json"});
  ::kill(pid, SIGINT);
  EXPECT_EQ(Wait(pid).code, 130);
  ASSERT_THAT(outcome, Succeeds());
  const Json live = Json::parse(outcome.out);
  EXPECT_EQ(live["state"], "running");
  EXPECT_GE(live["step"], 5);
  EXPECT_EQ(live["steps"], 1000000000);
  EXPECT_GT(live["seconds_left"], 0);
  EXPECT_TRUE(live["message"].is_null());

  const Json stopped = Status("run");
  EXPECT_EQ(stopped["state"], "interrupted");
  EXPECT_EQ(absl::StrCat("checkpoints/step-", stopped["step"].get<int64_t>(), ".weft\n"), Read("run/last"));
}

TEST_F(StatusTest, ARunThatWasKilledSaysSoUntilItIsResumed) {
  const pid_t pid = StartEndless("run", {"--set", "checkpoint.every=10"});
  for (int i = 0; i < 2000 && !Exists("run/last"); ++i) ::usleep(5000);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(Wait(pid).code, 128 + SIGKILL);
  EXPECT_EQ(Status("run")["state"], "killed");
  const std::string last = Read("run/last");
  const int64_t step = std::stoll(last.substr(last.find('-') + 1));
  // A refused resume changes nothing of it.
  EXPECT_THAT(Train("run", {"--resume", "--set", "run.seed=2"}), Fails(2, "run.seed"));
  EXPECT_EQ(Status("run")["state"], "killed");
  ASSERT_THAT(Train("run", {"--resume", "--set", absl::StrCat("train.steps=", step + 5)}), Succeeds());
  const Json status = Status("run");
  EXPECT_EQ(status["state"], "finished");
  EXPECT_EQ(status["step"], step + 5);
  EXPECT_EQ(status["steps"], step + 5);
}

TEST_F(StatusTest, DivergedAndFailedRunsGiveTheReason) {
  EXPECT_EQ(Train("diverged", {"--set", "optimizer.lr=1e6", "--set", "schedule.kind=constant"}).code, 3);
  const Json diverged = Status("diverged");
  EXPECT_EQ(diverged["state"], "diverged");
  EXPECT_THAT(diverged["message"].get<std::string>(), HasSubstr("first such gradient: "));
  EXPECT_EQ(diverged["checkpoint"], "diverged/checkpoints/step-1.weft");  // the weights before it

  const Args train = {"train", "job.toml", "--quiet", "--set", "run.dir=failed"};
  EXPECT_EQ(Weft(train, {.file_size_limit = 20000}).code, 1);  // a checkpoint has 40 kB
  const Json failed = Status("failed");
  EXPECT_EQ(failed["state"], "failed");
  EXPECT_THAT(failed["message"].get<std::string>(), HasSubstr("failed/checkpoints/step-10.weft"));
  EXPECT_TRUE(failed["checkpoint"].is_null());
  EXPECT_THAT(Weft({"status", "failed"}).out, HasSubstr("none yet"));
}

TEST_F(StatusTest, EpochsCountInUpdates) {
  ASSERT_THAT(Train("run", {"--set", "train.epochs=3"}), Succeeds());
  EXPECT_EQ(Status("run")["steps"], 24);
}

TEST_F(StatusTest, ARunThatValidatesAtItsEndOnlyHasNoBest) {
  ASSERT_THAT(Train("run", {"--set", "valid.every=0"}), Succeeds());
  EXPECT_FALSE(Exists("run/best"));
  const Json status = Status("run");
  EXPECT_EQ(status["eval"]["step"], 20);
  EXPECT_TRUE(status["best"].is_null()) << status;
}

// Numbers that JSON has not, and a line that is just being written.
TEST_F(StatusTest, OddMetricsAreShownAsTheyAre) {
  std::filesystem::create_directory(Path("run"));
  Write("run/config.toml", "[train]\nsteps = 50\n[valid]\nevery = 10\n");
  Write("run/metrics.jsonl",
        "{\"step\":10,\"loss\":800,\"eval_loss\":800,\"eval_perplexity\":\"Infinity\"}\n"
        "{\"step\":20,\"loss\":\"NaN\",\"eval_loss\":\"NaN\",\"eval_perplexity\":\"NaN\"}\n{\"step\":30,\"lo");
  const Json status = Status("run");
  EXPECT_EQ(status["state"], "killed");
  EXPECT_EQ(status["step"], 20);
  EXPECT_EQ(status["loss"], "NaN");
  EXPECT_EQ(status["eval"]["perplexity"], "NaN");
  EXPECT_EQ(status["best"], Json({{"metric", "loss"}, {"value", 800}, {"step", 10}}));
  EXPECT_THAT(Weft({"status", "run"}).out, HasSubstr("loss           NaN\n"));
  Write("run/metrics.jsonl", "");
  EXPECT_THAT(Weft({"status", "run"}).out, HasSubstr("step           0 of 50\n"));
}

TEST_F(StatusTest, FoldersThatAreNoRunsExitOneAndTheOthersAreShown) {
  const std::string odd = "r\xc3\xbcn 1#%20'x";
  ASSERT_THAT(Train(odd), Succeeds());
  std::filesystem::create_directory(Path("empty"));
  EXPECT_THAT(Weft({"status", "none"}), Fails(1, "none: is no run folder: no such folder"));
  EXPECT_THAT(Weft({"status", "job.toml"}), Fails(1, "job.toml: is no run folder: it is a file"));
  EXPECT_THAT(Weft({"status", "empty"}), Fails(1, "empty: is no run folder: it has no config.toml"));
  EXPECT_THAT(NamesIn(Path("empty")), testing::IsEmpty());
  const Outcome outcome = Weft({"status", "empty", odd, "none", odd, "--json"});
  EXPECT_THAT(outcome, Fails(1, "none: is no run folder"));
  EXPECT_THAT(outcome, Fails(1, "empty: is no run folder"));
  const std::vector<std::string> lines = absl::StrSplit(outcome.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2);
  for (const std::string& line : lines) EXPECT_EQ(Json::parse(line)["run"], odd);
}

}  // namespace
}  // namespace weft
