#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "tools/benchmarks/measure.h"
#include "tools/benchmarks/suites.h"
#include "train/session.h"
#include "train/training_job.h"

namespace weft::bench {
namespace {

constexpr int64_t kWarmUp = 3, kSteps = 100, kMostProfiled = 30;

// Updates of a job, one by one, and what they took.
class Updates {
 public:
  explicit Updates(TrainingJob* job) : job_(*job), batches_(job->config.train.accumulate) {}

  // The first error ends all: later calls return it.
  void Step() {
    if (!status.ok()) return;
    const TrainConfig& train = job_.config.train;
    leaves_.clear();
    for (Batch& batch : batches_) {
      const double start = Now();
      status = job_.batches->Next(&batch);
      waited += Now() - start;
      if (!status.ok()) return;
      SplitBatch(batch.View(), train.shards, &leaves_);
    }
    const RandomKey key = RandomKey{static_cast<uint64_t>(job_.config.run.seed)}.Fold("update").Fold(updates_++);
    Tensor gradients;
    const LossSum loss = job_.runner->Run(leaves_, train.label_smoothing, key, &gradients);
    const double start = Now();
    job_.optimizer->Step(job_.session->parameters.get(), gradients, 1.0 / static_cast<double>(loss.targets), train.clip_norm,
                         job_.config.optimizer.lr);
    optimized += Now() - start;
    tokens += loss.targets;
    leaves = static_cast<int64_t>(leaves_.size());
  }

  absl::Status status;
  // Sums since they were last set to 0: seconds, seconds, targets.
  double waited = 0, optimized = 0;
  int64_t tokens = 0;
  int64_t leaves = 0;  // of the last update

 private:
  TrainingJob& job_;
  std::vector<Batch> batches_;
  std::vector<BatchView> leaves_;
  uint64_t updates_ = 0;
};

}  // namespace

absl::Status RunConfigSuite(const BenchFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Config config, LoadTrainingConfig(flags.config, flags.set));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingJob> job, PrepareJob(config, /*fresh=*/true));
  const std::string name = std::filesystem::path(flags.config).stem().string();
  Updates updates(job.get());
  for (int64_t i = 0; i < kWarmUp; ++i) updates.Step();
  updates.waited = 0;
  updates.tokens = 0;
  const int64_t steps = flags.steps > 0 ? flags.steps : kSteps;
  const Statistics time = Summarise(Time({.exactly = steps}, 0, [&] { updates.Step(); }));
  WEFT_RETURN_IF_ERROR(updates.status);
  const double seconds = time.mean * static_cast<double>(steps);
  const double wait = updates.waited / static_cast<double>(steps);
  const double tokens_per_s = static_cast<double>(updates.tokens) / seconds;
  if (flags.json) {
    Record()
        .Set("suite", name)
        .Set("threads", int64_t{flags.threads})
        .Set("tokens", updates.tokens / steps)
        .Set("median_ms", time.median * 1e3)
        .Set("min_ms", time.min * 1e3)
        .Set("mean_ms", time.mean * 1e3)
        .Set("tokens_per_s", tokens_per_s)
        .Set("parameters", job->session->parameters->count())
        .Set("wait_ms", wait * 1e3)
        .Set("wait_share", wait / time.mean)
        .Set("peak_rss_mb", PeakRss())
        .Set("steps", time.count)
        .Set("spread", time.spread)
        .Print();
  } else {
    absl::PrintF(
        "%-15s %2d threads  median %9.3f ms  min %9.3f ms  mean %9.3f ms  spread %4.0f %%  %9.0f tokens/s  waited for its "
        "batch "
        "%.4f ms, %.2f %%  peak %.0f MB\n",
        name, flags.threads, time.median * 1e3, time.min * 1e3, time.mean * 1e3, time.spread * 100, tokens_per_s, wait * 1e3,
        wait / time.mean * 100, PeakRss());
    std::fflush(stdout);
  }
  if (!flags.profile) return absl::OkStatus();

  job->runner->EnableProfile();
  updates.waited = updates.optimized = 0;
  updates.tokens = 0;
  StepProfile step;
  step.steps = std::min(steps, kMostProfiled);
  step.seconds = Summarise(Time({.exactly = step.steps}, 0, [&] { updates.Step(); })).mean;
  WEFT_RETURN_IF_ERROR(updates.status);
  step.leaves = std::min<int64_t>(updates.leaves, flags.threads);
  step.peak = BestPeak(flags.threads);
  step.profile = job->runner->TotalProfile();
  AddAlone("optimizer", updates.optimized, 0, &step);
  AddAlone("wait_for_batch", updates.waited, 0, &step);
  PrintProfile(name, updates.tokens / step.steps, step, flags);
  return absl::OkStatus();
}

}  // namespace weft::bench
