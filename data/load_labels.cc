#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"

namespace weft {
namespace {

absl::StatusOr<LabelSource> OpenLabels(const std::string& path, absl::string_view key, const TextStorage& storage,
                                       const TableColumns& columns, uint64_t seed) {
  WEFT_ASSIGN_OR_RETURN(TextSource file, OpenNamed(path, key, storage));
  return LabelSource::Open(std::move(file), columns, seed);
}

}  // namespace

absl::Status FinishLabels(const DataOptions& options, const LabelSource& vocabulary, const LabelSource& train,
                          const LabelSource* valid, Dataset* data) {
  data->kind = DataKind::kLabels;
  TokenizerOptions tokenizer_options = options.source_tokenizer;
  tokenizer_options.specials = false;
  const auto pieces = [&](absl::FunctionRef<absl::Status(absl::string_view)> take) {
    return vocabulary.ForEach([&](const LabelLine& line) -> absl::Status {
      if (line.kind != LineKind::kFull) return absl::OkStatus();
      WEFT_RETURN_IF_ERROR(take(line.text));
      for (absl::string_view text : line.more_texts) WEFT_RETURN_IF_ERROR(take(text));
      return absl::OkStatus();
    });
  };
  WEFT_ASSIGN_OR_RETURN(data->source_tokenizer,
                        BuildNamed(options.known_source, tokenizer_options, pieces, train.name(), &data->report));
  ReserveSeparators(options.columns, /*shared=*/false, data->source_tokenizer.get(), nullptr);
  const Tokenizer& tokenizer = *data->source_tokenizer;
  const auto encode = [&](const LabelSource& split, absl::string_view side, EncodeOptions how,
                          ExampleSet* set) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(EncodedLines encoded, EncodeLabels(split, tokenizer, data->class_names, std::move(how)));
    *set = std::move(encoded.set);
    Report(data, absl::StrCat(side, ": ", split.name(), ": ", encoded.report.ToString(), "; ", DescribeSet(*set),
                              DescribeUnknown(tokenizer, encoded.unknown_source, set->total_source_tokens(), "")));
    return absl::OkStatus();
  };
  EncodeOptions how;
  how.sampler = ExampleSampler(&tokenizer, tokenizer_options.sampling, nullptr, {});
  const LineCache cache{options.storage.cache, &data->report};
  // Sampling needs the texts, so they and the ids are held then.
  if (train.is_streamed() && !how.sampler.on()) how.cache = &cache;
  WEFT_RETURN_IF_ERROR(encode(train, "train", std::move(how), &data->train));
  if (valid != nullptr) {
    WEFT_RETURN_IF_ERROR(encode(*valid, "valid", {.validation = true}, &data->valid));
  } else {
    Report(data, kNoValidation);
  }
  Report(data, DescribeVocabulary("text", tokenizer));
  Report(data, absl::StrCat("classes: ", data->class_names.size()));
  return absl::OkStatus();
}

absl::Status LoadLabels(const DataOptions& options, Dataset* data) {
  WEFT_ASSIGN_OR_RETURN(const LabelSource train,
                        OpenLabels(options.train, "train", options.storage, options.columns, kHashSeed));
  data->content_hash = train.content_hash();
  std::optional<LabelSource> valid;
  if (!options.valid.empty()) {
    WEFT_ASSIGN_OR_RETURN(valid, OpenLabels(options.valid, "valid", options.storage, options.columns, data->content_hash));
    data->content_hash = valid->content_hash();
  }
  data->class_names = options.known_classes;
  if (data->class_names.empty()) {
    WEFT_ASSIGN_OR_RETURN(data->class_names, CollectClasses(train));
  }
  return FinishLabels(options, train, train, valid.has_value() ? &*valid : nullptr, data);
}

absl::Status EvaluationLabels(const std::string& path, const EvaluationOptions& options, EvaluationData* data) {
  WEFT_CHECK(options.source_tokenizer != nullptr);
  WEFT_ASSIGN_OR_RETURN(const LabelSource labels,
                        OpenLabels(path, "valid", options.storage, options.columns, data->content_hash));
  data->content_hash = labels.content_hash();
  WEFT_ASSIGN_OR_RETURN(EncodedLines encoded,
                        EncodeLabels(labels, *options.source_tokenizer, options.class_names, {.validation = true}));
  data->examples = std::move(encoded.set);
  absl::StrAppend(&data->report, labels.name(), ": ", encoded.report.ToString(), "; ");
  return absl::OkStatus();
}

}  // namespace weft
