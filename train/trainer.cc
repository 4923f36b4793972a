#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "train/gradient_noise.h"
#include "train/model_state.h"
#include "train/progress.h"
#include "train/resume.h"
#include "train/schedule.h"
#include "train/spikes.h"
#include "train/tensorboard.h"
#include "train/training_job.h"

namespace weft {
namespace {

// A loss that no training comes back from, in nats per target: taken for infinite.
constexpr double kHopelessLoss = 1e6;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// One run of Train. The phases are methods in the order in which they happen: read Execute and Loop, and the others as they are
// called. They share the run's state, which is why they stay in one file although it is long.
class Run {
 public:
  Run(const Config& config, const TrainOptions& options)
      : config_(config), options_(options), progress_(ProgressOptions::ForStderr()) {}

  absl::StatusOr<TrainResult> Execute() {
    WEFT_ASSIGN_OR_RETURN(job_, PrepareJob(config_, options_.mode != RunDir::Mode::kResume, options_.data_in_memory));
    config_ = job_->config;
    job_->runner->DetectAnomalies(options_.detect_anomaly);
    if (options_.on_start) options_.on_start();
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
    while (result_.step < job_->steps && !result_.stopped_early && !result_.interrupted && !result_.out_of_time) {
      WEFT_RETURN_IF_ERROR(Update());
      result_.out_of_time = config_.train.minutes > 0 && Now() - started_ >= 60 * config_.train.minutes;
      WEFT_RETURN_IF_ERROR(ValidateAndSave());
      result_.interrupted = options_.stop != nullptr && options_.stop->load() != 0;
    }
    return Finish();
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

    for (const std::string& line : job_->Describe()) Say(line);
    Say(absl::StrCat("run folder: ", folder_->path()));
    if (resume)
      Say(absl::StrCat("resumed after step ", result_.step, result_.step >= job_->steps ? ": the run is finished" : ""));
    started_ = last_log_ = last_save_ = Now();
    // What `weft status` computes the pace from. For the log only: a live screen shows the time that is left.
    folder_->Log(absl::StrCat("started ", absl::FormatTime(absl::Now(), absl::UTCTimeZone()), " after step ", result_.step))
        .IgnoreError();
    return absl::OkStatus();
  }

