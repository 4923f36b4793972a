#include "train/training_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/base/status.h"
#include "train/evaluate.h"
#include "train/model_state.h"
#include "train/parameter_groups.h"
#include "train/progress.h"
#include "train/run_dir.h"
#include "train/schedule.h"

namespace weft {
namespace {

// Target tokens (source tokens for classifiers) of a full batch, from sizes alone.
int64_t TokensPerBatch(const TrainConfig& train, const ExampleSet& examples) {
  if (train.batch_tokens > 0) return train.batch_tokens;
  const int64_t total = examples.kind() == DataKind::kLabels ? examples.total_source_tokens() : examples.total_target_tokens();
  return std::max<int64_t>(1, std::min(train.batch_size, examples.size()) * total / examples.size());
}

// The data, with the tokenizers of train.init_from if that is set. A run that continues takes these, and learned ones, from its
// own checkpoints.
absl::StatusOr<std::unique_ptr<Dataset>> LoadJobData(const Config& config, bool fresh, int64_t in_memory) {
  DataOptions options = ToDataOptions(config);
  options.storage.in_memory = in_memory;
  const std::string& init_from = config.train.init_from;
  if (init_from.empty() && (fresh || !HasLearnedTokenizer(options))) return LoadData(options);
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> origin, Session::Load(fresh ? init_from : config.run.dir));
  if (origin->kind() != DataKindOf(config)) {
    return absl::FailedPreconditionError(absl::StrCat("train.init_from: ", init_from, " was trained on ",
                                                      DataKindName(origin->kind()), ", this job trains on ",
                                                      DataKindName(DataKindOf(config))));
  }
  options.known_source = origin->source_tokenizer.get();
  options.known_target = origin->target_tokenizer.get();
  options.known_classes = origin->class_names;
  return LoadData(options);
}

// Settles the number of updates, and the horizon of a schedule that ends with them.
absl::Status CountUpdates(TrainingJob* job) {
  Config& config = job->config;
  job->steps = config.train.steps;
  if (config.train.epochs == 0) {
    if (job->steps == 0) job->steps = kNoStepLimit;
    return absl::OkStatus();
  }
  // Equal epochs of batch_size sequences; batches of so many tokens depend on each epoch's order.
  if (config.train.batch_size > 0) {
    job->steps = config.train.epochs * job->UpdatesIn(0);
  } else {
    for (int64_t epoch = 0; epoch < config.train.epochs; ++epoch) job->steps += job->UpdatesIn(epoch);
  }
  return CompleteSchedule(job->steps, &config.schedule);
}

// Weights of another run, where the config asks for them.
absl::Status InitFrom(TrainingJob* job) {
  WEFT_ASSIGN_OR_RETURN(const std::string path, ResolveCheckpoint(job->config.train.init_from));
  WEFT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> left,
                        LoadMatching(checkpoint, job->config.train.init_partial, job->session->parameters.get()));
  job->notes.push_back(absl::StrCat("initial weights and tokenizers: ", path, " (step ", checkpoint.meta().step, ")"));
  if (!left.empty()) job->notes.push_back(absl::StrCat("not found there, drawn anew: ", absl::StrJoin(left, ", ")));
  return absl::OkStatus();
}

}  // namespace

int64_t TrainingJob::UpdatesIn(int64_t epoch) const {
  const int64_t batches = batcher->CountBatches(epoch);
  return (batches + config.train.accumulate - 1) / config.train.accumulate;
}

void TrainingJob::StartAverage() {
  if (config.train.ema_decay > 0) average.emplace(config.train.ema_decay, *session->parameters);
}

std::vector<std::string> TrainingJob::Describe() const {
  std::vector<std::string> lines = absl::StrSplit(data->report, '\n', absl::SkipEmpty());
  lines.insert(lines.end(), notes.begin(), notes.end());
  lines.push_back(absl::StrCat("model: ", session->model_config.family, ", ", ParametersByPart(*session->parameters)));
  lines.push_back(memory.ToString());
  lines.push_back(
      absl::StrCat("shards of a batch: ", config.train.shards, "; updates in the first epoch: ", UpdatesIn(0), ", in all: ",
                   steps == kNoStepLimit ? absl::StrCat("what ", FormatDuration(60 * config.train.minutes), " allow")
                                         : absl::StrCat(steps)));
  const std::vector<std::string> groups = DescribeGroups(config.optimizer, *session->parameters);
  lines.insert(lines.end(), groups.begin(), groups.end());
  const std::string warning = WarnOfNormalization(config.valid.metrics, session->target_tokenizer.get());
  if (!warning.empty()) lines.push_back(warning);
  if (config.schedule.warmup_steps > steps) {
    lines.push_back(
        absl::StrFormat("warning: the run ends inside of the warm-up, which has %d updates", config.schedule.warmup_steps));
  }
  if (HasHorizon(config.schedule) && steps != kNoStepLimit && config.schedule.steps < steps) {
    lines.push_back(
        absl::StrFormat("warning: the learning rate ends at schedule.min_lr = %g after schedule.steps = %d updates, but "
                        "the run has %d; set schedule.steps too",
                        config.schedule.min_lr, config.schedule.steps, steps));
  }
  return lines;
}

absl::StatusOr<std::unique_ptr<TrainingJob>> PrepareJob(const Config& config, bool fresh, int64_t in_memory) {
  auto job = std::make_unique<TrainingJob>();
  job->config = config;
  WEFT_ASSIGN_OR_RETURN(job->data, LoadJobData(config, fresh, in_memory));
  WEFT_ASSIGN_OR_RETURN(job->session, Session::Create(config, job->data.get()));
  const BatcherOptions batching{config.train.batch_size, config.train.batch_tokens, config.train.shuffle,
                                config.train.sort_pool, static_cast<uint64_t>(config.run.seed)};
  WEFT_ASSIGN_OR_RETURN(Batcher batcher, Batcher::Create(&job->data->train, batching));
  job->batcher.emplace(std::move(batcher));
  job->batches.emplace(*job->batcher);

  Parameters& parameters = *job->session->parameters;
  const int64_t batch_tokens = TokensPerBatch(config.train, job->data->train);
  if (config.train.shards == 0) job->config.train.shards = ChooseShards(batch_tokens, parameters.count());
  WEFT_RETURN_IF_ERROR(CountUpdates(job.get()));
  WEFT_RETURN_IF_ERROR(CheckGroups(config.optimizer, parameters));
  job->memory = EstimateMemory(job->config, *job->session, batch_tokens);
  WEFT_RETURN_IF_ERROR(job->memory.Check(job->config));

  parameters.Allocate(DType::kF32, static_cast<uint64_t>(config.run.seed));
  job->optimizer.emplace(config.optimizer, parameters);
  job->runner.emplace(*job->session->model, parameters);
  if (fresh && !config.train.init_from.empty()) WEFT_RETURN_IF_ERROR(InitFrom(job.get()));
  if (fresh) job->StartAverage();
  return job;
}

}  // namespace weft
