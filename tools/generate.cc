#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "autograd/kernels/elementwise.h"
#include "data/columns.h"
#include "data/text_file.h"
#include "data/text_stream.h"
#include "tools/ordered_output.h"
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
  for (const std::string& prompt : flags.prompts) {
    Input input{absl::StrCat("--prompt ", inputs.size() + 1), ""};
    WEFT_ASSIGN_OR_RETURN(input.text, CleanText(prompt, input.name));
    inputs.push_back(std::move(input));
  }
  if (!inputs.empty()) return inputs;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadTextStdin());
  for (absl::string_view line : Lines(text)) inputs.push_back({absl::StrCat("stdin:", inputs.size() + 1), std::string(line)});
  return inputs;
}

// Every input as ids; an unknown symbol names its line.
absl::StatusOr<std::vector<std::vector<int32_t>>> EncodeAll(const Session& session, const Tokenizer& tokenizer,
                                                            absl::Span<const Input> inputs) {
  std::vector<std::vector<int32_t>> all;
  for (const Input& input : inputs) {
    // As in data, a line of spaces is no source.
    const bool nothing = session.kind() != DataKind::kText && IsBlank(input.text);
    const int64_t columns = static_cast<int64_t>(session.config.data.columns.source.size());
    auto ids = EncodePrompt(tokenizer, nothing ? "" : input.text, columns);
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

// What one input became: its text, and with a beam the candidates in order.
struct Answer {
  std::string text;
  double score = 0;
};

int64_t MaxNewTokens(const GenerateFlags& flags) { return flags.max_new_tokens.value_or(256); }
// Whether hypotheses are searched, or only listed with their scores as a search does.
bool Searches(const GenerateFlags& flags) { return flags.beam.value_or(1) > 1 || flags.n_best.value_or(1) > 1; }

class Generation {
 public:
  Generation(const GenerateFlags& flags, const Session& session, const std::vector<Input>& inputs,
             const std::vector<std::vector<int32_t>>& ids)
      : flags_(flags),
        session_(session),
        model_(*session.model),
        inputs_(inputs),
        ids_(ids),
        options_{.max_new_tokens = MaxNewTokens(flags),
                 .temperature = flags.temperature.value_or(0),
                 .top_k = flags.top_k.value_or(0),
                 .top_p = flags.top_p.value_or(1),
                 .min_p = flags.min_p.value_or(0),
                 .repetition_penalty = flags.repetition_penalty.value_or(1),
                 .min_new_tokens = flags.min_length.value_or(0),
                 .seed = static_cast<uint64_t>(flags.seed)},
        beams_{.beam = flags.beam.value_or(1),
               .length_penalty = flags.length_penalty.value_or(1),
               .min_length = options_.min_new_tokens,
               .max_length = options_.max_new_tokens,
               .n_best = flags.n_best.value_or(1)},
        output_(static_cast<int64_t>(inputs.size()), stdout) {}

  void Run() {
    // An empty line has an empty answer, so that line i of the output answers line i of the input.
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i].empty()) Report(static_cast<int64_t>(i), {Answer()});
    }
    if (session_.kind() == DataKind::kPairs) {
      ForBatches(ids_, searches() ? SourcesAtOnce(beams_.beam) : 64,
                 [&](absl::Span<const int64_t> batch) { AnswerSources(batch); });
    } else if (session_.kind() == DataKind::kText) {
      ForBatches(ids_, 1, [&](absl::Span<const int64_t> batch) { ContinuePrompt(batch[0]); });
    } else {
      ForBatches(ids_, 64, [&](absl::Span<const int64_t> batch) { Classify(batch); });
    }
  }

 private:
  bool searches() const { return Searches(flags_); }

  void AnswerSources(absl::Span<const int64_t> batch) {
    Context context(*session_.parameters);
    std::vector<absl::Span<const int32_t>> sources;
    for (int64_t i : batch) sources.push_back(ids_[i]);
    const Tokenizer& target = *session_.target_tokenizer;
    if (searches()) {
      const auto found = SearchSources(context, model_, sources, target.bos(), target.eos(), beams_);
      for (size_t b = 0; b < batch.size(); ++b) {
        Report(batch[b], ToAnswers(found[b], [&](absl::Span<const int32_t> tokens) { return target.Decode(tokens); }));
      }
      return;
    }
    const auto decoded = DecodeSources(context, model_, sources, batch, target.bos(), target.eos(), options_);
    for (size_t b = 0; b < batch.size(); ++b) Report(batch[b], {{target.Decode(decoded[b])}});
  }

  // The text of a greedy or sampled continuation goes out token by token, unless it is for JSON.
  void ContinuePrompt(int64_t i) {
    Context context(*session_.parameters);
    const Tokenizer& tokenizer = *session_.target_tokenizer;
    const int64_t window = session_.config.data.window;
    const std::string& prompt = inputs_[i].text;
    if (searches()) {
      const auto found = SearchText(context, model_, ids_[i], window, tokenizer.eos(), beams_);
      Report(i, ToAnswers(found, [&](absl::Span<const int32_t> tokens) {
               return prompt + ContinuationText(tokenizer, ids_[i], tokens);
             }));
      return;
    }
    std::string text;
    const auto add = [&](absl::string_view piece) {
      if (flags_.json) {
        absl::StrAppend(&text, piece);
      } else {
        output_.Add(i, piece);
      }
    };
    TextStream stream(tokenizer, ids_[i]);
    add(prompt);
    ContinueText(context, model_, ids_[i], window, options_, i, [&](int32_t token) { add(stream.Push(token)); });
    add(stream.Finish());
    Report(i, {{text}});
  }

  void Classify(absl::Span<const int64_t> batch) {
    Context context(*session_.parameters);
    for (int64_t i : batch) {
      context.Begin(Tensor(), {});
      const Sequence sequence{0, static_cast<int32_t>(ids_[i].size()), 0, 0};
      const Tensor scores = model_.ClassLogits(context, ids_[i], {&sequence, 1}).value();
      Report(i, {{session_.class_names[kernels::ArgMax(scores.data<float>(), scores.elements())]}});
    }
  }

  static std::vector<Answer> ToAnswers(absl::Span<const Hypothesis> hypotheses,
                                       absl::FunctionRef<std::string(absl::Span<const int32_t>)> decode) {
    std::vector<Answer> answers;
    for (const Hypothesis& hypothesis : hypotheses) answers.push_back({decode(hypothesis.tokens), hypothesis.score});
    return answers;
  }

  // The end of line i: the first of `answers`, or all of them as JSON. The answer to a source is one line, whatever it says.
  void Report(int64_t i, const std::vector<Answer>& answers) {
    if (flags_.json) {
      nlohmann::ordered_json json{{"prompt", inputs_[i].text}, {"text", answers.empty() ? "" : answers[0].text}};
      if (searches()) {
        json["n_best"] = nlohmann::ordered_json::array();
        for (const Answer& answer : answers) {
          if (!ids_[i].empty()) json["n_best"].push_back({{"score", answer.score}, {"text", answer.text}});
        }
      }
      output_.Add(i, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else if (!answers.empty()) {
      output_.Add(i, session_.kind() == DataKind::kPairs ? OneLine(answers[0].text) : answers[0].text);
    }
    output_.Finish(i);
  }

  const GenerateFlags& flags_;
  const Session& session_;
  const Transformer& model_;
  const std::vector<Input>& inputs_;
  const std::vector<std::vector<int32_t>>& ids_;
  const DecodeOptions options_;
  const BeamOptions beams_;
  OrderedOutput output_;
};

// Flags that contradict each other or the model, or would do nothing; what one flag alone may be is checked where it is read.
absl::Status CheckFlags(const GenerateFlags& flags, const Session& session) {
  const DataKind kind = session.kind();
  if (kind == DataKind::kLabels) {
    const std::pair<const char*, bool> given[] = {{"--max-new-tokens", flags.max_new_tokens.has_value()},
                                                  {"--temperature", flags.temperature.has_value()},
                                                  {"--top-k", flags.top_k.has_value()},
                                                  {"--top-p", flags.top_p.has_value()},
                                                  {"--min-p", flags.min_p.has_value()},
                                                  {"--repetition-penalty", flags.repetition_penalty.has_value()},
                                                  {"--min-length", flags.min_length.has_value()},
                                                  {"--beam", flags.beam.has_value()}};
    for (const auto& [name, is_given] : given) {
      if (is_given) return absl::InvalidArgumentError(absl::StrCat(name, ": a classifier names one class and makes no text"));
    }
  }
  if (flags.temperature == 0.0) {
    const std::pair<const char*, bool> filters[] = {
        {"--top-k", flags.top_k.has_value()}, {"--top-p", flags.top_p.has_value()}, {"--min-p", flags.min_p.has_value()}};
    for (const auto& [name, is_given] : filters) {
      if (is_given) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": has no meaning with --temperature 0, which is greedy; give a temperature above 0"));
      }
    }
  }
  if (flags.length_penalty.has_value() && !Searches(flags)) {
    return absl::InvalidArgumentError("--length-penalty: greedy answers have none; give --beam above 1 as well");
  }
  if (!flags.min_length.has_value()) return absl::OkStatus();
  if (kind != DataKind::kPairs) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min-length: only answers of a model of pairs end by themselves; this one has ", DataKindName(kind)));
  }
  if (*flags.min_length > MaxNewTokens(flags)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min-length: found ", *flags.min_length, ", allowed at most --max-new-tokens = ", MaxNewTokens(flags)));
  }
  const int64_t longest = LongestAnswer(*session.model);
  if (longest > 0 && *flags.min_length > longest) {
    return absl::InvalidArgumentError(absl::StrCat("--min-length: found ", *flags.min_length, ", allowed at most ", longest,
                                                   ": the model takes ", session.model->max_length(),
                                                   " positions, and <bos> has the first"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunGenerate(const GenerateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const auto session, Session::Load(flags.run));
  WEFT_RETURN_IF_ERROR(CheckFlags(flags, *session));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Input> inputs, ReadInputs(flags));
  const bool is_text = session->kind() == DataKind::kText;
  WEFT_ASSIGN_OR_RETURN(const auto ids,
                        EncodeAll(*session, is_text ? *session->target_tokenizer : *session->source_tokenizer, inputs));
  Generation(flags, *session, inputs, ids).Run();
  return absl::OkStatus();
}

}  // namespace weft
