#include "autograd/base/status.h"

namespace weft {

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  if (status.code() == absl::StatusCode::kInvalidArgument) return 2;
  return status.code() == kDivergedCode ? 3 : 1;
}

}  // namespace weft
