// TrainingJob: what a config becomes before its first update: the data, the model with its first weights, and the parts that
// work on them. The trainer's loop runs on it; nothing here touches a run folder. Owned by one training; not thread-safe.
#ifndef WEFT_TRAIN_TRAINING_JOB_H_
#define WEFT_TRAIN_TRAINING_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/batch_prefetcher.h"
#include "data/batcher.h"
#include "data/load.h"
#include "train/average.h"
#include "train/config.h"
#include "train/gradient.h"
#include "train/job_size.h"
#include "train/optimizer.h"
#include "train/session.h"

namespace weft {

// TrainingJob::steps of a run that only train.minutes ends.
inline constexpr int64_t kNoStepLimit = int64_t{1} << 60;

struct TrainingJob {
  Config config;  // with what it left open settled: shards, the horizon of the schedule
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Session> session;
  std::optional<Batcher> batcher;  // at the start of the data, for counts
  std::optional<BatchPrefetcher> batches;
  std::optional<Optimizer> optimizer;
  std::optional<GradientRunner> runner;
  std::optional<WeightAverage> average;  // with train.ema_decay
  int64_t steps = 0;                     // updates of the whole run: train.steps, or those of train.epochs
  MemoryEstimate memory;
  std::vector<std::string> notes;  // where the weights come from, for the log

  // Of one pass over the data.
  int64_t UpdatesIn(int64_t epoch) const;
  // (Re)starts the average from the weights as they are, if the config has one.
  void StartAverage();
  // What a log says of the job: data, model, memory, updates, groups of parameters.
  std::vector<std::string> Describe() const;
};

// Loads the data, builds the model, and settles the config. `fresh`: with first weights, those of train.init_from if it is set;
// else they are to be restored. `in_memory`: TextStorage::in_memory of the data. InvalidArgument for what the config's keys
// forbid together or the machine cannot hold; errors of the data and of the files of train.init_from.
absl::StatusOr<std::unique_ptr<TrainingJob>> PrepareJob(const Config& config, bool fresh,
                                                        int64_t in_memory = TextStorage().in_memory);

}  // namespace weft

#endif  // WEFT_TRAIN_TRAINING_JOB_H_
