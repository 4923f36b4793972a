// sort: a string of letters -> its letters in the order of the alphabet. Held out: strings.
#include <algorithm>

#include "data/tasks/makers.h"

namespace weft {

absl::StatusOr<TaskData> MakeSort(const TaskOptions& options) {
  return MakeStringTask(options, "sort", [](const std::string& source) {
    std::string sorted = source;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  });
}

}  // namespace weft
