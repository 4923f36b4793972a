// brackets: is a string of ()[]{} balanced? Half of the strings are; each of the others is a balanced one after one edit, a
// bracket replaced or two brackets exchanged, so length and often the counts of the brackets tell nothing.
// Held out: strings.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "data/tasks/makers.h"

namespace weft {
namespace {

constexpr char kOpen[] = "([{";
constexpr char kClose[] = ")]}";
constexpr char kAll[] = "()[]{}";
constexpr int64_t kMaxLength = 1 << 16;

bool IsBalanced(const std::string& text) {
  std::string expected;  // the closing brackets still to come, the next one last
  for (char c : text) {
    const char* open = std::find(kOpen, kOpen + 3, c);
    if (open != kOpen + 3) {
      expected.push_back(kClose[open - kOpen]);
    } else {
      if (expected.empty() || expected.back() != c) return false;
      expected.pop_back();
    }
  }
  return expected.empty();
}

std::string DrawBalanced(int64_t length, Dice* dice) {
  std::string text;
  std::string expected;
  for (int64_t left = length; left > 0; --left) {
    const bool must_close = static_cast<int64_t>(expected.size()) == left;
    if (!must_close && (expected.empty() || dice->Chance(50))) {
      const int64_t kind = dice->Below(3);
      text.push_back(kOpen[kind]);
      expected.push_back(kClose[kind]);
    } else {
      text.push_back(expected.back());
      expected.pop_back();
    }
  }
  return text;
}

// One edit of a balanced text that leaves it unbalanced.
std::string Spoil(std::string text, Dice* dice) {
  const int64_t length = static_cast<int64_t>(text.size());
  while (true) {
    std::string spoiled = text;
    if (dice->Chance(50)) {
      spoiled[dice->Below(length)] = kAll[dice->Below(6)];
    } else {
      std::swap(spoiled[dice->Below(length)], spoiled[dice->Below(length)]);
    }
    if (!IsBalanced(spoiled)) return spoiled;
  }
}

}  // namespace

absl::StatusOr<TaskData> MakeBrackets(const TaskOptions& options) {
  const int64_t train = options.train_size > 0 ? options.train_size : 20000;
  const int64_t valid = options.valid_size > 0 ? options.valid_size : 2000;
  const int64_t max_length = options.max_length > 0 ? options.max_length : 24;
  if (max_length < 2 || max_length > kMaxLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("task brackets: max_length: found ", max_length, ", allowed 2 to ", kMaxLength));
  }
  // Balanced strings of n pairs: Catalan(n) 3^n, counted up to a bound that no sensible size reaches. At most a quarter of them
  // is drawn, so that a new one comes soon.
  double strings = 0.0;
  double of_length = 1.0;
  for (int64_t n = 1; n <= max_length / 2 && strings < 1e15; ++n) {
    of_length *= 3.0 * 2.0 * static_cast<double>(2 * n - 1) / static_cast<double>(n + 1);
    strings += of_length;
  }
  const int64_t available = static_cast<int64_t>(strings / 4.0);
  // Without overflow for absurd sizes: DrawsNeeded comes last.
  if (train > available || valid > available || DrawsNeeded(train, valid) > available) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task brackets: train_size = ", train, " and valid_size = ", valid, " ask for more than ", available,
        " strings, enough for max_length = ", max_length, " (", kHeldOutEvery, " are drawn for each that is held out)"));
  }
  TaskData data;
  data.kind = DataKind::kLabels;
  data.class_names = {"balanced", "unbalanced"};
  absl::flat_hash_set<std::string> seen;
  Dice dice(RandomKey{options.seed}.Fold("brackets"));
  for (int64_t i = 0; i < DrawsNeeded(train, valid);) {
    // In turns on each side.
    const int64_t label = (i % kHeldOutEvery == 0 ? i / kHeldOutEvery : i % kHeldOutEvery) % 2;
    std::string text = DrawBalanced(2 * (1 + dice.Below(max_length / 2)), &dice);
    if (label == 1) text = Spoil(std::move(text), &dice);
    if (!seen.insert(text).second) continue;
    std::vector<TaskExample>* taker = TakerOf(i++, train, valid, &data);
    if (taker != nullptr) taker->push_back({std::move(text), data.class_names[label]});
  }
  return data;
}

}  // namespace weft
