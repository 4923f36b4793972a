// How the table data.columns is read.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "train/config_sections.h"

namespace weft {
namespace {

// One number or a list of them.
void ReadNumbers(OptionsReader& reader, const char* key, std::vector<int64_t>* numbers) {
  const OptionValue* value = reader.Take(key);
  if (value == nullptr) return;
  const auto* list = std::get_if<OptionValue::List>(&value->value);
  const absl::Span<const OptionValue> items = list != nullptr ? absl::MakeConstSpan(*list) : absl::MakeConstSpan(value, 1);
  std::vector<int64_t> read;
  for (const OptionValue& item : items) {
    const auto* number = std::get_if<int64_t>(&item.value);
    if (number != nullptr && 1 <= *number && *number <= kMaxColumn) read.push_back(*number);
  }
  if (items.empty() || read.size() != items.size()) {
    const std::string allowed = absl::StrCat("a column in [1, ", kMaxColumn, "] or a list of them");
    return reader.Error(key, absl::StrCat("found ", value->Describe(), ", allowed ", allowed));
  }
  *numbers = std::move(read);
}

}  // namespace

std::vector<std::string> ReadColumns(const OptionValue& value, absl::string_view kind, TableColumns* columns) {
  if (!std::holds_alternative<OptionValue::Table>(value.value)) {
    return {absl::StrCat(KeyPrefix(value.where, "data", "columns"), "found ", value.Describe(),
                         ", allowed a table like { source = [1, 3], target = 2 }")};
  }
  const Options table = TableOf(&value, "");
  OptionsReader reader("data.columns", table);
  columns->named = true;
  for (const char* key : {"source", "target"}) {
    if (!reader.Has(key)) reader.Error(key, "missing; allowed the number of a column, from 1 on");
  }
  std::vector<int64_t> target = {columns->target};
  ReadNumbers(reader, "source", &columns->source);
  ReadNumbers(reader, "target", &target);
  ReadNumbers(reader, "references", &columns->references);
  if (target.size() > 1) reader.Error("target", absl::StrCat("found ", target.size(), " columns, allowed one"));
  columns->target = target[0];
  if (kind == "labels" && reader.Has("references")) reader.Error("references", "has no meaning with data.kind = \"labels\"");

  std::vector<int64_t> all = columns->source;
  all.push_back(columns->target);
  all.insert(all.end(), columns->references.begin(), columns->references.end());
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  if (reader.Has("source") && reader.Has("target") && twice != all.end()) {
    reader.Error("source", absl::StrCat("found column ", *twice, " twice in data.columns, allowed different ones"));
  }
  return reader.Finish();
}

}  // namespace weft
