#include "train/job_size.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "train/gradient.h"
#include "train/progress.h"

namespace weft {
namespace {

// "1,234,567".
std::string WithCommas(int64_t n) {
  if (n < 1000) return absl::StrCat(n);
  return absl::StrCat(WithCommas(n / 1000), ",", absl::Dec(n % 1000, absl::kZeroPad3));
}

// "decoder.0" for what lies in a numbered block, else the first piece of the path: "target_embedding".
std::pair<std::string, int64_t> PartOf(const std::string& name) {
  const std::vector<std::string> pieces = absl::StrSplit(name, '.');
  int64_t block = -1;
  if (pieces.size() > 2 && absl::SimpleAtoi(pieces[1], &block)) return {pieces[0], block};
  return {pieces.size() > 2 ? absl::StrCat(pieces[0], ".", pieces[1]) : pieces[0], -1};
}

// The memory limit of the process's own control group (v2 `memory.max`, else v1); `otherwise` when there is none.
double CgroupMemory(double otherwise) {
  std::string path, line;
  std::ifstream self("/proc/self/cgroup");
  while (std::getline(self, line)) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  for (const std::string& file : {"/sys/fs/cgroup" + path + "/memory.max", std::string("/sys/fs/cgroup/memory.max"),
                                  std::string("/sys/fs/cgroup/memory/memory.limit_in_bytes")}) {
    std::ifstream in(file);
    double limit = 0;
    if (in >> limit && limit > 0) return std::min(limit, otherwise);
  }
  return otherwise;
}

int64_t MomentsOf(const OptimizerConfig& optimizer) {
  if (optimizer.kind == "adam" || optimizer.kind == "adamw") return 2;
  return optimizer.kind == "sgd" && optimizer.momentum == 0 ? 0 : 1;
}

}  // namespace

std::string ParametersByPart(const Parameters& parameters) {
  struct Part {
    std::string name;
    int64_t first, last, count;  // blocks first to last, -1: not a block; parameters of each
  };
  std::vector<Part> parts;
  for (const ParameterInfo& info : parameters.list()) {
    const auto [name, block] = PartOf(info.name);
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name && part.first == block; });
    if (found == parts.end()) {
      parts.push_back({name, block, block, info.shape.elements()});
    } else {
      found->count += info.shape.elements();
    }
  }
  std::vector<Part> joined;  // equal blocks in a row are one
  for (const Part& part : parts) {
    const bool more = !joined.empty() && part.first >= 0 && joined.back().name == part.name &&
                      joined.back().last + 1 == part.first && joined.back().count == part.count;
    if (more) {
      joined.back().last = part.first;
    } else {
      joined.push_back(part);
    }
  }
  const std::string list = absl::StrJoin(joined, ", ", [](std::string* out, const Part& part) {
    absl::StrAppend(out, part.name);
    if (part.first >= 0) absl::StrAppend(out, ".", part.first);
    if (part.last > part.first) absl::StrAppend(out, "-", part.last);
    absl::StrAppend(out, " ", WithCommas(part.count), part.last > part.first ? " each" : "");
  });
  return absl::StrCat(WithCommas(parameters.count()), " parameters: ", list);
}

std::string MemoryEstimate::ToString() const {
  return absl::StrFormat("memory: at least %sB (weights, gradients, optimizer %sB; activations %sB) of %sB",
                         FormatCount(total()), FormatCount(state), FormatCount(activations), FormatCount(available));
}

absl::Status MemoryEstimate::Check(const Config& config) const {
  if (total() <= available) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "this job needs at least %.1f GB, %.1f for weights, gradients and optimizer and %.1f for activations (batches of %d "
      "%s in %d shards); the machine has %.1f GB: make model.d_model, model.layers or train.batch_size / train.batch_tokens "
      "smaller, or train.shards larger",
      total() / 1e9, state / 1e9, activations / 1e9,
      config.train.batch_tokens > 0 ? config.train.batch_tokens : config.train.batch_size,
      config.train.batch_tokens > 0 ? "tokens" : "sequences", config.train.shards, available / 1e9));
}

MemoryEstimate EstimateMemory(const Config& config, const Session& session, int64_t batch_tokens) {
  const TransformerConfig& c = session.model_config;
  const double slab = 4.0 * static_cast<double>(session.parameters->slab_size());
  const double blocks = (c.has_encoder() ? c.encoder_layers : 0) + (c.has_decoder() ? c.decoder_layers : 0);
  const double per_token =
      4.0 * (blocks * (8.0 * c.d_model + 2.0 * c.hidden) + static_cast<double>(session.model->sizes().target_vocabulary));
  // A shard runs in pieces, but a sequence is never cut: one batch of one sequence is one piece.
  const double tokens = static_cast<double>(batch_tokens) / static_cast<double>(config.train.shards);
  const double longest = static_cast<double>(config.train.batch_size > 0 ? batch_tokens / config.train.batch_size : int64_t{1});
  MemoryEstimate estimate;
  estimate.state = slab * static_cast<double>(2 + MomentsOf(config.optimizer) + (config.train.ema_decay > 0 ? 1 : 0));
  estimate.activations = per_token * std::min(tokens, std::max(longest, static_cast<double>(kPieceTokens)));
  const double physical = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  estimate.available = CgroupMemory(physical);
  return estimate;
}

}  // namespace weft
