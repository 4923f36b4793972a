#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"
#include "data/tasks/task.h"
#include "data/text_file.h"

namespace weft {
namespace {

// A part of the data hash: the length keeps "ab", "c" and "a", "bc" apart.
uint64_t HashPart(absl::string_view part, uint64_t hash) {
  return HashBytes(part, HashBytes(absl::StrCat(part.size(), ":"), hash));
}

// A task's examples as if they were the lines of a file.
TextSource AsFile(std::string name, const std::vector<const std::vector<TaskExample>*>& splits) {
  std::string text;
  for (const std::vector<TaskExample>* split : splits) {
    for (const TaskExample& example : *split) {
      for (const std::string* side : {&example.source, &example.target}) {
        WEFT_CHECK(side->find_first_of("\t\n") == std::string::npos) << name << ": \"" << *side << "\" in a line";
      }
      absl::StrAppend(&text, example.source, "\t", example.target, "\n");
    }
  }
  return TextSource::FromText(std::move(name), std::move(text));
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
  TextSource all = AsFile(train_name, {&task.train, &task.valid});
  TextSource train = AsFile(train_name, {&task.train}), valid = AsFile(valid_name, {&task.valid});
  if (task.kind == DataKind::kPairs) {
    const auto open = [](TextSource file) {
      std::vector<TextSource> files;
      files.push_back(std::move(file));
      return PairSource::Open(std::move(files), /*allow_references=*/false, {});
    };
    WEFT_ASSIGN_OR_RETURN(const PairSource all_pairs, open(std::move(all)));
    WEFT_ASSIGN_OR_RETURN(const PairSource train_pairs, open(std::move(train)));
    WEFT_ASSIGN_OR_RETURN(const PairSource valid_pairs, open(std::move(valid)));
    return FinishPairs(chosen, all_pairs, train_pairs, &valid_pairs, data);
  }
  data->class_names = task.class_names;
  WEFT_ASSIGN_OR_RETURN(const LabelSource all_labels, LabelSource::Open(std::move(all)));
  WEFT_ASSIGN_OR_RETURN(const LabelSource train_labels, LabelSource::Open(std::move(train)));
  WEFT_ASSIGN_OR_RETURN(const LabelSource valid_labels, LabelSource::Open(std::move(valid)));
  return FinishLabels(chosen, all_labels, train_labels, &valid_labels, data);
}

}  // namespace weft
