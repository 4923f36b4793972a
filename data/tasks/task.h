// Rule-made tasks: data generated from a seed, nothing to download. The same name and options give the same examples on every
// machine, and the training and held-out examples are disjoint (what is kept apart is said at each task). Pure functions,
// thread-safe.
#ifndef WEFT_DATA_TASKS_TASK_H_
#define WEFT_DATA_TASKS_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/examples.h"

namespace weft {

struct TaskOptions {
  uint64_t seed = 1;
  int64_t train_size = 0;  // examples, 0 = the task's default
  int64_t valid_size = 0;  // held-out examples, 0 = the task's default
  int64_t max_length = 0;  // symbols of the longest sequence, 0 = the default; only where TaskInfo::has_length
};

// A pair, or a text with the name of its class.
struct TaskExample {
  std::string source;
  std::string target;
  friend bool operator==(const TaskExample&, const TaskExample&) = default;
};

struct TaskData {
  DataKind kind = DataKind::kPairs;  // kPairs or kLabels
  std::vector<TaskExample> train;
  std::vector<TaskExample> valid;
  std::string source_tokenizer = "char";  // suggested kinds
  std::string target_tokenizer = "char";  // pairs
  std::vector<std::string> class_names;   // labels: in order of class id
};

struct TaskInfo {
  absl::string_view name;
  DataKind kind;
  bool has_length;  // max_length may be set
  absl::string_view description;
};

// All tasks, sorted by name.
absl::Span<const TaskInfo> Tasks();

// InvalidArgument for an unknown name (with the known ones), negative sizes, or more examples than the task has.
absl::StatusOr<TaskData> MakeTask(absl::string_view name, const TaskOptions& options);

}  // namespace weft

#endif  // WEFT_DATA_TASKS_TASK_H_
