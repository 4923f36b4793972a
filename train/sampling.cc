#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "autograd/base/check.h"

namespace weft {

int32_t SampleToken(absl::Span<const double> logits, const DecodeOptions& options, double u) {
  const auto n = static_cast<int32_t>(logits.size());
  WEFT_CHECK_GT(n, 0) << "SampleToken";
  const auto largest = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (options.temperature == 0) return largest;

  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  if (options.top_k > 0 && options.top_k < n) {
    std::partial_sort(order.begin(), order.begin() + options.top_k, order.end(), before);
    order.resize(options.top_k);
  } else {
    std::stable_sort(order.begin(), order.end(), before);
  }
  std::vector<double> weights;  // relative to the largest
  double total = 0;
  for (int32_t id : order) {
    weights.push_back(std::exp((logits[id] - logits[largest]) / options.temperature));
    total += weights.back();
  }
  size_t kept = 0;
  double mass = 0;
  const auto passes = [&](double weight) { return weight > 0 && weight >= options.min_p; };
  while (kept < order.size() && passes(weights[kept]) && (kept == 0 || mass < options.top_p * total)) mass += weights[kept++];
  // The first token whose running sum exceeds u * mass; rounding may leave none: then the last one kept.
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    sum += weights[i];
    if (sum > u * mass) return order[i];
  }
  return order[kept - 1];
}

void PenalizeRepetition(absl::Span<const int32_t> seen, double penalty, absl::Span<double> logits) {
  WEFT_CHECK_GT(penalty, 0) << "PenalizeRepetition";
  if (penalty == 1) return;
  std::vector<int32_t> distinct(seen.begin(), seen.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (int32_t id : distinct) {
    WEFT_CHECK(0 <= id && id < static_cast<int64_t>(logits.size())) << "PenalizeRepetition: id " << id;
    double& logit = logits[id];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

}  // namespace weft
