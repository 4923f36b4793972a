#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "autograd/base/check.h"

namespace weft {

namespace {

// What is left of a decay of which the part p in [0, 1] is done.
double Left(absl::string_view shape, double p) {
  if (shape == "linear") return 1 - p;
  if (shape == "sqrt") return 1 - std::sqrt(p);
  WEFT_CHECK(shape == "cosine") << "LearningRate: unknown shape " << shape;
  return (1 + std::cos(std::numbers::pi * p)) / 2;
}

double Part(int64_t done, int64_t whole) { return static_cast<double>(done) / static_cast<double>(whole); }

// The part of its cycle that is done `position` updates after the first cycle began.
double PartOfCycle(const ScheduleConfig& schedule, int64_t position) {
  const int64_t multiplier = schedule.cycle_multiplier;
  int64_t length = schedule.cycle_steps;
  if (multiplier == 1) return Part(position % length, length);
  while (position >= length) {
    position -= length;
    const bool overflows = length > std::numeric_limits<int64_t>::max() / multiplier;
    length = overflows ? std::numeric_limits<int64_t>::max() : length * multiplier;
  }
  return Part(position, length);
}

}  // namespace

bool HasHorizon(const ScheduleConfig& schedule) {
  return schedule.kind == "linear" || schedule.kind == "wsd" || (schedule.kind == "cosine" && !HasCycles(schedule));
}

bool HasCycles(const ScheduleConfig& schedule) { return schedule.kind == "cosine" && schedule.cycle_steps > 0; }

absl::Status CompleteSchedule(int64_t run_steps, ScheduleConfig* schedule) {
  if (!HasHorizon(*schedule)) return absl::OkStatus();
  if (schedule->steps == 0) schedule->steps = run_steps;
  // What another kind's keys say, the command line may have made meaningless.
  const int64_t decay_steps = schedule->kind == "wsd" ? schedule->decay_steps : 0;
  if (schedule->warmup_steps + decay_steps <= schedule->steps) return absl::OkStatus();
  const std::string decay = decay_steps > 0 ? absl::StrCat(" and decay_steps = ", decay_steps) : "";
  return absl::InvalidArgumentError(absl::StrCat("schedule.warmup_steps: found ", schedule->warmup_steps, decay,
                                                 ", allowed in all ", schedule->steps, ", the updates of train.epochs"));
}

double LearningRate(const ScheduleConfig& schedule, double peak, int64_t update) {
  WEFT_CHECK_GE(update, 1) << "LearningRate: updates count from 1";
  const int64_t warmup = std::max<int64_t>(schedule.warmup_steps, 1);
  const auto between = [&](double left) { return schedule.min_lr + (peak - schedule.min_lr) * left; };
  if (update <= warmup) return peak * Part(update, warmup);
  if (schedule.kind == "constant") return peak;
  if (schedule.kind == "inverse_sqrt") return peak * std::sqrt(Part(warmup, update));
  if (HasCycles(schedule)) return between(Left("cosine", PartOfCycle(schedule, update - warmup)));
  if (update >= schedule.steps) return schedule.min_lr;
  if (schedule.kind == "wsd") {
    const int64_t wanted = schedule.decay_steps > 0 ? schedule.decay_steps : std::max<int64_t>(schedule.steps / 5, 1);
    const int64_t decay = std::min(wanted, schedule.steps - warmup), start = schedule.steps - decay;
    return update <= start ? peak : between(Left(schedule.shape, Part(update - start, decay)));
  }
  WEFT_CHECK(schedule.kind == "linear" || schedule.kind == "cosine") << "LearningRate: unknown kind " << schedule.kind;
  return between(Left(schedule.kind, Part(update - warmup, schedule.steps - warmup)));
}

}  // namespace weft
