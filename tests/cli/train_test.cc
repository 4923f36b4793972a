#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"
#include "tests/train/event_reader.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class TrainTest : public CliTest {
 protected:
  TrainTest() { Write("job.toml", kReverse); }

  std::string Checkpoint(const std::string& run, int step) {
    return Read(absl::StrCat(run, "/checkpoints/step-", step, ".weft"));
  }

  std::vector<Json> Metrics(const std::string& run) {
    std::vector<Json> lines;
    const std::string text = Read(run + "/metrics.jsonl");
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty()))
      lines.push_back(Json::parse(line.begin(), line.end()));
    return lines;
  }
};

TEST_F(TrainTest, ThreadsAndFoldersDoNotChangeAByteOfTheCheckpoint) {
  for (const char* threads : {"1", "2", "4"}) {
    ASSERT_THAT(Train(absl::StrCat("deep/run", threads), {"--threads", threads}), Succeeds());
  }
  const std::string one = Checkpoint("deep/run1", 20);
  ASSERT_FALSE(one.empty());
  EXPECT_TRUE(one == Checkpoint("deep/run2", 20));
  EXPECT_TRUE(one == Checkpoint("deep/run4", 20));
}

// 17 and 11 updates end in the middle of an epoch of 8; dropout, shuffling and accumulation are on.
TEST_F(TrainTest, InterruptedAndResumedEqualsUninterrupted) {
  const auto steps = [](int n) { return absl::StrCat("train.steps=", n); };
  ASSERT_THAT(Train("whole", {"--set", steps(40)}), Succeeds());
  const std::string whole = Checkpoint("whole", 40);
  ASSERT_FALSE(whole.empty());

  ASSERT_THAT(Train("once", {"--set", steps(17), "--threads", "1"}), Succeeds());
  ASSERT_THAT(Train("once", {"--set", steps(40), "--resume", "--threads", "2"}), Succeeds());
  EXPECT_TRUE(whole == Checkpoint("once", 40));

  ASSERT_THAT(Train("twice", {"--set", steps(11)}), Succeeds());
  ASSERT_THAT(Train("twice", {"--set", steps(23), "--resume"}), Succeeds());
  ASSERT_THAT(Train("twice", {"--set", steps(40), "--resume"}), Succeeds());
  EXPECT_TRUE(whole == Checkpoint("twice", 40));
  EXPECT_EQ(Read("whole/best"), Read("twice/best"));
}

TEST_F(TrainTest, EpochsResumeEvaluateAndGenerateLikeSteps) {
  ASSERT_THAT(Train("whole", {"--set", "train.epochs=3"}), Succeeds());
  ASSERT_THAT(Train("parts", {"--set", "train.epochs=1"}), Succeeds());
  EXPECT_FALSE(Checkpoint("parts", 8).empty());
  ASSERT_THAT(Train("parts", {"--set", "train.epochs=3", "--resume"}), Succeeds());
  const std::string whole = Checkpoint("whole", 24);
  ASSERT_FALSE(whole.empty());
  EXPECT_TRUE(whole == Checkpoint("parts", 24));
  EXPECT_THAT(Weft({"eval", "whole"}), Succeeds());
  EXPECT_THAT(Weft({"generate", "whole", "--prompt", "abc"}), Succeeds());
  EXPECT_THAT(Weft({"config", "whole/config.toml"}), Succeeds());
}

// Batches of so many tokens: how many an epoch has depends on its order.
TEST_F(TrainTest, EpochsOfTokenBatchesEndAtTheirEnd) {
  const Outcome outcome = Train("run", {"--set", "train.epochs=3", "--set", "train.batch_tokens=30"});
  EXPECT_THAT(outcome, Succeeds());
  const Json json =
      Json::parse(Weft({"inspect", "run/" + Read("run/last").substr(0, Read("run/last").size() - 1), "--json"}).out);
  EXPECT_EQ(json["epoch"], 3);
  EXPECT_EQ(json["sequence"], 0);
}

TEST_F(TrainTest, PoolsMayNotChangeOnResume) {
  ASSERT_THAT(Train("run", {"--set", "train.steps=4", "--set", "train.sort_pool=12"}), Succeeds());
  EXPECT_THAT(Train("run", {"--resume"}), Fails(2, "train.sort_pool: found (not set), but the run was started with 12"));
  EXPECT_THAT(Train("run", {"--resume", "--set", "train.sort_pool=12"}), Succeeds());
}

