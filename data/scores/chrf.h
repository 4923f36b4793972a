// chrF2 (Popovic, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015) and chrF2++, which counts word
// 1-grams and 2-grams as well (Popovic, "chrF++: words helping character n-grams", WMT 2017), equal to sacreBLEU's. Immutable,
// thread-safe.
#ifndef WEFT_DATA_SCORES_CHRF_H_
#define WEFT_DATA_SCORES_CHRF_H_

#include "data/scores/metric.h"

namespace weft {

// Score = 100 (1 + b^2) P R / (b^2 P + R) with b = 2. P, R: precision and recall of the n-grams, their means over the orders
// that both sides have ("effective order"). Characters are code points, white space left out; a word's ASCII punctuation mark
// at its end, else at its start, is a word of its own. Of several references the one with the best score of the line counts.
class Chrf : public TextMetric {
 public:
  static constexpr int64_t kCharacterOrder = 6;

  // `word_order`: 0 is chrF2, 2 chrF2++.
  Chrf(const TextMetricOptions& options, int64_t word_order) : TextMetric(options), word_order_(word_order) {}

  std::string title() const override;
  std::string Settings() const override;
  double Score(absl::Span<const int64_t> sums) const override;
  // "precision" and "recall", in percent.
  std::vector<std::pair<std::string, double>> Parts(absl::Span<const int64_t> sums) const override;

 protected:
  // Of each order, characters before words: n-grams of the hypothesis (0 where the reference has none), of the reference,
  // shared.
  Numbers LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const override;

 private:
  int64_t word_order_;
};

}  // namespace weft

#endif  // WEFT_DATA_SCORES_CHRF_H_
