#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "train/average.h"
#include "train/gradient_noise.h"
#include "train/job_size.h"
#include "train/model_state.h"
#include "train/optimizer.h"
#include "train/parameter_groups.h"
#include "train/progress.h"
#include "train/resume.h"
#include "train/schedule.h"
#include "train/session.h"
#include "train/spikes.h"
#include "train/tensorboard.h"

namespace weft {
namespace {

// Steps of a run that only train.minutes ends.
constexpr int64_t kNoLimit = int64_t{1} << 60;
// A loss that no training comes back from, in nats per target: taken for infinite.
constexpr double kHopelessLoss = 1e6;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Target tokens (source tokens for classifiers) of a full batch, from sizes alone.
int64_t TokensPerBatch(const TrainConfig& train, const ExampleSet& examples) {
  if (train.batch_tokens > 0) return train.batch_tokens;
  const int64_t total = examples.kind() == DataKind::kLabels ? examples.total_source_tokens() : examples.total_target_tokens();
  return std::max<int64_t>(1, std::min(train.batch_size, examples.size()) * total / examples.size());
}

// One run of Train. The phases are methods in the order in which they happen.
class Run {
 public:
  Run(const Config& config, const TrainOptions& options)
      : config_(config), options_(options), progress_(ProgressOptions::ForStderr()) {}

  absl::StatusOr<TrainResult> Execute() {
    WEFT_RETURN_IF_ERROR(Prepare());
    WEFT_RETURN_IF_ERROR(OpenFolder());
    const absl::Status status = Loop();
    if (status.ok()) return result_;
    if (status.code() == kDivergedCode) return status;
    progress_.Finish();
    // The last line of the log says how a run ended. A divergence has said so itself; where the disk is full this fails too.
    const std::string reason = absl::StrReplaceAll(status.message(), {{"\n", "; "}});
    folder_->Log(absl::StrCat("failed after step ", result_.step, ": ", reason)).IgnoreError();
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(), ". The run ended after step ", result_.step,
                     result_.last_checkpoint.empty() ? "; no checkpoint has been saved yet"
                                                     : absl::StrCat("; go on with --resume, from ", result_.last_checkpoint)));
  }

 private:
  absl::Status Loop() {
    while (result_.step < steps_ && !result_.stopped_early && !result_.interrupted && !result_.out_of_time) {
      WEFT_RETURN_IF_ERROR(Update());
      result_.out_of_time = config_.train.minutes > 0 && Now() - started_ >= 60 * config_.train.minutes;
      WEFT_RETURN_IF_ERROR(ValidateAndSave());
      result_.interrupted = options_.stop != nullptr && options_.stop->load() != 0;
    }
    return Finish();
  }

