#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "tools/benchmarks/measure.h"
#include "tools/benchmarks/suites.h"
#include "train/gradient.h"
#include "train/optimizer.h"

namespace weft::bench {

absl::Status RunTrainingSuite(const BenchModel& bench_model, const BenchFlags& flags) {
  const double peak = BestPeak(flags.threads);
  Parameters parameters;
  WEFT_ASSIGN_OR_RETURN(const auto model, Transformer::Create(ConfigOf(bench_model), SizesOf(bench_model), &parameters));
  parameters.Allocate(DType::kF32, 1);
  OptimizerConfig adamw;
  Optimizer optimizer(adamw, parameters);
  GradientRunner runner(*model, parameters);
  const Batch batch = BatchOf(bench_model);
  std::vector<BatchView> leaves;
  SplitBatch(batch.View(), ChooseShards(batch.loss_terms(), parameters.count()), &leaves);
  double optimizer_seconds = 0;
  const auto train_step = [&] {
    Tensor gradients;
    const LossSum loss = runner.Run(leaves, bench_model.is_decoder ? 0.0 : 0.1, {}, &gradients);
    const double start = Now();
    optimizer.Step(&parameters, gradients, 1.0 / static_cast<double>(loss.targets), 1.0, adamw.lr);
    optimizer_seconds += Now() - start;
  };

  const int64_t steps = flags.steps > 0 ? flags.steps : bench_model.steps;
  const Statistics time = Summarise(Time({.exactly = steps}, /*warm_up=*/3, train_step));
  const int64_t tokens = batch.loss_terms();
  const double flops = FlopsOf(bench_model), rss = PeakRss(), tokens_per_s = static_cast<double>(tokens) / time.median;
  const double tape_bytes = static_cast<double>(runner.tape_memory()) / static_cast<double>(tokens);
  if (flags.json) {
    Record()
        .Set("suite", bench_model.name)
        .Set("threads", int64_t{flags.threads})
        .Set("tokens", tokens)
        .Set("median_ms", time.median * 1e3)
        .Set("min_ms", time.min * 1e3)
        .Set("tokens_per_s", tokens_per_s)
        .Set("parameters", parameters.count())
        .Set("flops", flops)
        .Set("gflops", flops / time.median * 1e-9)
        .Set("peak_gflops", peak)
        .Set("peak_rss_mb", rss)
        .Set("steps", time.count)
        .Set("spread", time.spread)
        .Set("share", flops / time.median * 1e-9 / peak)
        .Set("shards", static_cast<int64_t>(leaves.size()))
        .Set("peak_bytes_per_token", tape_bytes)
        .Print();
  } else {
    absl::PrintF(
        "%-15s %2d threads  median %9.3f ms  min %9.3f ms  spread %4.0f %%  %9.0f tokens/s  %7.1f GF/s of %.0f, %4.1f %%  peak "
        "%6.0f MB  tape %.0f B/token\n",
        bench_model.name, flags.threads, time.median * 1e3, time.min * 1e3, time.spread * 100, tokens_per_s,
        flops / time.median * 1e-9, peak, flops / time.median * 1e-7 / peak, rss, tape_bytes);
    std::fflush(stdout);
  }
  if (!flags.profile) return absl::OkStatus();

  runner.EnableProfile();
  optimizer_seconds = 0;
  StepProfile step;
  step.steps = std::clamp<int64_t>(steps, 1, 30);
  step.seconds = Summarise(Time({.exactly = step.steps}, 0, train_step)).mean;
  step.leaves = std::min<int64_t>(static_cast<int64_t>(leaves.size()), flags.threads);
  step.peak = peak;
  step.profile = runner.TotalProfile();
  // AdamW reads gradient, parameter and two moments and writes the last three; the norm reads the gradient once more.
  AddAlone("optimizer", optimizer_seconds, static_cast<double>(step.steps * parameters.count() * int64_t{4 * 8}), &step);
  PrintProfile(bench_model.name, tokens, step, flags);
  return absl::OkStatus();
}

}  // namespace weft::bench
