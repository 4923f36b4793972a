#include "autograd/base/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\""); }

// A bound of a range, without the ".0" of whole numbers.
std::string FormatBound(double bound) {
  if (bound == std::floor(bound) && std::abs(bound) < 9e15) return absl::StrCat(static_cast<int64_t>(bound));
  return FormatDouble(bound);
}

// "an integer >= 1", "a number in [0, 1)".
std::string DescribeRange(absl::string_view what, const Range& range) {
  const bool has_min = std::isfinite(range.min), has_max = std::isfinite(range.max);
  if (has_min && has_max) {
    return absl::StrCat(what, " in ", range.min_open ? "(" : "[", FormatBound(range.min), ", ", FormatBound(range.max),
                        range.max_open ? ")" : "]");
  }
  if (has_min) return absl::StrCat(what, range.min_open ? " > " : " >= ", FormatBound(range.min));
  if (has_max) return absl::StrCat(what, range.max_open ? " < " : " <= ", FormatBound(range.max));
  return std::string(what);
}

bool InRange(double number, const Range& range) {
  if (!std::isfinite(number)) return false;
  if (range.min_open ? number <= range.min : number < range.min) return false;
  return range.max_open ? number < range.max : number <= range.max;
}

std::string DescribeChoices(absl::Span<const absl::string_view> allowed) {
  return absl::StrJoin(allowed, ", ", [](std::string* out, absl::string_view word) { absl::StrAppend(out, Quoted(word)); });
}

