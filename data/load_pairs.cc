#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"

namespace weft {
namespace {

// The files of one split: of the pairs, or of the sources and then the targets.
absl::StatusOr<PairSource> OpenPairs(const std::string& path, absl::Span<const std::string> target_paths, absl::string_view key,
                                     const TextStorage& storage, const TableColumns& columns, uint64_t seed) {
  std::vector<std::string> paths = {path};
  paths.insert(paths.end(), target_paths.begin(), target_paths.end());
  WEFT_ASSIGN_OR_RETURN(std::vector<TextSource> files, OpenNamed(paths, key, storage));
  return PairSource::Open(std::move(files), /*allow_references=*/key == "valid", columns, seed);
}

// The error for files in which BuildFromPairs found none.
absl::Status NoPairs(const PairSource& pairs) {
  LineCounter counter({}, -1, -1);
  WEFT_RETURN_IF_ERROR(pairs.ForEach([&](const PairLine& pair) {
    counter.Keep({.blank = pair.kind == LineKind::kBlank});
    return absl::OkStatus();
  }));
  return absl::FailedPreconditionError(absl::StrCat(pairs.name(), ": has no pairs (", counter.report().ToString(), ")"));
}

// A copy of `known`, or a new tokenizer of the columns of one side or both.
absl::StatusOr<std::unique_ptr<Tokenizer>> BuildFromPairs(const Tokenizer* known, const TokenizerOptions& options,
                                                          const PairSource& pairs, bool source, bool target,
                                                          std::string* report) {
  int64_t count = 0;
  const auto pieces = [&](absl::FunctionRef<absl::Status(absl::string_view)> take) {
    return pairs.ForEach([&](const PairLine& pair) -> absl::Status {
      if (pair.kind != LineKind::kFull) return absl::OkStatus();
      ++count;
      if (source) {
        WEFT_RETURN_IF_ERROR(take(pair.source));
        for (absl::string_view text : pair.more_sources) WEFT_RETURN_IF_ERROR(take(text));
      }
      return target ? take(pair.target) : absl::OkStatus();
    });
  };
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = BuildNamed(known, options, pieces, pairs.name(), report);
  // Without any, rather that than what the tokenizer lacks.
  if (absl::IsFailedPrecondition(tokenizer.status()) && known == nullptr && options.file.empty() && count == 0) {
    return NoPairs(pairs);
  }
  return tokenizer;
}

}  // namespace

absl::Status FinishPairs(const DataOptions& options, const PairSource& vocabulary, const PairSource& train,
                         const PairSource* valid, Dataset* data) {
  data->kind = DataKind::kPairs;
  TokenizerOptions source_options = options.source_tokenizer;
  TokenizerOptions target_options = options.target_tokenizer;
  source_options.specials = false;
  target_options.specials = true;
  const bool shared = options.shared_tokenizer;
  if (shared) source_options = target_options;
  WEFT_ASSIGN_OR_RETURN(data->target_tokenizer,
                        BuildFromPairs(options.known_target, target_options, vocabulary, shared, true, &data->report));
  const Tokenizer* known_source = shared ? data->target_tokenizer.get() : options.known_source;
  WEFT_ASSIGN_OR_RETURN(data->source_tokenizer,
                        BuildFromPairs(known_source, source_options, vocabulary, true, false, &data->report));
  ReserveSeparators(options.columns, shared, data->source_tokenizer.get(), data->target_tokenizer.get());
  const Tokenizer &source_tokenizer = *data->source_tokenizer, &target_tokenizer = *data->target_tokenizer;
  const auto encode = [&](const PairSource& split, absl::string_view side, EncodeOptions how, ExampleSet* set,
                          ExampleLines* lines) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(EncodedLines encoded, EncodePairs(split, source_tokenizer, target_tokenizer, std::move(how)));
    *set = std::move(encoded.set);
    *lines = {encoded.report.lines, std::move(encoded.of_example)};
    const int64_t target_tokens = set->total_target_tokens() - set->size();
    Report(data, absl::StrCat(side, ": ", split.Describe(), ": ", encoded.report.ToString(), "; ", DescribeSet(*set),
                              DescribeUnknown(source_tokenizer, encoded.unknown_source, set->total_source_tokens(), " source"),
                              DescribeUnknown(target_tokenizer, encoded.unknown_target, target_tokens, " target")));
    return absl::OkStatus();
  };
  EncodeOptions how;
  how.limits = {.source = options.max_source_length, .target = options.max_target_length};
  how.sampler = ExampleSampler(&source_tokenizer, source_options.sampling, &target_tokenizer, target_options.sampling);
  const LineCache cache{options.storage.cache, &data->report};
  // Sampling needs the texts, so they and the ids are held then.
  if (train.is_streamed() && !how.sampler.on()) how.cache = &cache;
  ExampleLines train_lines;
  WEFT_RETURN_IF_ERROR(encode(train, "train", std::move(how), &data->train, &train_lines));
  if (valid != nullptr) {
    WEFT_RETURN_IF_ERROR(encode(*valid, "valid", {.validation = true}, &data->valid, &data->valid_lines));
  } else {
    Report(data, kNoValidation);
  }
  Report(data, DescribeVocabulary("source", source_tokenizer));
  Report(data, DescribeVocabulary("target", target_tokenizer));
  return absl::OkStatus();
}

absl::Status LoadPairs(const DataOptions& options, Dataset* data) {
  WEFT_ASSIGN_OR_RETURN(const PairSource train,
                        OpenPairs(options.train, options.train_targets, "train", options.storage, options.columns, kHashSeed));
  data->content_hash = train.content_hash();
  std::optional<PairSource> valid;
  if (!options.valid.empty()) {
    WEFT_ASSIGN_OR_RETURN(
        valid, OpenPairs(options.valid, options.valid_targets, "valid", options.storage, options.columns, data->content_hash));
    data->content_hash = valid->content_hash();
  }
  return FinishPairs(options, train, train, valid.has_value() ? &*valid : nullptr, data);
}

absl::Status EvaluationPairs(absl::Span<const std::string> paths, const EvaluationOptions& options, EvaluationData* data) {
  WEFT_CHECK(options.source_tokenizer != nullptr && options.target_tokenizer != nullptr);
  WEFT_ASSIGN_OR_RETURN(const PairSource pairs,
                        OpenPairs(paths[0], paths.subspan(1), "valid", options.storage, options.columns, data->content_hash));
  data->content_hash = pairs.content_hash();
  WEFT_ASSIGN_OR_RETURN(EncodedLines encoded,
                        EncodePairs(pairs, *options.source_tokenizer, *options.target_tokenizer, {.validation = true}));
  absl::StrAppend(&data->report, pairs.Describe(), ": ", encoded.report.ToString(), "; ");
  data->examples = std::move(encoded.set);
  data->lines = {encoded.report.lines, std::move(encoded.of_example)};
  return absl::OkStatus();
}

}  // namespace weft
