// Pairs, from one file or from several. One: "source TAB target" a line; in validation, further columns are further accepted
// targets, or the columns that TableColumns names. Several: line i of the second file is the target of line i of the first, and
// lines i of the others are further accepted targets; all must have as many lines.
// Rules: a line of nothing or of spaces only is skipped and counted, in all files at once. A pair of which one side gives no
// tokens is skipped and counted (with char, "  " gives tokens in a column; with word it does not). An empty further target is
// ignored. A line without a tab, or a training line with more than one, is an error that names it. No pair is ever shifted.
// Views point into the texts, which must outlive them. Pure functions, thread-safe.
#ifndef WEFT_DATA_PAIR_DATA_H_
#define WEFT_DATA_PAIR_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/columns.h"
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
  int64_t too_long = 0;          // left out: beyond a PairLimits
  int64_t first_too_long = 0;    // line number of the first of them
  // "5 lines, 3 kept, skipped 1 empty line and 1 with an empty side (first: line 3)".
  std::string ToString() const;
};

struct PairLine {
  int64_t line = 0;  // from 1
  absl::string_view source;
  absl::string_view target;
  std::vector<absl::string_view> more;          // further references, empty ones too
  std::vector<absl::string_view> more_sources;  // further source columns
};

struct PairLines {
  std::vector<PairLine> pairs;
  // Of pairs in several files: the files of the targets, in the order of `target` and `more`.
  std::vector<std::string> target_names;
  ReadReport report;                // `kept` and what follows the empty lines are counted by EncodePairs
  std::vector<int64_t> kept_lines;  // the line of each example, by EncodePairs
};

// Splits lines into columns. FailedPrecondition for a malformed line: "name:line: ...".
absl::StatusOr<PairLines> ParsePairs(absl::string_view text, absl::string_view name, bool allow_references,
                                     const TableColumns& columns = {});

// The lines of sources, and of one or more files of targets. FailedPrecondition, naming both files and their counts, if one has
// other than `source` lines. REQUIRES: as many names as targets, at least one.
absl::StatusOr<PairLines> ParsePairFiles(absl::string_view source, absl::string_view source_name,
                                         absl::Span<const std::string> targets, absl::Span<const std::string> target_names);

// The longest pairs that are kept, in tokens without <eos>; 0: no limit.
struct PairLimits {
  int64_t source = 0;
  int64_t target = 0;
};

// Encodes the pairs and completes `lines`. With `keep_references` the set keeps texts and references, for scoring.
// FailedPrecondition for an unknown symbol ("name:line: source: unknown ...") or if no pair is left. `sampler`: what the set
// shall draw encodings with.
// REQUIRES: `target` has <bos> and <eos>.
absl::StatusOr<ExampleSet> EncodePairs(PairLines* lines, absl::string_view name, const Tokenizer& source,
                                       const Tokenizer& target, bool keep_references, const PairLimits& limits = {},
                                       ExampleSampler sampler = {});

}  // namespace weft

#endif  // WEFT_DATA_PAIR_DATA_H_
