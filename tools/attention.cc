#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "data/columns.h"
#include "data/text_file.h"
#include "tools/verbs.h"
#include "train/decode.h"
#include "train/session.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Collects the weights of each attention layer of a pass over one sequence.
class JsonProbe : public Probe {
 public:
  void AttentionWeights(const std::string& path, int64_t heads, Sequences queries, Sequences keys, absl::Span<const int32_t>,
                        const Tensor& weights) override {
    Json layer = {{"layer", path}, {"heads", Json::array()}};
    int64_t next = 0;
    for (int64_t h = 0; h < heads; ++h) {
      Json head = Json::array();
      for (int32_t q = 0; q < queries[0].length; ++q) {
        Json row = Json::array();
        for (int32_t k = 0; k < keys[0].length; ++k) row.push_back(weights.At(next++));
        head.push_back(std::move(row));
      }
      layer["heads"].push_back(std::move(head));
    }
    layers.push_back(std::move(layer));
  }
  Json layers = Json::array();
};

Json TokenTexts(const Tokenizer& tokenizer, absl::Span<const int32_t> ids) {
  Json texts = Json::array();
  for (int32_t id : ids) texts.push_back(tokenizer.TokenText(id));
  return texts;
}

absl::StatusOr<std::vector<int32_t>> Encode(const Session& session, const Tokenizer& tokenizer, absl::string_view text,
                                            absl::string_view what, int64_t columns = 1) {
  auto ids = EncodePrompt(tokenizer, text, columns);
  if (!ids.ok()) return absl::FailedPreconditionError(absl::StrCat("--input ", what, ": ", ids.status().message()));
  if (ids->empty()) return absl::FailedPreconditionError(absl::StrCat("--input ", what, " is empty"));
  WEFT_RETURN_IF_ERROR(session.model->CheckLength(static_cast<int64_t>(ids->size()), absl::StrCat("--input ", what)));
  return ids;
}

// The source and, behind as many tabs as the source has columns, the target; no target without that tab.
std::pair<absl::string_view, std::optional<absl::string_view>> SplitSides(absl::string_view input, int64_t columns) {
  size_t tab = input.find('\t');
  for (int64_t i = 1; i < columns && tab != absl::string_view::npos; ++i) tab = input.find('\t', tab + 1);
  if (tab == absl::string_view::npos) return {input, std::nullopt};
  return {input.substr(0, tab), input.substr(tab + 1)};
}

}  // namespace

absl::Status RunAttention(const AttentionFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const auto session, Session::Load(flags.run));
  WEFT_ASSIGN_OR_RETURN(const std::string input, CleanText(flags.input, "--input"));
  const Transformer& model = *session->model;
  Context context(*session->parameters);
  JsonProbe probe;
  Json json;
  const auto columns = static_cast<int64_t>(session->config.data.columns.source.size());
  const auto sequence = [](const std::vector<int32_t>& ids) { return Sequence{0, static_cast<int32_t>(ids.size()), 0, 0}; };

  if (session->kind() == DataKind::kText) {
    WEFT_ASSIGN_OR_RETURN(const auto ids, Encode(*session, *session->target_tokenizer, input, "text"));
    const Sequence rows = sequence(ids);
    context.Begin(Tensor(), {});
    context.probe = &probe;
    model.Decode(context, ids, {&rows, 1});
    json["tokens"] = TokenTexts(*session->target_tokenizer, ids);
  } else if (session->kind() == DataKind::kLabels) {
    WEFT_ASSIGN_OR_RETURN(const auto ids, Encode(*session, *session->source_tokenizer, input, "text", columns));
    const Sequence rows = sequence(ids);
    context.Begin(Tensor(), {});
    context.probe = &probe;
    model.Encode(context, ids, {&rows, 1});
    json["tokens"] = TokenTexts(*session->source_tokenizer, ids);
  } else {
    // SOURCE<TAB>TARGET, or SOURCE and the model's own greedy answer.
    const auto [source_text, target_text] = SplitSides(input, columns);
    const Tokenizer& target = *session->target_tokenizer;
    WEFT_ASSIGN_OR_RETURN(const auto source_ids, Encode(*session, *session->source_tokenizer, source_text, "source", columns));
    std::vector<int32_t> answer;
    if (target_text.has_value()) {
      WEFT_ASSIGN_OR_RETURN(answer, Encode(*session, target, *target_text, "target"));
    } else {
      const absl::Span<const int32_t> source = source_ids;
      answer = DecodeSources(context, model, {&source, 1}, {0}, target.bos(), target.eos(), {.max_new_tokens = 256})[0];
    }
    std::vector<int32_t> inputs = {target.bos()};
    inputs.insert(inputs.end(), answer.begin(), answer.end());
    WEFT_RETURN_IF_ERROR(model.CheckLength(static_cast<int64_t>(inputs.size()), "the target with <bos>"));
    const Sequence source_rows = sequence(source_ids), target_rows = sequence(inputs);
    context.Begin(Tensor(), {});
    context.probe = &probe;
    context.memory = model.Encode(context, source_ids, {&source_rows, 1});
    context.memory_sequences = {&source_rows, 1};
    model.Decode(context, inputs, {&target_rows, 1});
    json["source_tokens"] = TokenTexts(*session->source_tokenizer, source_ids);
    json["target_tokens"] = TokenTexts(target, inputs);
    json["answer"] = target.Decode(answer);
  }
  json["layers"] = std::move(probe.layers);
  absl::PrintF("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return absl::OkStatus();
}

}  // namespace weft
