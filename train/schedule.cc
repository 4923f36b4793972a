#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/base/check.h"

namespace weft {

double LearningRate(const ScheduleConfig& schedule, double peak, int64_t update) {
  WEFT_CHECK_GE(update, 1) << "LearningRate: updates count from 1";
  const int64_t warmup = std::max<int64_t>(schedule.warmup_steps, 1);
  if (update <= warmup) return peak * (static_cast<double>(update) / static_cast<double>(warmup));
  if (schedule.kind == "constant") return peak;
  if (schedule.kind == "inverse_sqrt") return peak * std::sqrt(static_cast<double>(warmup) / static_cast<double>(update));
  const bool linear = schedule.kind == "linear";
  WEFT_CHECK(linear || schedule.kind == "cosine") << "LearningRate: unknown kind " << schedule.kind;
  if (update >= schedule.steps) return schedule.min_lr;
  const double progress = static_cast<double>(update - warmup) / static_cast<double>(schedule.steps - warmup);
  const double left = linear ? 1 - progress : (1 + std::cos(std::numbers::pi * progress)) / 2;
  return schedule.min_lr + (peak - schedule.min_lr) * left;
}

}  // namespace weft
