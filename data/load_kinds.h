// What the loaders of data/load.h share: one file a kind of data (load_text.cc, load_pairs.cc, load_labels.cc, load_task.cc),
// and the words in which all of them report. Internal to data/load*.cc. Pure functions, thread-safe.
#ifndef WEFT_DATA_LOAD_KINDS_H_
#define WEFT_DATA_LOAD_KINDS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/label_data.h"
#include "data/load.h"
#include "data/pair_data.h"

namespace weft {

// The lines of one split with the name that stands for it in messages; an empty name means there is none.
struct NamedPairs {
  std::string name;
  PairLines lines;
};
struct NamedLabels {
  std::string name;
  LabelLines lines;
};

// Fill `data`, which is new, for one value of options.kind each.
absl::Status LoadText(const DataOptions& options, Dataset* data);
absl::Status LoadPairs(const DataOptions& options, Dataset* data);
absl::Status LoadLabels(const DataOptions& options, Dataset* data);
absl::Status LoadTask(const DataOptions& options, Dataset* data);

// Builds the tokenizers from `vocabulary` and encodes both splits.
absl::Status FinishPairs(const DataOptions& options, const PairLines& vocabulary, NamedPairs train, NamedPairs valid,
                         Dataset* data);
// The same for labels, whose class names `data` has already.
absl::Status FinishLabels(const DataOptions& options, absl::Span<const absl::string_view> vocabulary, NamedLabels train,
                          NamedLabels valid, Dataset* data);

// The examples of a file, or of several. Each adds the text to data->content_hash and what was read to data->report.
absl::Status EvaluationText(const std::string& path, const EvaluationOptions& options, EvaluationData* data);
absl::Status EvaluationPairs(absl::Span<const std::string> paths, const EvaluationOptions& options, EvaluationData* data);
absl::Status EvaluationLabels(const std::string& path, const EvaluationOptions& options, EvaluationData* data);

// The text of a file named by the key data.`key`, which must be there and not empty.
absl::StatusOr<std::string> ReadNamed(const std::string& path, absl::string_view key);

// A part of the data hash: the length keeps "ab", "c" and "a", "bc" apart.
uint64_t HashPart(absl::string_view part, uint64_t hash);

// A copy of `known` or, without one, BuildTokenizer; what that says about the text gets the text's name in front, and what the
// log should say of it is added to `report`. A known one that is not that of the file which the options name is refused.
absl::StatusOr<std::unique_ptr<Tokenizer>> BuildNamed(const Tokenizer* known, const TokenizerOptions& options, TextPieces texts,
                                                      absl::string_view name, std::string* report);
absl::StatusOr<std::unique_ptr<Tokenizer>> BuildNamed(const Tokenizer* known, const TokenizerOptions& options,
                                                      absl::Span<const absl::string_view> texts, absl::string_view name,
                                                      std::string* report);

// Lines of a report.
inline constexpr absl::string_view kNoValidation = "valid: none, so there will be no validation";
void Report(Dataset* data, absl::string_view line);
std::string DescribeVocabulary(absl::string_view side, const Tokenizer& tokenizer);
std::string DescribeSet(const ExampleSet& set);

// "; <unk>: 12 of 4000 source tokens (0.3 %)" of the ids that get(0) .. get(size - 1) are; nothing for a tokenizer that
// reserves none.
std::string DescribeUnknown(int64_t unknown, int64_t total, absl::string_view side);
std::string DescribeUnknown(const Tokenizer* tokenizer, absl::string_view side, int64_t size,
                            absl::FunctionRef<absl::Span<const int32_t>(int64_t)> get);

}  // namespace weft

#endif  // WEFT_DATA_LOAD_KINDS_H_
