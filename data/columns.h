// Which columns of a tab-separated file are the source and the target of a line, which lines are examples, and how several
// columns become one source: their ids one after the other with the id <sep> between them, which never arises from text. Pure
// functions, thread-safe.
#ifndef WEFT_DATA_COLUMNS_H_
#define WEFT_DATA_COLUMNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/tokenizer.h"

namespace weft {

// Numbers of columns, from 1.
struct TableColumns {
  std::vector<int64_t> source = {1};  // joined in this order
  int64_t target = 2;                 // of labels: the class
  std::vector<int64_t> references = {};
  // Whether a config names them. If so all other columns are left alone; else further columns of a validation file are
  // references, and other files have none.
  bool named = false;

  // Columns that every line must have.
  int64_t needed() const;
  // "columns 1 3 -> 2", with what decides how a line is read.
  std::string ToString() const;
};

// What a line has to see. Of pairs in one file and in several, and of labelled texts: only kFull lines are examples, give
// symbols to a vocabulary or can have unknown ones; the others are skipped and counted.
enum class LineKind {
  kBlank,  // nothing: an empty line
  kHalf,   // nothing on one side: an empty side
  kFull,
};

// Whether nothing of `text` is visible: no character, or spaces only.
bool IsBlank(absl::string_view text);
// The kind of a line that has something: whether that is on both sides. A source of several columns is blank if all of them
// are.
LineKind KindOfSides(absl::string_view source, absl::Span<const absl::string_view> more_sources, absl::string_view target);

// Reserves <sep> where sources have several columns: in their tokenizer, and, if both sides share one vocabulary, in that of
// the targets. A tokenizer is stored and named in a file without it. Either may be null. REQUIRES: both are new.
void ReserveSeparators(const TableColumns& columns, bool shared, Tokenizer* source, Tokenizer* target);

// The ids of a source that `texts` make together; "name:line: side: unknown ..." for a symbol without id, with the column's
// place among several. Appends to `ids`. REQUIRES: one text, or a tokenizer that has <sep>.
absl::Status EncodeSource(const Tokenizer& tokenizer, absl::Span<const absl::string_view> texts, absl::string_view name,
                          int64_t line, absl::string_view side, std::vector<int32_t>* ids);

// The ids of a line that somebody typed: the source, or `columns` of them with tabs between. Empty for a text without tokens,
// and for several columns that are blank, as in data. FailedPrecondition for another number of columns, or an unknown symbol.
absl::StatusOr<std::vector<int32_t>> EncodePrompt(const Tokenizer& tokenizer, absl::string_view text, int64_t columns);

// The ids of one column: "name:line: side: unknown ..." for a symbol without id. Appends to `ids`.
absl::Status EncodeColumn(const Tokenizer& tokenizer, absl::string_view text, absl::string_view name, int64_t line,
                          absl::string_view side, std::vector<int32_t>* ids);

}  // namespace weft

#endif  // WEFT_DATA_COLUMNS_H_
