#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"
#include "data/text_file.h"

namespace weft {
namespace {

std::vector<absl::string_view> Column(const PairLines& lines, bool source, bool target) {
  std::vector<absl::string_view> texts;
  for (const PairLine& pair : lines.pairs) {
    if (source) texts.push_back(pair.source);
    if (target) texts.push_back(pair.target);
  }
  return texts;
}

}  // namespace

absl::Status FinishPairs(const DataOptions& options, const PairLines& vocabulary, NamedPairs train, NamedPairs valid,
                         Dataset* data) {
  data->kind = DataKind::kPairs;
  TokenizerOptions source_options = options.source_tokenizer;
  TokenizerOptions target_options = options.target_tokenizer;
  source_options.specials = false;
  target_options.specials = true;
  const bool shared = options.shared_tokenizer;
  WEFT_ASSIGN_OR_RETURN(data->target_tokenizer,
                        BuildNamed(options.known_target, target_options, Column(vocabulary, shared, true), train.name));
  const Tokenizer* known_source = shared ? data->target_tokenizer.get() : options.known_source;
  WEFT_ASSIGN_OR_RETURN(data->source_tokenizer,
                        BuildNamed(known_source, source_options, Column(vocabulary, true, false), train.name));
  const auto encode = [&](NamedPairs& split, absl::string_view side, bool keep, ExampleSet* set) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(*set, EncodePairs(&split.lines, split.name, *data->source_tokenizer, *data->target_tokenizer, keep));
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

absl::Status LoadPairs(const DataOptions& options, Dataset* data) {
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
  WEFT_ASSIGN_OR_RETURN(PairLines train, ParsePairs(train_text, train_name, /*allow_references=*/false));
  WEFT_ASSIGN_OR_RETURN(PairLines valid, ParsePairs(valid_text, valid_name, /*allow_references=*/true));
  const PairLines vocabulary = train;
  return FinishPairs(options, vocabulary, {train_name, std::move(train)}, {valid_name, std::move(valid)}, data);
}

absl::Status EvaluationPairs(absl::string_view text, absl::string_view name, const EvaluationOptions& options,
                             EvaluationData* data) {
  WEFT_CHECK(options.source_tokenizer != nullptr && options.target_tokenizer != nullptr);
  WEFT_ASSIGN_OR_RETURN(PairLines lines, ParsePairs(text, name, /*allow_references=*/true));
  WEFT_ASSIGN_OR_RETURN(data->examples, EncodePairs(&lines, name, *options.source_tokenizer, *options.target_tokenizer,
                                                    /*keep_references=*/true));
  absl::StrAppend(&data->report, lines.report.ToString(), "; ");
  return absl::OkStatus();
}

}  // namespace weft
