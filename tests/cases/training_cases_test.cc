// Cases about accumulation, evaluation, logging, shuffling and memory of whole trainings.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cases/job.h"
#include "train/evaluate.h"
#include "train/optimizer.h"

namespace weft {
namespace {

using Json = nlohmann::json;

std::vector<Json> Metrics(const std::string& run) {
  std::vector<Json> lines;
  std::ifstream in(run + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

// Where both runs round f32 sums of a few dozen terms differently.
void ExpectClose(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

// One pair of 2 target tokens and one of 6, as two micro-batches and as one batch.
TEST(AccumulationCase, B046_UnequalMicroBatchesEqualOneBatch) {
  const Job job(kPairsJob, "a\tb\nbab\taabbb\n");
  const TrainResult micro = job.Train({"train.batch_size=1", "train.accumulate=2"}, "micro");
  const TrainResult whole = job.Train({"train.batch_size=2"}, "whole");
  EXPECT_NEAR(micro.loss, whole.loss, 1e-6 * whole.loss);
  // The loss of the fresh model by hand: total over targets, not the mean of the two means.
  const Fresh fresh(job.Load());
  GradientRunner runner(*fresh.session->model, *fresh.session->parameters);
  double sum = 0, mean_of_means = 0;
  Batch batch;
  for (ValidationBatches batches(&fresh.data->train, 1); *batches.Next(&batch);) {
    const std::vector<BatchView> leaf = {batch.View()};
    const LossSum loss = runner.Evaluate(leaf);
    sum += loss.loss;
    mean_of_means += loss.mean_loss() / 2;
  }
  EXPECT_NEAR(micro.loss, sum / 8, 1e-6 * micro.loss);
  EXPECT_GT(std::abs(micro.loss - mean_of_means), 1e-4);

  const Json a = Metrics(job.Path("micro")).at(0), b = Metrics(job.Path("whole")).at(0);
  EXPECT_NEAR(a["grad_norm"].get<double>(), b["grad_norm"].get<double>(), 1e-6 * b["grad_norm"].get<double>());
  ExpectClose(Values(*LoadSession(job.Path("micro"))->parameters), Values(*LoadSession(job.Path("whole"))->parameters), 1e-6);
}

// 10 micro-batches an epoch in windows of 4, 4 and 2, and the same by a plain loop.
TEST(AccumulationCase, B047_TheShortLastWindowIsDividedByItsOwnTokens) {
  const Job job(kPairsJob, UnequalPairs(10));
  const Job::Set set = {"train.batch_size=1", "train.accumulate=4", "train.epochs=2", "train.clip_norm=0"};
  const TrainResult trained = job.Train(set, "run");
  EXPECT_EQ(trained.updates, 6);

  const Config config = job.Load(set);
  const Fresh fresh(config);
  auto batcher = Batcher::Create(&fresh.data->train, {.batch_size = 1, .batch_tokens = 0, .shuffle = true, .seed = 1});
  ASSERT_TRUE(batcher.ok());
  GradientRunner runner(*fresh.session->model, *fresh.session->parameters);
  Optimizer optimizer(config.optimizer, *fresh.session->parameters);
  for (int window : {4, 4, 2, 4, 4, 2}) {
    std::vector<Batch> batches(window);
    std::vector<BatchView> leaves;
    for (Batch& batch : batches) {
      EXPECT_TRUE(batcher->Next(&batch).ok());
      leaves.push_back(batch.View());
    }
    Tensor gradients;
    const LossSum loss = runner.Run(leaves, 0, {}, &gradients);
    optimizer.Step(fresh.session->parameters.get(), gradients, 1.0 / static_cast<double>(loss.targets), 0, config.optimizer.lr);
  }
  EXPECT_EQ(Values(*LoadSession(job.Path("run"))->parameters), Values(*fresh.session->parameters));
}

// 7 sequences of 2 to 8 target tokens (<eos> counts), 35 in all.
TEST(EvaluationCase, B049_ValidationLossDoesNotDependOnTheBatchSize) {
  std::string pairs;
  for (int length = 1; length <= 7; ++length) absl::StrAppend(&pairs, "ab\t", std::string(length, 'b'), "\n");
  const Job job(kPairsJob, pairs + "ba\ta\n");
  job.Write("valid.tsv", pairs);
  const Fresh fresh(job.Load({absl::StrCat("data.valid=", job.Path("valid.tsv"))}));
  GradientRunner runner(*fresh.session->model, *fresh.session->parameters);
  double first = 0;
  for (int64_t size : {1, 2, 3, 8}) {
    const auto scores = Evaluate(*fresh.session->model, *fresh.session->parameters, fresh.data->valid, {}, size, &runner);
    ASSERT_TRUE(scores.ok());
    EXPECT_EQ(scores->targets, 35);
    if (size == 1) first = scores->Get("loss");
    EXPECT_NEAR(scores->Get("loss"), first, 1e-12 * first) << "batches of " << size;  // f64 sums in another order
    EXPECT_DOUBLE_EQ(scores->Get("perplexity"), std::exp(scores->Get("loss")));
  }
}

TEST(LoggingCase, B050_LoggedValuesDoNotScaleWithAccumulation) {
  const Job job(kPairsJob, UnequalPairs(32));
  std::vector<std::vector<Json>> runs;
  for (const auto& [size, accumulate] : {std::pair<int, int>{8, 1}, {4, 2}, {2, 4}, {1, 8}}) {
    const std::string run = absl::StrCat("run", size);
    job.Train({absl::StrCat("train.batch_size=", size), absl::StrCat("train.accumulate=", accumulate), "train.steps=3"}, run);
    runs.push_back(Metrics(job.Path(run)));
    ASSERT_EQ(runs.back().size(), 3);
  }
  for (const std::vector<Json>& run : runs) {
    for (int step = 0; step < 3; ++step) {
      for (const char* key : {"loss", "grad_norm", "learning_rate"}) {
        const double expected = runs[0][step][key];
        EXPECT_NEAR(run[step][key].get<double>(), expected, 1e-5 * expected) << key << " of step " << step + 1;
      }
    }
  }
}

TEST(ShuffleCase, B052_EpochsArePermutationsThatFollowTheSeedOnly) {
  const Job job(kPairsJob, UnequalPairs(40));
  const auto order = [&](const std::string& seed, bool shuffle, int threads) {
    std::vector<std::vector<int64_t>> epochs(3);
    Workers(threads).Run([&] {
      const Config config = job.Load({"run.seed=" + seed});
      const Fresh fresh(config);
      auto batcher = Batcher::Create(
          &fresh.data->train,
          {.batch_size = 8, .batch_tokens = 0, .shuffle = shuffle, .seed = static_cast<uint64_t>(config.run.seed)});
      ASSERT_TRUE(batcher.ok());
      Batch batch;
      while (batcher->position().epoch < 3) {
        EXPECT_TRUE(batcher->Next(&batch).ok());
        epochs[batch.epoch].insert(epochs[batch.epoch].end(), batch.sequence_ids.begin(), batch.sequence_ids.end());
      }
    });
    return epochs;
  };
  std::vector<int64_t> in_order(40);
  for (int64_t i = 0; i < 40; ++i) in_order[i] = i;
  const auto shuffled = order("1", true, 1);
  for (std::vector<int64_t> epoch : shuffled) {
    EXPECT_NE(epoch, in_order);
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, in_order);
  }
  EXPECT_NE(shuffled[0], shuffled[1]);
  EXPECT_NE(shuffled[1], shuffled[2]);
  EXPECT_EQ(order("1", true, 2), shuffled);
  EXPECT_NE(order("2", true, 1), shuffled);
  for (const auto& epoch : order("1", false, 1)) EXPECT_EQ(epoch, in_order);
}

int64_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  int64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * ::sysconf(_SC_PAGE_SIZE);
}

// A log line each step, a validation each 100: nothing of a step outlives it.
TEST(MemoryCase, B043_MemoryDoesNotGrowWithTheSteps) {
  const Job job(kPairsJob, UnequalPairs(8));
  job.Write("valid.tsv", UnequalPairs(4));
  const std::string valid = absl::StrCat("data.valid=", job.Path("valid.tsv"));
  job.Train({valid, "valid.every=100", "train.steps=500"}, "run");
  const int64_t early = ResidentBytes();
  job.Train({valid, "valid.every=100", "train.steps=3000"}, "run", RunDir::Mode::kResume);
  const int64_t late = ResidentBytes();
#ifdef __SANITIZE_ADDRESS__
  const int64_t slack = int64_t{256} << 20;  // freed memory that the sanitizer holds back
#else
  const int64_t slack = 0;
#endif
  EXPECT_LT(late, early + early / 20 + slack);
  EXPECT_EQ(Metrics(job.Path("run")).size(), 3000);
}

}  // namespace
}  // namespace weft
