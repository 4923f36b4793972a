#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "autograd/kernels/elementwise.h"
#include "data/text_file.h"
#include "tools/verbs.h"
#include "train/decode.h"
#include "train/session.h"

namespace weft {
namespace {

struct Input {
  std::string name;  // "--prompt" or "stdin:LINE", for messages
  std::string text;
};

absl::StatusOr<std::vector<Input>> ReadInputs(const GenerateFlags& flags) {
  std::vector<Input> inputs;
  for (const std::string& prompt : flags.prompts)
    inputs.push_back({absl::StrCat("--prompt ", inputs.size() + 1), NormalizeNewlines(prompt)});
  if (!inputs.empty()) return inputs;
  const std::string all(std::istreambuf_iterator<char>(std::cin), {});
  WEFT_RETURN_IF_ERROR(ValidateUtf8(all, "stdin"));
  const std::string text = NormalizeNewlines(all);
  for (absl::string_view line : Lines(text)) inputs.push_back({absl::StrCat("stdin:", inputs.size() + 1), std::string(line)});
  return inputs;
}

// Every input as ids; an unknown symbol names its line.
absl::StatusOr<std::vector<std::vector<int32_t>>> EncodeAll(const Session& session, const Tokenizer& tokenizer,
                                                            absl::Span<const Input> inputs) {
  std::vector<std::vector<int32_t>> all;
  for (const Input& input : inputs) {
    auto ids = tokenizer.Encode(input.text);
    if (!ids.ok()) return absl::FailedPreconditionError(absl::StrCat(input.name, ": ", ids.status().message()));
    if (session.kind() != DataKind::kText) {
      WEFT_RETURN_IF_ERROR(session.model->CheckLength(static_cast<int64_t>(ids->size()), input.name));
    } else if (ids->empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(input.name, ": an empty prompt gives a language model nothing to continue"));
    }
    all.push_back(*std::move(ids));
  }
  return all;
}

// Runs `work` on the indices of inputs that are not empty, in fixed batches in parallel.
void ForBatches(absl::Span<const std::vector<int32_t>> inputs, int64_t batch_size,
                absl::FunctionRef<void(absl::Span<const int64_t>)> work) {
  std::vector<int64_t> full;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty()) full.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<int64_t>(full.size());
  ParallelFor((count + batch_size - 1) / batch_size, [&](int64_t batch) {
    const int64_t first = batch * batch_size;
    work(absl::MakeConstSpan(full).subspan(first, std::min(batch_size, count - first)));
  });
}

}  // namespace

absl::Status RunGenerate(const GenerateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const auto session, Session::Load(flags.run));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Input> inputs, ReadInputs(flags));
  const bool is_text = session->kind() == DataKind::kText;
  WEFT_ASSIGN_OR_RETURN(const auto ids,
                        EncodeAll(*session, is_text ? *session->target_tokenizer : *session->source_tokenizer, inputs));
  const DecodeOptions options{flags.max_new_tokens, flags.temperature, flags.top_k, flags.top_p,
                              static_cast<uint64_t>(flags.seed)};

  // An empty line has an empty answer, so that line i of the output answers line i of the input.
  std::vector<std::string> answers(inputs.size());
  const Transformer& model = *session->model;
  if (session->kind() == DataKind::kPairs) {
    ForBatches(ids, 64, [&](absl::Span<const int64_t> batch) {
      Context context(*session->parameters);
      std::vector<absl::Span<const int32_t>> sources;
      for (int64_t i : batch) sources.push_back(ids[i]);
      const Tokenizer& target = *session->target_tokenizer;
      const auto decoded = DecodeSources(context, model, sources, batch, target.bos(), target.eos(), options);
      for (size_t b = 0; b < batch.size(); ++b) answers[batch[b]] = target.Decode(decoded[b]);
    });
  } else if (is_text) {
    ForBatches(ids, 1, [&](absl::Span<const int64_t> batch) {
      Context context(*session->parameters);
      for (int64_t i : batch) {
        const auto text = ContinueText(context, model, ids[i], session->config.data.window, options, i, [](int32_t) {});
        answers[i] = inputs[i].text + session->target_tokenizer->Decode(text);
      }
    });
  } else {
    ForBatches(ids, 64, [&](absl::Span<const int64_t> batch) {
      Context context(*session->parameters);
      for (int64_t i : batch) {
        context.Begin(Tensor(), {});
        const Sequence sequence{0, static_cast<int32_t>(ids[i].size()), 0, 0};
        const Tensor scores = model.ClassLogits(context, ids[i], {&sequence, 1}).value();
        answers[i] = session->class_names[kernels::ArgMax(scores.data<float>(), scores.elements())];
      }
    });
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (flags.json) {
      absl::PrintF("%s\n", nlohmann::ordered_json{{"prompt", inputs[i].text}, {"text", answers[i]}}.dump(
                               -1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      absl::PrintF("%s\n", answers[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