// Steps from one word to the other: insert, delete, replace a character, or swap two neighbours (Damerau 1964, in the
// restricted form that edits no part twice).
int64_t EditDistance(absl::string_view a, absl::string_view b) {
  const int64_t columns = static_cast<int64_t>(b.size()) + 1;
  std::vector<int64_t> before_last(columns), last(columns), row(columns);
  for (int64_t j = 0; j < columns; ++j) row[j] = j;
  for (int64_t i = 1; i <= static_cast<int64_t>(a.size()); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (int64_t j = 1; j < columns; ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

// Case and dashes are no difference between keys that a person could have meant.
std::string Folded(absl::string_view word) {
  std::string folded = absl::AsciiStrToLower(word);
  std::replace(folded.begin(), folded.end(), '-', '_');
  return folded;
}

template <class T>
OptionValue ListOf(const std::vector<T>& items) {
  OptionValue::List list;
  for (const T& item : items) list.push_back({.value = item, .where = ""});
  return {.value = std::move(list), .where = ""};
}

}  // namespace

std::string OptionValue::Describe() const {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true (a boolean)" : "false (a boolean)";
  if (const auto* i = std::get_if<int64_t>(&value)) return absl::StrCat(*i, " (an integer)");
  if (const auto* d = std::get_if<double>(&value)) return absl::StrCat(FormatDouble(*d), " (a float)");
  if (const auto* s = std::get_if<std::string>(&value)) return absl::StrCat(Quoted(*s), " (a string)");
  if (const auto* list = std::get_if<List>(&value)) {
    return list->size() == 1 ? "a list of 1 value" : absl::StrCat("a list of ", list->size(), " values");
  }
  return "a table";
}

Options::Options(std::initializer_list<std::pair<absl::string_view, OptionValue>> entries) {
  for (const auto& [key, value] : entries) Set(key, value);
}

const OptionValue* Options::Find(absl::string_view key) const {
  for (const Option& option : entries_) {
    if (option.key == key) return &option.value;
  }
  return nullptr;
}

void Options::Set(absl::string_view key, OptionValue value) {
  for (Option& option : entries_) {
    if (option.key != key) continue;
    option.where = value.where;
    option.value = std::move(value);
    return;
  }
  std::string where = value.where;
  entries_.push_back({std::string(key), std::move(value), std::move(where)});
}

bool Options::Remove(absl::string_view key) {
  const auto end = std::remove_if(entries_.begin(), entries_.end(), [&](const Option& option) { return option.key == key; });
  const bool found = end != entries_.end();
  entries_.erase(end, entries_.end());
  return found;
}

OptionsReader::OptionsReader(absl::string_view table, const Options& options, const Options* defaults)
    : table_(table), options_(options), defaults_(defaults) {}

const OptionValue* OptionsReader::Look(absl::string_view name) {
  known_.emplace_back(name);
  const OptionValue* value = options_.Find(name);
  return value == nullptr && defaults_ != nullptr ? defaults_->Find(name) : value;
}

void OptionsReader::Mismatch(absl::string_view name, const OptionValue& value, absl::string_view allowed) {
  errors_.push_back(absl::StrCat(KeyPrefix(value.where, table_, name), "found ", value.Describe(), ", allowed ", allowed));
}

template <class T>
void OptionsReader::CheckRange(absl::string_view name, const OptionValue& value, T number, const Range& range, T& field) {
  if (InRange(static_cast<double>(number), range)) {
    field = number;
  } else {
    Mismatch(name, value, DescribeRange(std::is_same_v<T, double> ? "a number" : "an integer", range));
  }
}

void OptionsReader::Visit(absl::string_view name, bool& field, absl::string_view) {
  const OptionValue* value = Look(name);
  if (value == nullptr) return;
  if (const auto* b = std::get_if<bool>(&value->value)) {
    field = *b;
  } else {
    Mismatch(name, *value, "true or false");
  }
}

void OptionsReader::Visit(absl::string_view name, int64_t& field, const Range& range, absl::string_view) {
  const OptionValue* value = Look(name);
  if (value == nullptr) return;
  if (const auto* i = std::get_if<int64_t>(&value->value)) {
    CheckRange(name, *value, *i, range, field);
  } else {
    Mismatch(name, *value, DescribeRange("an integer", range));
  }
}

void OptionsReader::Visit(absl::string_view name, double& field, const Range& range, absl::string_view) {
  const OptionValue* value = Look(name);
  if (value == nullptr) return;
  if (const auto* d = std::get_if<double>(&value->value)) {
    CheckRange(name, *value, *d, range, field);
  } else if (const auto* i = std::get_if<int64_t>(&value->value)) {
    CheckRange(name, *value, static_cast<double>(*i), range, field);
  } else {
    Mismatch(name, *value, DescribeRange("a number", range));
  }
}

void OptionsReader::Visit(absl::string_view name, std::string& field, absl::string_view) {
  const OptionValue* value = Look(name);
  if (value == nullptr) return;
  if (const auto* s = std::get_if<std::string>(&value->value)) {
    field = *s;
  } else {
    Mismatch(name, *value, "a string");
  }
}

void OptionsReader::Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view> allowed,
                           absl::string_view) {
  const OptionValue* value = Look(name);
  if (value == nullptr) return;
  const auto* word = std::get_if<std::string>(&value->value);
  if (word != nullptr && std::find(allowed.begin(), allowed.end(), *word) != allowed.end()) {
    field = *word;
    return;
  }
  std::string message = DescribeChoices(allowed);
  if (word != nullptr) {
    const std::string nearest = Nearest(*word, std::vector<std::string>(allowed.begin(), allowed.end()));
    if (!nearest.empty()) absl::StrAppend(&message, "; did you mean ", Quoted(nearest), "?");
  }
  Mismatch(name, *value, message);
}

void OptionsReader::ReadWords(absl::string_view name, const OptionValue& value, absl::string_view allowed,
                              std::vector<std::string>* field) {
  const auto* list = std::get_if<OptionValue::List>(&value.value);
  if (list == nullptr) return Mismatch(name, value, allowed);
  std::vector<std::string> words;
  for (const OptionValue& item : *list) {
    const auto* word = std::get_if<std::string>(&item.value);
    if (word == nullptr) return Mismatch(name, item, allowed);
    words.push_back(*word);
  }
  *field = std::move(words);
}

void OptionsReader::Visit(absl::string_view name, std::vector<std::string>& field, absl::string_view) {
  const OptionValue* value = Look(name);
  if (value != nullptr) ReadWords(name, *value, "a list of strings", &field);
}

void OptionsReader::OneOrMore(absl::string_view name, std::vector<std::string>& field, absl::string_view) {
  const OptionValue* value = Look(name);
  if (value == nullptr) return;
  if (const auto* word = std::get_if<std::string>(&value->value)) {
    field.clear();
    if (!word->empty()) field.push_back(*word);
  } else {
    ReadWords(name, *value, "a string or a list of strings", &field);
  }
}

void OptionsReader::Visit(absl::string_view name, std::vector<double>& field, const Range& range, absl::string_view) {
  const OptionValue* value = Look(name);
  if (value == nullptr) return;
  const std::string allowed = absl::StrCat("a list, each of it ", DescribeRange("a number", range));
  const auto* list = std::get_if<OptionValue::List>(&value->value);
  if (list == nullptr) return Mismatch(name, *value, allowed);
  std::vector<double> numbers;
  for (const OptionValue& item : *list) {
    const auto* d = std::get_if<double>(&item.value);
    const auto* i = std::get_if<int64_t>(&item.value);
    const double number = d != nullptr ? *d : i != nullptr ? static_cast<double>(*i) : std::nan("");
    if (!InRange(number, range)) return Mismatch(name, item, allowed);
    numbers.push_back(number);
  }
  field = std::move(numbers);
}

const OptionValue* OptionsReader::Take(absl::string_view name) { return Look(name); }

bool OptionsReader::FromCommandLine(absl::string_view name) const {
  const OptionValue* value = options_.Find(name);
  return value != nullptr && absl::StartsWith(value->where, "--set");
}

void OptionsReader::Error(absl::string_view name, absl::string_view message) {
  const OptionValue* value = options_.Find(name);
  if (value == nullptr && defaults_ != nullptr) value = defaults_->Find(name);
  errors_.push_back(absl::StrCat(KeyPrefix(value != nullptr ? value->where : options_.where, table_, name), message));
}

std::vector<std::string> OptionsReader::Finish() {
  for (const Option& option : options_.entries()) {
    if (std::find(known_.begin(), known_.end(), option.key) != known_.end()) continue;
    std::string message = UnknownKeyError(option, table_);
    const std::string nearest = Nearest(option.key, known_);
    if (!nearest.empty()) {
      absl::StrAppend(&message, "; did you mean ", table_, table_.empty() ? "" : ".", nearest, "?");
    }
    errors_.push_back(std::move(message));
  }
  return std::move(errors_);
}

void OptionsWriter::Visit(absl::string_view name, bool& field, absl::string_view) { options.Set(name, {field, ""}); }
void OptionsWriter::Visit(absl::string_view name, int64_t& field, const Range&, absl::string_view) {
  options.Set(name, {field, ""});
}
void OptionsWriter::Visit(absl::string_view name, double& field, const Range&, absl::string_view) {
  options.Set(name, {field, ""});
}
void OptionsWriter::Visit(absl::string_view name, std::string& field, absl::string_view) { options.Set(name, {field, ""}); }
void OptionsWriter::Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view>, absl::string_view) {
  options.Set(name, {field, ""});
}
void OptionsWriter::Visit(absl::string_view name, std::vector<std::string>& field, absl::string_view) {
  options.Set(name, ListOf(field));
}
void OptionsWriter::OneOrMore(absl::string_view name, std::vector<std::string>& field, absl::string_view) {
  options.Set(name, field.size() > 1 ? ListOf(field) : OptionValue{field.empty() ? std::string() : field[0], ""});
}
void OptionsWriter::Visit(absl::string_view name, std::vector<double>& field, const Range&, absl::string_view) {
  options.Set(name, ListOf(field));
}

