// Scores of generated text against references, line by line, as the field computes and reports them. A metric turns each line
// into whole numbers; its score is a function of their sums over the lines, so a corpus, a part of it and a bootstrap resample
// are scored alike. Metrics own nothing but their options and are thread-safe.
//
//   const auto bleu = MakeTextMetric("bleu", {});
//   const auto lines = ScoreLines(**bleu, hypotheses, {references});
//   const double score = (*bleu)->Score(SumLines(lines));
#ifndef WEFT_DATA_SCORES_METRIC_H_
#define WEFT_DATA_SCORES_METRIC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/scores/tokens.h"

namespace weft {

// How BLEU treats an n-gram order without any match (Chen, Cherry, "A systematic comparison of smoothing techniques for
// sentence-level BLEU", WMT 2014).
enum class BleuSmoothing {
  kExp,    // "exp": 1/2, 1/4, 1/8 ... matches, halved at each such order (method 3; mteval-v13a.pl)
  kFloor,  // "floor": 0.1 matches (method 1)
  kAddK,   // "add-k": 1 more match and 1 more n-gram at each order above 1 (method 2)
  kNone,   // "none": the score is 0
};

struct TextMetricOptions {
  ScoreTokenizer tokenizer = ScoreTokenizer::k13a;  // of BLEU
  BleuSmoothing smoothing = BleuSmoothing::kExp;    // of BLEU
  bool lowercase = false;                           // both sides, for every metric
};

// The option of a name ("13a", "intl", "char", "none"; "exp", "floor", "add-k", "none"). InvalidArgument otherwise.
absl::StatusOr<ScoreTokenizer> ParseScoreTokenizer(absl::string_view name);
absl::StatusOr<BleuSmoothing> ParseBleuSmoothing(absl::string_view name);

class TextMetric {
 public:
  using Numbers = std::vector<int64_t>;

  explicit TextMetric(const TextMetricOptions& options) : options_(options) {}
  virtual ~TextMetric() = default;

  // What people call it: "BLEU", "chrF2++", "wer".
  virtual std::string title() const = 0;
  // Its options as sacreBLEU's signatures name them: "case:mixed|eff:no|tok:13a|smooth:exp".
  virtual std::string Settings() const;

  // The numbers of one line, as many for each. REQUIRES: references not empty.
  Numbers Line(absl::string_view hypothesis, absl::Span<const absl::string_view> references) const;
  // The score of summed lines: BLEU and chrF in [0, 100], the others as a part of 1 (error rates may exceed it).
  virtual double Score(absl::Span<const int64_t> sums) const = 0;
  // What the score is made of, by name.
  virtual std::vector<std::pair<std::string, double>> Parts(absl::Span<const int64_t> sums) const = 0;

 protected:
  const TextMetricOptions& options() const { return options_; }
  // Line() of code points, lower-cased where the options say so.
  virtual Numbers LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const = 0;

 private:
  TextMetricOptions options_;
};

// "bleu", "chrf", "chrf++", "wer", "per", "cer", "exact_match", "accuracy".
std::vector<std::string> TextMetricNames();
// InvalidArgument for another name.
absl::StatusOr<std::unique_ptr<TextMetric>> MakeTextMetric(absl::string_view name, const TextMetricOptions& options);

// The numbers of each line i of `hypotheses` against references(i), which is called by several threads. Parallel over fixed
// blocks of lines. REQUIRES: each line has a reference.
std::vector<TextMetric::Numbers> ScoreLines(const TextMetric& metric, absl::Span<const absl::string_view> hypotheses,
                                            absl::FunctionRef<std::vector<std::string>(int64_t line)> references);
// The same against line i of every one of `references`. REQUIRES: at least one, all of the same number of lines.
std::vector<TextMetric::Numbers> ScoreLines(const TextMetric& metric, absl::Span<const absl::string_view> hypotheses,
                                            absl::Span<const std::vector<absl::string_view>> references);

// REQUIRES: at least one line.
TextMetric::Numbers SumLines(absl::Span<const TextMetric::Numbers> lines);

}  // namespace weft

#endif  // WEFT_DATA_SCORES_METRIC_H_