TEST_F(TrainTest, AnotherSeedGivesAnotherModel) {
  ASSERT_THAT(Train("a"), Succeeds());
  ASSERT_THAT(Train("b", {"--set", "run.seed=2"}), Succeeds());
  EXPECT_FALSE(Checkpoint("a", 20) == Checkpoint("b", 20));
}

TEST_F(TrainTest, ResumeOfAFinishedRunMakesNoUpdateAndSaysSo) {
  ASSERT_THAT(Train("run"), Succeeds());
  const std::string before = Checkpoint("run", 20);
  const Outcome again = Train("run", {"--resume"});
  EXPECT_THAT(again, Succeeds());
  EXPECT_THAT(again.out, HasSubstr("after 0 updates"));
  EXPECT_TRUE(before == Checkpoint("run", 20));
}

TEST_F(TrainTest, ResumeRefusesAnotherShapeAndPrintsWhatMayChange) {
  ASSERT_THAT(Train("run"), Succeeds());
  const std::string before = Checkpoint("run", 20);
  const Outcome refused = Train("run", {"--resume", "--set", "model.d_model=16", "--set", "data.train_size=61"});
  EXPECT_THAT(refused, Fails(2, "model.d_model: found 16, but the run was started with 8"));
  EXPECT_THAT(refused, Fails(2, "data.train_size: found 61, but the run was started with 60"));
  EXPECT_TRUE(before == Checkpoint("run", 20));

  const Outcome changed =
      Weft({"train", "job.toml", "--resume", "--set", "run.dir=run", "--set", "optimizer.lr=0.02", "--set", "train.steps=25"});
  EXPECT_THAT(changed, Succeeds());
  EXPECT_THAT(changed.err, HasSubstr("optimizer.lr: 0.01 -> 0.02"));
  EXPECT_THAT(changed.err, HasSubstr("train.steps: 20 -> 25"));
}

TEST_F(TrainTest, ResumeRefusesChangedData) {
  Write("job.toml", kPairs);
  Write("pairs.tsv", "a\tb\nb\ta\n");
  ASSERT_THAT(Train("run"), Succeeds());
  Write("pairs.tsv", "a\tb\nb\tb\na\ta\n");
  EXPECT_THAT(Train("run", {"--resume", "--set", "train.steps=8"}), Fails(1, "pairs.tsv"));
}

TEST_F(TrainTest, AFolderInUseNeedsResumeOrOverwrite) {
  ASSERT_THAT(Train("run"), Succeeds());
  const std::string before = Checkpoint("run", 20);
  EXPECT_THAT(Train("run", {"--set", "train.steps=5"}), Fails(2, "--resume"));
  EXPECT_TRUE(before == Checkpoint("run", 20));
  EXPECT_THAT(Train("run", {"--set", "train.steps=5", "--overwrite"}), Succeeds());
  EXPECT_THAT(NamesIn(Path("run/checkpoints")), ElementsAre("step-5.weft"));
  EXPECT_EQ(Metrics("run").size(), 1);
  EXPECT_THAT(Train("none", {"--resume"}), Fails(2, "nothing to resume"));
  EXPECT_FALSE(Exists("none"));
}

TEST_F(TrainTest, SignalsSaveAndTheRunCanBeResumed) {
  for (const auto& [number, code] : {std::pair<int, int>{SIGINT, 130}, {SIGTERM, 143}}) {
    const std::string run = absl::StrCat("run", number);
    const pid_t pid = StartEndless(run);
    ::kill(pid, number);
    const Outcome stopped = Wait(pid);
    EXPECT_EQ(stopped.code, code) << stopped.err;
    EXPECT_THAT(stopped.out, HasSubstr("interrupted at step"));
    // The pointer names the saved step: "checkpoints/step-<n>.weft".
    const std::string last = Read(run + "/last");
    ASSERT_THAT(last, HasSubstr("checkpoints/step-"));
    const int step = std::stoi(last.substr(last.find('-') + 1));
    EXPECT_THAT(Train(run, {"--resume", "--set", absl::StrCat("train.steps=", step + 3), "--set", "valid.every=0", "--set",
                            "checkpoint.every=0"}),
                Succeeds());
    EXPECT_FALSE(Checkpoint(run, step + 3).empty());
  }
}

