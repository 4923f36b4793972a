// Session: a model that can be used: its config, tokenizers, parameters and the Transformer itself. Made fresh for training,
// from a config and its data, or from a checkpoint, which holds all of it. The programs eval, generate, attention and
// gradcheck, and a user's own program, start here.
#ifndef WEFT_TRAIN_SESSION_H_
#define WEFT_TRAIN_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/load.h"
#include "layers/transformer.h"
#include "train/checkpoint.h"
#include "train/config.h"

namespace weft {

struct Session {
  Config config;
  TransformerConfig model_config;
  std::unique_ptr<Tokenizer> source_tokenizer;  // null for text
  std::unique_ptr<Tokenizer> target_tokenizer;  // null for labels
  std::vector<std::string> class_names;         // labels
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<Transformer> model;
  int64_t step = 0;  // updates behind it; 0 for a fresh one

  // A fresh model for `data`, whose tokenizers move here. InvalidArgument when the family does not fit the data;
  // FailedPrecondition when a sequence is longer than the model takes.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Config& config, Dataset* data);
  // The model of a checkpoint file, or of a run folder: its best checkpoint, else its last.
  static absl::StatusOr<std::unique_ptr<Session>> Load(const std::string& run_or_checkpoint);
  static absl::StatusOr<std::unique_ptr<Session>> FromCheckpoint(const Checkpoint& checkpoint);

  // FailedPrecondition, with both hashes, unless the checkpoint's tokenizers are those of this session: ids would mean other
  // tokens. `path` names the checkpoint.
  absl::Status CheckTokenizers(const CheckpointMeta& meta, const std::string& path) const;

  DataKind kind() const { return DataKindOf(config); }
  // What LoadEvaluationData needs.
  EvaluationOptions evaluation_options() const;
};

// The tokenizers of a run, null where it has none.
struct SideTokenizers {
  std::unique_ptr<Tokenizer> source, target;
};
// Those that a checkpoint holds, as they were in training: with <sep> where `data`, of its config, has several source columns.
// DataLoss for what is no tokenizer.
absl::StatusOr<SideTokenizers> RestoreTokenizers(const CheckpointMeta& meta, const DataConfig& data);
// The config that a checkpoint holds; keys that came later have their defaults, which is how it was trained.
absl::StatusOr<Config> ConfigOf(const Checkpoint& checkpoint);

// LoadConfig with [model] checked by TransformerConfig and against the data's kind.
absl::StatusOr<Config> LoadTrainingConfig(const std::string& path, absl::Span<const std::string> overrides);
// The ModelCheck that LoadTrainingConfig passes to LoadConfig.
std::vector<std::string> CheckModelTable(const Options& model, const Config& config, Options* resolved);

}  // namespace weft

#endif  // WEFT_TRAIN_SESSION_H_
