#include "data/scores/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "autograd/base/check.h"

namespace weft {
namespace {

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ScoreInterval IntervalOf(std::vector<double> scores) {
  const double mean = MeanOf(scores);
  std::sort(scores.begin(), scores.end());
  const size_t tail = scores.size() / 40;  // 2.5 % at each end
  return {.mean = mean, .low = scores[tail], .high = scores[scores.size() - 1 - tail]};
}

void AddTo(const TextMetric::Numbers& line, TextMetric::Numbers* sums) {
  for (size_t k = 0; k < sums->size(); ++k) (*sums)[k] += line[k];
}

}  // namespace

PairedBootstrap ComparePaired(const TextMetric& metric, absl::Span<const TextMetric::Numbers> first,
                              absl::Span<const TextMetric::Numbers> second, int64_t resamples, RandomKey key) {
  const int64_t count = static_cast<int64_t>(first.size());
  WEFT_CHECK_EQ(first.size(), second.size());
  WEFT_CHECK_GE(count, 1);
  WEFT_CHECK_GE(resamples, 1);
  std::vector<double> first_scores, second_scores, differences;
  for (int64_t s = 0; s < resamples; ++s) {
    const RandomKey sample = key.Fold(static_cast<uint64_t>(s));
    TextMetric::Numbers first_sums(first[0].size()), second_sums(second[0].size());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t line = sample.Below(static_cast<uint64_t>(i), count);
      AddTo(first[line], &first_sums);
      AddTo(second[line], &second_sums);
    }
    first_scores.push_back(metric.Score(first_sums));
    second_scores.push_back(metric.Score(second_sums));
    differences.push_back(std::abs(first_scores.back() - second_scores.back()));
  }
  const double observed = std::abs(metric.Score(SumLines(first)) - metric.Score(SumLines(second)));
  const double mean = MeanOf(differences);
  const auto as_large = std::count_if(differences.begin(), differences.end(), [&](double d) { return d - mean >= observed; });
  return {.first = IntervalOf(std::move(first_scores)),
          .second = IntervalOf(std::move(second_scores)),
          .p_value = static_cast<double>(as_large + 1) / static_cast<double>(resamples + 1)};
}

}  // namespace weft
