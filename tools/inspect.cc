#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "tools/verbs.h"
#include "train/checkpoint.h"
#include "train/model_state.h"
#include "train/run_dir.h"

namespace weft {
namespace {

nlohmann::ordered_json Describe(const SerializedTokenizer& tokenizer) {
  if (tokenizer.kind.empty()) return nullptr;
  return {{"kind", tokenizer.kind},
          {"symbols", tokenizer.symbols.size()},
          {"specials", tokenizer.specials},
          {"unknown", tokenizer.unknown}};
}

}  // namespace

absl::Status RunInspect(const InspectFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const std::string path, ResolveCheckpoint(flags.checkpoint));
  WEFT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  const CheckpointMeta& meta = checkpoint.meta();
  int64_t parameters = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    if (IsParameter(tensor.name)) parameters += tensor.shape.elements();
  }
  if (flags.json) {
    nlohmann::ordered_json json = {{"checkpoint", path},
                                   {"bytes", checkpoint.file_size()},
                                   {"step", meta.step},
                                   {"epoch", meta.position.epoch},
                                   {"sequence", meta.position.sequence},
                                   {"tokens", meta.tokens},
                                   {"seed", meta.seed},
                                   {"shards", meta.shards},
                                   {"parameters", parameters},
                                   {"source_tokenizer", Describe(meta.source_tokenizer)},
                                   {"target_tokenizer", Describe(meta.target_tokenizer)},
                                   {"classes", meta.class_names},
                                   {"config", meta.config_toml},
                                   {"tensors", nlohmann::json::array()}};
    for (const StoredTensor& tensor : checkpoint.tensors()) {
      json["tensors"].push_back({{"name", tensor.name},
                                 {"dtype", std::string(DTypeName(tensor.dtype))},
                                 {"shape", std::vector<int64_t>(tensor.shape.dims().begin(), tensor.shape.dims().end())},
                                 {"bytes", tensor.bytes}});
    }
    absl::PrintF("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return absl::OkStatus();
  }
  absl::PrintF("checkpoint  %s (%d bytes)\nstep        %d\nposition    epoch %d, sequence %d\ntokens      %d\nparameters  %d\n",
               path, checkpoint.file_size(), meta.step, meta.position.epoch, meta.position.sequence, meta.tokens, parameters);
  if (meta.best.step >= 0) absl::PrintF("best        %g at step %d\n", meta.best.value, meta.best.step);
  absl::PrintF("\n%s\n", meta.config_toml);
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    absl::PrintF("%-52s %s %-16s %12d bytes\n", tensor.name, DTypeName(tensor.dtype), tensor.shape.ToString(), tensor.bytes);
  }
  return absl::OkStatus();
}

}  // namespace weft
