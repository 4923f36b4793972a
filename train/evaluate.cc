#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "data/edit_distance.h"
#include "data/text_file.h"
#include "train/decode.h"

namespace weft {

double Evaluation::Get(absl::string_view name) const {
  for (const MetricScore& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

bool IsTextMetric(absl::string_view metric) {
  constexpr absl::string_view kNames[] = {"bleu", "chrf", "chrf++", "wer", "cer"};
  return std::find(std::begin(kNames), std::end(kNames), metric) != std::end(kNames);
}

bool ComparesAnswers(absl::string_view metric) { return metric == "exact_match" || metric == "per" || IsTextMetric(metric); }

bool LargerIsBetter(absl::string_view metric) {
  constexpr absl::string_view kNames[] = {"accuracy", "exact_match", "bleu", "chrf", "chrf++"};
  return std::find(std::begin(kNames), std::end(kNames), metric) != std::end(kNames);
}

std::string WarnOfNormalization(absl::Span<const std::string> metrics, const Tokenizer* target) {
  const auto metric = std::find_if(metrics.begin(), metrics.end(), IsTextMetric);
  if (metric == metrics.end() || target == nullptr) return "";
  const std::string normalization = target->Serialize().normalization;
  if (normalization.empty() || normalization == "none") return "";
  return absl::StrCat("warning: the target tokenizer writes text normalized (", normalization, "), and ", *metric,
                      " compares it with references as they are: what the normalization changes counts as an error");
}

std::vector<std::vector<int32_t>> DecodeAnswers(const Transformer& model, const Parameters& parameters,
                                                const ExampleSet& examples, int64_t first, int64_t count, int64_t batch_size,
                                                const AnswerOptions& options) {
  const int64_t longest = examples.max_target_length() + 10;
  const BeamOptions beams{.beam = options.beam, .length_penalty = options.length_penalty, .max_length = longest};
  const int64_t at_once = options.beam > 1 ? SourcesAtOnce(options.beam) : batch_size;
  // By length of the source, the longest first, so that no thread is left with them at the end.
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return examples.SourceLength(a) > examples.SourceLength(b); });
  std::vector<std::vector<int32_t>> answers(count);
  ParallelFor((count + at_once - 1) / at_once, [&](int64_t batch) {
    Context context(parameters);
    const int64_t begin = batch * at_once, end = std::min(count, begin + at_once);
    const absl::Span<const int64_t> indices = absl::MakeConstSpan(order).subspan(begin, end - begin);
    std::vector<absl::Span<const int32_t>> sources;
    for (const int64_t i : indices) sources.push_back(examples.Source(i));
    if (options.beam > 1) {
      auto found = SearchSources(context, model, sources, examples.bos(), examples.eos(), beams);
      for (size_t k = 0; k < found.size(); ++k) {
        // Empty only where a model gives NaN.
        if (!found[k].empty()) answers[indices[k] - first] = std::move(found[k][0].tokens);
      }
    } else {
      auto decoded =
          DecodeSources(context, model, sources, indices, examples.bos(), examples.eos(), {.max_new_tokens = longest});
      for (size_t k = 0; k < decoded.size(); ++k) answers[indices[k] - first] = std::move(decoded[k]);
    }
  });
  return answers;
}

namespace {

// Bytes of the targets of a batch of text. A window's first token is only read, so its bytes are not among them; taken off a
// text that has it, so that what a tokenizer writes between two tokens counts.
int64_t TargetBytes(const Tokenizer& tokenizer, const BatchView& batch) {
  int64_t bytes = 0, start = 0;
  std::vector<int32_t> ids;
  for (const int64_t length : batch.target_lengths) {
    ids.assign({batch.target_ids[start]});
    const auto before = static_cast<int64_t>(tokenizer.Decode(ids).size());
    ids.insert(ids.end(), batch.target_labels.begin() + start, batch.target_labels.begin() + start + length);
    bytes += static_cast<int64_t>(tokenizer.Decode(ids).size()) - before;
    start += length;
  }
  return bytes;
}

absl::Status CheckMetrics(absl::Span<const std::string> metrics, const AnswerOptions& options, DataKind kind) {
  for (const std::string& metric : metrics) {
    if (kind != DataKind::kPairs && ComparesAnswers(metric)) {
      return absl::InvalidArgumentError(
          absl::StrCat(metric, " compares generated answers: it needs pairs, found ", DataKindName(kind)));
    }
    if (kind != DataKind::kText && metric == kBitsPerByte) {
      return absl::InvalidArgumentError(absl::StrCat(metric, " needs a text, found ", DataKindName(kind)));
    }
    const bool needs_text = IsTextMetric(metric) || metric == kBitsPerByte;
    WEFT_CHECK(!needs_text || options.target_tokenizer != nullptr) << metric << " without a tokenizer";
  }
  return absl::OkStatus();
}

// The score of a metric on text.
absl::StatusOr<double> ScoreText(const std::string& metric, const TextMetricOptions& options, const Tokenizer& tokenizer,
                                 const ExampleSet& examples, absl::Span<const std::string> answers) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TextMetric> scorer, MakeTextMetric(metric, options));
  const std::vector<absl::string_view> lines(answers.begin(), answers.end());
  return scorer->Score(SumLines(ScoreLines(*scorer, lines, [&](int64_t i) {
    std::vector<std::string> references;
    for (int64_t r = 0; r < examples.reference_count(i); ++r) {
      references.push_back(tokenizer.Detokenize(examples.ReferenceText(i, r)));
    }
    return references;
  })));
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(const Transformer& model, const Parameters& parameters, const ExampleSet& examples,
                                    absl::Span<const std::string> metrics, int64_t batch_size, GradientRunner* runner,
                                    const AnswerOptions& answer_options) {
  if (examples.empty()) return absl::FailedPreconditionError("nothing to evaluate on: the set is empty");
  WEFT_RETURN_IF_ERROR(CheckMetrics(metrics, answer_options, examples.kind()));
  WEFT_RETURN_IF_ERROR(model.CheckLength(examples.max_source_length(), "the longest source"));
  WEFT_RETURN_IF_ERROR(model.CheckLength(examples.max_target_length(), "the longest target"));

  // A fixed number of batches at a time, in leaves of about kLeafTokens: memory stays bounded by the leaves that run at once,
  // and there are tasks for every core. Nothing here depends on the number of threads.
  constexpr int64_t kAtOnce = 16, kLeafTokens = 512;
  std::vector<Batch> batches(kAtOnce);
  std::vector<BatchView> leaves;
  const bool count_bytes = std::find(metrics.begin(), metrics.end(), kBitsPerByte) != metrics.end();
  int64_t bytes = 0;
  LossSum total;
  ValidationBatches source(&examples, batch_size);
  for (bool more = true; more;) {
    leaves.clear();
    for (int64_t i = 0; i < kAtOnce; ++i) {
      WEFT_ASSIGN_OR_RETURN(more, source.Next(&batches[i]));
      if (!more) break;
      const auto tokens = static_cast<int64_t>(batches[i].source_ids.size() + batches[i].target_ids.size());
      if (count_bytes) bytes += TargetBytes(*answer_options.target_tokenizer, batches[i].View());
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

  std::vector<std::vector<int32_t>> answers;
  const bool decode = answer_options.keep || std::any_of(metrics.begin(), metrics.end(), ComparesAnswers);
  if (decode) {
    answers = DecodeAnswers(model, parameters, examples, 0, examples.size(), batch_size, answer_options);
    if (answer_options.target_tokenizer != nullptr) {
      // As a file of them has it, so that a score of that file is the score here.
      for (const auto& answer : answers) {
        evaluation.answers.push_back(OneLine(answer_options.target_tokenizer->Decode(answer)));
      }
    }
  }
  PairScores scores;
  for (size_t i = 0; i < answers.size(); ++i) scores.Add(ScorePair(examples, static_cast<int64_t>(i), answers[i]));
  for (const std::string& metric : metrics) {
    if (metric == kBitsPerByte) {
      evaluation.metrics.push_back({metric, total.loss / std::log(2.0) / static_cast<double>(bytes)});
    } else if (metric == "exact_match") {
      evaluation.metrics.push_back({metric, scores.exact_match()});
    } else if (metric == "per") {
      evaluation.metrics.push_back({metric, scores.per()});
    } else if (IsTextMetric(metric)) {
      WEFT_ASSIGN_OR_RETURN(const double score, ScoreText(metric, answer_options.text, *answer_options.target_tokenizer,
                                                          examples, evaluation.answers));
      evaluation.metrics.push_back({metric, score});
    }
  }
  return evaluation;
}

}  // namespace weft
