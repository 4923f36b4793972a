#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "data/tasks/task.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::HasSubstr;

TaskData Make(absl::string_view name, const TaskOptions& options) {
  auto data = MakeTask(name, options);
  EXPECT_TRUE(data.ok()) << data.status();
  return *std::move(data);
}

std::set<std::string> Sources(const std::vector<TaskExample>& examples) {
  std::set<std::string> sources;
  for (const TaskExample& example : examples) sources.insert(example.source);
  return sources;
}

TEST(TasksTest, TheListIsSortedAndEachIsMade) {
  EXPECT_TRUE(std::is_sorted(Tasks().begin(), Tasks().end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
  EXPECT_EQ(Tasks().size(), 7);
  for (const TaskInfo& task : Tasks()) {
    const TaskData data = Make(task.name, {.train_size = 50, .valid_size = 20});
    EXPECT_EQ(data.kind, task.kind) << task.name;
    EXPECT_EQ(data.train.size(), 50);
    EXPECT_EQ(data.valid.size(), 20);
    EXPECT_FALSE(task.description.empty());
    for (const TaskExample& example : data.train) {
      EXPECT_FALSE(example.source.empty() || example.target.empty());
      EXPECT_EQ(absl::StrCat(example.source, example.target).find_first_of("\t\n"), std::string::npos);
    }
  }
}

TEST(TasksTest, SplitsAreDisjointAndFollowTheSeed) {
  for (const TaskInfo& task : Tasks()) {
    const TaskData one = Make(task.name, {.seed = 1, .train_size = 2000, .valid_size = 500});
    const TaskData same = Make(task.name, {.seed = 1, .train_size = 2000, .valid_size = 500});
    const TaskData other = Make(task.name, {.seed = 2, .train_size = 2000, .valid_size = 500});
    EXPECT_EQ(one.train, same.train) << task.name;
    EXPECT_EQ(one.valid, same.valid) << task.name;
    EXPECT_NE(one.train, other.train) << task.name;
    EXPECT_NE(one.valid, other.valid) << task.name;
    const std::set<std::string> train = Sources(one.train);
    const std::set<std::string> valid = Sources(one.valid);
    EXPECT_EQ(valid.size(), 500) << task.name;
    for (const std::string& source : valid) EXPECT_FALSE(train.contains(source)) << task.name << ": " << source;
  }
}

TEST(TasksTest, HeldOutExamplesDoNotDependOnTheTrainingSize) {
  for (const TaskInfo& task : Tasks()) {
    const TaskData small = Make(task.name, {.train_size = 100, .valid_size = 100});
    const TaskData large = Make(task.name, {.train_size = 1000, .valid_size = 100});
    EXPECT_EQ(small.valid, large.valid) << task.name;
  }
}

// Of short strings there are few; a model that is tested on one letter must have seen some of that length.
TEST(TasksTest, TheShortestStringsAreOnBothSides) {
  for (const TaskInfo& task : Tasks()) {
    if (!task.has_length) continue;
    const TaskData data = Make(task.name, {});
    const auto shortest = [](const std::vector<TaskExample>& split) {
      std::map<size_t, int64_t> count;  // by length
      for (const TaskExample& example : split) ++count[example.source.size()];
      return *count.begin();
    };
    const auto [train_length, train_count] = shortest(data.train);
    const auto [valid_length, valid_count] = shortest(data.valid);
    EXPECT_EQ(train_length, valid_length) << task.name;
    EXPECT_GT(train_count, valid_count) << task.name;
  }
}

TEST(TasksTest, StringTasksAnswerByTheirRule) {
  for (const TaskExample& example : Make("copy", {.train_size = 300}).train) EXPECT_EQ(example.source, example.target);
  for (const TaskExample& example : Make("reverse", {.train_size = 300}).train) {
    EXPECT_EQ(example.source, std::string(example.target.rbegin(), example.target.rend()));
  }
  size_t longest = 0;
  for (const TaskExample& example : Make("sort", {.train_size = 300, .max_length = 9}).train) {
    EXPECT_TRUE(std::is_sorted(example.target.begin(), example.target.end()));
    EXPECT_TRUE(
        std::is_permutation(example.source.begin(), example.source.end(), example.target.begin(), example.target.end()));
    longest = std::max(longest, example.source.size());
  }
  EXPECT_EQ(longest, 9);
}

TEST(TasksTest, ModularAdditionIsTheWholeTable) {
  const TaskData data = Make("modular_addition", {});
  EXPECT_EQ(data.train.size(), 4704);
  EXPECT_EQ(data.valid.size(), 4705);
  EXPECT_EQ(data.class_names.size(), 97);
  std::set<std::pair<int, int>> seen;
  for (const auto* split : {&data.train, &data.valid}) {
    for (const TaskExample& example : *split) {
      const std::vector<std::string> words = absl::StrSplit(example.source, ' ');
      ASSERT_EQ(words.size(), 4);
      EXPECT_EQ(words[1], "+");
      EXPECT_EQ(words[3], "=");
      int a = -1, b = -1, c = -1;
      ASSERT_TRUE(absl::SimpleAtoi(words[0], &a) && absl::SimpleAtoi(words[2], &b) && absl::SimpleAtoi(example.target, &c));
      EXPECT_EQ((a + b) % 97, c);
      seen.emplace(a, b);
    }
  }
  EXPECT_EQ(seen.size(), 9409);
}

TEST(TasksTest, ScanHasAllCommandsWithTheirActions) {
  const TaskData data = Make("scan", {});
  EXPECT_EQ(data.train.size(), 16728);
  EXPECT_EQ(data.valid.size(), 4182);
  std::map<std::string, std::string> actions;
  for (const auto* split : {&data.train, &data.valid}) {
    for (const TaskExample& example : *split) actions[example.source] = example.target;
  }
  EXPECT_EQ(actions.size(), 20910);
  EXPECT_EQ(actions["jump"], "I_JUMP");
  EXPECT_EQ(actions["turn left"], "I_TURN_LEFT");
  EXPECT_EQ(actions["jump left"], "I_TURN_LEFT I_JUMP");
  EXPECT_EQ(actions["turn opposite right"], "I_TURN_RIGHT I_TURN_RIGHT");
  EXPECT_EQ(actions["turn around left twice"],
            "I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT");
  EXPECT_EQ(actions["jump thrice and look"], "I_JUMP I_JUMP I_JUMP I_LOOK");
  EXPECT_EQ(actions["walk opposite right thrice after run right"],
            "I_TURN_RIGHT I_RUN I_TURN_RIGHT I_TURN_RIGHT I_WALK I_TURN_RIGHT I_TURN_RIGHT I_WALK I_TURN_RIGHT I_TURN_RIGHT "
            "I_WALK");
  EXPECT_EQ(actions["jump opposite left after walk around left"],
            "I_TURN_LEFT I_WALK I_TURN_LEFT I_WALK I_TURN_LEFT I_WALK I_TURN_LEFT I_WALK I_TURN_LEFT I_TURN_LEFT I_JUMP");
  EXPECT_FALSE(actions.contains("turn"));
  // The paper gives 48 actions as the longest sequence of the set.
  size_t longest = 0;
  for (const auto& [command, sequence] : actions) {
    longest = std::max<size_t>(longest, std::count(sequence.begin(), sequence.end(), ' ') + 1);
  }
  EXPECT_EQ(longest, 48);
}

// Balance by deleting neighbours, another way than that of the task.
bool Balanced(std::string text) {
  while (true) {
    size_t place = std::string::npos;
    for (const char* pair : {"()", "[]", "{}"}) place = std::min(place, text.find(pair));
    if (place == std::string::npos) return text.empty();
    text.erase(place, 2);
  }
}

TEST(TasksTest, BracketsAreLabelledRightAndBothClassesEquallyOften) {
  const TaskData data = Make("brackets", {.train_size = 2000, .valid_size = 400, .max_length = 20});
  for (const auto* split : {&data.train, &data.valid}) {
    int64_t balanced = 0;
    for (const TaskExample& example : *split) {
      EXPECT_LE(example.source.size(), 20);
      EXPECT_EQ(example.source.size() % 2, 0);
      EXPECT_EQ(Balanced(example.source), example.target == "balanced") << example.source;
      balanced += example.target == "balanced" ? 1 : 0;
    }
    EXPECT_EQ(balanced * 2, split->size());
  }
}

TEST(TasksTest, ImpossibleOptionsAreRefused) {
  EXPECT_THAT(std::string(MakeTask("date", {}).status().message()), HasSubstr("allowed brackets, copy, dates"));
  for (const TaskInfo& task : Tasks()) {
    std::vector<TaskOptions> bad = {{.train_size = -1},
                                    {.valid_size = -1},
                                    {.max_length = -1},
                                    {.train_size = int64_t{1} << 62, .valid_size = int64_t{1} << 62}};
    if (!task.has_length) bad.push_back({.max_length = 5});
    if (task.has_length) bad.push_back({.max_length = 2});  // too few strings of that length for the default sizes
    if (task.has_length) bad.push_back({.max_length = int64_t{1} << 40});
    for (const TaskOptions& options : bad) {
      EXPECT_EQ(MakeTask(task.name, options).status().code(), absl::StatusCode::kInvalidArgument) << task.name;
    }
  }
  EXPECT_EQ(MakeTask("scan", {.train_size = 20910}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeTask("scan", {.valid_size = 4183}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeTask("dates", {.valid_size = 73049}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft
