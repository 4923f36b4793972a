#include "train/toml.h"

#include <algorithm>
#include <utility>
#include <vector>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

// toml++ bounds how deep brackets and braces nest, but not dotted keys, and both it and this file walk tables by recursion.
constexpr int64_t kMaxDots = 1000;  // outside of comment lines

// Lists longer than this go over several lines.
constexpr int64_t kLineWidth = 100;

std::string Place(absl::string_view name, const toml::source_position& position) {
  return absl::StrCat(name, ":", position.line, ":", position.column);
}

bool Before(const toml::source_position& a, const toml::source_position& b) {
  return a.line != b.line ? a.line < b.line : a.column < b.column;
}

absl::StatusOr<Options> ConvertTable(const toml::table& table, absl::string_view name);

absl::StatusOr<OptionValue> ConvertValue(const toml::node& node, absl::string_view name) {
  OptionValue result;
  result.where = Place(name, node.source().begin);
  if (const toml::value<bool>* b = node.as_boolean()) {
    result.value = b->get();
  } else if (const toml::value<int64_t>* i = node.as_integer()) {
    result.value = i->get();
  } else if (const toml::value<double>* d = node.as_floating_point()) {
    result.value = d->get();
  } else if (const toml::value<std::string>* s = node.as_string()) {
    result.value = s->get();
  } else if (const toml::array* array = node.as_array()) {
    OptionValue::List list;
    for (const toml::node& item : *array) {
      WEFT_ASSIGN_OR_RETURN(OptionValue value, ConvertValue(item, name));
      list.push_back(std::move(value));
    }
    result.value = std::move(list);
  } else if (const toml::table* table = node.as_table()) {
    WEFT_ASSIGN_OR_RETURN(Options options, ConvertTable(*table, name));
    result.value = options.entries();
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(result.where, ": dates and times are not used in a config; put a text into quotes"));
  }
  return result;
}

// toml++ sorts a table by key; a config keeps the order in which its author wrote it.
absl::StatusOr<Options> ConvertTable(const toml::table& table, absl::string_view name) {
  std::vector<std::pair<const toml::key*, const toml::node*>> items;
  for (auto&& [key, node] : table) items.emplace_back(&key, &node);
  std::stable_sort(items.begin(), items.end(),
                   [](const auto& a, const auto& b) { return Before(a.first->source().begin, b.first->source().begin); });
  OptionValue::Table entries;
  for (const auto& [key, node] : items) {
    WEFT_ASSIGN_OR_RETURN(OptionValue value, ConvertValue(*node, name));
    entries.push_back({std::string(key->str()), std::move(value), Place(name, key->source().begin)});
  }
  Options options(std::move(entries));
  options.where = Place(name, table.source().begin);
  return options;
}

std::string Quote(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          absl::StrAppend(&quoted, "\\u00", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
        } else {
          quoted += c;
        }
    }
  }
  return quoted + "\"";
}

bool IsBareKey(absl::string_view key) {
  return !key.empty() &&
         std::all_of(key.begin(), key.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
}

std::string PrintKey(absl::string_view key) { return IsBareKey(key) ? std::string(key) : Quote(key); }

std::string PrintEntry(const Option& option) { return absl::StrCat(PrintKey(option.key), " = ", PrintTomlValue(option.value)); }

// The value of "--set KEY=TEXT" where TEXT is one whole TOML value.
absl::StatusOr<OptionValue> ParseOverrideValue(absl::string_view text, absl::string_view where) {
  WEFT_ASSIGN_OR_RETURN(Options plain, ParseToml(absl::StrCat("v = ", text), where));
  // Inside of a list a comment would swallow the bracket, and a second value or line would show.
  WEFT_ASSIGN_OR_RETURN(Options listed, ParseToml(absl::StrCat("v = [", text, "]"), where));
  const OptionValue* list = listed.Find("v");
  if (plain.entries().size() != 1 || listed.entries().size() != 1 || std::get<OptionValue::List>(list->value).size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": allowed one value"));
  }
  return *plain.Find("v");
}

// A command line has no lines and columns: everything in the value came from the override.
void SetPlaces(const std::string& where, OptionValue* value) {
  value->where = where;
  if (auto* list = std::get_if<OptionValue::List>(&value->value)) {
    for (OptionValue& item : *list) SetPlaces(where, &item);
  } else if (auto* table = std::get_if<OptionValue::Table>(&value->value)) {
    for (Option& option : *table) {
      option.where = where;
      SetPlaces(where, &option.value);
    }
  }
}

