// Pairs, from one file or from several. One: "source TAB target" a line; in validation, further columns are further accepted
// targets, or the columns that TableColumns names. Several: line i of the second file is the target of line i of the first, and
// lines i of the others are further accepted targets; all must have as many lines.
// Rules, the same for one file and for several (LineKind in data/columns.h): a line of nothing or of spaces only is skipped and
// counted, in all files at once. So is a pair of which one side is blank or gives no tokens. A further target of which that
// holds is ignored. A line without a tab, or a training line with more than one, is an error that names it. No pair is ever
// shifted. Lines come one by one from files that may be larger than memory; nothing here is shared, so const methods are
// thread-safe.
#ifndef WEFT_DATA_PAIR_DATA_H_
#define WEFT_DATA_PAIR_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/columns.h"
#include "data/examples.h"
#include "data/stored_lines.h"
#include "data/text_source.h"
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
  LineKind kind = LineKind::kFull;
  int64_t line = 0;  // from 1
  // Unless kBlank.
  absl::string_view source;
  absl::string_view target;
  std::vector<absl::string_view> more;          // further references, blank ones too
  std::vector<absl::string_view> more_sources;  // further source columns
};

// The files of one split: a sequence of lines to go through several times.
class PairSource {
 public:
  // Goes through the files for their hash, from `seed` on. FailedPrecondition, naming both files and their counts, if one of
  // several has other than as many lines; for a file without text; errors of reading. `columns`: of one file.
  // REQUIRES: at least one file.
  static absl::StatusOr<PairSource> Open(std::vector<TextSource> files, bool allow_references, const TableColumns& columns,
                                         uint64_t seed = kHashSeed);

  // Of the file of sources, and of that of the r-th accepted target.
  const std::string& name() const { return files_[0].name(); }
  const std::string& target_name(int64_t r = 0) const { return files_.size() == 1 ? name() : files_[r + 1].name(); }
  // "a.tsv", or "a.en and a.de".
  std::string Describe() const;
  int64_t line_count() const { return line_count_; }
  // Of the texts of all files in order; from the seed on.
  uint64_t content_hash() const { return contents_.back().hash; }
  // What decides how its lines are read: number of files and columns.
  std::string Layout() const;
  // Whether a file is read anew in each pass, since it is large.
  bool is_streamed() const;

  // Calls take(line) with each line, blank ones too, until it returns an error; views are valid in the call. FailedPrecondition
  // for a malformed line: "name:line: ...", and for a file that changed; errors of reading.
  absl::Status ForEach(absl::FunctionRef<absl::Status(const PairLine& line)> take) const;

 private:
  std::vector<TextSource> files_;
  std::vector<ContentHash> contents_;  // one a file
  bool allow_references_ = false;
  TableColumns columns_;
  int64_t line_count_ = 0;
};

// The longest pairs that are kept, in tokens without <eos>; 0: no limit.
struct PairLimits {
  int64_t source = 0;
  int64_t target = 0;
};

// Takes the ids of lines in order, counts them, and says which are examples.
class LineCounter {
 public:
  // `source_unk`, `target_unk`: ids to count in examples, or -1.
  LineCounter(const PairLimits& limits, int32_t source_unk, int32_t target_unk)
      : limits_(limits), source_unk_(source_unk), target_unk_(target_unk) {}
  bool Keep(const LineIds& line);

  const ReadReport& report() const { return report_; }
  int64_t unknown_source() const { return unknown_source_; }
  int64_t unknown_target() const { return unknown_target_; }

 private:
  PairLimits limits_;
  int32_t source_unk_, target_unk_;
  ReadReport report_;
  int64_t unknown_source_ = 0, unknown_target_ = 0;
};

// A set, and what became of the lines it was made of.
struct EncodedLines {
  ExampleSet set;
  ReadReport report;
  std::vector<int64_t> of_example;  // in validation: the line of each example
  int64_t unknown_source = 0;       // ids of <unk> in the examples
  int64_t unknown_target = 0;
};

struct EncodeOptions {
  bool validation = false;           // the set keeps texts and references, for scoring
  PairLimits limits = {};            // pairs
  ExampleSampler sampler = {};       // what the set shall draw encodings with
  const LineCache* cache = nullptr;  // where the ids shall be, null: in memory. Not with a sampler or in validation
};

// Encodes the pairs. FailedPrecondition for an unknown symbol ("name:line: source: unknown ...") or if no pair is left; errors
// of ForEach and of the cache. REQUIRES: `target` has <bos> and <eos>.
absl::StatusOr<EncodedLines> EncodePairs(const PairSource& pairs, const Tokenizer& source, const Tokenizer& target,
                                         EncodeOptions options = {});

}  // namespace weft

#endif  // WEFT_DATA_PAIR_DATA_H_
