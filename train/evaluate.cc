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

std::vector<std::vector<int32_t>> GreedyAnswers(const Transformer& model, const Parameters& parameters,
                                                const ExampleSet& examples, int64_t first, int64_t count, int64_t batch_size) {
  const DecodeOptions options{.max_new_tokens = examples.max_target_length() + 10};
  std::vector<std::vector<int32_t>> answers(count);
  ParallelFor((count + batch_size - 1) / batch_size, [&](int64_t batch) {
    Context context(parameters);
    std::vector<absl::Span<const int32_t>> sources;
    std::vector<int64_t> indices;
    const int64_t begin = batch * batch_size, end = std::min(count, begin + batch_size);
    for (int64_t i = begin; i < end; ++i) {
      sources.push_back(examples.Source(first + i));
      indices.push_back(first + i);
    }
    auto decoded = DecodeSources(context, model, sources, indices, examples.bos(), examples.eos(), options);
    std::move(decoded.begin(), decoded.end(), answers.begin() + begin);
  });
  return answers;
}

absl::StatusOr<Evaluation> Evaluate(const Transformer& model, const Parameters& parameters, const ExampleSet& examples,
                                    absl::Span<const std::string> metrics, int64_t batch_size, GradientRunner* runner) {
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
    for (int64_t i = 0; i < kAtOnce && (more = source.Next(&batches[i])); ++i) {
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
    const auto answers = GreedyAnswers(model, parameters, examples, 0, examples.size(), batch_size);
    PairScores scores;
    for (int64_t i = 0; i < examples.size(); ++i) scores.Add(ScorePair(examples, i, answers[i]));
    if (asked("exact_match")) evaluation.metrics.push_back({"exact_match", scores.exact_match()});
    if (asked("per")) evaluation.metrics.push_back({"per", scores.per()});
  }
  return evaluation;
}

}  // namespace weft
