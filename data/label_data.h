// Labelled lines: "text TAB class" each. The classes are those of the training file, sorted by text; another one in validation
// is an error that names the line and the allowed ones. Empty lines and lines whose text gives no tokens are skipped and
// counted as in data/pair_data.h; a line without a tab, with several, or without a class is an error that names it. Pure
// functions, thread-safe.
#ifndef WEFT_DATA_LABEL_DATA_H_
#define WEFT_DATA_LABEL_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/examples.h"
#include "data/pair_data.h"
#include "data/tokenizer.h"

namespace weft {

struct LabelLine {
  int64_t line = 0;  // from 1
  absl::string_view text;
  absl::string_view label;
  std::vector<absl::string_view> more_texts = {};  // further source columns
};

struct LabelLines {
  std::vector<LabelLine> labels;
  ReadReport report;  // `kept` and the empty sides are counted by EncodeLabels
};

// Splits lines into columns, text and class or those that `columns` names; the views point into `text`. FailedPrecondition for
// a malformed line: "name:line: ...".
absl::StatusOr<LabelLines> ParseLabels(absl::string_view text, absl::string_view name, const TableColumns& columns = {});

// The class names of a training file, sorted. FailedPrecondition for fewer than two.
absl::StatusOr<std::vector<std::string>> CollectClasses(const LabelLines& lines, absl::string_view name);

// Encodes the lines and completes `lines->report`; `keep_texts` for validation. FailedPrecondition for an unknown symbol or
// class (with its line), or if nothing is left. REQUIRES: `class_names` sorted or as a task gave them; its order gives the ids.
absl::StatusOr<ExampleSet> EncodeLabels(LabelLines* lines, absl::string_view name, const Tokenizer& tokenizer,
                                        absl::Span<const std::string> class_names, bool keep_texts,
                                        ExampleSampler sampler = {});

}  // namespace weft

#endif  // WEFT_DATA_LABEL_DATA_H_
