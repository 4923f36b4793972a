#include "data/load.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/label_data.h"
#include "data/pair_data.h"
#include "data/tasks/task.h"
#include "data/text_data.h"
#include "data/text_file.h"

namespace weft {
namespace {

using TokenizerOr = absl::StatusOr<std::unique_ptr<Tokenizer>>;

// A part of the data hash: the length keeps "ab", "c" and "a", "bc" apart.
uint64_t HashPart(absl::string_view part, uint64_t hash) {
  return HashBytes(part, HashBytes(absl::StrCat(part.size(), ":"), hash));
}

void Report(Dataset* data, absl::string_view line) { absl::StrAppend(&data->report, line, "\n"); }

// A copy of `known` or, without one, BuildTokenizer; what that says about the text gets the text's name in front. A known one
// that is not that of the file which the options name is refused.
TokenizerOr BuildNamed(const Tokenizer* known, const TokenizerOptions& options, absl::Span<const absl::string_view> texts,
                       absl::string_view name, Dataset* data) {
  if (known != nullptr) {
    if (!options.file.empty()) {
      const TokenizerOr named = BuildTokenizer(options, {});
      // A file that is gone is not needed any more.
      if (!named.ok() && !absl::IsNotFound(named.status())) return named.status();
      if (named.ok() && (*named)->Fingerprint() != known->Fingerprint()) {
        return absl::FailedPreconditionError(
            absl::StrCat(FullPath(options.file),
                         ": is not the tokenizer that the checkpoint was trained with: ", DescribeMismatch(**named, *known)));
      }
    }
    return Tokenizer::FromSerialized(known->Serialize());
  }
  TokenizerOr tokenizer = BuildTokenizer(options, texts, &data->report);
  if (!options.file.empty()) return tokenizer;
  if (tokenizer.ok() || absl::IsInvalidArgument(tokenizer.status())) return tokenizer;
  return absl::Status(tokenizer.status().code(), absl::StrCat(name, ": ", tokenizer.status().message()));
}

std::string DescribeVocabulary(absl::string_view side, const Tokenizer& tokenizer) {
  return absl::StrCat(side, " tokenizer: ", tokenizer.kind(), ", ", tokenizer.size(), " ids",
                      tokenizer.bos() >= 0 ? " with <bos> and <eos>" : "",
                      absl::StrFormat(", hash %016x", tokenizer.Fingerprint()));
}

std::string DescribeSet(const ExampleSet& set) {
  switch (set.kind()) {
    case DataKind::kText:
      return absl::StrCat(set.size(), " windows of ", set.max_target_length(), " tokens");
    case DataKind::kPairs:
      return absl::StrCat(set.size(), " pairs, ", set.total_source_tokens(), " source tokens (longest ",
                          set.max_source_length(), "), ", set.total_target_tokens(), " target tokens with <eos> (longest ",
                          set.max_target_length(), ")");
    case DataKind::kLabels:
      return absl::StrCat(set.size(), " labelled texts, ", set.total_source_tokens(), " tokens (longest ",
                          set.max_source_length(), ")");
  }
  return "";
}

// "; <unk>: 12 of 4000 source tokens (0.3 %)"; nothing for a tokenizer that reserves none.
template <class Get>
std::string DescribeUnknown(const Tokenizer* tokenizer, const char* side, int64_t size, const Get& ids_of) {
  if (tokenizer == nullptr || tokenizer->unk() < 0) return "";
  int64_t unknown = 0, total = 0;
  for (int64_t i = 0; i < size; ++i) {
    const absl::Span<const int32_t> ids = ids_of(i);
    unknown += std::count(ids.begin(), ids.end(), tokenizer->unk());
    total += static_cast<int64_t>(ids.size());
  }
  const double percent = total == 0 ? 0 : 100 * static_cast<double>(unknown) / static_cast<double>(total);
  return absl::StrFormat("; <unk>: %d of %d%s tokens (%.2g %%)", unknown, total, side, percent);
}

constexpr absl::string_view kNoValidation = "valid: none, so there will be no validation";

absl::StatusOr<std::string> ReadNamed(const std::string& path, absl::string_view key) {
  if (path.empty()) return absl::InvalidArgumentError(absl::StrCat("data.", key, ": no file named"));
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
  if (text.empty()) return absl::FailedPreconditionError(absl::StrCat(FullPath(path), ": is empty"));
  return text;
}

absl::Status LoadText(const DataOptions& options, Dataset* data) {
  if (options.window < 1) {
    return absl::InvalidArgumentError(absl::StrCat("data.window: found ", options.window, ", allowed from 1 on (tokens)"));
  }
  // Checks the fraction alone, before any file is read.
  WEFT_RETURN_IF_ERROR(ValidationStart(int64_t{1} << 60, options.valid_fraction, "").status());
  if (options.valid_fraction > 0.0 && !options.valid.empty()) {
    return absl::InvalidArgumentError("data.valid and data.valid_fraction are both set; one of them says what to validate on");
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadNamed(options.train, "train"));
  const std::string name = FullPath(options.train);
  TokenizerOptions tokenizer_options = options.target_tokenizer;
  if (tokenizer_options.sampling.on()) {
    return absl::InvalidArgumentError(
        "data.tokenizer.sampling: is for pairs and labels; the windows of a text have one encoding");
  }
  tokenizer_options.specials = false;
  // The vocabulary is that of the whole file, the part for validation included: both come from one text.
  WEFT_ASSIGN_OR_RETURN(data->target_tokenizer, BuildNamed(options.known_target, tokenizer_options, {text}, name, data));
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> stream, EncodeText(*data->target_tokenizer, text, name));
  const int64_t tokens = static_cast<int64_t>(stream.size());
  WEFT_ASSIGN_OR_RETURN(const int64_t start, ValidationStart(tokens, options.valid_fraction, name));
  std::vector<int32_t> valid_stream(stream.begin() + start, stream.end());
  std::string valid_name = name;
  data->content_hash = HashPart(text, kHashSeed);
  if (!options.valid.empty()) {
    valid_name = FullPath(options.valid);
    WEFT_ASSIGN_OR_RETURN(const std::string valid_text, ReadNamed(options.valid, "valid"));
    data->content_hash = HashPart(valid_text, data->content_hash);
    WEFT_ASSIGN_OR_RETURN(valid_stream, EncodeText(*data->target_tokenizer, valid_text, valid_name));
  }
  stream.resize(start);
  const int64_t valid_tokens = static_cast<int64_t>(valid_stream.size());
  const auto unknown = [&](const std::vector<int32_t>& ids) {
    return DescribeUnknown(data->target_tokenizer.get(), "", 1, [&](int64_t) { return absl::MakeConstSpan(ids); });
  };
  const std::string train_unknown = unknown(stream), valid_unknown = unknown(valid_stream);
  WEFT_ASSIGN_OR_RETURN(data->train, TrainingWindows(std::move(stream), options.window, name));
  Report(data, absl::StrCat("train: ", name, ": ", start, " tokens, ", DescribeSet(data->train), train_unknown));
  if (valid_tokens > 0 || !options.valid.empty()) {
    WEFT_ASSIGN_OR_RETURN(data->valid, ValidationWindows(std::move(valid_stream), options.window, valid_name));
    Report(data, absl::StrCat("valid: ", valid_name, ": ", valid_tokens, " tokens, ", DescribeSet(data->valid), valid_unknown));
  } else {
    Report(data, kNoValidation);
  }
  Report(data, DescribeVocabulary("text", *data->target_tokenizer));
  return absl::OkStatus();
}

// The lines of one split with the name that stands for it in messages.
struct NamedPairs {
  std::string name;
  PairLines lines;
};
struct NamedLabels {
  std::string name;
  LabelLines lines;
};

std::vector<absl::string_view> Column(const PairLines& lines, bool source, bool target) {
  std::vector<absl::string_view> texts;
  for (const PairLine& pair : lines.pairs) {
    if (source) texts.push_back(pair.source);
    if (target) texts.push_back(pair.target);
  }
  return texts;
}

// Builds the tokenizers from `vocabulary` and encodes both splits; an empty name of `valid` means none.
absl::Status FinishPairs(const DataOptions& options, const PairLines& vocabulary, NamedPairs train, NamedPairs valid,
                         Dataset* data) {
  data->kind = DataKind::kPairs;
  TokenizerOptions source_options = options.source_tokenizer;
  TokenizerOptions target_options = options.target_tokenizer;
  source_options.specials = false;
  target_options.specials = true;
  const bool shared = options.shared_tokenizer;
  if (shared) source_options = target_options;
  WEFT_ASSIGN_OR_RETURN(data->target_tokenizer,
                        BuildNamed(options.known_target, target_options, Column(vocabulary, shared, true), train.name, data));
  const Tokenizer* known_source = shared ? data->target_tokenizer.get() : options.known_source;
  WEFT_ASSIGN_OR_RETURN(data->source_tokenizer,
                        BuildNamed(known_source, source_options, Column(vocabulary, true, false), train.name, data));
  const ExampleSampler sampler(data->source_tokenizer.get(), source_options.sampling, data->target_tokenizer.get(),
                               target_options.sampling);
  const auto encode = [&](NamedPairs& split, absl::string_view side, bool keep, ExampleSet* set) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(*set, EncodePairs(&split.lines, split.name, *data->source_tokenizer, *data->target_tokenizer, keep,
                                            keep ? ExampleSampler() : sampler));
    const std::string unknown =
        DescribeUnknown(data->source_tokenizer.get(), " source", set->size(), [&](int64_t i) { return set->Source(i); }) +
        DescribeUnknown(data->target_tokenizer.get(), " target", set->size(), [&](int64_t i) { return set->Target(i); });
    Report(data, absl::StrCat(side, ": ", split.name, ": ", split.lines.report.ToString(), "; ", DescribeSet(*set), unknown));
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(encode(train, "train", false, &data->train));
  if (!valid.name.empty()) {
    WEFT_RETURN_IF_ERROR(encode(valid, "valid", true, &data->valid));
  } else {
    Report(data, kNoValidation);
  }
  Report(data, DescribeVocabulary("source", *data->source_tokenizer));
  Report(data, DescribeVocabulary("target", *data->target_tokenizer));
  return absl::OkStatus();
}

absl::Status FinishLabels(const DataOptions& options, absl::Span<const absl::string_view> vocabulary, NamedLabels train,
                          NamedLabels valid, Dataset* data) {
  data->kind = DataKind::kLabels;
  TokenizerOptions tokenizer_options = options.source_tokenizer;
  tokenizer_options.specials = false;
  WEFT_ASSIGN_OR_RETURN(data->source_tokenizer,
                        BuildNamed(options.known_source, tokenizer_options, vocabulary, train.name, data));
  const ExampleSampler sampler(data->source_tokenizer.get(), tokenizer_options.sampling, nullptr, {});
  const auto encode = [&](NamedLabels& split, absl::string_view side, bool keep, ExampleSet* set) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(*set, EncodeLabels(&split.lines, split.name, *data->source_tokenizer, data->class_names, keep,
                                             keep ? ExampleSampler() : sampler));
    const std::string unknown =
        DescribeUnknown(data->source_tokenizer.get(), "", set->size(), [&](int64_t i) { return set->Source(i); });
    Report(data, absl::StrCat(side, ": ", split.name, ": ", split.lines.report.ToString(), "; ", DescribeSet(*set), unknown));
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(encode(train, "train", false, &data->train));
  if (!valid.name.empty()) {
    WEFT_RETURN_IF_ERROR(encode(valid, "valid", true, &data->valid));
  } else {
    Report(data, kNoValidation);
  }
  Report(data, DescribeVocabulary("text", *data->source_tokenizer));
  Report(data, absl::StrCat("classes: ", data->class_names.size()));
  return absl::OkStatus();
}

absl::Status LoadPairsOrLabels(const DataOptions& options, Dataset* data) {
  // Both texts live until the examples are encoded: the lines are views into them.
  WEFT_ASSIGN_OR_RETURN(const std::string train_text, ReadNamed(options.train, "train"));
  std::string valid_text;
  data->content_hash = HashPart(train_text, kHashSeed);
  const std::string train_name = FullPath(options.train);
  std::string valid_name;
  if (!options.valid.empty()) {
    WEFT_ASSIGN_OR_RETURN(valid_text, ReadNamed(options.valid, "valid"));
    data->content_hash = HashPart(valid_text, data->content_hash);
    valid_name = FullPath(options.valid);
  }
  if (options.kind == "pairs") {
    WEFT_ASSIGN_OR_RETURN(PairLines train, ParsePairs(train_text, train_name, /*allow_references=*/false));
    WEFT_ASSIGN_OR_RETURN(PairLines valid, ParsePairs(valid_text, valid_name, /*allow_references=*/true));
    const PairLines vocabulary = train;
    return FinishPairs(options, vocabulary, {train_name, std::move(train)}, {valid_name, std::move(valid)}, data);
  }
  WEFT_ASSIGN_OR_RETURN(LabelLines train, ParseLabels(train_text, train_name));
  WEFT_ASSIGN_OR_RETURN(LabelLines valid, ParseLabels(valid_text, valid_name));
  data->class_names = options.known_classes;
  if (data->class_names.empty()) {
    WEFT_ASSIGN_OR_RETURN(data->class_names, CollectClasses(train, train_name));
  }
  std::vector<absl::string_view> vocabulary;
  for (const LabelLine& line : train.labels) vocabulary.push_back(line.text);
  return FinishLabels(options, vocabulary, {train_name, std::move(train)}, {valid_name, std::move(valid)}, data);
}

// A task's examples as if they had been the lines of a file.
PairLines AsPairs(const std::vector<TaskExample>& examples) {
  PairLines out;
  for (const TaskExample& example : examples) {
    out.pairs.push_back({.line = ++out.report.lines, .source = example.source, .target = example.target, .more = {}});
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

}  // namespace

bool HasLearnedTokenizer(const DataOptions& options) {
  for (const TokenizerOptions* side : {&options.source_tokenizer, &options.target_tokenizer}) {
    if (side->kind == "bpe" || side->kind == "unigram" || !side->file.empty()) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Dataset>> LoadData(const DataOptions& options) {
  auto data = std::make_unique<Dataset>();
  if (options.kind == "text") {
    WEFT_RETURN_IF_ERROR(LoadText(options, data.get()));
  } else if (options.kind == "pairs" || options.kind == "labels") {
    WEFT_RETURN_IF_ERROR(LoadPairsOrLabels(options, data.get()));
  } else if (options.kind == "task") {
    WEFT_RETURN_IF_ERROR(LoadTask(options, data.get()));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("data.kind: found \"", options.kind, "\", allowed pairs, text, labels or task"));
  }
  return data;
}

absl::StatusOr<EvaluationData> LoadEvaluationData(const std::string& path, const EvaluationOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadNamed(path, "valid"));
  const std::string name = FullPath(path);
  EvaluationData data;
  data.content_hash = HashPart(text, kHashSeed);
  data.report = absl::StrCat("eval: ", name, ": ");
  switch (options.kind) {
    case DataKind::kText: {
      WEFT_CHECK(options.target_tokenizer != nullptr);
      WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> stream, EncodeText(*options.target_tokenizer, text, name));
      absl::StrAppend(&data.report, stream.size(), " tokens; ");
      WEFT_ASSIGN_OR_RETURN(data.examples, ValidationWindows(std::move(stream), options.window, name));
      break;
    }
    case DataKind::kPairs: {
      WEFT_CHECK(options.source_tokenizer != nullptr && options.target_tokenizer != nullptr);
      WEFT_ASSIGN_OR_RETURN(PairLines lines, ParsePairs(text, name, /*allow_references=*/true));
      WEFT_ASSIGN_OR_RETURN(data.examples, EncodePairs(&lines, name, *options.source_tokenizer, *options.target_tokenizer,
                                                       /*keep_references=*/true));
      absl::StrAppend(&data.report, lines.report.ToString(), "; ");
      break;
    }
    case DataKind::kLabels: {
      WEFT_CHECK(options.source_tokenizer != nullptr);
      WEFT_ASSIGN_OR_RETURN(LabelLines lines, ParseLabels(text, name));
      WEFT_ASSIGN_OR_RETURN(data.examples, EncodeLabels(&lines, name, *options.source_tokenizer, options.class_names,
                                                        /*keep_texts=*/true));
      absl::StrAppend(&data.report, lines.report.ToString(), "; ");
      break;
    }
  }
  absl::StrAppend(&data.report, DescribeSet(data.examples), "\n");
  return data;
}

}  // namespace weft
