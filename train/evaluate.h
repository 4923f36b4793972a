// Scores of a model on a whole set of examples: loss, perplexity, accuracy and bits per byte by teacher forcing; what compares
// generated answers by decoding, greedy or with a beam, once for all of them: exact match and token error rate (`per`) on token
// ids, BLEU, chrF, word and character error rate on the decoded text. Totals over tokens and lines, never means of batch means,
// so the batch size does not show in the result.
#ifndef WEFT_TRAIN_EVALUATE_H_
#define WEFT_TRAIN_EVALUATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/examples.h"
#include "data/scores/metric.h"
#include "data/tokenizer.h"
#include "train/gradient.h"

namespace weft {

// A metric and its value: "loss", "perplexity", "accuracy", "bits_per_byte", "exact_match", "per", or one of IsTextMetric.
struct MetricScore {
  std::string name;
  double value = 0;
};

struct Evaluation {
  int64_t examples = 0;
  int64_t targets = 0;
  std::vector<MetricScore> metrics;  // loss, perplexity, accuracy always; then what was asked for, in the order of the call
  std::vector<std::string> answers;  // pairs, if answers were made: the text of each example's, as OneLine writes it
  // The value of a metric; NaN when it is not there.
  double Get(absl::string_view name) const;
};

// Of texts: nats / ln 2 x targets / bytes of the targets as the tokenizer writes them. Comparable between tokenizers.
inline constexpr absl::string_view kBitsPerByte = "bits_per_byte";
// bleu, chrf, chrf++, wer, cer: those of data/scores/metric.h on the text of answers.
bool IsTextMetric(absl::string_view metric);
// Whether a metric needs generated answers: exact_match, per and those on text.
bool ComparesAnswers(absl::string_view metric);
// Whether a larger value of the metric is better; it is not for losses and error rates.
bool LargerIsBetter(absl::string_view metric);

// What a log should say of metrics that compare the answers of `target` (which may be null) with references: a warning where
// it normalises text, since references stay as they are. Empty where there is nothing to say.
std::string WarnOfNormalization(absl::Span<const std::string> metrics, const Tokenizer* target);

// How answers are made that metrics compare.
struct AnswerOptions {
  int64_t beam = 1;           // 1: greedy
  double length_penalty = 1;  // of beams, see train/beam.h
  // What turns ids into text: needed for metrics on text, for bits_per_byte and with `keep`.
  const Tokenizer* target_tokenizer = nullptr;
  TextMetricOptions text = {};
  bool keep = false;  // answers are made and returned even if no metric needs them
};

// `metrics` beyond loss, perplexity and accuracy: those that ComparesAnswers (sets of pairs only) and bits_per_byte (text
// only). An answer is cut 10 tokens after the longest target of the set. FailedPrecondition when a sequence is longer than the
// model takes, or the set is empty; InvalidArgument for a metric that the set does not have. Parallel over fixed batches of
// `batch_size` sequences.
absl::StatusOr<Evaluation> Evaluate(const Transformer& model, const Parameters& parameters, const ExampleSet& examples,
                                    absl::Span<const std::string> metrics, int64_t batch_size, GradientRunner* runner,
                                    const AnswerOptions& answers = {});

// The best answers to sources first .. first + count - 1 of a set of pairs. Parallel over fixed batches, of sources of like
// length so that the answers of a batch end at about the same time; an answer does not depend on its batch.
std::vector<std::vector<int32_t>> DecodeAnswers(const Transformer& model, const Parameters& parameters,
                                                const ExampleSet& examples, int64_t first, int64_t count, int64_t batch_size,
                                                const AnswerOptions& options = {});

}  // namespace weft

#endif  // WEFT_TRAIN_EVALUATE_H_
