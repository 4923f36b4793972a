#include "train/evaluate.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "data/edit_distance.h"
#include "train/decode.h"

namespace weft {

double Evaluation::Get(absl::string_view name) const {
  for (const MetricScore& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

bool LargerIsBetter(absl::string_view metric) { return metric == "accuracy" || metric == "exact_match"; }

std::vector<std::vector<int32_t>> DecodeAnswers(const Transformer& model, const Parameters& parameters,
                                                const ExampleSet& examples, int64_t first, int64_t count, int64_t batch_size,
                                                const AnswerOptions& options) {
  const int64_t longest = examples.max_target_length() + 10;
  const BeamOptions beams{.beam = options.beam, .length_penalty = options.length_penalty, .max_length = longest};
  const int64_t at_once = options.beam > 1 ? SourcesAtOnce(options.beam) : batch_size;
  std::vector<std::vector<int32_t>> answers(count);
  ParallelFor((count + at_once - 1) / at_once, [&](int64_t batch) {
    Context context(parameters);
    std::vector<absl::Span<const int32_t>> sources;
    std::vector<int64_t> indices;
    const int64_t begin = batch * at_once, end = std::min(count, begin + at_once);
    for (int64_t i = begin; i < end; ++i) {
      sources.push_back(examples.Source(first + i));
      indices.push_back(first + i);
    }
    if (options.beam > 1) {
      auto found = SearchSources(context, model, sources, examples.bos(), examples.eos(), beams);
      for (int64_t i = begin; i < end; ++i) {
        // Empty only where a model gives NaN.
        if (!found[i - begin].empty()) answers[i] = std::move(found[i - begin][0].tokens);
      }
    } else {
      auto decoded =
          DecodeSources(context, model, sources, indices, examples.bos(), examples.eos(), {.max_new_tokens = longest});
      std::move(decoded.begin(), decoded.end(), answers.begin() + begin);
    }
  });
  return answers;
}

absl::StatusOr<Evaluation> Evaluate(const Transformer& model, const Parameters& parameters, const ExampleSet& examples,
                                    absl::Span<const std::string> metrics, int64_t batch_size, GradientRunner* runner,
                                    const AnswerOptions& answer_options) {
  if (examples.empty()) return absl::FailedPreconditionError("nothing to evaluate on: the set is empty");
  WEFT_RETURN_IF_ERROR(model.CheckLength(examples.max_source_length(), "the longest source"));
  WEFT_RETURN_IF_ERROR(model.CheckLength(examples.max_target_length(), "the longest target"));

  // A fixed number of batches at a time, in leaves of about kLeafTokens: memory stays bounded by the leaves that run at once,
  // and there are tasks for every core. Nothing here depends on the number of threads.
  constexpr int64_t kAtOnce = 16, kLeafTokens = 512;
  std::vector<Batch> batches(kAtOnce);
  std::vector<BatchView> leaves;
  LossSum total;
  ValidationBatches source(&examples, batch_size);
  for (bool more = true; more;) {
    leaves.clear();
    for (int64_t i = 0; i < kAtOnce; ++i) {
      WEFT_ASSIGN_OR_RETURN(more, source.Next(&batches[i]));
      if (!more) break;
      const auto tokens = static_cast<int64_t>(batches[i].source_ids.size() + batches[i].target_ids.size());
      SplitBatch(batches[i].View(), std::max<int64_t>(1, tokens / kLeafTokens), &leaves);
    }
    const LossSum part = runner->Evaluate(leaves);
    total.loss += part.loss;
    total.targets += part.targets;
    total.correct += part.correct;
  }
  Evaluation evaluation;
  evaluation.examples = examples.size();
  evaluation.targets = total.targets;
  evaluation.metrics = {{"loss", total.mean_loss()}, {"perplexity", total.perplexity()}, {"accuracy", total.accuracy()}};

  const auto asked = [&](absl::string_view name) { return std::find(metrics.begin(), metrics.end(), name) != metrics.end(); };
  if (asked("exact_match") || asked("per")) {
    if (examples.kind() != DataKind::kPairs) {
      return absl::InvalidArgumentError(absl::StrCat("exact_match and per compare generated answers: they need pairs, found ",
                                                     DataKindName(examples.kind())));
    }
    const auto answers = DecodeAnswers(model, parameters, examples, 0, examples.size(), batch_size, answer_options);
    PairScores scores;
    for (int64_t i = 0; i < examples.size(); ++i) scores.Add(ScorePair(examples, i, answers[i]));
    if (asked("exact_match")) evaluation.metrics.push_back({"exact_match", scores.exact_match()});
    if (asked("per")) evaluation.metrics.push_back({"per", scores.per()});
  }
  return evaluation;
}

}  // namespace weft
