#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"
#include "data/text_file.h"

namespace weft {

absl::Status FinishLabels(const DataOptions& options, absl::Span<const absl::string_view> vocabulary, NamedLabels train,
                          NamedLabels valid, Dataset* data) {
  data->kind = DataKind::kLabels;
  TokenizerOptions tokenizer_options = options.source_tokenizer;
  tokenizer_options.specials = false;
  WEFT_ASSIGN_OR_RETURN(data->source_tokenizer,
                        BuildNamed(options.known_source, tokenizer_options, vocabulary, train.name, &data->report));
  if (options.columns.source.size() > 1) data->source_tokenizer->ReserveSeparator();
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

absl::Status LoadLabels(const DataOptions& options, Dataset* data) {
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
  WEFT_ASSIGN_OR_RETURN(LabelLines train, ParseLabels(train_text, train_name, options.columns));
  WEFT_ASSIGN_OR_RETURN(LabelLines valid, ParseLabels(valid_text, valid_name, options.columns));
  data->class_names = options.known_classes;
  if (data->class_names.empty()) {
    WEFT_ASSIGN_OR_RETURN(data->class_names, CollectClasses(train, train_name));
  }
  std::vector<absl::string_view> vocabulary;
  for (const LabelLine& line : train.labels) {
    vocabulary.push_back(line.text);
    vocabulary.insert(vocabulary.end(), line.more_texts.begin(), line.more_texts.end());
  }
  return FinishLabels(options, vocabulary, {train_name, std::move(train)}, {valid_name, std::move(valid)}, data);
}

absl::Status EvaluationLabels(const std::string& path, const EvaluationOptions& options, EvaluationData* data) {
  WEFT_CHECK(options.source_tokenizer != nullptr);
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadNamed(path, "valid"));
  const std::string name = FullPath(path);
  data->content_hash = HashPart(text, data->content_hash);
  WEFT_ASSIGN_OR_RETURN(LabelLines lines, ParseLabels(text, name, options.columns));
  WEFT_ASSIGN_OR_RETURN(data->examples, EncodeLabels(&lines, name, *options.source_tokenizer, options.class_names,
                                                     /*keep_texts=*/true));
  absl::StrAppend(&data->report, name, ": ", lines.report.ToString(), "; ");
  return absl::OkStatus();
}

}  // namespace weft
