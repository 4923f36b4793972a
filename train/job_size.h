// How large a training job is, before it starts: its parameters by part of the model, and the memory that it needs at least
// against what this machine, or the container around the process, has. Pure functions.
#ifndef WEFT_TRAIN_JOB_SIZE_H_
#define WEFT_TRAIN_JOB_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "layers/parameters.h"
#include "train/config.h"
#include "train/session.h"

namespace weft {

// "826,368 parameters: target_embedding 8,320, decoder.0-3 198,272 each, decoder.norm 256, output 8,320".
std::string ParametersByPart(const Parameters& parameters);

// Bytes, estimates from below.
struct MemoryEstimate {
  double state = 0;        // values, gradients, the optimizer's moments, the moving average
  double activations = 0;  // what the blocks and the logits keep of the tokens that run at a time
  double available = 0;    // physical memory, or the limit of the process's control group if that is less
  double total() const { return state + activations; }

  // "memory: at least 15.2MB (weights, gradients, optimizer 13.2MB; activations 2.01MB) of 24.0GB".
  std::string ToString() const;
  // InvalidArgument, naming the keys that make the job smaller, if the job cannot fit.
  absl::Status Check(const Config& config) const;
};

// REQUIRES: the model's parameters are declared (need not be allocated); config.train.shards is settled. `batch_tokens`: target
// tokens of a batch (source tokens for classifiers).
MemoryEstimate EstimateMemory(const Config& config, const Session& session, int64_t batch_tokens);

}  // namespace weft

#endif  // WEFT_TRAIN_JOB_SIZE_H_
