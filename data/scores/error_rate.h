// Error rates by edit distance, and lines that are right as a whole. Immutable, thread-safe.
#ifndef WEFT_DATA_SCORES_ERROR_RATE_H_
#define WEFT_DATA_SCORES_ERROR_RATE_H_

#include "data/scores/metric.h"

namespace weft {

enum class ErrorUnit { kWords, kCharacters };

// Edits (insertions, deletions, substitutions) to the nearest reference of each line, the first of equally near ones, summed,
// over the summed lengths of those references: 0 is perfect, and more than 1 is possible. Words are what stands between white
// space: words of a sentence, phonemes of a pronunciation; characters are code points, spaces too. References without any
// unit count as one of length 1.
class ErrorRate : public TextMetric {
 public:
  ErrorRate(const TextMetricOptions& options, const char* title, ErrorUnit unit)
      : TextMetric(options), title_(title), unit_(unit) {}

  std::string title() const override { return title_; }
  double Score(absl::Span<const int64_t> sums) const override;
  // "edits" and "reference_length" (units).
  std::vector<std::pair<std::string, double>> Parts(absl::Span<const int64_t> sums) const override;

 protected:
  // Edits; length of the nearest reference.
  Numbers LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const override;

 private:
  const char* title_;
  ErrorUnit unit_;
};

// The part of the lines that equal one of their references, to the last space: of labels, their accuracy.
class ExactMatch : public TextMetric {
 public:
  ExactMatch(const TextMetricOptions& options, const char* title) : TextMetric(options), title_(title) {}

  std::string title() const override { return title_; }
  double Score(absl::Span<const int64_t> sums) const override;
  // "exact", in lines.
  std::vector<std::pair<std::string, double>> Parts(absl::Span<const int64_t> sums) const override;

 protected:
  // 1 or 0; 1.
  Numbers LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const override;

 private:
  const char* title_;
};

}  // namespace weft

#endif  // WEFT_DATA_SCORES_ERROR_RATE_H_
