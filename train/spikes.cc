#include "train/spikes.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

constexpr int64_t kWarmUp = 50;
constexpr double kForget = 0.98, kDeviations = 6, kShare = 0.1;

}  // namespace

double LossSpikes::deviation() const { return std::sqrt(previous_variance_); }

bool LossSpikes::Observe(double loss) {
  if (!std::isfinite(loss)) return false;
  previous_mean_ = mean_;
  previous_variance_ = variance_;
  // The mean of all at first, then of about the last 1 / (1 - kForget).
  const double weight = std::max(1 - kForget, 1 / static_cast<double>(++count_));
  const double step = loss - mean_;
  mean_ += weight * step;
  variance_ = (1 - weight) * (variance_ + weight * step * step);
  return count_ > kWarmUp && step > kDeviations * deviation() && step > kShare * std::abs(previous_mean_);
}

}  // namespace weft
