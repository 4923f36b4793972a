#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"
#include "data/tasks/task.h"
#include "data/text_file.h"

namespace weft {
namespace {

// A task's examples as if they had been the lines of a file.
PairLines AsPairs(const std::vector<TaskExample>& examples) {
  PairLines out;
  for (const TaskExample& example : examples) {
    PairLine& pair = out.pairs.emplace_back();
    pair.line = ++out.report.lines;
    pair.source = example.source;
    pair.target = example.target;
  }
  return out;
}

LabelLines AsLabels(const std::vector<TaskExample>& examples) {
  LabelLines out;
  for (const TaskExample& example : examples) {
    out.labels.push_back({.line = ++out.report.lines, .text = example.source, .label = example.target});
  }
  return out;
}

}  // namespace

absl::Status LoadTask(const DataOptions& options, Dataset* data) {
  if (!options.train.empty() || !options.valid.empty()) {
    return absl::InvalidArgumentError(
        "data.train and data.valid: a task makes its own data; leave them out or change data.kind");
  }
  WEFT_ASSIGN_OR_RETURN(TaskData task, MakeTask(options.task, {.seed = options.seed,
                                                               .train_size = options.train_size,
                                                               .valid_size = options.valid_size,
                                                               .max_length = options.max_length}));
  data->content_hash = kHashSeed;
  for (const std::vector<TaskExample>* split : {&task.train, &task.valid}) {
    for (const TaskExample& example : *split) {
      data->content_hash = HashPart(example.target, HashPart(example.source, data->content_hash));
    }
  }
  DataOptions chosen = options;
  if (chosen.source_tokenizer.kind.empty()) chosen.source_tokenizer.kind = task.source_tokenizer;
  if (chosen.target_tokenizer.kind.empty()) chosen.target_tokenizer.kind = task.target_tokenizer;
  const std::string train_name = absl::StrCat("task ", options.task, " (train)");
  const std::string valid_name = absl::StrCat("task ", options.task, " (held out)");
  // The vocabulary is that of both splits: the rule, not the sample, says which symbols there are.
  std::vector<TaskExample> all = task.train;
  all.insert(all.end(), task.valid.begin(), task.valid.end());
  if (task.kind == DataKind::kPairs) {
    return FinishPairs(chosen, AsPairs(all), {train_name, AsPairs(task.train)}, {valid_name, AsPairs(task.valid)}, data);
  }
  data->class_names = task.class_names;
  std::vector<absl::string_view> vocabulary;
  for (const TaskExample& example : all) vocabulary.push_back(example.source);
  return FinishLabels(chosen, vocabulary, {train_name, AsLabels(task.train)}, {valid_name, AsLabels(task.valid)}, data);
}

}  // namespace weft
