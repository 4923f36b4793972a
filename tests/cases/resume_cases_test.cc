// Cases about going on after an interruption and about threads: whole runs, compared byte by byte.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cases/job.h"

namespace weft {
namespace {

// Everything that draws random numbers or has a place: dropout, shuffling, accumulation, a moving average, best and patience;
// validations decode in between.
Job::Set Everything(Job::Set more) {
  Job::Set set = {"optimizer.kind=\"adamw\"",
                  "optimizer.lr=0.01",
                  "model.dropout=0.2",
                  "model.attention_dropout=0.1",
                  "train.shuffle=true",
                  "train.accumulate=2",
                  "train.batch_size=2",
                  "train.ema_decay=0.9",
                  "train.label_smoothing=0.1",
                  "checkpoint.every=5",
                  "valid.every=4",
                  "valid.patience=50",
                  "checkpoint.keep_best=2",
                  R"(valid.metrics=["loss", "exact_match"])",
                  "schedule.steps=40",
                  "schedule.kind=cosine",
                  "schedule.warmup_steps=9"};
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

std::string LastCheckpoint(const Job& job, const std::string& run) {
  return BytesOf(job.Path(run) + "/checkpoints/step-40.weft");
}

// Losses by step; a step that is there twice fails.
std::vector<std::pair<int64_t, double>> Losses(const std::string& run) {
  std::vector<std::pair<int64_t, double>> losses;
  std::ifstream in(run + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    const int64_t step = json["step"];
    EXPECT_TRUE(losses.empty() || losses.back().first < step) << run << " step " << step;
    if (json.contains("loss")) losses.emplace_back(step, json["loss"].get<double>());
  }
  return losses;
}

// 13 pairs, 4 an update: step 17 is in the middle of the fifth pass.
TEST(ResumeCase, B056_ARunInPiecesHasTheBitsOfTheWholeOne) {
  const Job job(kPairsJob, UnequalPairs(13));
  const Job::Set valid = {"data.valid=" + job.Path("train.tsv")};
  const auto steps = [&](int n) { return Everything({valid[0], absl::StrCat("train.steps=", n)}); };
  job.Train(steps(40), "whole");
  job.Train(steps(17), "parts");
  job.Train(steps(40), "parts", RunDir::Mode::kResume);
  job.Train(steps(17), "twice", RunDir::Mode::kFresh, 2);
  job.Train(steps(17), "twice", RunDir::Mode::kResume);  // nothing left to do
  job.Train(steps(23), "twice", RunDir::Mode::kResume, 4);
  job.Train(steps(40), "twice", RunDir::Mode::kResume, 3);

  const std::string whole = LastCheckpoint(job, "whole");
  ASSERT_FALSE(whole.empty());
  EXPECT_TRUE(whole == LastCheckpoint(job, "parts"));
  EXPECT_TRUE(whole == LastCheckpoint(job, "twice"));
  const auto losses = Losses(job.Path("whole"));
  ASSERT_EQ(losses.size(), 40);
  EXPECT_EQ(losses, Losses(job.Path("parts")));
  EXPECT_EQ(losses, Losses(job.Path("twice")));
  for (const char* name : {"best", "last"}) {
    EXPECT_EQ(BytesOf(job.Path("whole") + "/" + name), BytesOf(job.Path("twice") + "/" + name)) << name;
  }
}

// Pools of 5 of the 13 pairs, batches of so many tokens: steps 17 and 23 are in the middle of a pool and of a pass.
TEST(ResumeCase, ARunWithSortedPoolsInPiecesHasTheBitsOfTheWholeOne) {
  const Job job(kPairsJob, UnequalPairs(13));
  const auto steps = [&](int n) {
    Job::Set set = Everything({"data.valid=" + job.Path("train.tsv"), "train.sort_pool=5", absl::StrCat("train.steps=", n)});
    std::replace(set.begin(), set.end(), std::string("train.batch_size=2"), std::string("train.batch_tokens=9"));
    return set;
  };
  job.Train(steps(40), "whole");
  job.Train(steps(17), "parts", RunDir::Mode::kFresh, 2);
  job.Train(steps(23), "parts", RunDir::Mode::kResume, 1);
  job.Train(steps(40), "parts", RunDir::Mode::kResume, 4);
  const std::string whole = LastCheckpoint(job, "whole");
  ASSERT_FALSE(whole.empty());
  EXPECT_TRUE(whole == LastCheckpoint(job, "parts"));
}

TEST(ThreadsCase, B068_FiftyStepsHaveTheSameBitsForAnyNumberOfThreads) {
  const Job job(kPairsJob, UnequalPairs(13));
  std::vector<std::string> checkpoints;
  for (int threads : {1, 2, 2, 4}) {
    const std::string run = absl::StrCat("run", checkpoints.size());
    // One pair a batch in four shards at most: fewer leaves than threads.
    job.Train({"train.steps=50", "train.batch_size=1", "train.shards=4", "model.dropout=0.1"}, run, RunDir::Mode::kFresh,
              threads);
    checkpoints.push_back(BytesOf(job.Path(run) + "/checkpoints/step-50.weft"));
    ASSERT_FALSE(checkpoints.back().empty());
    EXPECT_TRUE(checkpoints.back() == checkpoints.front()) << threads;
  }
}

}  // namespace
}  // namespace weft
