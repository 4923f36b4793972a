// What the loaders of data/load.h share: one file a kind of data (load_text.cc, load_pairs.cc, load_labels.cc, load_task.cc),
// and the words in which all of them report. Internal to data/load*.cc. Pure functions, thread-safe.
#ifndef WEFT_DATA_LOAD_KINDS_H_
#define WEFT_DATA_LOAD_KINDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/label_data.h"
#include "data/load.h"
#include "data/pair_data.h"
#include "data/text_source.h"

namespace weft {

// Fill `data`, which is new, for one value of options.kind each.
absl::Status LoadText(const DataOptions& options, Dataset* data);
absl::Status LoadPairs(const DataOptions& options, Dataset* data);
absl::Status LoadLabels(const DataOptions& options, Dataset* data);
absl::Status LoadTask(const DataOptions& options, Dataset* data);

// Builds the tokenizers from `vocabulary` and encodes both splits; `valid` may be null. `data` has its hash already.
absl::Status FinishPairs(const DataOptions& options, const PairSource& vocabulary, const PairSource& train,
                         const PairSource* valid, Dataset* data);
// The same for labels, whose class names `data` has already.
absl::Status FinishLabels(const DataOptions& options, const LabelSource& vocabulary, const LabelSource& train,
                          const LabelSource* valid, Dataset* data);

// The examples of a file, or of several. Each adds the text to data->content_hash and what was read to data->report.
absl::Status EvaluationText(const std::string& path, const EvaluationOptions& options, EvaluationData* data);
absl::Status EvaluationPairs(absl::Span<const std::string> paths, const EvaluationOptions& options, EvaluationData* data);
absl::Status EvaluationLabels(const std::string& path, const EvaluationOptions& options, EvaluationData* data);

// The files that the key data.`key` names, which must be there and not empty. Files that have more than storage.in_memory
// bytes together are read in pieces.
absl::StatusOr<std::vector<TextSource>> OpenNamed(absl::Span<const std::string> paths, absl::string_view key,
                                                  const TextStorage& storage);
absl::StatusOr<TextSource> OpenNamed(const std::string& path, absl::string_view key, const TextStorage& storage);

// A copy of `known` or, without one, BuildTokenizer; what that says about the text gets the text's name in front, and what the
// log should say of it is added to `report`. Errors of going through the texts are returned as they are. A known one that is
// not that of the file which the options name is refused.
absl::StatusOr<std::unique_ptr<Tokenizer>> BuildNamed(const Tokenizer* known, const TokenizerOptions& options, TextPieces texts,
                                                      absl::string_view name, std::string* report);

// Lines of a report.
inline constexpr absl::string_view kNoValidation = "valid: none, so there will be no validation";
void Report(Dataset* data, absl::string_view line);
std::string DescribeVocabulary(absl::string_view side, const Tokenizer& tokenizer);
std::string DescribeSet(const ExampleSet& set);

// "; <unk>: 12 of 4000 source tokens (0.3 %)"; nothing for a tokenizer that reserves none.
std::string DescribeUnknown(const Tokenizer& tokenizer, int64_t unknown, int64_t total, absl::string_view side);

}  // namespace weft

#endif  // WEFT_DATA_LOAD_KINDS_H_