  // Loads the data, builds the model, and settles what the config left open. Touches no file of the run.
  absl::Status Prepare() {
    DataOptions data_options = ToDataOptions(config_);
    std::unique_ptr<Session> origin;  // what the run starts from; a run that continues has its own weights
    if (!config_.train.init_from.empty()) {
      WEFT_ASSIGN_OR_RETURN(origin, Session::Load(config_.train.init_from));
      if (origin->kind() != DataKindOf(config_)) {
        return absl::FailedPreconditionError(absl::StrCat("train.init_from: ", config_.train.init_from, " was trained on ",
                                                          DataKindName(origin->kind()), ", this job trains on ",
                                                          DataKindName(DataKindOf(config_))));
      }
      data_options.known_source = origin->source_tokenizer.get();
      data_options.known_target = origin->target_tokenizer.get();
      data_options.known_classes = origin->class_names;
    }
    WEFT_ASSIGN_OR_RETURN(data_, LoadData(data_options));
    WEFT_ASSIGN_OR_RETURN(session_, Session::Create(config_, data_.get()));
    const BatcherOptions batching{config_.train.batch_size, config_.train.batch_tokens, config_.train.shuffle,
                                  static_cast<uint64_t>(config_.run.seed)};
    WEFT_ASSIGN_OR_RETURN(Batcher batcher, Batcher::Create(&data_->train, batching));
    batcher_.emplace(std::move(batcher));

    const int64_t batch_tokens = TokensPerBatch(config_.train, data_->train);
    if (config_.train.shards == 0) config_.train.shards = ChooseShards(batch_tokens, session_->parameters->count());
    steps_ = config_.train.steps;
    if (steps_ == 0 && config_.train.epochs == 0) steps_ = kNoLimit;
    if (config_.train.epochs > 0) {
      // Equal epochs of batch_size sequences; batches of so many tokens depend on each epoch's order.
      const bool equal = config_.train.batch_size > 0;
      for (int64_t epoch = 0; epoch < (equal ? 0 : config_.train.epochs); ++epoch) steps_ += UpdatesIn(epoch);
      if (equal) steps_ = config_.train.epochs * UpdatesIn(0);
      WEFT_RETURN_IF_ERROR(CompleteSchedule(steps_, &config_.schedule));
    }
    WEFT_RETURN_IF_ERROR(CheckGroups(config_.optimizer, *session_->parameters));
    memory_ = EstimateMemory(config_, *session_, batch_tokens);
    WEFT_RETURN_IF_ERROR(memory_.Check(config_));

    session_->parameters->Allocate(DType::kF32, static_cast<uint64_t>(config_.run.seed));
    optimizer_.emplace(config_.optimizer, *session_->parameters);
    runner_.emplace(*session_->model, *session_->parameters);
    runner_->DetectAnomalies(options_.detect_anomaly);
    return options_.mode == RunDir::Mode::kResume ? absl::OkStatus() : Initialise();
  }

