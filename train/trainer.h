// Trainer: the training loop of a config, from data to checkpoints, in one place. Each update: gather the batches, gradient of
// all leaves, one optimizer step; now and then a log line, a validation, a checkpoint. Runs on the threads of the enclosing
// Workers; the numbers do not depend on how many there are, nor on whether the run was interrupted and resumed.
#ifndef WEFT_TRAIN_TRAINER_H_
#define WEFT_TRAIN_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/load.h"
#include "train/config.h"
#include "train/evaluate.h"
#include "train/run_dir.h"

namespace weft {

struct TrainOptions {
  RunDir::Mode mode = RunDir::Mode::kFresh;
  // When not null and not zero: finish the update, save, and return with `interrupted`. A signal handler may set it.
  const std::atomic<int>* stop = nullptr;
  // Called once when data and model are ready, before anything is written or restored. May be empty.
  std::function<void()> on_start = {};
  bool quiet = false;           // no progress on stderr
  bool detect_anomaly = false;  // look at every op's output in every update, and stop at the first NaN or infinity
  int64_t data_in_memory = TextStorage().in_memory;  // larger files of data are read in pieces, see data/load.h
};

struct TrainResult {
  int64_t step = 0;     // updates behind the model
  int64_t updates = 0;  // of this call, those that were skipped included
  int64_t skipped = 0;  // of this call: their loss or gradient was not finite (train.on_nonfinite = "skip")
  double loss = 0;      // of the last update, per target, in nats
  bool has_validation = false;
  Evaluation validation;    // of the end of the run
  std::string best_metric;  // "" without validation
  double best_value = 0;
  int64_t best_step = 0;
  std::string last_checkpoint;  // path
  bool stopped_early = false;   // patience ran out
  bool interrupted = false;     // options.stop
  bool out_of_time = false;     // train.minutes
};

// Trains by `config` in its run folder. InvalidArgument for what the config or the folder forbids; FailedPrecondition,
// DataLoss, NotFound for data, checkpoints and files; kDivergedCode when loss, gradient or weights became non-finite (the last
// good checkpoint stays).
absl::StatusOr<TrainResult> Train(const Config& config, const TrainOptions& options);

}  // namespace weft

#endif  // WEFT_TRAIN_TRAINER_H_
