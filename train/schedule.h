// The learning rate as a pure function of the update's number: nothing to save or restore, so a resumed run cannot repeat or
// skip a value. Thread-safe.
#ifndef WEFT_TRAIN_SCHEDULE_H_
#define WEFT_TRAIN_SCHEDULE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "train/config.h"

namespace weft {

// Whether the learning rate falls until schedule.steps.
bool HasHorizon(const ScheduleConfig& schedule);
// Whether it falls and starts again, without end: cosine with cycle_steps.
bool HasCycles(const ScheduleConfig& schedule);

// Fills in the horizon, where the kind has one and none is stated, with the updates of a run of train.epochs. InvalidArgument
// when warm-up and decay do not fit into it.
absl::Status CompleteSchedule(int64_t run_steps, ScheduleConfig* schedule);

// The rate of update u = 1, 2, ... for a peak rate `peak` (optimizer.lr). With w = max(warmup_steps, 1) and horizon
// T = schedule.steps (0 counts as an end at w):
//   u <= w         peak u / w: above 0 from the first update, peak at u = w
//   constant       peak
//   linear         min + (peak - min) (1 - p),              p = (u - w) / (T - w), at most 1
//   cosine         min + (peak - min) (1 + cos(pi p)) / 2   (Loshchilov, Hutter 2017, eq. 5, one period)
//   inverse_sqrt   peak sqrt(w / u)                         (Vaswani et al. 2017, section 5.3, normalised to its peak)
//   wsd            peak until T - D, then min + (peak - min) shape(q), q = (u - (T - D)) / D: linear 1 - q, cosine
//                  (1 + cos(pi q)) / 2, sqrt 1 - sqrt(q) (Haegele et al. 2024, section 3). D = decay_steps, or T / 5 when that
//                  is 0, at most T - w
//   cosine with cycle_steps = T_0 > 0: warm restarts (Loshchilov, Hutter 2017, section 3). The formula of cosine with p = the
//                  part of its cycle that is done. The first cycle begins at u = w; cycle i has T_0 cycle_multiplier^i updates,
//                  the first of which has the peak rate
// linear, wsd and cosine without cycles are min_lr from update T on, for ever. Always finite. REQUIRES: update >= 1, a kind
// and shape of the config.
double LearningRate(const ScheduleConfig& schedule, double peak, int64_t update);

}  // namespace weft

#endif  // WEFT_TRAIN_SCHEDULE_H_
