// Averages of weights, which often predict better than the last weights do. WeightAverage is the exponential one, kept during
// training; MeanOfCheckpoints the plain mean of some checkpoints afterwards (`weft average`). Neither changes the training.
// Bits depend on the inputs only, never on threads. Not thread-safe; Update runs on the enclosing Workers.
#ifndef WEFT_TRAIN_AVERAGE_H_
#define WEFT_TRAIN_AVERAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "layers/parameters.h"

namespace weft {

// The exponential moving average of all parameters, in their dtype (Polyak, Juditsky 1992, with weights that fade).
class WeightAverage {
 public:
  // Starts as a copy of the parameters. REQUIRES: allocated parameters; 0 < decay < 1.
  WeightAverage(double decay, const Parameters& parameters);

  // After update t = 1, 2, ...: average = d average + (1 - d) parameters, with d = min(decay, (1 + t) / (10 + t)), so that the
  // initial weights fade soon (as TensorFlow's ExponentialMovingAverage with num_updates).
  void Update(const Parameters& parameters, int64_t t);
  // Exchanges average and parameters, bit for bit: twice is nothing. For validating the average.
  void Swap(Parameters* parameters);

  // Of the parameters' layout; writing into it restores an average.
  const Tensor& slab() const { return slab_.tensor(); }

 private:
  const double decay_;
  Slab slab_;
};

// Writes to `output` (by WriteOutput) a checkpoint with the mean of the parameters of `paths` (added in f64, in this order) and
// the step, tokenizers and config of the newest; without an optimizer's state, so it can be evaluated, decoded with and trained
// from (train.init_from), not resumed. FailedPrecondition, naming both files, for models or tokenizers that differ; errors of
// reading and writing. REQUIRES: at least one path.
absl::Status MeanOfCheckpoints(absl::Span<const std::string> paths, const std::string& output);

}  // namespace weft

#endif  // WEFT_TRAIN_AVERAGE_H_
