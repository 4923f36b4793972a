#include <atomic>
#include <csignal>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "tools/verbs.h"
#include "train/session.h"
#include "train/trainer.h"

namespace weft {
namespace {

// Set by the first SIGINT or SIGTERM: the training finishes its update and saves. The second one, of
// either kind, ends the program at once.
std::atomic<int> stop_signal{0};

void OnSignal(int number) {
  stop_signal.store(number);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

absl::Status RunTrain(const TrainFlags& flags, int* signal) {
  WEFT_ASSIGN_OR_RETURN(const Config config, LoadTrainingConfig(flags.config, flags.set));
  TrainOptions options;
  options.mode = flags.resume ? RunDir::Mode::kResume : (flags.overwrite ? RunDir::Mode::kOverwrite : RunDir::Mode::kFresh);
  options.stop = &stop_signal;
  // Until then there is nothing to save, and a signal ends the program as any other.
  options.on_start = [] {
    std::signal(SIGINT, OnSignal);
    std::signal(SIGTERM, OnSignal);
  };
  options.quiet = flags.quiet;
  options.detect_anomaly = flags.detect_anomaly;
  WEFT_ASSIGN_OR_RETURN(const TrainResult result, Train(config, options));

  if (result.interrupted) *signal = stop_signal.load();
  absl::PrintF("%s at step %d after %d updates",
               result.interrupted   ? "interrupted"
               : result.out_of_time ? "out of time"
                                    : "done",
               result.step, result.updates);
  if (result.skipped > 0) absl::PrintF(", %d of them skipped", result.skipped);
  if (result.updates > 0) absl::PrintF("; loss %.4f", result.loss);
  if (result.has_validation) {
    absl::PrintF("; valid");
    for (const MetricScore& metric : result.validation.metrics) absl::PrintF(" %s %.6g", metric.name, metric.value);
  }
  absl::PrintF("\n");
  if (!result.best_metric.empty())
    absl::PrintF("best valid %s %.6g at step %d\n", result.best_metric, result.best_value, result.best_step);
  absl::PrintF("checkpoint %s\n", result.last_checkpoint);
  return absl::OkStatus();
}

}  // namespace weft
