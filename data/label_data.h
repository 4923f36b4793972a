// Labelled lines: "text TAB class" each. The classes are those of the training file, sorted by text; another one in validation
// is an error that names the line and the allowed ones. Empty lines and lines whose text is blank or gives no tokens are
// skipped and counted as in data/pair_data.h, also their classes; a line without a tab, with several, or without a class is an
// error that names it. Lines come one by one from a file that may be larger than memory; const methods are thread-safe.
#ifndef WEFT_DATA_LABEL_DATA_H_
#define WEFT_DATA_LABEL_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/examples.h"
#include "data/pair_data.h"
#include "data/tokenizer.h"

namespace weft {

struct LabelLine {
  LineKind kind = LineKind::kFull;
  int64_t line = 0;  // from 1
  // Unless kBlank. The label is never blank.
  absl::string_view text;
  absl::string_view label;
  std::vector<absl::string_view> more_texts = {};  // further source columns
};

// The file of one split: a sequence of lines to go through several times.
class LabelSource {
 public:
  // Goes through the file for its hash, from `seed` on. Errors of reading; FailedPrecondition for a file without text.
  static absl::StatusOr<LabelSource> Open(TextSource file, const TableColumns& columns = {}, uint64_t seed = kHashSeed);

  const std::string& name() const { return file_.name(); }
  uint64_t content_hash() const { return content_.hash; }
  int64_t line_count() const { return line_count_; }
  const TableColumns& columns() const { return columns_; }
  // Whether the file is read anew in each pass, since it is large.
  bool is_streamed() const { return file_.is_streamed(); }

  // Calls take(line) with each line, blank ones too, until it returns an error; views are valid in the call. FailedPrecondition
  // for a malformed line: "name:line: ...", and for a file that changed; errors of reading.
  absl::Status ForEach(absl::FunctionRef<absl::Status(const LabelLine& line)> take) const;

 private:
  TextSource file_;
  ContentHash content_;
  TableColumns columns_;
  int64_t line_count_ = 0;
};

// The class names of a training file, sorted. FailedPrecondition for fewer than two; errors of ForEach.
absl::StatusOr<std::vector<std::string>> CollectClasses(const LabelSource& labels);

// Encodes the lines. FailedPrecondition for an unknown symbol or class (with its line), or if nothing is left; errors of
// ForEach and of the cache. REQUIRES: `class_names` sorted or as a task gave them; its order gives the ids.
absl::StatusOr<EncodedLines> EncodeLabels(const LabelSource& labels, const Tokenizer& tokenizer,
                                          absl::Span<const std::string> class_names, EncodeOptions options = {});

}  // namespace weft

#endif  // WEFT_DATA_LABEL_DATA_H_
