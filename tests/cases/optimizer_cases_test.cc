// Cases about learning rates, optimizers, frozen parameters and runs without updates, through whole trainings.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "autograd/base/status.h"
#include "tests/cases/job.h"
#include "train/optimizer.h"

namespace weft {
namespace {

using Json = nlohmann::json;

std::vector<double> RatesOf(const std::string& run) {
  std::vector<double> rates;
  std::ifstream in(run + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) rates.push_back(Json::parse(line)["learning_rate"]);
  return rates;
}

std::string LogOf(const std::string& run) { return BytesOf(run + "/log.txt"); }

// The settings of each kind of schedule, with warm-up and horizon to be filled in.
std::vector<Job::Set> Schedules() {
  return {{"schedule.kind=constant"},
          {"schedule.kind=linear"},
          {"schedule.kind=cosine"},
          {"schedule.kind=inverse_sqrt"},
          {"schedule.kind=wsd"}};
}

TEST(ScheduleCase, B053_TheFirstUpdateMovesWeightsAndTooLongWarmupsAreRefused) {
  const Job job(kPairsJob, UnequalPairs(6));
  int number = 0;
  for (const Job::Set& kind : Schedules()) {
    for (const auto& [warmup, steps] : {std::pair<int, int>{0, 10}, {10, 10}, {20, 10}, {0, 1}, {1, 1}, {9, 10}}) {
      Job::Set set = kind;
      set.push_back(absl::StrCat("schedule.warmup_steps=", warmup));
      set.push_back(absl::StrCat("schedule.steps=", steps));
      if (warmup > steps) {
        set.push_back("run.dir=" + job.Path("refused"));
        const auto config = LoadTrainingConfig(job.Path("job.toml"), set);
        EXPECT_EQ(ExitCode(config.status()), 2) << kind[0];
        EXPECT_TRUE(absl::StrContains(config.status().message(), "schedule.warmup_steps: found 20")) << config.status();
        continue;
      }
      if (warmup == 10 || steps == 1) continue;  // the same first update as others
      set.push_back("train.steps=1");
      const std::string run = absl::StrCat("run", ++number);
      job.Train(set, run);
      EXPECT_NE(Values(*LoadSession(job.Path(run))->parameters), Values(*Fresh(job.Load(set)).session->parameters))
          << kind[0] << " " << warmup << " " << steps;
    }
  }
  // A warm-up that is longer than the run, where no horizon was stated, is said.
  job.Train({"schedule.warmup_steps=20", "train.steps=2"}, "warned");
  EXPECT_TRUE(
      absl::StrContains(LogOf(job.Path("warned")), "warning: the run ends inside of the warm-up, which has 20 updates"));
}

TEST(ScheduleCase, B055_RatesContinueAcrossAResume) {
  const Job job(kPairsJob, UnequalPairs(6));
  std::vector<Job::Set> schedules = Schedules();
  schedules.push_back({"schedule.kind=wsd", "schedule.decay_steps=15", "schedule.shape=sqrt"});
  for (Job::Set& set : schedules) set.push_back("schedule.steps=20");
  schedules.push_back({"schedule.kind=cosine", "schedule.cycle_steps=3", "schedule.cycle_multiplier=2"});
  int number = 0;
  for (const Job::Set& kind : schedules) {
    // Update 7 lies in the decay, or in the warm-up.
    for (const char* warmup : {"schedule.warmup_steps=3", "schedule.warmup_steps=9"}) {
      if (absl::StrContains(warmup, "9") && kind[0] != "schedule.kind=linear") continue;
      Job::Set all = kind, first = kind;
      for (Job::Set* set : {&all, &first}) set->push_back(warmup);
      all.push_back("train.steps=20");
      first.push_back("train.steps=7");
      const std::string whole = absl::StrCat("whole", ++number), parts = absl::StrCat("parts", number);
      job.Train(all, whole);
      EXPECT_EQ(job.Train(first, parts).step, 7);
      EXPECT_EQ(LoadSession(job.Path(parts))->step, 7);
      EXPECT_EQ(job.Train(all, parts, RunDir::Mode::kResume).updates, 13);
      const std::vector<double> rates = RatesOf(job.Path(whole));
      ASSERT_EQ(rates.size(), 20u);
      EXPECT_EQ(RatesOf(job.Path(parts)), rates) << kind[0] << " " << warmup;
      EXPECT_EQ(BytesOf(job.Path(parts) + "/checkpoints/step-20.weft"), BytesOf(job.Path(whole) + "/checkpoints/step-20.weft"));
    }
  }
}

// 40 updates at once, and 17 + 23: the same file, moments and counts included.
TEST(ResumeCase, EveryOptimizerContinuesToTheSameBytes) {
  const Job job(kPairsJob, UnequalPairs(11));
  const std::string groups =
      "optimizer.groups=[{ match = \"*norm*\", frozen = true }, { match = \"decoder.*\", lr_scale = 0.5, weight_decay = 0.1 }]";
  for (const char* kind : {"sgd", "adam", "adamw", "lion", "adafactor", "muon"}) {
    Job::Set set = {absl::StrCat("optimizer.kind=", kind), "optimizer.lr=0.01", groups, "train.gradient_noise=0.01",
                    "model.dropout=0.1"};
    if (std::string(kind) == "sgd") set.push_back("optimizer.momentum=0.9");
    Job::Set all = set, first = set;
    all.push_back("train.steps=40");
    first.push_back("train.steps=17");
    const std::string whole = absl::StrCat("whole_", kind), parts = absl::StrCat("parts_", kind);
    job.Train(all, whole);
    job.Train(first, parts);
    job.Train(all, parts, RunDir::Mode::kResume, 2);
    const std::string bytes = BytesOf(job.Path(whole) + "/checkpoints/step-40.weft");
    EXPECT_FALSE(bytes.empty());
    EXPECT_TRUE(bytes == BytesOf(job.Path(parts) + "/checkpoints/step-40.weft")) << kind;
    EXPECT_TRUE(absl::StrContains(LogOf(job.Path(whole)), "parameter group \"*norm*\" (frozen): ")) << kind;
  }
}

TEST(GroupCase, GroupsMayChangeOnResumeAndTheKindMayNot) {
  const Job job(kPairsJob, UnequalPairs(6));
  job.Train({"train.steps=3", "optimizer.groups=[{ match = \"encoder.*\", frozen = true }]"}, "run");
  const auto fresh = Fresh(job.Load()).session;
  const auto frozen = LoadSession(job.Path("run"));
  for (size_t i = 0; i < fresh->parameters->list().size(); ++i) {
    const std::string& name = fresh->parameters->list()[i].name;
    const Tensor before = fresh->parameters->value(static_cast<int>(i)), after = frozen->parameters->value(static_cast<int>(i));
    const bool same = std::equal(before.span<float>().begin(), before.span<float>().end(), after.span<float>().begin());
    EXPECT_TRUE(same || !absl::StartsWith(name, "encoder.")) << name;
  }
  job.Train({"train.steps=5", "optimizer.groups=[{ match = \"encoder.*\", lr_scale = 0.1 }]"}, "run", RunDir::Mode::kResume);
  EXPECT_TRUE(absl::StrContains(LogOf(job.Path("run")), "changed on resume: optimizer.groups: [{ match = \"encoder.*\", "));
  EXPECT_NE(Values(*LoadSession(job.Path("run"))->parameters), Values(*frozen->parameters));
  const auto other = Train(job.Load({"train.steps=6", "optimizer.kind=lion"}),
                           {.mode = RunDir::Mode::kResume, .stop = nullptr, .quiet = true});
  EXPECT_EQ(ExitCode(other.status()), 2);
  EXPECT_TRUE(absl::StrContains(other.status().message(), "optimizer.kind: found \"lion\"")) << other.status();
}

TEST(GroupCase, APatternWithoutParametersIsRefusedBeforeTheFolderIsMade) {
  const Job job(std::string(kPairsJob) + "[[optimizer.groups]]\nmatch = \"encoder.*.nrm.*\"\nlr_scale = 0.5\n",
                UnequalPairs(6));
  const auto result = Train(job.Load(), {.mode = RunDir::Mode::kFresh, .stop = nullptr, .quiet = true});
  EXPECT_EQ(ExitCode(result.status()), 2);
  EXPECT_TRUE(absl::StrContains(result.status().message(), "job.toml:22:9: optimizer.groups.match: found \"encoder.*.nrm.*\""))
      << result.status();
  EXPECT_TRUE(absl::StrContains(result.status().message(), "encoder.0.self_attention_norm.weight")) << result.status();
  EXPECT_FALSE(std::ifstream(job.Path("run") + "/config.toml").good());
}

// The matrix that embeds and predicts is one parameter: counted once, with the sum of both uses' gradients, also after a load.
TEST(TiedCase, B064_TheSharedMatrixIsOneParameter) {
  const Job job(kPairsJob, UnequalPairs(6));
  const Job::Set tied = {"model.tied=[\"target\", \"output\"]", "train.clip_norm=0"};
  const Fresh one(job.Load(tied)), two(job.Load({"train.clip_norm=0"}));
  Parameters& shared = *one.session->parameters;
  Parameters& apart = *two.session->parameters;
  const int embedding = apart.Find("target_embedding.weight"), head = apart.Find("output.weight");
  const int64_t size = apart.value(head).elements();  // V * d
  EXPECT_EQ(shared.Find("output.weight"), -1);
  EXPECT_EQ(shared.count(), apart.count() - size);
  const int matrix = shared.Find("target_embedding.weight");
  Parameters::In(apart.Mutable(), apart.list()[head]).CopyFrom(shared.value(matrix));

  const auto gradients_of = [](const Fresh& fresh, std::vector<double>* of, int parameter, double* norm) {
    GradientRunner runner(*fresh.session->model, *fresh.session->parameters);
    auto batcher = Batcher::Create(&fresh.data->train, {.batch_size = 6, .batch_tokens = 0, .shuffle = false, .seed = 1});
    Batch batch;
    EXPECT_TRUE(batcher->Next(&batch).ok());
    Tensor gradients;
    runner.Run({batch.View()}, 0, {}, &gradients);
    const Tensor g = Parameters::In(gradients, fresh.session->parameters->list()[parameter]);
    for (int64_t i = 0; i < g.elements(); ++i) of->push_back(g.At(i));
    double squares = 0;
    for (const ParameterInfo& info : fresh.session->parameters->list()) {
      for (float x : Parameters::In(gradients, info).span<float>()) squares += static_cast<double>(x) * x;
    }
    OptimizerConfig sgd;
    sgd.kind = "sgd";
    sgd.weight_decay = 0;
    *norm = Optimizer(sgd, *fresh.session->parameters).Step(fresh.session->parameters.get(), gradients, 1, 0, 0.5).grad_norm;
    EXPECT_NEAR(*norm, std::sqrt(squares), 1e-9 * *norm);
  };
  std::vector<double> sum, as_embedding, as_head;
  double norm = 0, norm_apart = 0;
  const std::vector<float> before(shared.value(matrix).span<float>().begin(), shared.value(matrix).span<float>().end());
  gradients_of(one, &sum, matrix, &norm);
  for (int64_t i = 0; i < size; ++i) EXPECT_EQ(shared.value(matrix).At(i), static_cast<float>(before[i] - 0.5 * sum[i]));
  {
    const Fresh again(job.Load({"train.clip_norm=0"}));
    Parameters& p = *again.session->parameters;
    Parameters::In(p.Mutable(), p.list()[head]).CopyFrom(apart.value(head));
    gradients_of(again, &as_head, head, &norm_apart);
  }
  gradients_of(two, &as_embedding, embedding, &norm_apart);
  for (int64_t i = 0; i < size; ++i) EXPECT_NEAR(sum[i], as_embedding[i] + as_head[i], 1e-5) << i;

  // After a load it still is one: the logits follow a change of the embedding.
  job.Train(tied, "run");
  const auto loaded = LoadSession(job.Path("run"));
  EXPECT_EQ(loaded->parameters->count(), shared.count());
  const auto loss_of = [&] {
    GradientRunner runner(*loaded->model, *loaded->parameters);
    Batch batch;
    auto batcher = Batcher::Create(&one.data->train, {.batch_size = 6, .batch_tokens = 0, .shuffle = false, .seed = 1});
    EXPECT_TRUE(batcher->Next(&batch).ok());
    return runner.Evaluate({batch.View()}).loss;
  };
  const double loss = loss_of();
  Parameters::In(loaded->parameters->Mutable(), loaded->parameters->list()[matrix]).Zero();
  // All logits are 0 now, so each target costs ln V: the head changed with the embedding.
  EXPECT_NE(loss, loss_of());
  EXPECT_NEAR(loss_of(), std::log(static_cast<double>(loaded->target_tokenizer->size())) * 19, 1e-4);
}

// 3 batches an epoch and 8 to accumulate: one update of those 3, which the summary states.
TEST(NoOpCase, B067_AnAccumulationBeyondTheEpochIsFlushed) {
  const Job job(kPairsJob, UnequalPairs(6));
  const Job::Set set = {"train.accumulate=8", "train.epochs=1"};
  const TrainResult result = job.Train(set, "run");
  EXPECT_EQ(result.updates, 1);
  EXPECT_EQ(result.step, 1);
  EXPECT_NE(Values(*LoadSession(job.Path("run"))->parameters), Values(*Fresh(job.Load(set)).session->parameters));
  EXPECT_TRUE(absl::StrContains(LogOf(job.Path("run")), "finished at step 1 after 1 updates")) << LogOf(job.Path("run"));
  // A resume past the end says so too.
  EXPECT_EQ(job.Train(set, "run", RunDir::Mode::kResume).updates, 0);
  EXPECT_TRUE(absl::StrContains(LogOf(job.Path("run")), "finished at step 1 after 0 updates"));
  for (const char* refused : {"train.steps=0", "train.epochs=0", "optimizer.lr=0", "optimizer.lr=0.0"}) {
    EXPECT_EQ(ExitCode(LoadTrainingConfig(job.Path("job.toml"), {refused}).status()), 2) << refused;
  }
}

}  // namespace
}  // namespace weft
