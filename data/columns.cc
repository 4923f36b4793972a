#include "data/columns.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"

namespace weft {

int64_t TableColumns::needed() const { return std::max(target, *std::max_element(source.begin(), source.end())); }

std::string TableColumns::ToString() const {
  return absl::StrCat(named ? "named " : "", "columns ", absl::StrJoin(source, " "), " -> ", target);
}

bool IsBlank(absl::string_view text) { return text.find_first_not_of(' ') == absl::string_view::npos; }

LineKind KindOfSides(absl::string_view source, absl::Span<const absl::string_view> more_sources, absl::string_view target) {
  const bool no_source = IsBlank(source) && std::all_of(more_sources.begin(), more_sources.end(), IsBlank);
  return no_source || IsBlank(target) ? LineKind::kHalf : LineKind::kFull;
}

void ReserveSeparators(const TableColumns& columns, bool shared, Tokenizer* source, Tokenizer* target) {
  if (columns.source.size() == 1) return;
  if (source != nullptr) source->ReserveSeparator();
  if (target != nullptr && shared) target->ReserveSeparator();
}

absl::Status EncodeColumn(const Tokenizer& tokenizer, absl::string_view text, absl::string_view name, int64_t line,
                          absl::string_view side, std::vector<int32_t>* ids) {
  const int64_t offset = tokenizer.TryEncode(text, ids);
  if (offset < 0) return absl::OkStatus();
  const absl::Status status = tokenizer.UnknownSymbol(text, offset);
  return absl::Status(status.code(), absl::StrCat(name, ":", line, ": ", side, ": ", status.message()));
}

absl::Status EncodeSource(const Tokenizer& tokenizer, absl::Span<const absl::string_view> texts, absl::string_view name,
                          int64_t line, absl::string_view side, std::vector<int32_t>* ids) {
  if (texts.size() == 1) return EncodeColumn(tokenizer, texts[0], name, line, side, ids);
  WEFT_CHECK_GE(tokenizer.sep(), 0) << "several source columns without <sep>";
  const size_t start = ids->size();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) ids->push_back(tokenizer.sep());
    WEFT_RETURN_IF_ERROR(EncodeColumn(tokenizer, texts[i], name, line, absl::StrCat(side, " ", i + 1), ids));
  }
  // Separators alone are no source.
  if (ids->size() - start == texts.size() - 1) ids->resize(start);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> EncodePrompt(const Tokenizer& tokenizer, absl::string_view text, int64_t columns) {
  if (columns == 1) return tokenizer.Encode(text);
  std::vector<int32_t> ids;
  if (IsBlank(text)) return ids;
  const std::vector<absl::string_view> texts = absl::StrSplit(text, '\t');
  if (static_cast<int64_t>(texts.size()) != columns) {
    return absl::FailedPreconditionError(absl::StrCat("found ", texts.size(), " column(s), expected ", columns,
                                                      " with tabs between, as many as data.columns.source names"));
  }
  if (std::all_of(texts.begin(), texts.end(), IsBlank)) return ids;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) ids.push_back(tokenizer.sep());
    const absl::StatusOr<std::vector<int32_t>> part = tokenizer.Encode(texts[i]);
    if (!part.ok()) return absl::Status(part.status().code(), absl::StrCat("column ", i + 1, ": ", part.status().message()));
    ids.insert(ids.end(), part->begin(), part->end());
  }
  if (ids.size() == texts.size() - 1) ids.clear();
  return ids;
}

}  // namespace weft
