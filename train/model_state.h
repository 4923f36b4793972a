// Model and optimizer as named tensors, and back: what a checkpoint holds of them. Parameters go under their own names, each
// once (a tied one too), a moment of parameter NAME under "optimizer.m/NAME", its moving average under "average/NAME". Loading
// is all or nothing: names, shapes and dtypes are compared first and the bytes are read aside, so an error leaves the model as
// it was. Pure functions; not thread-safe with training.
#ifndef WEFT_TRAIN_MODEL_STATE_H_
#define WEFT_TRAIN_MODEL_STATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autograd/tensor.h"
#include "layers/parameters.h"
#include "train/average.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"

namespace weft {

// Whether a tensor of this name is a parameter, that is neither a moment nor an average.
bool IsParameter(absl::string_view name);

// Views of all parameters, in order of declaration. `parameters` must outlive them.
std::vector<NamedTensor> ParameterTensors(const Parameters& parameters);
// Views of all parameters, then of the optimizer's moments, then of the average unless that is null: what SaveCheckpoint
// takes.
std::vector<NamedTensor> StateTensors(const Parameters& parameters, const Optimizer& optimizer,
                                      const WeightAverage* average = nullptr);

// Fills `parameters` from the checkpoint. FailedPrecondition when they are not the same set: the message lists what the file
// lacks, what only the file has, and what has another shape or dtype.
absl::Status LoadParameters(const Checkpoint& checkpoint, Parameters* parameters);
// Fills the moments and the count of updates. Errors as above; a checkpoint of another kind of optimizer is refused.
absl::Status LoadOptimizer(const Checkpoint& checkpoint, const Parameters& parameters, Optimizer* optimizer);

// Whether the checkpoint has a moving average of its parameters.
bool HasAverage(const Checkpoint& checkpoint);
// Fills `average`, from the checkpoint's or, where it has none, from `parameters`. Errors as above.
absl::Status LoadAverage(const Checkpoint& checkpoint, const Parameters& parameters, WeightAverage* average);
// What evaluation and decoding use: the average where there is one, else the parameters. Errors as above.
absl::Status LoadForInference(const Checkpoint& checkpoint, Parameters* parameters);

// Fills `parameters` with those of another run's checkpoint (its average where there is one) that have the same name, shape and
// dtype, and returns the names of those that it could not fill. FailedPrecondition when there are any and not `partial`, or
// when none fits.
absl::StatusOr<std::vector<std::string>> LoadMatching(const Checkpoint& checkpoint, bool partial, Parameters* parameters);

}  // namespace weft

#endif  // WEFT_TRAIN_MODEL_STATE_H_
