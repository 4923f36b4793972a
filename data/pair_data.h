// Tab-separated pairs: "source TAB target" a line; in validation, further columns are further accepted targets.
// Rules: a line of nothing or of spaces only is skipped and counted. A pair of which one side gives no tokens is skipped and
// counted (with char, "  " gives tokens; with word it does not). An empty further column is ignored. A line without a tab, or
// a training line with more than one, is an error that names it. Views point into the text, which must outlive them.
// Pure functions, thread-safe.
#ifndef WEFT_DATA_PAIR_DATA_H_
#define WEFT_DATA_PAIR_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/examples.h"
#include "data/tokenizer.h"

namespace weft {

// What happened to the lines of a file.
struct ReadReport {
  int64_t lines = 0;
  int64_t kept = 0;
  int64_t empty_lines = 0;       // skipped
  int64_t empty_sides = 0;       // skipped: a side without tokens
  int64_t first_empty_side = 0;  // line number of the first of them
  // "5 lines, 3 kept, skipped 1 empty line and 1 with an empty side (first: line 3)".
  std::string ToString() const;
};

struct PairLine {
  int64_t line = 0;  // from 1
  absl::string_view source;
  absl::string_view target;
  std::vector<absl::string_view> more;  // further references, none of them empty
};

struct PairLines {
  std::vector<PairLine> pairs;
  ReadReport report;  // `kept` and the empty sides are counted by EncodePairs
};

// Splits lines into columns. FailedPrecondition for a malformed line: "name:line: ...".
absl::StatusOr<PairLines> ParsePairs(absl::string_view text, absl::string_view name, bool allow_references);

// Encodes the pairs and completes `lines->report`. With `keep_references` the set keeps texts and references, for scoring.
// FailedPrecondition for an unknown symbol ("name:line: source: unknown ...") or if no pair is left. `sampler`: what the set
// shall draw encodings with.
// REQUIRES: `target` has <bos> and <eos>.
absl::StatusOr<ExampleSet> EncodePairs(PairLines* lines, absl::string_view name, const Tokenizer& source,
                                       const Tokenizer& target, bool keep_references, ExampleSampler sampler = {});

// The ids of one column: "name:line: side: unknown ..." for a symbol without id. Appends to `ids`.
absl::Status EncodeColumn(const Tokenizer& tokenizer, absl::string_view text, absl::string_view name, int64_t line,
                          absl::string_view side, std::vector<int32_t>* ids);

}  // namespace weft

#endif  // WEFT_DATA_PAIR_DATA_H_
