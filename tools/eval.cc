#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "tools/verbs.h"
#include "train/evaluate.h"
#include "train/run_dir.h"
#include "train/session.h"

namespace weft {
namespace {

// The validation set that the run itself used. A checkpoint holds no data paths; the config.toml of the run folder around it
// does.
absl::StatusOr<ExampleSet> OwnValidationSet(const std::string& checkpoint, const Session& session) {
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
    return absl::FailedPreconditionError(absl::StrCat(config.data.train, " has changed since ", checkpoint,
                                                      " was trained: it gives another vocabulary (",
                                                      DescribeMismatch(*now, *trained), "); pass --data FILE"));
  };
  WEFT_RETURN_IF_ERROR(check(data->source_tokenizer, session.source_tokenizer));
  WEFT_RETURN_IF_ERROR(check(data->target_tokenizer, session.target_tokenizer));
  if (data->valid.empty()) return absl::FailedPreconditionError("the run has no validation data: pass --data FILE");
  return std::move(data->valid);
}

}  // namespace

absl::Status RunEval(const EvalFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, ResolveCheckpoint(flags.run));
  WEFT_ASSIGN_OR_RETURN(const auto session, Session::Load(checkpoint));
  ExampleSet examples;
  if (flags.data.empty()) {
    WEFT_ASSIGN_OR_RETURN(examples, OwnValidationSet(checkpoint, *session));
  } else {
    WEFT_ASSIGN_OR_RETURN(EvaluationData data, LoadEvaluationData(flags.data, session->evaluation_options()));
    examples = std::move(data.examples);
  }
  std::vector<std::string> metrics;
  if (session->kind() == DataKind::kPairs) metrics = {"exact_match", "per"};
  const ValidConfig& valid = session->config.valid;
  const AnswerOptions answers{flags.beam.value_or(valid.beam), flags.length_penalty.value_or(valid.length_penalty)};
  if (answers.beam > 1 && metrics.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--beam ", answers.beam, ": ", checkpoint, " generates no answers to score (its data are no pairs)"));
  }
  if (flags.length_penalty.has_value() && answers.beam == 1) {
    return absl::InvalidArgumentError("--length-penalty: greedy answers have none; give --beam N as well");
  }
  GradientRunner runner(*session->model, *session->parameters);
  WEFT_ASSIGN_OR_RETURN(const Evaluation evaluation,
                        Evaluate(*session->model, *session->parameters, examples, metrics, valid.batch_size, &runner, answers));
  if (flags.json) {
    nlohmann::ordered_json json;
    json["checkpoint"] = checkpoint;
    json["step"] = session->step;
    json["examples"] = evaluation.examples;
    json["targets"] = evaluation.targets;
    for (const MetricScore& metric : evaluation.metrics) json[metric.name] = metric.value;
    // The path may be no UTF-8.
    absl::PrintF("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return absl::OkStatus();
  }
  absl::PrintF("%-12s %s\n%-12s %d\n%-12s %d\n", "checkpoint", checkpoint, "examples", evaluation.examples, "targets",
               evaluation.targets);
  for (const MetricScore& metric : evaluation.metrics) absl::PrintF("%-12s %.6g\n", metric.name, metric.value);
  return absl::OkStatus();
}

}  // namespace weft
