// Scores of a model on a whole set of examples: loss, perplexity and accuracy by teacher forcing; exact match and token error
// rate (`per`) by decoding, greedy or with a beam. Totals over tokens, never means of batch means, so the batch size does not
// show in the result.
#ifndef WEFT_TRAIN_EVALUATE_H_
#define WEFT_TRAIN_EVALUATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/examples.h"
#include "train/gradient.h"

namespace weft {

// A metric and its value: "loss", "perplexity", "accuracy", "exact_match", "per".
struct MetricScore {
  std::string name;
  double value = 0;
};

struct Evaluation {
  int64_t examples = 0;
  int64_t targets = 0;
  std::vector<MetricScore> metrics;  // loss, perplexity, accuracy always; then exact_match and per if asked for
  // The value of a metric; NaN when it is not there.
  double Get(absl::string_view name) const;
};

// Whether a larger value of the metric is better (accuracy, exact_match).
bool LargerIsBetter(absl::string_view metric);

// How answers are made that metrics compare.
struct AnswerOptions {
  int64_t beam = 1;           // 1: greedy
  double length_penalty = 1;  // of beams, see train/beam.h
};

// `metrics` beyond loss, perplexity and accuracy: exact_match, per (sets of pairs only). An answer is cut 10 tokens after the
// longest target of the set. FailedPrecondition when a sequence is longer than the model takes, or the set is empty. Parallel
// over fixed batches of `batch_size` sequences.
absl::StatusOr<Evaluation> Evaluate(const Transformer& model, const Parameters& parameters, const ExampleSet& examples,
                                    absl::Span<const std::string> metrics, int64_t batch_size, GradientRunner* runner,
                                    const AnswerOptions& answers = {});

// The best answers to sources first .. first + count - 1 of a set of pairs. Parallel over fixed batches.
std::vector<std::vector<int32_t>> DecodeAnswers(const Transformer& model, const Parameters& parameters,
                                                const ExampleSet& examples, int64_t first, int64_t count, int64_t batch_size,
                                                const AnswerOptions& options = {});

}  // namespace weft

#endif  // WEFT_TRAIN_EVALUATE_H_
