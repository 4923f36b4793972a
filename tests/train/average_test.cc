#include "train/average.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "tests/cases/job.h"
#include "train/model_state.h"

namespace weft {
namespace {

using Set = Job::Set;

void Declare(Parameters* parameters) {
  Builder builder(parameters);
  builder.Sub("a").Parameter("weight", {3, 5}, Init::Zeros());
  parameters->Allocate(DType::kF64, 1);
}

void Fill(const Tensor& tensor, double value) {
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.Set(i, value);
}

TEST(WeightAverage, FollowsTheRecurrenceWithItsWarmUp) {
  Parameters parameters;
  Declare(&parameters);
  WeightAverage average(0.5, parameters);  // starts at 0
  double expected = 0;
  for (int64_t t = 1; t <= 20; ++t) {
    Fill(parameters.Mutable(), static_cast<double>(t));
    average.Update(parameters, t);
    const double decay = std::min(0.5, (1.0 + static_cast<double>(t)) / (10.0 + static_cast<double>(t)));
    expected = decay * expected + (1 - decay) * static_cast<double>(t);
    EXPECT_NEAR(average.slab().At(7), expected, 1e-13 * expected) << t;
  }
}

TEST(WeightAverage, SwapTwiceIsNothing) {
  Parameters parameters;
  Declare(&parameters);
  WeightAverage average(0.9, parameters);
  Fill(parameters.Mutable(), 2);
  average.Swap(&parameters);
  EXPECT_EQ(parameters.slab().At(0), 0);
  EXPECT_EQ(average.slab().At(0), 2);
  average.Swap(&parameters);
  EXPECT_EQ(parameters.slab().At(0), 2);
  EXPECT_EQ(average.slab().At(0), 0);
}

std::vector<float> Stored(const std::string& path, const std::string& prefix) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::vector<float> values;
  for (const StoredTensor& stored : checkpoint->tensors()) {
    if (prefix.empty() ? !IsParameter(stored.name) : !absl::StartsWith(stored.name, prefix)) continue;
    Slab slab(stored.dtype, stored.shape.elements());
    const Tensor tensor = slab.tensor().Reshaped(stored.shape);
    EXPECT_TRUE(checkpoint->ReadInto(stored.name, tensor).ok());
    values.insert(values.end(), tensor.data<float>(), tensor.data<float>() + tensor.elements());
  }
  return values;
}

TEST(WeightAverage, ChangesNoWeightOfTheTrainingAndIsWhatEvaluationUses) {
  const Job job(kPairsJob, UnequalPairs(10));
  const Set set = {"train.steps=6", "valid.every=2", "data.valid=" + job.Path("train.tsv")};
  Set averaging = set;
  averaging.push_back("train.ema_decay=0.9");
  job.Train(set, "plain");
  const TrainResult result = job.Train(averaging, "averaged");
  const std::string path = job.Path("averaged") + "/checkpoints/step-6.weft";
  const std::vector<float> raw = Stored(path, ""), average = Stored(path, "average/");
  EXPECT_EQ(raw, Stored(job.Path("plain") + "/checkpoints/step-6.weft", ""));
  ASSERT_EQ(raw.size(), average.size());
  EXPECT_NE(raw, average);
  const auto session = LoadSession(path);
  std::vector<float> loaded;
  for (const NamedTensor& named : ParameterTensors(*session->parameters)) {
    loaded.insert(loaded.end(), named.value.data<float>(), named.value.data<float>() + named.value.elements());
  }
  EXPECT_EQ(loaded, average);
  // The validation in training was that of the average too.
  auto data = LoadData(ToDataOptions(job.Load(set)));
  ASSERT_TRUE(data.ok());
  GradientRunner runner(*session->model, *session->parameters);
  const auto again = Evaluate(*session->model, *session->parameters, (*data)->valid, {"loss"}, 64, &runner);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->Get("loss"), result.validation.Get("loss"));
}

TEST(WeightAverage, GoesOnAfterAResumeWithTheSameBits) {
  const Job job(kPairsJob, UnequalPairs(10));
  const Set set = {"train.ema_decay=0.9", "checkpoint.keep_last=9"};
  Set all = set, first = set;
  all.push_back("train.steps=9");
  first.push_back("train.steps=4");
  job.Train(all, "whole", RunDir::Mode::kFresh, 2);
  job.Train(first, "parts");
  job.Train(all, "parts", RunDir::Mode::kResume);
  EXPECT_EQ(BytesOf(job.Path("whole") + "/checkpoints/step-9.weft"), BytesOf(job.Path("parts") + "/checkpoints/step-9.weft"));
  // Switched on in the middle it starts from the weights of that moment.
  first.front() = "train.ema_decay=0";
  job.Train(first, "late");
  job.Train(all, "late", RunDir::Mode::kResume);
  EXPECT_EQ(Stored(job.Path("whole") + "/checkpoints/step-9.weft", ""),
            Stored(job.Path("late") + "/checkpoints/step-9.weft", ""));
}

TEST(MeanOfCheckpoints, IsTheMeanOfEachElement) {
  const Job job(kPairsJob, UnequalPairs(10));
  job.Train({"train.steps=3", "checkpoint.every=1"}, "run");
  const auto newest = NewestCheckpoints(job.Path("run"), 3);
  ASSERT_TRUE(newest.ok()) << newest.status();
  ASSERT_EQ(newest->size(), 3);
  const std::string output = job.Path("mean.weft");
  ASSERT_TRUE(MeanOfCheckpoints(*newest, output).ok());
  std::vector<std::vector<float>> values;
  for (const std::string& path : *newest) values.push_back(Stored(path, ""));
  const std::vector<float> mean = Stored(output, "");
  ASSERT_EQ(mean.size(), values[0].size());
  for (size_t i = 0; i < mean.size(); ++i) {
    EXPECT_EQ(mean[i], static_cast<float>((double{values[0][i]} + values[1][i] + values[2][i]) / 3)) << i;
  }
  EXPECT_EQ(LoadSession(output)->step, 3);
  EXPECT_FALSE(NewestCheckpoints(job.Path("run"), 4).ok());
}

TEST(MeanOfCheckpoints, RefusesOtherModelsAndVocabularies) {
  const Job job(kPairsJob, UnequalPairs(10));
  job.Train({}, "a");
  job.Train({"model.hidden=24"}, "wide");
  job.Write("train.tsv", UnequalPairs(10) + "x\ty\n");
  job.Train({}, "other");
  const auto refused = [&](const std::string& run) {
    return MeanOfCheckpoints({job.Path("a") + "/checkpoints/step-1.weft", job.Path(run) + "/checkpoints/step-1.weft"},
                             job.Path("mean.weft"));
  };
  EXPECT_TRUE(absl::StrContains(refused("wide").message(), "parameters (first at ")) << refused("wide");
  EXPECT_TRUE(absl::StrContains(refused("other").message(), "its tokenizers are not those of")) << refused("other");
}

}  // namespace
}  // namespace weft
