// Model and optimizer as named tensors, and back: what a checkpoint holds of them. Parameters go under their own names, each
// once (a tied one too), a moment of parameter NAME under "optimizer.m/NAME", the updates of a parameter that was frozen for a
// time under "optimizer.updates/NAME". Loading is all or nothing: names, shapes and
// dtypes are compared first and the bytes are read aside, so an error leaves the model as it was. Pure functions; not
// thread-safe with training.
#ifndef WEFT_TRAIN_MODEL_STATE_H_
#define WEFT_TRAIN_MODEL_STATE_H_

#include <vector>

#include "absl/status/status.h"
#include "autograd/tensor.h"
#include "layers/parameters.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"

namespace weft {

// Views of all parameters, in order of declaration. `parameters` must outlive them.
std::vector<NamedTensor> ParameterTensors(const Parameters& parameters);
// Views of all parameters, then of the optimizer's moments: what SaveCheckpoint takes.
std::vector<NamedTensor> StateTensors(const Parameters& parameters, const Optimizer& optimizer);

// Fills `parameters` from the checkpoint. FailedPrecondition when they are not the same set: the message lists what the file
// lacks, what only the file has, and what has another shape or dtype.
absl::Status LoadParameters(const Checkpoint& checkpoint, Parameters* parameters);
// Fills the moments and the count of updates. Errors as above; a checkpoint of another kind of optimizer is refused.
absl::Status LoadOptimizer(const Checkpoint& checkpoint, Optimizer* optimizer);

}  // namespace weft

#endif  // WEFT_TRAIN_MODEL_STATE_H_
