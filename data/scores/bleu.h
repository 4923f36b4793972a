// BLEU of a corpus (Papineni, Roukos, Ward, Zhu, "BLEU: a method for automatic evaluation of machine translation", ACL 2002),
// equal to sacreBLEU's (Post 2018), which fixes what the paper leaves open. Immutable, thread-safe.
#ifndef WEFT_DATA_SCORES_BLEU_H_
#define WEFT_DATA_SCORES_BLEU_H_

#include "data/scores/metric.h"

namespace weft {

// Score = BP exp(mean over n = 1..4 of log p_n). p_n: of the hypotheses' n-grams, the part that is in a reference of its line,
// in percent, no n-gram counted more often than the reference that has it most (section 2.1). BP = 1, or exp(1 - r/c) where the
// c tokens of the hypotheses are fewer than r, the sum of the reference lengths nearest to each line's (section 2.2; the
// shorter of two equally near). A corpus without any match scores 0; so does one without 4-grams ("effective order" off),
// except with add-k, whose added counts make one.
class Bleu : public TextMetric {
 public:
  static constexpr int64_t kMaxOrder = 4;

  using TextMetric::TextMetric;

  std::string title() const override { return "BLEU"; }
  std::string Settings() const override;
  double Score(absl::Span<const int64_t> sums) const override;
  // "precision_1" .. "precision_4" (percent, smoothed), "brevity_penalty", "hypothesis_length", "reference_length" (tokens).
  std::vector<std::pair<std::string, double>> Parts(absl::Span<const int64_t> sums) const override;

 protected:
  // Tokens of the hypothesis and of the reference nearest in length; matches of orders 1..4; n-grams of orders 1..4.
  Numbers LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const override;
};

}  // namespace weft

#endif  // WEFT_DATA_SCORES_BLEU_H_
