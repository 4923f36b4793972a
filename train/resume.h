// What may differ between a run and its continuation. The config that is given on resume wins for keys that do not decide the
// shapes, the data or their order (steps, learning rate, schedule, dropout, validation, checkpoints); all others must be as
// they were.
#ifndef WEFT_TRAIN_RESUME_H_
#define WEFT_TRAIN_RESUME_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Compares two canonical configs (CanonicalConfig). Returns a line "key: old -> new" for each key that changed and may change;
// InvalidArgument, naming key and both values, for those that must not.
absl::StatusOr<std::vector<std::string>> CompareForResume(absl::string_view saved, absl::string_view given);

}  // namespace weft

#endif  // WEFT_TRAIN_RESUME_H_
