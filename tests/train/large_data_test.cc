// Trainings whose data is read from the token cache: the bits of those in memory, and nothing is lost with a damaged file.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/cases/job.h"

namespace weft {
namespace {

using Set = Job::Set;

absl::StatusOr<TrainResult> TryTrain(const Job& job, const Set& set, const std::string& run, int64_t in_memory,
                                     RunDir::Mode mode = RunDir::Mode::kFresh) {
  absl::StatusOr<TrainResult> result;
  Workers(2).Run([&] { result = Train(job.Load(set, run), {.mode = mode, .quiet = true, .data_in_memory = in_memory}); });
  return result;
}

std::string Weights(const Job& job, const std::string& run, int64_t step) {
  const auto session = LoadSession(absl::StrCat(job.Path(run), "/checkpoints/step-", step, ".weft"));
  const std::vector<float> values = Values(*session->parameters);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string Labels(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) absl::StrAppend(&text, std::string(1 + i % 5, i % 2 == 0 ? 'a' : 'b'), "\tclass", i % 3, "\n");
  return text;
}

const Set kLabels = {"data.kind=labels", "model.family=encoder"};

TEST(LargeData, PairsAndLabelsInTheCacheTrainTheBitsOfThoseInMemory) {
  const Job pairs(kPairsJob, UnequalPairs(30)), labels(kPairsJob, Labels(30));
  for (const bool label : {false, true}) {
    const Job& job = label ? labels : pairs;
    Set set = {"train.steps=9", "train.batch_size=4", "train.sort_pool=12", "data.cache=" + job.Path("cache")};
    if (label) set.insert(set.end(), kLabels.begin(), kLabels.end());
    ASSERT_TRUE(TryTrain(job, set, "held", 1 << 20).ok());
    ASSERT_FALSE(std::filesystem::exists(job.Path("cache")));
    const auto cached = TryTrain(job, set, "cached", 0);
    ASSERT_TRUE(cached.ok()) << cached.status();
    ASSERT_TRUE(std::filesystem::exists(job.Path("cache")));
    EXPECT_EQ(Weights(job, "cached", 9), Weights(job, "held", 9));
    // A run that began in memory goes on from the cache.
    Set more = set;
    more[0] = "train.steps=12";
    const auto longer = TryTrain(job, more, "held", 0, RunDir::Mode::kResume);
    ASSERT_TRUE(longer.ok()) << longer.status();
    ASSERT_TRUE(TryTrain(job, more, "whole", 1 << 20).ok());
    EXPECT_EQ(Weights(job, "held", 12), Weights(job, "whole", 12));
  }
}

// Cuts the only file in `folder` when `metrics` of a run says that it has made updates.
void CutWhenRunning(const std::string& folder, const std::string& metrics) {
  namespace fs = std::filesystem;
  for (int i = 0; i < 20000; ++i) {
    std::error_code error;
    if (fs::exists(metrics, error) && fs::file_size(metrics, error) > 500) {
      fs::resize_file(fs::directory_iterator(folder)->path(), 64);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(LargeData, ARunWhoseFileIsCutSavesBeforeItEndsAndGoesOnWithTheSameBits) {
  const Job job(kPairsJob, UnequalPairs(30));
  const Set cache = {"data.cache=" + job.Path("cache"), "checkpoint.every=1000000"};
  const auto with_steps = [&](int64_t steps) {
    Set set = cache;
    set.push_back(absl::StrCat("train.steps=", steps));
    return set;
  };
  std::thread cutter(CutWhenRunning, job.Path("cache"), job.Path("run") + "/metrics.jsonl");
  const auto failed = TryTrain(job, with_steps(1000000), "run", 0);
  cutter.join();
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kDataLoss) << failed.status();
  const int64_t step = LoadSession(job.Path("run"))->step;
  ASSERT_GT(step, 0);
  const auto resumed = TryTrain(job, with_steps(step + 5), "run", 0, RunDir::Mode::kResume);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->updates, 5);
  ASSERT_TRUE(TryTrain(job, with_steps(step + 5), "whole", 1 << 20).ok());
  EXPECT_EQ(Weights(job, "run", step + 5), Weights(job, "whole", step + 5));
}

}  // namespace
}  // namespace weft
