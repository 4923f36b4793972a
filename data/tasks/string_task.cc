#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "data/tasks/makers.h"

namespace weft {
namespace {

constexpr int64_t kLetters = 26;
constexpr int64_t kMaxLength = 1 << 16;

// Strings of 1 to `max_length` letters, counted up to a bound that no sensible size reaches.
int64_t CountStrings(int64_t max_length) {
  constexpr int64_t kEnough = int64_t{1} << 50;
  int64_t total = 0;
  int64_t of_length = 1;
  for (int64_t i = 0; i < max_length && total < kEnough; ++i) {
    of_length *= kLetters;
    total += of_length;
  }
  return total;
}

}  // namespace

absl::StatusOr<TaskData> MakeStringTask(const TaskOptions& options, absl::string_view name,
                                        absl::FunctionRef<std::string(const std::string&)> answer) {
  const int64_t train = options.train_size > 0 ? options.train_size : 20000;
  const int64_t valid = options.valid_size > 0 ? options.valid_size : 2000;
  const int64_t max_length = options.max_length > 0 ? options.max_length : 12;
  if (max_length > kMaxLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("task ", name, ": max_length: found ", max_length, ", allowed to ", kMaxLength));
  }
  // At most half of all strings, so that drawing until a new one comes ends soon.
  const int64_t available = CountStrings(max_length) / 2;
  // Without overflow for absurd sizes: DrawsNeeded comes last.
  if (train > available || valid > available || DrawsNeeded(train, valid) > available) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task ", name, ": train_size = ", train, " and valid_size = ", valid, " ask for more than ", available,
        ", half of the strings up to max_length = ", max_length, " (", kHeldOutEvery, " are drawn for each that is held out)"));
  }
  TaskData data;
  absl::flat_hash_set<std::string> seen;
  Dice dice(RandomKey{options.seed}.Fold(name));
  for (int64_t i = 0; i < DrawsNeeded(train, valid);) {
    std::string source(1 + dice.Below(max_length), ' ');
    for (char& c : source) c = static_cast<char>('a' + dice.Below(kLetters));
    if (!seen.insert(source).second) continue;
    std::vector<TaskExample>* taker = TakerOf(i++, train, valid, &data);
    if (taker == nullptr) continue;
    std::string target = answer(source);
    taker->push_back({std::move(source), std::move(target)});
  }
  return data;
}

}  // namespace weft
