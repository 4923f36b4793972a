// Internal to data/tasks: one maker a task, each in the file of its name, and what several of them share. Makers get options
// that MakeTask has checked: no size is negative, max_length is 0 where the task has no lengths.
#ifndef WEFT_DATA_TASKS_MAKERS_H_
#define WEFT_DATA_TASKS_MAKERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autograd/base/random.h"
#include "data/tasks/task.h"

namespace weft {

absl::StatusOr<TaskData> MakeBrackets(const TaskOptions& options);
absl::StatusOr<TaskData> MakeCopy(const TaskOptions& options);
absl::StatusOr<TaskData> MakeDates(const TaskOptions& options);
absl::StatusOr<TaskData> MakeModularAddition(const TaskOptions& options);
absl::StatusOr<TaskData> MakeReverse(const TaskOptions& options);
absl::StatusOr<TaskData> MakeScan(const TaskOptions& options);
absl::StatusOr<TaskData> MakeSort(const TaskOptions& options);

// Throws of one keyed stream, in order.
class Dice {
 public:
  explicit Dice(RandomKey key) : key_(key) {}
  // Uniform in [0, n). REQUIRES: n > 0.
  int64_t Below(int64_t n) { return key_.Below(throws_++, n); }
  // True with probability `percent` / 100.
  bool Chance(int64_t percent) { return Below(100) < percent; }

 private:
  RandomKey key_;
  uint64_t throws_ = 0;
};

// Splits a task of finitely many examples by a keyed permutation: training takes `options.train_size` (default
// `default_train`) from its front, validation `options.valid_size` (default: the rest) from its end, so neither choice changes
// which examples the other one meets first. InvalidArgument if there are not that many.
absl::Status SplitAll(std::vector<TaskExample> all, const TaskOptions& options, int64_t default_train, absl::string_view name,
                      TaskData* data);

// For tasks whose examples are drawn at random. One new example in five is held out until there are `valid`, so that what is
// rare, like strings of one letter, is on both sides; the others train. Which ones are held out does not depend on `train`.
inline constexpr int64_t kHeldOutEvery = 5;
// The list that takes new example i (from 0); null if it is for the training, which has enough.
std::vector<TaskExample>* TakerOf(int64_t i, int64_t train, int64_t valid, TaskData* data);
// How many new examples are drawn until both lists are full. REQUIRES: sizes that do not overflow it.
int64_t DrawsNeeded(int64_t train, int64_t valid);

// The pairs of `copy`, `reverse` and `sort`: random strings of 1 to max_length (default 12) of the letters a to z, each length
// equally likely where it has enough strings, all different, and `answer` of each. Default sizes 20,000 and 2,000.
// InvalidArgument if more than half of the strings that exist would have to be drawn.
absl::StatusOr<TaskData> MakeStringTask(const TaskOptions& options, absl::string_view name,
                                        absl::FunctionRef<std::string(const std::string&)> answer);

}  // namespace weft

#endif  // WEFT_DATA_TASKS_MAKERS_H_
