// The learning rate as a pure function of the update's number: nothing to save or restore, so a resumed run cannot repeat or
// skip a value. Thread-safe.
#ifndef WEFT_TRAIN_SCHEDULE_H_
#define WEFT_TRAIN_SCHEDULE_H_

#include <cstdint>

#include "train/config.h"

namespace weft {

// The rate of update u = 1, 2, ... for a peak rate `peak` (optimizer.lr). With w = max(warmup_steps, 1) and horizon
// T = schedule.steps (0 counts as an end at w):
//   u <= w         peak u / w: above 0 from the first update, peak at u = w
//   constant       peak
//   linear         min + (peak - min) (1 - p),              p = (u - w) / (T - w), at most 1
//   cosine         min + (peak - min) (1 + cos(pi p)) / 2   (Loshchilov, Hutter 2017, eq. 5, one period)
//   inverse_sqrt   peak sqrt(w / u)                         (Vaswani et al. 2017, section 5.3, normalised to its peak)
// linear and cosine are min_lr from update T on, for ever. Always finite. REQUIRES: update >= 1, a kind of the config.
double LearningRate(const ScheduleConfig& schedule, double peak, int64_t update);

}  // namespace weft

#endif  // WEFT_TRAIN_SCHEDULE_H_