  // Weights of another run, where the config asks for them.
  absl::Status Initialise() {
    if (!config_.train.init_from.empty()) {
      WEFT_ASSIGN_OR_RETURN(const std::string path, ResolveCheckpoint(config_.train.init_from));
      WEFT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
      WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> left,
                            LoadMatching(checkpoint, config_.train.init_partial, session_->parameters.get()));
      notes_.push_back(absl::StrCat("initial weights and tokenizers: ", path, " (step ", checkpoint.meta().step, ")"));
      if (!left.empty()) notes_.push_back(absl::StrCat("not found there, drawn anew: ", absl::StrJoin(left, ", ")));
    }
    StartAverage();
    return absl::OkStatus();
  }

  void StartAverage() {
    if (config_.train.ema_decay > 0) average_.emplace(config_.train.ema_decay, *session_->parameters);
  }

  int64_t UpdatesIn(int64_t epoch) const {
    const int64_t batches = batcher_->CountBatches(epoch);
    return (batches + config_.train.accumulate - 1) / config_.train.accumulate;
  }

  // Creates or continues the run's folder.
  absl::Status OpenFolder() {
    const bool resume = options_.mode == RunDir::Mode::kResume;
    WEFT_ASSIGN_OR_RETURN(RunDir folder, RunDir::Create(config_.run.dir, options_.mode));
    folder_.emplace(std::move(folder));
    if (resume) WEFT_RETURN_IF_ERROR(Restore());
    WEFT_RETURN_IF_ERROR(AtomicWrite(folder_->config_path(), PrintConfig(config_)));
    auto metrics =
        resume ? MetricsWriter::Resume(folder_->metrics_path(), result_.step) : MetricsWriter::Create(folder_->metrics_path());
    if (!metrics.ok()) return metrics.status();
    metrics_.emplace(*std::move(metrics));
    if (resume) WEFT_RETURN_IF_ERROR(DropEventsAfter(folder_->tensorboard_path(), result_.step));
    if (config_.train.tensorboard) events_.emplace(folder_->tensorboard_path(), result_.step);

    for (absl::string_view line : absl::StrSplit(data_->report, '\n', absl::SkipEmpty())) Say(line);
    for (const std::string& note : notes_) Say(note);
    Say(absl::StrCat("model: ", session_->model_config.family, ", ", ParametersByPart(*session_->parameters)));
    Say(memory_.ToString());
    Say(absl::StrCat("shards of a batch: ", config_.train.shards, "; updates in the first epoch: ", UpdatesIn(0), ", in all: ",
                     steps_ == kNoLimit ? absl::StrCat("what ", FormatDuration(60 * config_.train.minutes), " allow")
                                        : absl::StrCat(steps_)));
    for (const std::string& line : DescribeGroups(config_.optimizer, *session_->parameters)) Say(line);
    if (config_.schedule.warmup_steps > steps_) {
      Say(absl::StrFormat("warning: the run ends inside of the warm-up, which has %d updates", config_.schedule.warmup_steps));
    }
    Say(absl::StrCat("run folder: ", folder_->path()));
    if (resume) Say(absl::StrCat("resumed after step ", result_.step, result_.step >= steps_ ? ": the run is finished" : ""));
    started_ = last_log_ = last_save_ = Now();
    // What `weft status` computes the pace from. For the log only: a live screen shows the time that is left.
    folder_->Log(absl::StrCat("started ", absl::FormatTime(absl::Now(), absl::UTCTimeZone()), " after step ", result_.step))
        .IgnoreError();
    return absl::OkStatus();
  }

  absl::Status Restore() {
    WEFT_ASSIGN_OR_RETURN(const int64_t step, folder_->LastStep());
    absl::StatusOr<Checkpoint> opened = Checkpoint::Open(folder_->CheckpointPath(step));
    if (!opened.ok()) return SuggestEarlier(opened.status(), step);
    const Checkpoint checkpoint = *std::move(opened);
    const CheckpointMeta& meta = checkpoint.meta();
    // Read again, since a checkpoint of an older version lacks the keys that came later, whose defaults are how it was trained.
    const ConfigText text{
        .text = meta.config_toml, .name = absl::StrCat(checkpoint.path(), " (config)"), .needs_data_files = false};
    WEFT_ASSIGN_OR_RETURN(const Config saved, ParseConfig(text, {}, CheckModelTable));
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> changes,
                          CompareForResume(CanonicalConfig(saved), CanonicalConfig(config_)));
    for (const std::string& change : changes) Say(absl::StrCat("changed on resume: ", change));
    if (meta.data_hash != data_->content_hash) {
      return absl::FailedPreconditionError(
          absl::StrFormat("--resume: the data has changed since the run started (hash %016x, now %016x): %s %s", meta.data_hash,
                          data_->content_hash, config_.data.train, config_.data.valid));
    }
    WEFT_RETURN_IF_ERROR(LoadParameters(checkpoint, session_->parameters.get()));
    WEFT_RETURN_IF_ERROR(LoadOptimizer(checkpoint, &*optimizer_));
    StartAverage();
    if (average_.has_value()) WEFT_RETURN_IF_ERROR(LoadAverage(checkpoint, *session_->parameters, &*average_));
    WEFT_RETURN_IF_ERROR(batcher_->Seek(meta.position));
    skipped_in_row_ = meta.skipped_in_row;
    result_.step = meta.step;
    tokens_ = meta.tokens;
    history_ = meta.history;
    best_ = meta.best;
    result_.stopped_early = OutOfPatience();
    result_.last_checkpoint = checkpoint.path();
    return RepairBest();
  }

  // The error of opening the checkpoint of `step`, with the one before it as a way out.
  absl::Status SuggestEarlier(const absl::Status& status, int64_t step) const {
    WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> steps, folder_->ListCheckpoints());
    std::erase_if(steps, [&](int64_t other) { return other >= step; });
    if (steps.empty()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), "; to go on from the checkpoint before it, write checkpoints/step-",
                                     steps.back(), ".weft into ", folder_->path(), "/last"));
  }

  // Where a crash came between saving the best checkpoint and pointing to it.
  absl::Status RepairBest() {
    if (best_.step < 0 || config_.checkpoint.keep_best == 0) return absl::OkStatus();
    const absl::StatusOr<std::optional<int64_t>> pointer = folder_->BestStep();
    if (pointer.ok() && *pointer == best_.step) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, folder_->ListCheckpoints());
    if (std::find(steps.begin(), steps.end(), best_.step) == steps.end()) return absl::OkStatus();
    return folder_->SetBest(best_.step);
  }

  // One update: the batches of the accumulation (never across the end of an epoch), their gradient, one optimizer step.
  absl::Status Update() {
    const Position start = batcher_->position();
    const int64_t epoch = start.epoch;
    leaves_.clear();
    for (int64_t i = 0; i < config_.train.accumulate && (i == 0 || batcher_->position().epoch == epoch); ++i) {
      if (i == static_cast<int64_t>(batches_.size())) batches_.push_back(std::make_unique<Batch>());
      batcher_->Next(batches_[i].get());
      SplitBatch(batches_[i]->View(), config_.train.shards, &leaves_);
    }
    const RandomKey key =
        RandomKey{static_cast<uint64_t>(config_.run.seed)}.Fold("update").Fold(static_cast<uint64_t>(result_.step));
    Tensor gradients;
    const LossSum loss = runner_->Run(leaves_, config_.train.label_smoothing, key, &gradients);
    const int64_t step = result_.step + 1;  // this one's number
    const double rate = LearningRate(config_.schedule, config_.optimizer.lr, step);
    UpdateStats stats;
    std::string wrong;
    if (runner_->anomaly().has_value()) {
      wrong = runner_->anomaly()->ToString();
    } else if (!(std::abs(loss.mean_loss()) < kHopelessLoss)) {
      wrong = absl::StrCat("the loss is ", loss.mean_loss());
    } else {
      if (config_.train.gradient_noise > 0) {
        AddGradientNoise(config_.train.gradient_noise, result_.step, RandomKey{static_cast<uint64_t>(config_.run.seed)},
                         static_cast<double>(loss.targets), *session_->parameters, gradients);
      }
      stats = optimizer_->Step(session_->parameters.get(), gradients, 1.0 / static_cast<double>(loss.targets),
                               config_.train.clip_norm, rate);
      if (!stats.finite) wrong = absl::StrCat("the norm of the gradient is ", stats.grad_norm);
    }
    if (!stats.weights_finite) return Stop(step, "the update made a weight infinite or NaN", Offender(gradients));
    if (!wrong.empty()) WEFT_RETURN_IF_ERROR(SkipOrStop(step, wrong, start, key, gradients));

    result_.step = step;
    ++result_.updates;
    result_.loss = loss.mean_loss();
    if (wrong.empty()) {
      skipped_in_row_ = 0;
      tokens_ += loss.targets;
      tokens_since_log_ += loss.targets;
      if (average_.has_value()) average_->Update(*session_->parameters, optimizer_->updates());
      if (spikes_.Observe(result_.loss)) {
        Say(absl::StrFormat("step %d: the loss jumped to %.4g (before: %.4g on average, deviation %.2g)", step, result_.loss,
                            spikes_.mean(), spikes_.deviation()));
      }
    }
    if (result_.updates == 1 && !runner_->without_gradient().empty()) {
      Say(absl::StrCat("warning: no gradient reaches ", absl::StrJoin(runner_->without_gradient(), ", ")));
    }
    Report(epoch, rate, stats.grad_norm);
    return absl::OkStatus();
  }

  // An update whose loss or gradient is not finite changes no weight. It is left out if the config says so and it is not one
  // too many in a row; else the run ends here. `start` is the place in the data before the update.
  absl::Status SkipOrStop(int64_t step, absl::string_view wrong, Position start, RandomKey key, const Tensor& gradients) {
    const std::string details = Diagnose(key, gradients);
    const bool skip = config_.train.on_nonfinite == "skip" && skipped_in_row_ < config_.train.max_skips;
    if (skip) {
      ++skipped_in_row_;
      ++result_.skipped;
      Say(absl::StrCat("step ", step, " skipped (", skipped_in_row_, " in a row of at most ", config_.train.max_skips,
                       "): ", wrong, details));
      return absl::OkStatus();
    }
    // Something to look at or to start again from, if the run has saved nothing yet: the weights before this update.
    if (result_.last_checkpoint.empty() && FirstNonFinite(*session_->parameters, session_->parameters->slab()).empty()) {
      WEFT_RETURN_IF_ERROR(batcher_->Seek(start));
      Save().IgnoreError();  // how the run ended must not depend on it
    }
    const std::string before =
        config_.train.on_nonfinite == "skip" ? absl::StrCat(", nor with the ", skipped_in_row_, " before it") : "";
    return Stop(step, wrong, absl::StrCat(details, "; no update was made with it", before));
  }

  absl::Status Stop(int64_t step, absl::string_view wrong, absl::string_view details) {
    progress_.Finish();
    const std::string message = absl::StrCat(
        "diverged at step ", step, ": ", wrong, details, ". ",
        result_.last_checkpoint.empty() ? "No checkpoint could be saved" : "The last checkpoint is " + result_.last_checkpoint,
        "; try a smaller optimizer.lr, a longer schedule.warmup_steps, or train.clip_norm");
    folder_->Log(message).IgnoreError();  // as in Say
    return absl::Status(kDivergedCode, message);
  }

  // What is wrong where: the first op with a value that is not finite, found by running the update once more (the weights have
  // not changed since), and its gradients and weights.
  std::string Diagnose(RandomKey key, const Tensor& gradients) {
    std::string first;
    const std::string offender = Offender(gradients);
    if (!options_.detect_anomaly) {
      Tensor ignored;
      runner_->DetectAnomalies(true);
      runner_->Run(leaves_, config_.train.label_smoothing, key, &ignored);
      runner_->DetectAnomalies(false);
      if (runner_->anomaly().has_value()) first = absl::StrCat("; first: ", runner_->anomaly()->ToString());
    }
    return absl::StrCat(first, offender);
  }

  // The first weight and gradient that is not finite, or else the largest weight.
  std::string Offender(const Tensor& gradients) const {
    const Parameters& parameters = *session_->parameters;
    const std::string weight = FirstNonFinite(parameters, parameters.slab()), gradient = FirstNonFinite(parameters, gradients);
    return absl::StrCat(weight.empty() ? "" : "; first such weight: ", weight,  //
                        gradient.empty() ? "" : "; first such gradient: ", gradient,
                        weight.empty() ? "; largest weight: " + LargestElement(parameters, parameters.slab()) : "");
  }

  // The progress line, and every train.log_every updates a line in metrics.jsonl.
  void Report(int64_t epoch, double rate, double norm) {
    const double now = Now();
    const bool log = result_.step % config_.train.log_every == 0 || IsLast();
    if (log) {
      speed_ = static_cast<double>(tokens_since_log_) / std::max(now - last_log_, 1e-9);
      pending_ = {{"epoch", static_cast<double>(epoch)},
                  {"loss", result_.loss},
                  {"learning_rate", rate},
                  {"grad_norm", norm},
                  {"tokens_per_second", speed_}};
      tokens_since_log_ = 0;
      last_log_ = now;
    }
    if (!options_.quiet) {
      const bool by_time = steps_ == kNoLimit;
      const double passed = now - started_;
      const double left =
          by_time ? 60 * config_.train.minutes - passed : SecondsLeft(result_.updates, passed, steps_ - result_.step);
      progress_.Update({result_.step, by_time ? 0 : steps_, result_.loss, rate, norm, speed_, left}, now);
    }
  }

  bool IsLast() const { return result_.step == steps_ || result_.out_of_time; }

  bool OutOfPatience() const { return config_.valid.patience > 0 && best_.since_improved >= config_.valid.patience; }

  // What is due after an update: validation on the grid of valid.every (or after an epoch), early stopping, a checkpoint.
  // Metrics of one step are one line.
  absl::Status ValidateAndSave() {
    const bool epoch_end = batcher_->position().sequence == 0;
    const bool on_grid =
        config_.valid.every > 0 ? result_.step % config_.valid.every == 0 : (config_.train.epochs > 0 && epoch_end);
    bool new_best = false;
    result_.has_validation = false;
    if ((on_grid || IsLast()) && !data_->valid.empty()) WEFT_RETURN_IF_ERROR(Validate());
    if (on_grid && result_.has_validation) {
      for (const MetricScore& metric : result_.validation.metrics)
        history_.push_back({result_.step, metric.name, metric.value});
      new_best = best_.Observe(result_.step, result_.validation.Get(config_.valid.best), LargerIsBetter(config_.valid.best));
      if (OutOfPatience()) {
        result_.stopped_early = true;
        Say(absl::StrFormat("stopped early: %s has not improved since step %d (valid.patience = %d)", config_.valid.best,
                            best_.step, config_.valid.patience));
      }
    }
    if (const absl::Status status = WriteMetrics(); !status.ok()) {
      // The updates since the last checkpoint must not be lost with a line of numbers.
      Save().IgnoreError();
      return status;
    }
    const bool due = (config_.checkpoint.every > 0 && result_.step % config_.checkpoint.every == 0) ||
                     (config_.checkpoint.minutes > 0 && Now() - last_save_ >= 60 * config_.checkpoint.minutes);
    const bool keep = new_best && config_.checkpoint.keep_best > 0;
    if (due || keep) WEFT_RETURN_IF_ERROR(Save());
    if (keep) WEFT_RETURN_IF_ERROR(folder_->SetBest(result_.step));
    return due || keep ? Rotate() : absl::OkStatus();
  }

  absl::Status WriteMetrics() {
    if (!pending_.empty()) {
      const std::vector<MetricPair> pairs(pending_.begin(), pending_.end());  // views of pending_'s names
      WEFT_RETURN_IF_ERROR(metrics_->Write(result_.step, pairs));
      if (events_.has_value()) WEFT_RETURN_IF_ERROR(events_->WriteScalars(result_.step, pairs));
      pending_.clear();
    }
    if (!events_.has_value() || config_.train.histograms == 0 || result_.step % config_.train.histograms != 0) {
      return absl::OkStatus();
    }
    std::vector<NamedValues> weights;
    for (const ParameterInfo& info : session_->parameters->list()) {
      weights.emplace_back(info.name, Parameters::In(session_->parameters->slab(), info).span<float>());
    }
    return events_->WriteHistograms(result_.step, weights);
  }

  // Scores the validation set, says so, and adds the scores to this step's line. What is scored is the average of the weights
  // where there is one.
  absl::Status Validate() {
    if (average_.has_value()) average_->Swap(session_->parameters.get());
    absl::StatusOr<Evaluation> validation =
        Evaluate(*session_->model, *session_->parameters, data_->valid, config_.valid.metrics, config_.valid.batch_size,
                 &*runner_, {config_.valid.beam, config_.valid.length_penalty});
    if (average_.has_value()) average_->Swap(session_->parameters.get());
    WEFT_ASSIGN_OR_RETURN(result_.validation, std::move(validation));
    result_.has_validation = true;
    std::string line = absl::StrCat("step ", result_.step, "  valid");
    for (const MetricScore& metric : result_.validation.metrics) {
      absl::StrAppendFormat(&line, "  %s %.6g", metric.name, metric.value);
      pending_.emplace_back(absl::StrCat("eval_", metric.name), metric.value);
    }
    Say(line);
    last_log_ = Now();
    tokens_since_log_ = 0;
    return absl::OkStatus();
  }

  absl::Status Save() {
    CheckpointMeta meta;
    meta.step = result_.step;
    meta.optimizer_updates = optimizer_->updates();
    meta.seed = static_cast<uint64_t>(config_.run.seed);
    meta.position = batcher_->position();
    meta.tokens = tokens_;
    meta.shards = config_.train.shards;
    meta.data_hash = data_->content_hash;
    meta.config_toml = CanonicalConfig(config_);
    if (session_->source_tokenizer != nullptr) meta.source_tokenizer = session_->source_tokenizer->Serialize();
    if (session_->target_tokenizer != nullptr) meta.target_tokenizer = session_->target_tokenizer->Serialize();
    meta.class_names = session_->class_names;
    meta.history = history_;
    meta.best = best_;
    meta.skipped_in_row = skipped_in_row_;
    const std::string path = folder_->CheckpointPath(result_.step);
    const WeightAverage* average = average_.has_value() ? &*average_ : nullptr;
    WEFT_RETURN_IF_ERROR(SaveCheckpoint(path, meta, StateTensors(*session_->parameters, *optimizer_, average)));
    WEFT_RETURN_IF_ERROR(folder_->SetLast(result_.step));
    result_.last_checkpoint = path;
    last_save_ = Now();
    return absl::OkStatus();
  }

  // Keeps the newest checkpoint.keep_last, and those of the checkpoint.keep_best best validations.
  absl::Status Rotate() {
    std::vector<MetricValue> scores;
    for (const MetricValue& value : history_) {
      if (value.name == config_.valid.best && !std::isnan(value.value)) scores.push_back(value);
    }
    const bool larger = LargerIsBetter(config_.valid.best);
    std::stable_sort(scores.begin(), scores.end(), [&](const MetricValue& a, const MetricValue& b) {
      return larger ? a.value > b.value : a.value < b.value;
    });
    std::vector<int64_t> keep;
    for (const MetricValue& score : scores) {
      if (static_cast<int64_t>(keep.size()) < config_.checkpoint.keep_best) keep.push_back(score.step);
    }
    return folder_->Rotate(config_.checkpoint.keep_last, keep);
  }

  // The last checkpoint and the summary.
  absl::Status Finish() {
    if (result_.updates > 0 && result_.last_checkpoint != folder_->CheckpointPath(result_.step)) {
      WEFT_RETURN_IF_ERROR(Save());
      WEFT_RETURN_IF_ERROR(Rotate());
    }
    // A run that was finished before this call made no update: its scores are still what the caller wants to see.
    if (result_.updates == 0 && !data_->valid.empty()) WEFT_RETURN_IF_ERROR(Validate());
    if (best_.step >= 0) {
      result_.best_metric = config_.valid.best;
      result_.best_value = best_.value;
      result_.best_step = best_.step;
    }
    progress_.Finish();
    const double seconds = Now() - started_;
    folder_
        ->Log(absl::StrFormat("%s at step %d after %d updates in %s%s", result_.interrupted ? "interrupted" : "finished",
                              result_.step, result_.updates, FormatDuration(seconds),
                              result_.out_of_time ? ": train.minutes is over" : ""))
        .IgnoreError();  // as in Say
    return absl::OkStatus();
  }

  // To the log file and, unless quiet, to the screen.
  void Say(absl::string_view line) {
    if (!options_.quiet) progress_.Message(line);
    // A log line that cannot be written must not end a training; files that matter report their own errors.
    if (folder_.has_value()) folder_->Log(line).IgnoreError();
  }

  Config config_;
  const TrainOptions options_;
  Progress progress_;
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Session> session_;
  std::optional<Batcher> batcher_;
  std::optional<Optimizer> optimizer_;
  std::optional<GradientRunner> runner_;
  std::optional<RunDir> folder_;
  std::optional<MetricsWriter> metrics_;
  std::optional<WeightAverage> average_;
  LossSpikes spikes_;
  MemoryEstimate memory_;
  std::vector<std::string> notes_;  // for the log, once there is one
  std::optional<TensorBoardWriter> events_;
  std::vector<std::unique_ptr<Batch>> batches_;  // of one update, each at a fixed place: leaves_ view into them
  std::vector<BatchView> leaves_;

  TrainResult result_;
  int64_t steps_ = 0;   // updates of the whole run: train.steps, or those of train.epochs
  int64_t tokens_ = 0;  // targets trained on, over all sessions of the run
  std::vector<MetricValue> history_;
  BestMetric best_;
  std::vector<std::pair<std::string, double>> pending_;  // metrics of this step, not yet written
  double started_ = 0, last_log_ = 0, last_save_ = 0, speed_ = 0;
  int64_t tokens_since_log_ = 0;
  int64_t skipped_in_row_ = 0;  // updates just before this one
};

}  // namespace

absl::StatusOr<TrainResult> Train(const Config& config, const TrainOptions& options) { return Run(config, options).Execute(); }

}  // namespace weft
