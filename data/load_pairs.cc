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
    if (source) {
      texts.push_back(pair.source);
      texts.insert(texts.end(), pair.more_sources.begin(), pair.more_sources.end());
    }
    if (target) texts.push_back(pair.target);
  }
  return texts;
}

// The files of one split, as long as lines are views into them.
struct PairTexts {
  std::string name, text;  // of the pairs, or of the sources; an empty name: no such split
  std::vector<std::string> target_names, targets;
};

// Reads the files and adds their texts to the hash of the data.
absl::StatusOr<PairTexts> ReadTexts(const std::string& path, absl::Span<const std::string> target_paths, absl::string_view key,
                                    uint64_t* hash) {
  PairTexts texts;
  WEFT_ASSIGN_OR_RETURN(texts.text, ReadNamed(path, key));
  texts.name = FullPath(path);
  *hash = HashPart(texts.text, *hash);
  for (const std::string& target_path : target_paths) {
    WEFT_ASSIGN_OR_RETURN(std::string text, ReadNamed(target_path, key));
    *hash = HashPart(text, *hash);
    texts.targets.push_back(std::move(text));
    texts.target_names.push_back(FullPath(target_path));
  }
  return texts;
}

absl::StatusOr<PairLines> Parse(const PairTexts& texts, bool allow_references, const TableColumns& columns) {
  if (texts.targets.empty()) return ParsePairs(texts.text, texts.name, allow_references, columns);
  return ParsePairFiles(texts.text, texts.name, texts.targets, texts.target_names);
}

// "a.tsv", or "a.en and a.de".
std::string DescribeFiles(absl::string_view name, const PairLines& lines) {
  std::string text(name);
  for (const std::string& target : lines.target_names) absl::StrAppend(&text, " and ", target);
  return text;
}

}  // namespace

absl::Status FinishPairs(const DataOptions& options, const PairLines& vocabulary, NamedPairs train, NamedPairs valid,
                         Dataset* data) {
  data->kind = DataKind::kPairs;
  if (train.lines.pairs.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(train.name, ": has no pairs (", train.lines.report.ToString(), ")"));
  }
  TokenizerOptions source_options = options.source_tokenizer;
  TokenizerOptions target_options = options.target_tokenizer;
  source_options.specials = false;
  target_options.specials = true;
  const bool shared = options.shared_tokenizer;
  if (shared) source_options = target_options;
  const bool separator = options.columns.source.size() > 1;
  WEFT_ASSIGN_OR_RETURN(data->target_tokenizer, BuildNamed(options.known_target, target_options,
                                                           Column(vocabulary, shared, true), train.name, &data->report));
  if (shared && separator) data->target_tokenizer->ReserveSeparator();
  const Tokenizer* known_source = shared ? data->target_tokenizer.get() : options.known_source;
  WEFT_ASSIGN_OR_RETURN(data->source_tokenizer,
                        BuildNamed(known_source, source_options, Column(vocabulary, true, false), train.name, &data->report));
  if (separator) data->source_tokenizer->ReserveSeparator();
  const ExampleSampler sampler(data->source_tokenizer.get(), source_options.sampling, data->target_tokenizer.get(),
                               target_options.sampling);
  const auto encode = [&](NamedPairs& split, absl::string_view side, bool keep, ExampleSet* set) -> absl::Status {
    const PairLimits limits =
        keep ? PairLimits() : PairLimits{.source = options.max_source_length, .target = options.max_target_length};
    WEFT_ASSIGN_OR_RETURN(*set, EncodePairs(&split.lines, split.name, *data->source_tokenizer, *data->target_tokenizer, keep,
                                            limits, keep ? ExampleSampler() : sampler));
    const std::string unknown =
        DescribeUnknown(data->source_tokenizer.get(), " source", set->size(), [&](int64_t i) { return set->Source(i); }) +
        DescribeUnknown(data->target_tokenizer.get(), " target", set->size(), [&](int64_t i) { return set->Target(i); });
    Report(data, absl::StrCat(side, ": ", DescribeFiles(split.name, split.lines), ": ", split.lines.report.ToString(), "; ",
                              DescribeSet(*set), unknown));
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(encode(train, "train", false, &data->train));
  if (!valid.name.empty()) {
    WEFT_RETURN_IF_ERROR(encode(valid, "valid", true, &data->valid));
    data->valid_lines = {valid.lines.report.lines, std::move(valid.lines.kept_lines)};
  } else {
    Report(data, kNoValidation);
  }
  Report(data, DescribeVocabulary("source", *data->source_tokenizer));
  Report(data, DescribeVocabulary("target", *data->target_tokenizer));
  return absl::OkStatus();
}

absl::Status LoadPairs(const DataOptions& options, Dataset* data) {
  data->content_hash = kHashSeed;
  WEFT_ASSIGN_OR_RETURN(const PairTexts train, ReadTexts(options.train, options.train_targets, "train", &data->content_hash));
  PairTexts valid;
  if (!options.valid.empty()) {
    WEFT_ASSIGN_OR_RETURN(valid, ReadTexts(options.valid, options.valid_targets, "valid", &data->content_hash));
  }
  WEFT_ASSIGN_OR_RETURN(PairLines train_lines, Parse(train, /*allow_references=*/false, options.columns));
  WEFT_ASSIGN_OR_RETURN(PairLines valid_lines, Parse(valid, /*allow_references=*/true, options.columns));
  const PairLines vocabulary = train_lines;
  return FinishPairs(options, vocabulary, {train.name, std::move(train_lines)}, {valid.name, std::move(valid_lines)}, data);
}

absl::Status EvaluationPairs(absl::Span<const std::string> paths, const EvaluationOptions& options, EvaluationData* data) {
  WEFT_CHECK(options.source_tokenizer != nullptr && options.target_tokenizer != nullptr);
  WEFT_ASSIGN_OR_RETURN(const PairTexts texts, ReadTexts(paths[0], paths.subspan(1), "valid", &data->content_hash));
  WEFT_ASSIGN_OR_RETURN(PairLines lines, Parse(texts, /*allow_references=*/true, options.columns));
  WEFT_ASSIGN_OR_RETURN(data->examples, EncodePairs(&lines, texts.name, *options.source_tokenizer, *options.target_tokenizer,
                                                    /*keep_references=*/true));
  absl::StrAppend(&data->report, DescribeFiles(texts.name, lines), ": ", lines.report.ToString(), "; ");
  data->lines = {lines.report.lines, std::move(lines.kept_lines)};
  return absl::OkStatus();
}

}  // namespace weft
