#include "data/scores/error_rate.h"

#include <algorithm>

#include "data/edit_distance.h"

namespace weft {

TextMetric::Numbers ErrorRate::LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const {
  WordNumbers numbers;
  const auto units = [&](const std::u32string& text) {
    return unit_ == ErrorUnit::kWords ? numbers.Of(Words(text)) : std::vector<int32_t>(text.begin(), text.end());
  };
  const std::vector<int32_t> ours = units(hypothesis);
  Numbers nearest;
  for (const std::u32string& reference : references) {
    const std::vector<int32_t> theirs = units(reference);
    const int64_t edits = EditDistance(ours, theirs);
    if (nearest.empty() || edits < nearest[0]) nearest = {edits, static_cast<int64_t>(theirs.size())};
  }
  return nearest;
}

double ErrorRate::Score(absl::Span<const int64_t> sums) const {
  return static_cast<double>(sums[0]) / static_cast<double>(std::max<int64_t>(1, sums[1]));
}

std::vector<std::pair<std::string, double>> ErrorRate::Parts(absl::Span<const int64_t> sums) const {
  return {{"edits", static_cast<double>(sums[0])}, {"reference_length", static_cast<double>(sums[1])}};
}

TextMetric::Numbers ExactMatch::LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const {
  return {std::find(references.begin(), references.end(), hypothesis) != references.end() ? 1 : 0, 1};
}

double ExactMatch::Score(absl::Span<const int64_t> sums) const {
  return static_cast<double>(sums[0]) / static_cast<double>(sums[1]);
}

std::vector<std::pair<std::string, double>> ExactMatch::Parts(absl::Span<const int64_t> sums) const {
  return {{"exact", static_cast<double>(sums[0])}};
}

}  // namespace weft