void FieldDescriber::Visit(absl::string_view name, bool& field, absl::string_view doc) {
  fields.push_back({std::string(name), "boolean", field ? "true" : "false", "true or false", std::string(doc)});
}
void FieldDescriber::Visit(absl::string_view name, int64_t& field, const Range& range, absl::string_view doc) {
  fields.push_back({std::string(name), "integer", absl::StrCat(field), DescribeRange("an integer", range), std::string(doc)});
}
void FieldDescriber::Visit(absl::string_view name, double& field, const Range& range, absl::string_view doc) {
  fields.push_back({std::string(name), "float", FormatDouble(field), DescribeRange("a number", range), std::string(doc)});
}
void FieldDescriber::Visit(absl::string_view name, std::string& field, absl::string_view doc) {
  fields.push_back({std::string(name), "string", Quoted(field), "a string", std::string(doc)});
}
void FieldDescriber::Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view> allowed,
                            absl::string_view doc) {
  fields.push_back({std::string(name), "string", Quoted(field), DescribeChoices(allowed), std::string(doc)});
}
void FieldDescriber::Visit(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) {
  const std::vector<absl::string_view> words(field.begin(), field.end());
  fields.push_back({std::string(name), "list of strings", absl::StrCat("[", DescribeChoices(words), "]"), "a list of strings",
                    std::string(doc)});
}
void FieldDescriber::OneOrMore(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) {
  fields.push_back({std::string(name), "string or list of strings", field.empty() ? Quoted("") : Quoted(field[0]),
                    "a string or a list of strings", std::string(doc)});
}
void FieldDescriber::Visit(absl::string_view name, std::vector<double>& field, const Range& range, absl::string_view doc) {
  const std::string numbers =
      absl::StrJoin(field, ", ", [](std::string* out, double number) { absl::StrAppend(out, FormatDouble(number)); });
  fields.push_back({std::string(name), "list of floats", absl::StrCat("[", numbers, "]"),
                    absl::StrCat("a list, each of it ", DescribeRange("a number", range)), std::string(doc)});
}

std::string KeyPrefix(absl::string_view where, absl::string_view table, absl::string_view key) {
  const std::string name = absl::StrCat(table, table.empty() ? "" : ".", key);
  if (where == absl::StrCat("--set ", name)) return absl::StrCat(where, ": ");
  return absl::StrCat(where, where.empty() ? "" : ": ", name, ": ");
}

std::string UnknownKeyError(const Option& option, absl::string_view table) {
  const bool is_table = std::holds_alternative<OptionValue::Table>(option.value.value);
  return absl::StrCat(KeyPrefix(option.where.empty() ? option.value.where : option.where, table, option.key), "unknown ",
                      is_table ? "table" : "key");
}

std::string Nearest(absl::string_view word, absl::Span<const std::string> candidates) {
  const std::string folded = Folded(word);
  std::string best;
  int64_t best_distance = std::max<int64_t>(1, static_cast<int64_t>(word.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const int64_t distance = EditDistance(folded, Folded(candidate));
    // A candidate that shares no letter with the word is no guess: "a" is not a slip of "b".
    if (distance >= static_cast<int64_t>(std::max(word.size(), candidate.size()))) continue;
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string FormatDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

absl::Status ErrorsToStatus(const std::vector<std::string>& errors) {
  if (errors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

}  // namespace weft
