#include "train/session.h"

#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "train/model_state.h"
#include "train/run_dir.h"

namespace weft {
namespace {

// Reads [model], sizes the model by its tokenizers, and declares its parameters.
absl::Status Build(Session* session) {
  std::vector<std::string> errors;
  session->model_config = TransformerConfig::Read(session->config.model, &errors);
  WEFT_RETURN_IF_ERROR(ErrorsToStatus(errors));
  ModelSizes sizes;
  if (session->source_tokenizer != nullptr) sizes.source_vocabulary = session->source_tokenizer->size();
  if (session->target_tokenizer != nullptr) sizes.target_vocabulary = session->target_tokenizer->size();
  sizes.classes = static_cast<int64_t>(session->class_names.size());
  sizes.shared_vocabulary = session->config.data.shared_tokenizer;
  session->parameters = std::make_unique<Parameters>();
  WEFT_ASSIGN_OR_RETURN(session->model, Transformer::Create(session->model_config, sizes, session->parameters.get()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SideTokenizers> RestoreTokenizers(const CheckpointMeta& meta, const DataConfig& data) {
  SideTokenizers sides;
  if (!meta.source_tokenizer.kind.empty()) {
    WEFT_ASSIGN_OR_RETURN(sides.source, Tokenizer::FromSerialized(meta.source_tokenizer));
  }
  if (!meta.target_tokenizer.kind.empty()) {
    WEFT_ASSIGN_OR_RETURN(sides.target, Tokenizer::FromSerialized(meta.target_tokenizer));
  }
  ReserveSeparators(data.columns, data.shared_tokenizer, sides.source.get(), sides.target.get());
  return sides;
}

absl::StatusOr<Config> ConfigOf(const Checkpoint& checkpoint) {
  const ConfigText text{
      .text = checkpoint.meta().config_toml, .name = absl::StrCat(checkpoint.path(), " (config)"), .needs_data_files = false};
  return ParseConfig(text, {}, CheckModelTable);
}

std::vector<std::string> CheckModelTable(const Options& model, const Config& config, Options* resolved) {
  std::vector<std::string> errors;
  const TransformerConfig read = TransformerConfig::Read(model, &errors);
  *resolved = read.Write();
  if (DataKindOf(config) == DataKind::kText && read.positions == "learned" && config.data.window > read.max_positions) {
    const OptionValue* given = model.Find("max_positions");
    errors.push_back(absl::StrCat(KeyPrefix(given != nullptr ? given->where : model.where, "model", "max_positions"), "found ",
                                  read.max_positions, ", allowed at least data.window = ", config.data.window));
  }
  return errors;
}

absl::StatusOr<Config> LoadTrainingConfig(const std::string& path, absl::Span<const std::string> overrides) {
  return LoadConfig(path, overrides, CheckModelTable);
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const Config& config, Dataset* data) {
  auto session = std::make_unique<Session>();
  session->config = config;
  session->source_tokenizer = std::move(data->source_tokenizer);
  session->target_tokenizer = std::move(data->target_tokenizer);
  session->class_names = data->class_names;
  WEFT_RETURN_IF_ERROR(Build(session.get()));
  if (session->model->max_length() > 0) data->train.sampler().Limit(session->model->max_length());
  for (const ExampleSet* set : {&data->train, &data->valid}) {
    const char* split = set == &data->train ? "training" : "validation";
    WEFT_RETURN_IF_ERROR(
        session->model->CheckLength(set->max_source_length(), absl::StrCat("the longest source of the ", split, " data")));
    WEFT_RETURN_IF_ERROR(
        session->model->CheckLength(set->max_target_length(), absl::StrCat("the longest target of the ", split, " data")));
  }
  return session;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Load(const std::string& run_or_checkpoint) {
  WEFT_ASSIGN_OR_RETURN(const std::string path, ResolveCheckpoint(run_or_checkpoint));
  WEFT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  return FromCheckpoint(checkpoint);
}

absl::StatusOr<std::unique_ptr<Session>> Session::FromCheckpoint(const Checkpoint& checkpoint) {
  const CheckpointMeta& meta = checkpoint.meta();
  auto session = std::make_unique<Session>();
  session->step = meta.step;
  WEFT_ASSIGN_OR_RETURN(session->config, ConfigOf(checkpoint));
  WEFT_ASSIGN_OR_RETURN(SideTokenizers sides, RestoreTokenizers(meta, session->config.data));
  session->source_tokenizer = std::move(sides.source);
  session->target_tokenizer = std::move(sides.target);
  session->class_names = meta.class_names;
  // A foreign file could lack a tokenizer that its kind of data needs.
  const DataKind kind = session->kind();
  if ((kind != DataKind::kText) != (session->source_tokenizer != nullptr) ||
      (kind != DataKind::kLabels) != (session->target_tokenizer != nullptr) ||
      (kind == DataKind::kLabels) != !session->class_names.empty()) {
    return absl::DataLossError(
        absl::StrCat(checkpoint.path(), ": its tokenizers and classes do not fit data of kind ", DataKindName(kind)));
  }
  WEFT_RETURN_IF_ERROR(Build(session.get()));
  // LoadParameters compares the two in detail; a config that asks for far more than the file has must not take memory first.
  if (session->parameters->count() > checkpoint.file_size() / DTypeSize(DType::kF32)) {
    return absl::DataLossError(absl::StrCat(checkpoint.path(), ": its config makes a model of ", session->parameters->count(),
                                            " parameters, more than a file of ", checkpoint.file_size(), " bytes can hold"));
  }
  session->parameters->Allocate(DType::kF32, meta.seed);
  WEFT_RETURN_IF_ERROR(LoadForInference(checkpoint, session->parameters.get()));
  return session;
}

absl::Status Session::CheckTokenizers(const CheckpointMeta& meta, const std::string& path) const {
  WEFT_ASSIGN_OR_RETURN(const SideTokenizers sides, RestoreTokenizers(meta, config.data));
  const auto check = [&](const Tokenizer* restored, const Tokenizer* own, const char* side) -> absl::Status {
    if ((restored == nullptr) == (own == nullptr) && (own == nullptr || own->Fingerprint() == restored->Fingerprint())) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": was trained with another ", side,
        " tokenizer: ", own == nullptr || restored == nullptr ? "one of the two has none" : DescribeMismatch(*own, *restored)));
  };
  WEFT_RETURN_IF_ERROR(check(sides.source.get(), source_tokenizer.get(), "source"));
  return check(sides.target.get(), target_tokenizer.get(), "target");
}

EvaluationOptions Session::evaluation_options() const {
  EvaluationOptions options;
  options.kind = kind();
  options.source_tokenizer = source_tokenizer.get();
  options.target_tokenizer = target_tokenizer.get();
  options.class_names = class_names;
  options.window = config.data.window;
  options.storage.cache = config.data.cache;
  options.columns = config.data.columns;
  return options;
}

}  // namespace weft