absl::Status SetByPath(absl::Span<const std::string> path, OptionValue value, absl::string_view done, Options* table) {
  if (path.size() == 1) {
    table->Set(path[0], std::move(value));
    return absl::OkStatus();
  }
  const std::string name = absl::StrCat(done, done.empty() ? "" : ".", path[0]);
  OptionValue inner_value{.value = OptionValue::Table(), .where = value.where};
  if (const OptionValue* present = table->Find(path[0])) inner_value = *present;
  auto* entries = std::get_if<OptionValue::Table>(&inner_value.value);
  if (entries == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(value.where, ": ", name, " is ", inner_value.Describe(), ", not a table"));
  }
  Options inner(std::move(*entries));
  WEFT_RETURN_IF_ERROR(SetByPath(path.subspan(1), std::move(value), name, &inner));
  inner_value.value = inner.entries();
  table->Set(path[0], std::move(inner_value));
  return absl::OkStatus();
}

absl::Status CheckDots(absl::string_view text, absl::string_view name) {
  int64_t line_number = 0, dots = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "#")) continue;
    dots += std::count(line.begin(), line.end(), '.');
    if (dots > kMaxDots) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ":", line_number, ":1: found more than ", kMaxDots, " dots up to here, which no config needs"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ParseToml(absl::string_view text, absl::string_view name) {
  WEFT_RETURN_IF_ERROR(CheckDots(text, name));
  const toml::parse_result result = toml::parse(std::string_view(text.data(), text.size()));
  if (result.failed()) {
    const toml::parse_error& error = result.error();
    return absl::InvalidArgumentError(absl::StrCat(Place(name, error.source().begin), ": not valid TOML: ",
                                                   absl::string_view(error.description().data(), error.description().size())));
  }
  WEFT_ASSIGN_OR_RETURN(Options root, ConvertTable(result.table(), name));
  root.where = std::string(name);
  return root;
}

std::string PrintTomlValue(const OptionValue& value) {
  if (const auto* b = std::get_if<bool>(&value.value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<int64_t>(&value.value)) return absl::StrCat(*i);
  if (const auto* d = std::get_if<double>(&value.value)) return FormatDouble(*d);
  if (const auto* s = std::get_if<std::string>(&value.value)) return Quote(*s);
  if (const auto* list = std::get_if<OptionValue::List>(&value.value)) {
    std::vector<std::string> items;
    for (const OptionValue& item : *list) items.push_back(PrintTomlValue(item));
    const std::string line = absl::StrCat("[", absl::StrJoin(items, ", "), "]");
    if (static_cast<int64_t>(line.size()) <= kLineWidth) return line;
    return absl::StrCat("[\n  ", absl::StrJoin(items, ",\n  "), ",\n]");
  }
  const auto& table = std::get<OptionValue::Table>(value.value);
  if (table.empty()) return "{}";
  return absl::StrCat(
      "{ ", absl::StrJoin(table, ", ", [](std::string* out, const Option& option) { *out += PrintEntry(option); }), " }");
}

std::string PrintToml(const Options& root) {
  std::string text;
  for (const Option& option : root.entries()) {
    if (!std::holds_alternative<OptionValue::Table>(option.value.value)) absl::StrAppend(&text, PrintEntry(option), "\n");
  }
  for (const Option& option : root.entries()) {
    const auto* table = std::get_if<OptionValue::Table>(&option.value.value);
    if (table == nullptr) continue;
    absl::StrAppend(&text, text.empty() ? "" : "\n", "[", PrintKey(option.key), "]\n");
    for (const Option& entry : *table) absl::StrAppend(&text, PrintEntry(entry), "\n");
  }
  return text;
}

absl::Status ApplyOverride(absl::string_view override_text, Options* root) {
  const size_t equals = override_text.find('=');
  const absl::string_view key = override_text.substr(0, std::min(equals, override_text.size()));
  const std::string where = absl::StrCat("--set ", key);
  const std::vector<std::string> path = absl::StrSplit(key, '.');
  if (equals == absl::string_view::npos || static_cast<int64_t>(path.size()) > kMaxDots ||
      !std::all_of(path.begin(), path.end(), IsBareKey)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", override_text, ": allowed KEY=VALUE with a dotted key, for example train.steps=100"));
  }
  const absl::string_view text = override_text.substr(equals + 1);
  absl::StatusOr<OptionValue> value = ParseOverrideValue(text, where);
  if (!value.ok()) {
    const absl::string_view stripped = absl::StripLeadingAsciiWhitespace(text);
    if (!stripped.empty() && absl::string_view("\"'[{").find(stripped[0]) != absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat("--set ", override_text, ": ", text,
                                                     " is not a whole TOML value; a text that "
                                                     "begins with ",
                                                     stripped.substr(0, 1), " needs quotes of its own"));
    }
    value = OptionValue{.value = std::string(text), .where = ""};
    // The text must be printable as TOML again.
    if (!ParseToml(absl::StrCat("v = ", PrintTomlValue(*value)), where).ok()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": the value is not valid UTF-8"));
    }
  }
  SetPlaces(where, &*value);
  return SetByPath(path, *std::move(value), "", root);
}

}  // namespace weft
