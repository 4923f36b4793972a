// reverse: a string of letters -> its letters from the end. Held out: strings.
#include "data/tasks/makers.h"

namespace weft {

absl::StatusOr<TaskData> MakeReverse(const TaskOptions& options) {
  return MakeStringTask(options, "reverse",
                        [](const std::string& source) { return std::string(source.rbegin(), source.rend()); });
}

}  // namespace weft