  absl::Status Restore() {
    WEFT_ASSIGN_OR_RETURN(const int64_t step, folder_->LastStep());
    absl::StatusOr<Checkpoint> opened = Checkpoint::Open(folder_->CheckpointPath(step));
    if (!opened.ok()) return folder_->SuggestEarlier(opened.status(), step);
    const Checkpoint checkpoint = *std::move(opened);
    const CheckpointMeta& meta = checkpoint.meta();
    WEFT_ASSIGN_OR_RETURN(const Config saved, ConfigOf(checkpoint));
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> changes,
                          CompareForResume(CanonicalConfig(saved), CanonicalConfig(config_)));
    for (const std::string& change : changes) Say(absl::StrCat("changed on resume: ", change));
    if (meta.data_hash != job_->data->content_hash) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "--resume: the data has changed since the run started (hash %016x, now %016x): %s %s", meta.data_hash,
          job_->data->content_hash, absl::StrJoin(config_.data.train, " "), absl::StrJoin(config_.data.valid, " ")));
    }
    WEFT_RETURN_IF_ERROR(job_->session->CheckTokenizers(meta, checkpoint.path()));
    WEFT_RETURN_IF_ERROR(LoadParameters(checkpoint, job_->session->parameters.get()));
    WEFT_RETURN_IF_ERROR(LoadOptimizer(checkpoint, &*job_->optimizer));
    job_->StartAverage();
    if (job_->average.has_value()) WEFT_RETURN_IF_ERROR(LoadAverage(checkpoint, *job_->session->parameters, &*job_->average));
    WEFT_RETURN_IF_ERROR(job_->batches->Seek(meta.position));
    skipped_in_row_ = meta.skipped_in_row;
    result_.step = meta.step;
    tokens_ = meta.tokens;
    history_ = meta.history;
    best_ = meta.best;
    if (saved.valid.best != config_.valid.best) best_ = BestSoFar();
    result_.stopped_early = OutOfPatience();
    result_.last_checkpoint = checkpoint.path();
    // A crash may have come between saving the best checkpoint and pointing to it, or valid.best may have changed.
    return best_.step >= 0 && config_.checkpoint.keep_best > 0 ? folder_->RepairBest(best_.step) : absl::OkStatus();
  }

  // The best of the validations so far by valid.best, which may be another metric than before a resume.
  BestMetric BestSoFar() const {
    BestMetric best;
    for (const MetricValue& value : history_) {
      if (value.name == config_.valid.best) best.Observe(value.step, value.value, LargerIsBetter(value.name));
    }
    return best;
  }

  // One update: the batches of the accumulation (never across the end of an epoch), their gradient, one optimizer step.
  absl::Status Update() {
    const Position start = job_->batches->position();
    const int64_t epoch = start.epoch;
    leaves_.clear();
    for (int64_t i = 0; i < config_.train.accumulate && (i == 0 || job_->batches->position().epoch == epoch); ++i) {
      if (i == static_cast<int64_t>(batches_.size())) batches_.push_back(std::make_unique<Batch>());
      if (const absl::Status status = job_->batches->Next(batches_[i].get()); !status.ok()) {
        // The updates since the last checkpoint must not be lost with a file of data.
        if (result_.updates > 0 && job_->batches->Seek(start).ok()) Save().IgnoreError();
        return status;
      }
      SplitBatch(batches_[i]->View(), config_.train.shards, &leaves_);
    }
    const RandomKey key =
        RandomKey{static_cast<uint64_t>(config_.run.seed)}.Fold("update").Fold(static_cast<uint64_t>(result_.step));
    Tensor gradients;
    const LossSum loss = job_->runner->Run(leaves_, config_.train.label_smoothing, key, &gradients);
    const int64_t step = result_.step + 1;  // this one's number
    const double rate = LearningRate(config_.schedule, config_.optimizer.lr, step);
    UpdateStats stats;
    std::string wrong;
    if (job_->runner->anomaly().has_value()) {
      wrong = job_->runner->anomaly()->ToString();
    } else if (!(std::abs(loss.mean_loss()) < kHopelessLoss)) {
      wrong = absl::StrCat("the loss is ", loss.mean_loss());
    } else {
      if (config_.train.gradient_noise > 0) {
        AddGradientNoise(config_.train.gradient_noise, result_.step, RandomKey{static_cast<uint64_t>(config_.run.seed)},
                         static_cast<double>(loss.targets), *job_->session->parameters, gradients);
      }
      stats = job_->optimizer->Step(job_->session->parameters.get(), gradients, 1.0 / static_cast<double>(loss.targets),
                                    config_.train.clip_norm, rate);
      if (!stats.finite) wrong = absl::StrCat("the norm of the gradient is ", stats.grad_norm);
    }
    if (!stats.weights_finite)
      return Stop(step, "the update made a weight infinite or NaN", DescribeNonFinite(*job_->session->parameters, gradients));
    if (!wrong.empty()) WEFT_RETURN_IF_ERROR(SkipOrStop(step, wrong, start, key, gradients));

    result_.step = step;
    ++result_.updates;
    result_.loss = loss.mean_loss();
    if (wrong.empty()) {
      skipped_in_row_ = 0;
      tokens_ += loss.targets;
      tokens_since_log_ += loss.targets;
      if (job_->average.has_value()) job_->average->Update(*job_->session->parameters, job_->optimizer->updates());
      if (spikes_.Observe(result_.loss)) {
        Say(absl::StrFormat("step %d: the loss jumped to %.4g (before: %.4g on average, deviation %.2g)", step, result_.loss,
                            spikes_.mean(), spikes_.deviation()));
      }
    }
    if (result_.updates == 1 && !job_->runner->without_gradient().empty()) {
      Say(absl::StrCat("warning: no gradient reaches ", absl::StrJoin(job_->runner->without_gradient(), ", ")));
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
    if (result_.last_checkpoint.empty() &&
        FirstNonFinite(*job_->session->parameters, job_->session->parameters->slab()).empty()) {
      WEFT_RETURN_IF_ERROR(job_->batches->Seek(start));
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
    const std::string offender = DescribeNonFinite(*job_->session->parameters, gradients);
    if (!options_.detect_anomaly) {
      Tensor ignored;
      job_->runner->DetectAnomalies(true);
      job_->runner->Run(leaves_, config_.train.label_smoothing, key, &ignored);
      job_->runner->DetectAnomalies(false);
      if (job_->runner->anomaly().has_value()) first = absl::StrCat("; first: ", job_->runner->anomaly()->ToString());
    }
    return absl::StrCat(first, offender);
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
      const bool by_time = job_->steps == kNoStepLimit;
      const double passed = now - started_;
      const double left =
          by_time ? 60 * config_.train.minutes - passed : SecondsLeft(result_.updates, passed, job_->steps - result_.step);
      progress_.Update({result_.step, by_time ? 0 : job_->steps, result_.loss, rate, norm, speed_, left}, now);
    }
  }

  bool IsLast() const { return result_.step == job_->steps || result_.out_of_time; }

  bool OutOfPatience() const { return config_.valid.patience > 0 && best_.since_improved >= config_.valid.patience; }

  // What is due after an update: validation on the grid of valid.every (or after an epoch), early stopping, a checkpoint.
  // Metrics of one step are one line.
  absl::Status ValidateAndSave() {
    const bool epoch_end = job_->batches->position().sequence == 0;
    const bool on_grid =
        config_.valid.every > 0 ? result_.step % config_.valid.every == 0 : (config_.train.epochs > 0 && epoch_end);
    bool new_best = false;
    result_.has_validation = false;
    if ((on_grid || IsLast()) && !job_->data->valid.empty()) WEFT_RETURN_IF_ERROR(Validate());
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
    if (!due && !(on_grid && result_.has_validation)) return absl::OkStatus();
    const std::vector<int64_t> best_steps = BestSteps();
    const bool keep = std::find(best_steps.begin(), best_steps.end(), result_.step) != best_steps.end();
    if (due || keep) WEFT_RETURN_IF_ERROR(Save());
    if (keep && new_best) WEFT_RETURN_IF_ERROR(folder_->SetBest(result_.step));
    return due || keep ? folder_->Rotate(config_.checkpoint.keep_last, best_steps) : absl::OkStatus();
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
    for (const ParameterInfo& info : job_->session->parameters->list()) {
      weights.emplace_back(info.name, Parameters::In(job_->session->parameters->slab(), info).span<float>());
    }
    return events_->WriteHistograms(result_.step, weights);
  }

  // Scores the validation set, says so, and adds the scores to this step's line. What is scored is the average of the weights
  // where there is one.
  absl::Status Validate() {
    if (job_->average.has_value()) job_->average->Swap(job_->session->parameters.get());
    absl::StatusOr<Evaluation> validation = Evaluate(*job_->session->model, *job_->session->parameters, job_->data->valid,
                                                     config_.valid.metrics, config_.valid.batch_size, &*job_->runner,
                                                     {.beam = config_.valid.beam,
                                                      .length_penalty = config_.valid.length_penalty,
                                                      .target_tokenizer = job_->session->target_tokenizer.get(),
                                                      .text = ToTextMetricOptions(config_.valid)});
    if (job_->average.has_value()) job_->average->Swap(job_->session->parameters.get());
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
    meta.optimizer_updates = job_->optimizer->updates();
    meta.seed = static_cast<uint64_t>(config_.run.seed);
    meta.position = job_->batches->position();
    meta.tokens = tokens_;
    meta.shards = config_.train.shards;
    meta.data_hash = job_->data->content_hash;
    meta.config_toml = CanonicalConfig(config_);
    if (job_->session->source_tokenizer != nullptr) meta.source_tokenizer = job_->session->source_tokenizer->Serialize();
    if (job_->session->target_tokenizer != nullptr) meta.target_tokenizer = job_->session->target_tokenizer->Serialize();
    meta.class_names = job_->session->class_names;
    meta.history = history_;
    meta.best = best_;
    meta.skipped_in_row = skipped_in_row_;
    const std::string path = folder_->CheckpointPath(result_.step);
    const WeightAverage* average = job_->average.has_value() ? &*job_->average : nullptr;
    WEFT_RETURN_IF_ERROR(SaveCheckpoint(path, meta, StateTensors(*job_->session->parameters, *job_->optimizer, average)));
    WEFT_RETURN_IF_ERROR(folder_->SetLast(result_.step));
    result_.last_checkpoint = path;
    last_save_ = Now();
    return absl::OkStatus();
  }

  // The updates of the checkpoint.keep_best best validations, whose checkpoints are kept.
  std::vector<int64_t> BestSteps() const {
    std::vector<MetricValue> scores;
    for (const MetricValue& value : history_) {
      if (value.name == config_.valid.best && !std::isnan(value.value)) scores.push_back(value);
    }
    const bool larger = LargerIsBetter(config_.valid.best);
    std::stable_sort(scores.begin(), scores.end(), [&](const MetricValue& a, const MetricValue& b) {
      return larger ? a.value > b.value : a.value < b.value;
    });
    if (static_cast<int64_t>(scores.size()) > config_.checkpoint.keep_best) scores.resize(config_.checkpoint.keep_best);
    std::vector<int64_t> steps;
    for (const MetricValue& score : scores) steps.push_back(score.step);
    return steps;
  }

  // The last checkpoint and the summary.
  absl::Status Finish() {
    if (result_.updates > 0 && result_.last_checkpoint != folder_->CheckpointPath(result_.step)) {
      WEFT_RETURN_IF_ERROR(Save());
      WEFT_RETURN_IF_ERROR(folder_->Rotate(config_.checkpoint.keep_last, BestSteps()));
    }
    // A run that was finished before this call made no update: its scores are still what the caller wants to see.
    if (result_.updates == 0 && !job_->data->valid.empty()) WEFT_RETURN_IF_ERROR(Validate());
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
  std::unique_ptr<TrainingJob> job_;
  std::optional<RunDir> folder_;
  std::optional<MetricsWriter> metrics_;
  LossSpikes spikes_;
  std::optional<TensorBoardWriter> events_;
  std::vector<std::unique_ptr<Batch>> batches_;  // of one update, each at a fixed place: leaves_ view into them
  std::vector<BatchView> leaves_;

  TrainResult result_;
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
