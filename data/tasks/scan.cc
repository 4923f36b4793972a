// scan: the commands of SCAN (Lake, Baroni, "Generalization without systematicity", ICML 2018, supplementary grammar and
// interpretation function) -> sequences of actions, as words. All 20,910 commands; the paper's simple split: 80 % of them,
// 16,728, for training, the rest held out.
#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/tasks/makers.h"

namespace weft {
namespace {

std::string Join(const std::string& a, const std::string& b) { return a.empty() ? b : absl::StrCat(a, " ", b); }

std::string Repeat(const std::string& actions, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out = Join(out, actions);
  return out;
}

// V: a verb, with a direction or without: V -> U | U dir | turn dir | U how dir | turn how dir, how = opposite, around.
std::vector<TaskExample> VerbPhrases() {
  const TaskExample verbs[] = {{"walk", "I_WALK"}, {"look", "I_LOOK"}, {"run", "I_RUN"}, {"jump", "I_JUMP"}, {"turn", ""}};
  const TaskExample directions[] = {{"left", "I_TURN_LEFT"}, {"right", "I_TURN_RIGHT"}};
  std::vector<TaskExample> phrases;
  for (const auto& [verb, action] : verbs) {
    if (!action.empty()) phrases.push_back({verb, action});  // "turn" needs a direction and does nothing after turning
    for (const auto& [direction, turn] : directions) {
      const std::string once = action.empty() ? turn : Join(turn, action);
      phrases.push_back({absl::StrCat(verb, " ", direction), once});
      phrases.push_back({absl::StrCat(verb, " opposite ", direction), Join(turn, once)});
      phrases.push_back({absl::StrCat(verb, " around ", direction), Repeat(once, 4)});
    }
  }
  return phrases;
}

// C -> S | S and S | S after S; S -> V | V twice | V thrice.
std::vector<TaskExample> Commands() {
  std::vector<TaskExample> sentences;
  for (const auto& [phrase, actions] : VerbPhrases()) {
    sentences.push_back({phrase, actions});
    sentences.push_back({absl::StrCat(phrase, " twice"), Repeat(actions, 2)});
    sentences.push_back({absl::StrCat(phrase, " thrice"), Repeat(actions, 3)});
  }
  std::vector<TaskExample> commands = sentences;
  for (const auto& [first, first_actions] : sentences) {
    for (const auto& [second, second_actions] : sentences) {
      commands.push_back({absl::StrCat(first, " and ", second), Join(first_actions, second_actions)});
      commands.push_back({absl::StrCat(first, " after ", second), Join(second_actions, first_actions)});
    }
  }
  return commands;
}

}  // namespace

absl::StatusOr<TaskData> MakeScan(const TaskOptions& options) {
  TaskData data;
  data.source_tokenizer = "word";
  data.target_tokenizer = "word";
  std::vector<TaskExample> commands = Commands();
  WEFT_CHECK_EQ(commands.size(), size_t{20910});
  WEFT_RETURN_IF_ERROR(SplitAll(std::move(commands), options, 16728, "scan", &data));
  return data;
}

}  // namespace weft
