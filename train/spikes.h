// LossSpikes: says when a loss stands out from those before it, so that a log shows where a training began to go wrong. Plain
// running statistics; nothing of the training depends on them. Starts anew with each call of `weft train`. Not thread-safe.
#ifndef WEFT_TRAIN_SPIKES_H_
#define WEFT_TRAIN_SPIKES_H_

#include <cstdint>

namespace weft {

class LossSpikes {
 public:
  // Takes the loss of an update. True if it lies more than 6 standard deviations, and more than 10 %, above the running mean;
  // mean and variance forget with a factor of 0.98 an update (about the last 50; West 1979's recurrence with weights). Never
  // among the first 50 losses. Losses that are not finite are left out.
  bool Observe(double loss);

  // Before the last loss: for the message.
  double mean() const { return previous_mean_; }
  double deviation() const;

 private:
  int64_t count_ = 0;
  double mean_ = 0, variance_ = 0;
  double previous_mean_ = 0, previous_variance_ = 0;
};

}  // namespace weft

#endif  // WEFT_TRAIN_SPIKES_H_