// There is nothing to save yet, and the data may take minutes to read: from this pipe it never comes.
TEST_F(TrainTest, ASignalBeforeTheFirstUpdateEndsAtOnce) {
  Write("job.toml", kPairs);
  ASSERT_EQ(::mkfifo(Path("pairs.tsv").c_str(), 0600), 0);
  const pid_t pid = Start({"train", "job.toml", "--set", "run.dir=run"});
  const int pipe = ::open(Path("pairs.tsv").c_str(), O_WRONLY);  // waits for the program to open its end
  ASSERT_GE(pipe, 0);
  ::kill(pid, SIGTERM);
  ::close(pipe);
  EXPECT_EQ(Wait(pid).code, 143);
  EXPECT_FALSE(Exists("run"));
}

TEST_F(TrainTest, ALiveRunKeepsOthersOut) {
  const pid_t pid = StartEndless("run");
  EXPECT_THAT(Train("run", {"--overwrite"}), Fails(1, "another process is training"));
  ::kill(pid, SIGINT);
  EXPECT_EQ(Wait(pid).code, 130);
}

TEST_F(TrainTest, DivergenceExitsThreeNamingStepAndParameter) {
  const Outcome outcome = Train("run", {"--set", "optimizer.lr=1e6", "--set", "schedule.kind=constant"});
  EXPECT_THAT(outcome, Fails(3, "diverged at step "));
  EXPECT_THAT(outcome, Fails(3, "first such gradient: "));
  EXPECT_THAT(outcome, Fails(3, "largest weight: "));
  EXPECT_THAT(Weft({"eval", "run"}), Succeeds());  // of the weights before that step
}

TEST_F(TrainTest, MetricsHaveTheDocumentedKeys) {
  ASSERT_THAT(Train("run"), Succeeds());
  const std::vector<Json> lines = Metrics("run");
  ASSERT_EQ(lines.size(), 4);  // each 5 of 20 steps
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["step"], 5 * (i + 1));
    for (const char* key : {"epoch", "loss", "learning_rate", "grad_norm", "tokens_per_second"}) {
      EXPECT_TRUE(lines[i].contains(key) && lines[i][key].is_number()) << key;
    }
    for (const char* key : {"eval_loss", "eval_perplexity", "eval_accuracy", "eval_exact_match", "eval_per"}) {
      EXPECT_EQ(lines[i].contains(key), i % 2 == 1) << key;  // valid.every = 10
    }
  }
  EXPECT_EQ(lines[0]["epoch"], 0);
  EXPECT_EQ(lines[3]["epoch"], 2);  // update 20 is of the third pass over 60 examples, 8 an update
}

// B110: a run that was killed between two checkpoints, or goes on from an older one.
TEST_F(TrainTest, EventFilesHaveEachStepOfTheMetricsOnceAlsoAfterAResume) {
  const auto check = [&](const std::string& run) {
    const std::vector<Event> events = ReadEvents(Path(run + "/tensorboard"));
    std::vector<int64_t> steps, histograms;
    for (const Json& line : Metrics(run)) steps.push_back(line["step"]);
    EXPECT_EQ(ScalarSteps(events), steps);
    for (const Event& event : events) {
      if (!event.histograms.empty()) histograms.push_back(event.step);
      if (event.scalars.count("eval/loss") == 0) continue;
      for (const char* tag : {"eval/exact_match", "eval/per", "eval/perplexity"}) EXPECT_EQ(event.scalars.count(tag), 1) << tag;
    }
    return histograms;
  };
  const Args histograms = {"--set", "train.histograms=10"};
  ASSERT_THAT(Train("run", histograms), Succeeds());
  EXPECT_THAT(check("run"), ElementsAre(10, 20));
  const std::vector<Event> events = ReadEvents(Path("run/tensorboard"));
  for (const char* tag : {"train/loss", "train/learning_rate", "train/grad_norm", "train/tokens_per_second"}) {
    EXPECT_EQ(events[1].scalars.count(tag), 1) << tag;
  }
  EXPECT_EQ(events[1].scalars.at("train/loss"), static_cast<float>(Metrics("run")[0]["loss"].get<double>()));
  const EventHistogram weights = events[3].histograms.at("weights/source_embedding.weight");
  double count = 0;
  for (const double bucket : weights.buckets) count += bucket;
  EXPECT_EQ(count, 26 * 8);

  // As a crash leaves it: the checkpoint of step 10, later numbers, and a record that is cut off.
  Write("run/last", "checkpoints/step-10.weft\n");
  const std::string file = "run/tensorboard/events.out.tfevents.00000001";
  Write(file, Read(file).substr(0, Read(file).size() - 7));
  ASSERT_THAT(Train("run", Join(histograms, {"--resume", "--set", "train.steps=30"})), Succeeds());
  EXPECT_THAT(check("run"), ElementsAre(10, 20, 30));
  EXPECT_EQ(Metrics("run").size(), 6);
}

