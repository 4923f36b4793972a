#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"
#include "data/text_file.h"
#include "data/utf8.h"

namespace weft {

absl::StatusOr<std::vector<TextSource>> OpenNamed(absl::Span<const std::string> paths, absl::string_view key,
                                                  const TextStorage& storage) {
  int64_t bytes = 0;
  for (const std::string& path : paths) {
    if (path.empty()) return absl::InvalidArgumentError(absl::StrCat("data.", key, ": no file named"));
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) continue;
    const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
    if (!error) bytes += size;
  }
  std::vector<TextSource> files;
  for (const std::string& path : paths) {
    const int64_t in_memory = bytes > storage.in_memory ? 0 : storage.in_memory;
    WEFT_ASSIGN_OR_RETURN(TextSource file, TextSource::Open(path, in_memory, storage.piece_bytes));
    files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<TextSource> OpenNamed(const std::string& path, absl::string_view key, const TextStorage& storage) {
  WEFT_ASSIGN_OR_RETURN(std::vector<TextSource> files, OpenNamed(absl::MakeConstSpan(&path, 1), key, storage));
  return std::move(files[0]);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> BuildNamed(const Tokenizer* known, const TokenizerOptions& options, TextPieces texts,
                                                      absl::string_view name, std::string* report) {
  if (known != nullptr) {
    // A copy as it would be stored: whether there is a <sep> depends on the columns of the new data.
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> copy, Tokenizer::FromSerialized(known->Serialize()));
    if (!options.file.empty()) {
      const absl::StatusOr<std::unique_ptr<Tokenizer>> named = BuildTokenizer(options, {});
      // A file that is gone is not needed any more.
      if (!named.ok() && !absl::IsNotFound(named.status())) return named.status();
      if (named.ok() && (*named)->Fingerprint() != copy->Fingerprint()) {
        return absl::FailedPreconditionError(
            absl::StrCat(FullPath(options.file),
                         ": is not the tokenizer that the checkpoint was trained with: ", DescribeMismatch(**named, *copy)));
      }
    }
    return copy;
  }
  absl::Status read_status;
  const auto read = [&](absl::FunctionRef<absl::Status(absl::string_view)> take) { return read_status = texts(take); };
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = BuildTokenizer(options, read, report);
  WEFT_RETURN_IF_ERROR(read_status);
  if (!options.file.empty()) return tokenizer;
  if (tokenizer.ok() || absl::IsInvalidArgument(tokenizer.status())) return tokenizer;
  return absl::Status(tokenizer.status().code(), absl::StrCat(name, ": ", tokenizer.status().message()));
}

void Report(Dataset* data, absl::string_view line) { absl::StrAppend(&data->report, line, "\n"); }

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

std::string DescribeUnknown(const Tokenizer& tokenizer, int64_t unknown, int64_t total, absl::string_view side) {
  if (tokenizer.unk() < 0) return "";
  const double percent = total == 0 ? 0 : 100 * static_cast<double>(unknown) / static_cast<double>(total);
  return absl::StrFormat("; <unk>: %d of %d%s tokens (%.2g %%)", unknown, total, side, percent);
}

bool HasLearnedTokenizer(const DataOptions& options) {
  for (const TokenizerOptions* side : {&options.source_tokenizer, &options.target_tokenizer}) {
    if (side->kind == "bpe" || side->kind == "unigram" || !side->file.empty()) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Dataset>> LoadData(const DataOptions& options) {
  auto data = std::make_unique<Dataset>();
  if (options.kind != "pairs" && !(options.train_targets.empty() && options.valid_targets.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.train and data.valid: found several files, allowed one with data.kind = ", Quote(options.kind)));
  }
  if (options.kind == "text") {
    WEFT_RETURN_IF_ERROR(LoadText(options, data.get()));
  } else if (options.kind == "pairs") {
    WEFT_RETURN_IF_ERROR(LoadPairs(options, data.get()));
  } else if (options.kind == "labels") {
    WEFT_RETURN_IF_ERROR(LoadLabels(options, data.get()));
  } else if (options.kind == "task") {
    WEFT_RETURN_IF_ERROR(LoadTask(options, data.get()));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("data.kind: found ", Quote(options.kind), ", allowed pairs, text, labels or task"));
  }
  return data;
}

absl::StatusOr<EvaluationData> LoadEvaluationData(absl::Span<const std::string> paths, const EvaluationOptions& options) {
  if (paths.empty() || (paths.size() > 1 && options.kind != DataKind::kPairs)) {
    return absl::InvalidArgumentError(absl::StrCat("found ", paths.size(), " files of data, allowed one for ",
                                                   DataKindName(options.kind),
                                                   "; only pairs may be in several: sources, then targets"));
  }
  EvaluationData data;
  data.content_hash = kHashSeed;
  data.report = "eval: ";
  switch (options.kind) {
    case DataKind::kText:
      WEFT_RETURN_IF_ERROR(EvaluationText(paths[0], options, &data));
      break;
    case DataKind::kPairs:
      WEFT_RETURN_IF_ERROR(EvaluationPairs(paths, options, &data));
      break;
    case DataKind::kLabels:
      WEFT_RETURN_IF_ERROR(EvaluationLabels(paths[0], options, &data));
      break;
  }
  absl::StrAppend(&data.report, DescribeSet(data.examples), "\n");
  return data;
}

absl::StatusOr<EvaluationData> LoadEvaluationData(const std::string& path, const EvaluationOptions& options) {
  return LoadEvaluationData(absl::MakeConstSpan(&path, 1), options);
}

}  // namespace weft
