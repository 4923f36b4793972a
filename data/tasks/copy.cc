// copy: a string of letters -> itself. Held out: strings.
#include "data/tasks/makers.h"

namespace weft {

absl::StatusOr<TaskData> MakeCopy(const TaskOptions& options) {
  return MakeStringTask(options, "copy", [](const std::string& source) { return source; });
}

}  // namespace weft