TEST_F(TrainTest, EventFilesCanBeSwitchedOff) {
  ASSERT_THAT(Train("run", {"--set", "train.tensorboard=false", "--set", "train.histograms=1"}), Succeeds());
  EXPECT_FALSE(Exists("run/tensorboard"));
}

// As for metrics.jsonl: numbers that cannot be kept end the run.
TEST_F(TrainTest, EventFilesThatCannotBeWrittenEndTheRun) {
  std::filesystem::create_directory(Path("run"));
  ASSERT_THAT(Train("run", {"--set", "train.tensorboard=false"}), Succeeds());
  Write("run/tensorboard", "a file");
  EXPECT_THAT(Train("run", {"--resume", "--set", "train.steps=30"}), Fails(1, "run/tensorboard: "));
}

TEST_F(TrainTest, B095_TheSavedModelScoresWhatTheTrainersDidBitForBit) {
  ASSERT_THAT(Train("run"), Succeeds());
  const Outcome outcome = Weft({"eval", "run/checkpoints/step-20.weft", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_EQ(Json::parse(outcome.out)["loss"].get<double>(), Metrics("run")[3]["eval_loss"].get<double>());
}

TEST_F(TrainTest, EarlyStoppingEndsBeforeTheLastStep) {
  // At this rate nothing changes in f32, so no validation after the first improves.
  const Args frozen = {"--set", "optimizer.lr=1e-30", "--set", "optimizer.weight_decay=0.0",
                       "--set", "valid.patience=2",   "--set", "valid.every=2",
                       "--set", "train.steps=1000"};
  const Outcome outcome = Train("run", frozen);
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("done at step 6 "));
  EXPECT_THAT(Read("run/log.txt"), HasSubstr("stopped early"));
  EXPECT_THAT(outcome.out, HasSubstr("at step 2"));  // the best
}

TEST_F(TrainTest, AScheduleThatEndsBeforeTheRunIsWarnedOf) {
  EXPECT_THAT(
      Weft({"train", "job.toml", "--set", "train.steps=45"}).err,
      HasSubstr(
          "warning: the learning rate ends at schedule.min_lr = 0 after schedule.steps = 40 updates, but the run has 45"));
  EXPECT_THAT(Weft({"train", "job.toml", "--overwrite"}).err, Not(HasSubstr("schedule.steps")));
}

TEST_F(TrainTest, CheckpointsRotateAndPointersNameThem) {
  ASSERT_THAT(
      Train("run", {"--set", "checkpoint.every=4", "--set", "checkpoint.keep_last=2", "--set", "checkpoint.keep_best=0"}),
      Succeeds());
  EXPECT_THAT(NamesIn(Path("run/checkpoints")), ElementsAre("step-16.weft", "step-20.weft"));
  EXPECT_EQ(Read("run/last"), "checkpoints/step-20.weft\n");
}

TEST_F(TrainTest, TheValidationBatchSizeChangesNoResult) {
  std::vector<double> losses;
  for (const char* size : {"1", "3", "64"}) {
    const std::string run = absl::StrCat("run", size);
    ASSERT_THAT(Train(run, {"--set", absl::StrCat("valid.batch_size=", size)}), Succeeds());
    losses.push_back(Metrics(run)[3]["eval_loss"].get<double>());
  }
  // Sums of the same f32 token losses in f64, grouped otherwise.
  EXPECT_NEAR(losses[1], losses[0], 1e-12 * losses[0]);
  EXPECT_NEAR(losses[2], losses[0], 1e-12 * losses[0]);
}

TEST_F(TrainTest, TheSavedConfigTrainsTheSameModel) {
  ASSERT_THAT(Train("run"), Succeeds());
  ASSERT_THAT(Weft({"train", "run/config.toml", "--quiet", "--set", "run.dir=again"}), Succeeds());
  EXPECT_TRUE(Checkpoint("run", 20) == Checkpoint("again", 20));
}

TEST_F(TrainTest, QuietPrintsTheResultOnly) {
  const Outcome outcome = Train("run");
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("done at step 20 after 20 updates; loss "));
  EXPECT_THAT(outcome.out, HasSubstr("run/checkpoints/step-20.weft"));
  EXPECT_THAT(Weft({"train", "job.toml"}).err, HasSubstr("step 1/20  loss "));
}

}  // namespace
}  // namespace weft
