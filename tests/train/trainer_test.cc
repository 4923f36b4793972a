// What a run does when numbers go wrong, when time is over, and where its first weights come from.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "autograd/base/status.h"
#include "tests/cases/job.h"
#include "train/model_state.h"

namespace weft {
namespace {

using Set = Job::Set;

// Ten pairs in batches of two: one update in five has example 5, which gives NaN.
Set Poisoned(Set more) {
  Set set = {R"(model.decoder.sublayers=[{ type = "self_attention" }, { type = "poison", victim = 5 }])", "train.shuffle=false",
             "optimizer.kind=\"adamw\""};
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

absl::StatusOr<TrainResult> TryTrain(const Job& job, const Set& set, const std::string& run,
                                     TrainOptions options = {.quiet = true}) {
  absl::StatusOr<TrainResult> result;
  Workers(2).Run([&] { result = Train(job.Load(set, run), options); });
  return result;
}

std::vector<float> WeightsAt(const Job& job, const std::string& run, int64_t step) {
  return Values(*LoadSession(absl::StrCat(job.Path(run), "/checkpoints/step-", step, ".weft"))->parameters);
}

TEST(Diverging, StopsAtTheStepAndNamesOpLayerAndGradient) {
  const Job job(kPairsJob, UnequalPairs(10));
  const auto result = TryTrain(job, Poisoned({"train.steps=10", "checkpoint.every=1"}), "run");
  ASSERT_EQ(result.status().code(), kDivergedCode) << result.status();
  const absl::string_view message = result.status().message();
  EXPECT_TRUE(absl::StartsWith(message,
                               "diverged at step 3: the loss is nan; first: op scale in decoder.0.poison: element 0 of "
                               "its output ["))
      << message;
  EXPECT_TRUE(absl::StrContains(message, "first such gradient: target_embedding.weight")) << message;
  EXPECT_TRUE(absl::StrContains(message, "The last checkpoint is " + job.Path("run") + "/checkpoints/step-2.weft")) << message;
  EXPECT_EQ(LoadSession(job.Path("run"))->step, 2);
}

TEST(Diverging, LeavesTheWeightsBeforeItWhenNothingWasSavedYet) {
  const Job job(kPairsJob, UnequalPairs(10));
  const auto result = TryTrain(job, Poisoned({"train.steps=10"}), "run");
  ASSERT_EQ(result.status().code(), kDivergedCode) << result.status();
  EXPECT_EQ(job.Train(Poisoned({"train.steps=2"}), "two").step, 2);
  EXPECT_EQ(WeightsAt(job, "run", 2), WeightsAt(job, "two", 2));
  // The place in the data is that before the update as well: a resume fails at the same step.
  const auto again = TryTrain(job, Poisoned({"train.steps=10"}), "run", {.mode = RunDir::Mode::kResume, .quiet = true});
  EXPECT_TRUE(absl::StartsWith(again.status().message(), "diverged at step 3:")) << again.status();
}

TEST(Diverging, DetectAnomalyStopsEvenWhereTheConfigWouldSkip) {
  const Job job(kPairsJob, UnequalPairs(10));
  const auto result = TryTrain(job, Poisoned({"train.steps=10"}), "run", {.quiet = true, .detect_anomaly = true});
  EXPECT_TRUE(absl::StartsWith(result.status().message(), "diverged at step 3: op scale in decoder.0.poison: element 0 of "))
      << result.status();
}

TEST(Diverging, ALossThatIsHopelessCountsAsInfinite) {
  const Job job(kPairsJob, UnequalPairs(10));
  const auto result = TryTrain(job, {"train.steps=50", "optimizer.lr=1e12"}, "run");
  ASSERT_EQ(result.status().code(), kDivergedCode) << result.status();
  EXPECT_TRUE(absl::StrContains(result.status().message(), "largest weight: ")) << result.status();
  for (float value : Values(*LoadSession(job.Path("run"))->parameters)) ASSERT_TRUE(std::isfinite(value));
}

TEST(Skipping, LeavesTheUpdateOutAndGoesOn) {
  const Job job(kPairsJob, UnequalPairs(10));
  const Set set = Poisoned({"train.on_nonfinite=\"skip\"", "checkpoint.every=1", "checkpoint.keep_last=20"});
  Set ten = set;
  ten.push_back("train.steps=10");
  const auto result = TryTrain(job, ten, "run");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 10);
  EXPECT_EQ(result->skipped, 2);
  EXPECT_EQ(WeightsAt(job, "run", 2), WeightsAt(job, "run", 3));
  EXPECT_NE(WeightsAt(job, "run", 3), WeightsAt(job, "run", 4));
  // The same with a resume just after the skipped update, and bit for bit.
  Set three = set;
  three.push_back("train.steps=3");
  job.Train(three, "parts");
  job.Train(ten, "parts", RunDir::Mode::kResume);
  const std::string last = "/checkpoints/step-10.weft";
  EXPECT_EQ(ReadFile(job.Path("run") + last).value_or("a"), ReadFile(job.Path("parts") + last).value_or("b"));
}

TEST(Skipping, StopsAfterTooManyInARowAlsoAcrossAResume) {
  const Job job(kPairsJob, UnequalPairs(2));  // example 1 is in every batch
  Set set = {R"(model.decoder.sublayers=[{ type = "self_attention" }, { type = "poison", victim = 1 }])", "train.steps=10",
             "train.on_nonfinite=\"skip\"", "train.max_skips=3", "checkpoint.every=1"};
  const auto result = TryTrain(job, set, "run");
  ASSERT_EQ(result.status().code(), kDivergedCode) << result.status();
  EXPECT_TRUE(absl::StartsWith(result.status().message(), "diverged at step 4:")) << result.status();
  EXPECT_TRUE(absl::StrContains(result.status().message(), "nor with the 3 before it")) << result.status();
  const auto again = TryTrain(job, set, "run", {.mode = RunDir::Mode::kResume, .quiet = true});
  EXPECT_TRUE(absl::StartsWith(again.status().message(), "diverged at step 4:")) << again.status();
}

TEST(Minutes, EndTheRunWithAValidationAndACheckpoint) {
  const Job job(kPairsJob, UnequalPairs(10));
  job.Write("job.toml", absl::StrCat(kPairsJob, "[valid]\nevery = 1000000\n"));
  const Set set = {"train.steps=1000000000", "train.minutes=0.002", "data.valid=" + job.Path("train.tsv")};
  const TrainResult result = job.Train(set, "run");
  EXPECT_TRUE(result.out_of_time && result.has_validation);
  EXPECT_GT(result.step, 0);
  EXPECT_EQ(LoadSession(job.Path("run"))->step, result.step);
  // A resume has as much time again.
  EXPECT_GT(job.Train(set, "run", RunDir::Mode::kResume).step, result.step);
}

TEST(InitFrom, TakesWeightsAndTokenizersOfTheOtherRun) {
  const Job job(kPairsJob, UnequalPairs(10));
  job.Train({"train.steps=3"}, "first");
  // Fewer symbols than the first run's data has: a tokenizer of its own would be smaller.
  job.Write("train.tsv", "a\tb\nb\tc\n");
  const Set from = {"train.init_from=" + job.Path("first"), "optimizer.lr=1e-30", "optimizer.weight_decay=0"};
  job.Train(from, "second");
  EXPECT_EQ(WeightsAt(job, "second", 1), WeightsAt(job, "first", 3));
  const auto first = LoadSession(job.Path("first")), second = LoadSession(job.Path("second"));
  EXPECT_EQ(first->source_tokenizer->Serialize().symbols, second->source_tokenizer->Serialize().symbols);
  EXPECT_EQ(second->step, 1);
}

TEST(InitFrom, AResumeNeedsTheOtherRunNoMore) {
  const Job job(kPairsJob, UnequalPairs(10));
  job.Train({"train.steps=3"}, "first");
  job.Write("train.tsv", "a\tb\nb\tc\n");
  const std::string from = "train.init_from=" + job.Path("first");
  job.Train({from, "train.steps=5"}, "whole");
  job.Train({from, "train.steps=2"}, "parts");
  std::filesystem::remove_all(job.Path("first"));
  job.Train({from, "train.steps=5"}, "parts", RunDir::Mode::kResume);
  EXPECT_EQ(WeightsAt(job, "whole", 5), WeightsAt(job, "parts", 5));
}

TEST(InitFrom, APartialLoadMustBeAskedForAndIsListed) {
  const Job job(kPairsJob, UnequalPairs(10));
  job.Train({"train.steps=3"}, "first");
  Set set = {"train.init_from=" + job.Path("first"), "model.layers=2", "optimizer.lr=1e-30"};
  const auto refused = TryTrain(job, set, "second");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "encoder.1.self_attention") &&
              absl::StrContains(refused.status().message(), "is not in it") &&
              absl::StrContains(refused.status().message(), "train.init_partial = true"))
      << refused.status();
  set.push_back("train.init_partial=true");
  job.Train(set, "second");
  const auto first = LoadSession(job.Path("first")), second = LoadSession(job.Path("second"));
  for (const NamedTensor& named : ParameterTensors(*first->parameters)) {
    for (const NamedTensor& twin : ParameterTensors(*second->parameters)) {
      EXPECT_TRUE(twin.name != named.name || twin.value.At(0) == named.value.At(0)) << named.name;
    }
  }
  const std::string log = ReadFile(job.Path("second") + "/log.txt").value_or("");
  EXPECT_TRUE(absl::StrContains(log, "not found there, drawn anew: encoder.1.")) << log;
}

TEST(InitFrom, RefusesWhatFitsNowhere) {
  const Job job(kPairsJob, UnequalPairs(10));
  job.Train({}, "first");
  const auto other = TryTrain(
      job, {"train.init_from=" + job.Path("first"), "model.d_model=12", "model.hidden=20", "train.init_partial=true"}, "b");
  EXPECT_TRUE(absl::StrContains(other.status().message(), "does not fit the model")) << other.status();
  const auto missing = TryTrain(job, {"train.init_from=" + job.Path("nowhere")}, "c");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound) << missing.status();
}

}  // namespace
}  // namespace weft
