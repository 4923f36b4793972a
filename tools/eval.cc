#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autograd/base/status.h"
#include "data/file.h"
#include "tools/bleu_flags.h"
#include "tools/signature.h"
#include "tools/verbs.h"
#include "train/evaluate.h"
#include "train/run_dir.h"
#include "train/session.h"

namespace weft {
namespace {

// Whether the flags of `weft eval` mean something for this model and these metrics.
absl::Status CheckFlags(const EvalFlags& flags, const Session& session, const std::vector<std::string>& metrics, int64_t beam) {
  const char* how = flags.beam.has_value() ? "--beam" : flags.length_penalty.has_value() ? "--length-penalty" : nullptr;
  const bool keeps = !flags.output.empty();
  if (session.kind() != DataKind::kPairs && (how != nullptr || keeps)) {
    return absl::InvalidArgumentError(
        absl::StrCat(how != nullptr ? how : "--output", ": ", flags.run, " generates no answers (its data are no pairs)"));
  }
  if (how != nullptr && !keeps && std::none_of(metrics.begin(), metrics.end(), ComparesAnswers)) {
    return absl::InvalidArgumentError(absl::StrCat(
        how, ": no answers are made; give --output, or --metrics exact_match, per, bleu, chrf, chrf++, wer or cer"));
  }
  if (flags.length_penalty.has_value() && beam == 1) {
    return absl::InvalidArgumentError("--length-penalty: greedy answers have none; give --beam above 1 as well");
  }
  return absl::OkStatus();
}

// The validation set that the run itself used. A checkpoint holds no data paths; the config.toml of the run folder around it
// does.
absl::StatusOr<EvaluationData> OwnValidationSet(const std::string& checkpoint, const Session& session) {
  Config config = session.config;
  if (config.data.kind != "task") {
    const std::filesystem::path folder = std::filesystem::absolute(checkpoint).parent_path().parent_path();
    const auto saved = LoadTrainingConfig((folder / "config.toml").string(), {});
    if (!saved.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(checkpoint, " is not in a run folder whose config.toml names its data: pass --data FILE (",
                       saved.status().message(), ")"));
    }
    config = *saved;
  }
  DataOptions options = ToDataOptions(config);
  if (config.data.kind == "task" || HasLearnedTokenizer(options)) {
    options.known_source = session.source_tokenizer.get();
    options.known_target = session.target_tokenizer.get();
  }
  WEFT_ASSIGN_OR_RETURN(const auto data, LoadData(options));
  const auto check = [&](const std::unique_ptr<Tokenizer>& now, const std::unique_ptr<Tokenizer>& trained) -> absl::Status {
    if (now == nullptr || trained == nullptr || now->Fingerprint() == trained->Fingerprint()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(absl::StrJoin(config.data.train, " "), " has changed since ", checkpoint,
                                                      " was trained: it gives another vocabulary (",
                                                      DescribeMismatch(*now, *trained), "); pass --data FILE"));
  };
  WEFT_RETURN_IF_ERROR(check(data->source_tokenizer, session.source_tokenizer));
  WEFT_RETURN_IF_ERROR(check(data->target_tokenizer, session.target_tokenizer));
  if (data->valid.empty()) return absl::FailedPreconditionError("the run has no validation data: pass --data FILE");
  EvaluationData own;
  own.examples = std::move(data->valid);
  own.lines = std::move(data->valid_lines);
  return own;
}

// What is scored beside loss, perplexity and accuracy, which always are.
std::vector<std::string> ChooseMetrics(const EvalFlags& flags, const Session& session) {
  std::vector<std::string> metrics;
  const auto add = [&](absl::string_view name) {
    const bool always = name == "loss" || name == "perplexity" || name == "accuracy";
    if (!always && std::find(metrics.begin(), metrics.end(), name) == metrics.end()) metrics.emplace_back(name);
  };
  for (const std::string& name : flags.metrics) add(name);
  if (!flags.metrics.empty()) return metrics;
  if (session.kind() == DataKind::kText) add(kBitsPerByte);
  if (session.kind() == DataKind::kPairs) {
    add("exact_match");
    add("per");
    for (const std::string& name : session.config.valid.metrics) {
      if (IsTextMetric(name)) add(name);
    }
  }
  return metrics;
}

// How the text of answers is scored: as in the run's [valid], but for the flags. A flag that would change nothing is refused.
absl::StatusOr<TextMetricOptions> ChooseTextOptions(const EvalFlags& flags, const Session& session,
                                                    const std::vector<std::string>& metrics) {
  TextMetricOptions options = ToTextMetricOptions(session.config.valid);
  WEFT_RETURN_IF_ERROR(ReadBleuFlags(flags.tokenize, flags.smooth, metrics, "--metrics", &options));
  if (flags.lowercase && std::none_of(metrics.begin(), metrics.end(), IsTextMetric)) {
    return absl::InvalidArgumentError(
        "--lowercase: no metric compares text; give --metrics bleu, chrf, chrf++, wer or cer as well");
  }
  if (flags.lowercase) options.lowercase = true;
  return options;
}

// How many references a line has, as signatures say it.
std::string CountReferences(const ExampleSet& examples) {
  for (int64_t i = 1; i < examples.size(); ++i) {
    if (examples.reference_count(i) != examples.reference_count(0)) return "var";
  }
  return absl::StrCat(examples.reference_count(0));
}

// Line i answers line i of the sources. A line that is no example (empty, or with an empty side) has an empty one.
absl::Status WriteAnswers(const std::string& path, const ExampleLines& lines, const std::vector<std::string>& answers) {
  std::string text;
  int64_t line = 1;
  for (size_t i = 0; i < answers.size(); ++i, ++line) {
    for (; line < lines.of_example[i]; ++line) text.push_back('\n');
    absl::StrAppend(&text, answers[i], "\n");
  }
  for (; line <= lines.count; ++line) text.push_back('\n');
  return WriteOutput(path, text);
}

void Print(const EvalFlags& flags, const std::string& checkpoint, const Session& session, const ExampleSet& examples,
           const Evaluation& evaluation, const TextMetricOptions& text) {
  const auto signature = [&](const std::string& name) {
    return ScoreSignature(*MakeTextMetric(name, text).value(), CountReferences(examples));
  };
  if (flags.json) {
    nlohmann::ordered_json json;
    json["checkpoint"] = checkpoint;
    json["step"] = session.step;
    json["examples"] = evaluation.examples;
    json["targets"] = evaluation.targets;
    for (const MetricScore& metric : evaluation.metrics) {
      json[metric.name] = metric.value;
      if (IsTextMetric(metric.name)) json[absl::StrCat(metric.name, "_signature")] = signature(metric.name);
    }
    // The path may be no UTF-8.
    absl::PrintF("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  absl::PrintF("%-12s %s\n%-12s %d\n%-12s %d\n", "checkpoint", checkpoint, "examples", evaluation.examples, "targets",
               evaluation.targets);
  for (const MetricScore& metric : evaluation.metrics) {
    absl::PrintF("%-12s %.6g", metric.name, metric.value);
    if (IsTextMetric(metric.name)) absl::PrintF("  %s", signature(metric.name));
    absl::PrintF("\n");
  }
}

}  // namespace

std::vector<std::string> EvaluationMetrics() {
  return {"loss",   "perplexity", "accuracy", std::string(kBitsPerByte), "exact_match", "per", "bleu", "chrf",
          "chrf++", "wer",        "cer"};
}

absl::Status RunEval(const EvalFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, ResolveCheckpoint(flags.run));
  WEFT_ASSIGN_OR_RETURN(const auto session, Session::Load(checkpoint));
  const std::vector<std::string> metrics = ChooseMetrics(flags, *session);
  WEFT_ASSIGN_OR_RETURN(const TextMetricOptions text, ChooseTextOptions(flags, *session, metrics));
  const ValidConfig& valid = session->config.valid;
  const AnswerOptions answers{.beam = flags.beam.value_or(valid.beam),
                              .length_penalty = flags.length_penalty.value_or(valid.length_penalty),
                              .target_tokenizer = session->target_tokenizer.get(),
                              .text = text,
                              .keep = !flags.output.empty()};
  WEFT_RETURN_IF_ERROR(CheckFlags(flags, *session, metrics, answers.beam));
  if (answers.keep) WEFT_RETURN_IF_ERROR(CheckOutput(flags.output));
  EvaluationData data;
  if (flags.data.empty()) {
    WEFT_ASSIGN_OR_RETURN(data, OwnValidationSet(checkpoint, *session));
  } else {
    WEFT_ASSIGN_OR_RETURN(data, LoadEvaluationData(flags.data, session->evaluation_options()));
  }
  const std::string warning = WarnOfNormalization(metrics, answers.target_tokenizer);
  if (!warning.empty()) absl::FPrintF(stderr, "%s\n", warning);
  GradientRunner runner(*session->model, *session->parameters);
  WEFT_ASSIGN_OR_RETURN(const Evaluation evaluation, Evaluate(*session->model, *session->parameters, data.examples, metrics,
                                                              valid.batch_size, &runner, answers));
  // The scores first: a disk that is full takes the file only.
  Print(flags, checkpoint, *session, data.examples, evaluation, text);
  return answers.keep ? WriteAnswers(flags.output, data.lines, evaluation.answers) : absl::OkStatus();
}

}  // namespace weft
