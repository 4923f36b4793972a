#include "data/tasks/task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "data/tasks/makers.h"
#include "data/utf8.h"

namespace weft {
namespace {

using Maker = absl::StatusOr<TaskData> (*)(const TaskOptions&);

constexpr TaskInfo kTasks[] = {
    {"brackets", DataKind::kLabels, true, "is a string of ()[]{} balanced? half are, the others are one edit away"},
    {"copy", DataKind::kPairs, true, "a string of letters -> itself"},
    {"dates", DataKind::kPairs, false, "a date as people write it -> ISO 8601; the held-out dates are never seen in training"},
    {"modular_addition", DataKind::kLabels, false, "a + b = modulo 97 as a class; half of all 9,409 sums are held out"},
    {"reverse", DataKind::kPairs, true, "a string of letters -> its reverse"},
    {"scan", DataKind::kPairs, false, "SCAN: all 20,910 commands of its grammar -> actions, 80 % for training"},
    {"sort", DataKind::kPairs, true, "a string of letters -> its letters in order"},
};
constexpr Maker kMakers[] = {MakeBrackets, MakeCopy, MakeDates, MakeModularAddition, MakeReverse, MakeScan, MakeSort};
static_assert(std::size(kTasks) == std::size(kMakers));

}  // namespace

absl::Span<const TaskInfo> Tasks() { return kTasks; }

absl::StatusOr<TaskData> MakeTask(absl::string_view name, const TaskOptions& options) {
  for (size_t i = 0; i < std::size(kTasks); ++i) {
    const TaskInfo& task = kTasks[i];
    if (task.name != name) continue;
    if (options.train_size < 0 || options.valid_size < 0 || options.max_length < 0) {
      return absl::InvalidArgumentError(absl::StrCat("task ", name, ": found train_size = ", options.train_size,
                                                     ", valid_size = ", options.valid_size,
                                                     ", max_length = ", options.max_length, ", allowed from 0 on"));
    }
    if (options.max_length > 0 && !task.has_length) {
      return absl::InvalidArgumentError(absl::StrCat("task ", name, ": has no max_length, found ", options.max_length));
    }
    return kMakers[i](options);
  }
  const std::string names =
      absl::StrJoin(kTasks, ", ", [](std::string* out, const TaskInfo& t) { absl::StrAppend(out, t.name); });
  return absl::InvalidArgumentError(absl::StrCat("data.task: found ", Quote(name), ", allowed ", names));
}

absl::Status SplitAll(std::vector<TaskExample> all, const TaskOptions& options, int64_t default_train, absl::string_view name,
                      TaskData* data) {
  const int64_t n = static_cast<int64_t>(all.size());
  const int64_t train = options.train_size > 0 ? options.train_size : default_train;
  // Without overflow for absurd sizes: valid is compared with what training leaves.
  const int64_t valid = options.valid_size > 0 ? options.valid_size : n - train;
  if (train >= n || valid > n - train) {
    return absl::InvalidArgumentError(absl::StrCat("task ", name, ": train_size = ", train, " and valid_size = ", valid,
                                                   " ask for more than its ", n, " examples"));
  }
  const Permutation order(RandomKey{options.seed}.Fold(name), n);
  for (int64_t i = 0; i < train; ++i) data->train.push_back(std::move(all[order[i]]));
  for (int64_t i = n - valid; i < n; ++i) data->valid.push_back(std::move(all[order[i]]));
  return absl::OkStatus();
}

std::vector<TaskExample>* TakerOf(int64_t i, int64_t train, int64_t valid, TaskData* data) {
  if (i % kHeldOutEvery == 0 && static_cast<int64_t>(data->valid.size()) < valid) return &data->valid;
  return static_cast<int64_t>(data->train.size()) < train ? &data->train : nullptr;
}

int64_t DrawsNeeded(int64_t train, int64_t valid) { return std::max(train + valid, kHeldOutEvery * valid); }

}  // namespace weft
