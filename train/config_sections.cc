#include "train/config_sections.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "train/toml.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// An absolute form of `path`, tidied where that still names the same file ("a/../b" may not, if a is a symbolic link).
std::string Absolute(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path tidy = absolute.lexically_normal();
  const fs::path real = fs::weakly_canonical(absolute, error);
  return (!error && real == fs::weakly_canonical(tidy, error) ? tidy : absolute).string();
}

// (0, line, column) in the file, (1, ..) about the file, (2, ..) on the command line.
std::tuple<int, int64_t, int64_t> PlaceOf(absl::string_view file, absl::string_view error) {
  if (absl::StartsWith(error, "--set")) return {2, 0, 0};
  int64_t line = 0, column = 0;
  if (absl::ConsumePrefix(&error, absl::StrCat(file, ":"))) {
    const std::vector<absl::string_view> parts = absl::StrSplit(error, absl::MaxSplits(':', 2));
    if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &line) && absl::SimpleAtoi(parts[1], &column)) return {0, line, column};
  }
  return {1, 0, 0};
}

}  // namespace

Options TableOf(const OptionValue* value, absl::string_view where_without) {
  Options options;
  if (value != nullptr) {
    if (const auto* table = std::get_if<OptionValue::Table>(&value->value)) options = Options(*table);
  }
  options.where = value != nullptr ? value->where : std::string(where_without);
  return options;
}

Section::Section(absl::string_view name, OptionsReader* root, absl::string_view file)
    : name_(name), options_(TableOf(root->Take(name), file)), reader_(name, options_) {
  const OptionValue* value = root->Take(name);
  if (value != nullptr && !std::holds_alternative<OptionValue::Table>(value->value)) {
    root->Error(name, absl::StrCat("found ", value->Describe(), ", allowed a table: [", name, "]"));
  }
}

bool Section::Was(absl::string_view key, absl::string_view value) const {
  const OptionValue* given = options_.Find(key);
  const auto* text = given != nullptr ? std::get_if<std::string>(&given->value) : nullptr;
  return text != nullptr && *text == value;
}

bool Section::FromCommandLine(absl::string_view key) const {
  const OptionValue* value = options_.Find(key);
  return value != nullptr && absl::StartsWith(value->where, "--set");
}

void Section::ExactlyOne(absl::string_view a, int64_t* a_value, absl::string_view b, int64_t* b_value) {
  if (!Has(a) && !Has(b)) Error(a, absl::StrCat("missing; give it or ", name_, ".", b));
  if (!Has(a) || !Has(b)) return;
  if (FromCommandLine(a) != FromCommandLine(b)) {
    *(FromCommandLine(a) ? b_value : a_value) = 0;
  } else {
    Error(b, absl::StrCat("excludes ", name_, ".", a, "; allowed one of the two"));
  }
}

void Section::Meaningless(absl::string_view key, absl::string_view chosen, absl::string_view chosen_value,
                          absl::string_view meant_for) {
  if (!Has(key) || (FromCommandLine(chosen) && !FromCommandLine(key))) return;
  Error(key, absl::StrCat("has no meaning with ", name_, ".", chosen, " = \"", chosen_value, "\", only with ", meant_for));
}

void HintAtOtherSections(const Options& root, const Options& model, std::vector<std::string>* errors) {
  std::vector<std::pair<std::string, std::vector<std::string>>> known;  // section -> its keys
  for (const auto& [section, fields] : DescribeConfig()) {
    known.emplace_back(section, std::vector<std::string>());
    for (const FieldDescription& field : fields) known.back().second.push_back(field.name);
  }
  known.emplace_back("model", std::vector<std::string>());
  for (const Option& option : model.entries()) known.back().second.push_back(option.key);

  const auto hint = [&](absl::string_view section, const Option& option) {
    std::vector<std::string> owners;
    for (const auto& [other, keys] : known) {
      const bool owns = std::find(keys.begin(), keys.end(), option.key) != keys.end();
      if (owns && other != section) owners.push_back(absl::StrCat("[", other, "]"));
    }
    if (owners.empty()) return;
    const std::string unknown = UnknownKeyError(option, section);
    for (std::string& error : *errors) {
      if (!absl::StartsWith(error, unknown)) continue;
      error = absl::StrCat(unknown, "; ", option.key, " is a key of ", absl::StrJoin(owners, " and of "));
    }
  };
  for (const Option& option : root.entries()) {
    const auto* table = std::get_if<OptionValue::Table>(&option.value.value);
    if (table == nullptr) {
      hint("", option);
    } else {
      for (const Option& inner : *table) hint(option.key, inner);
    }
  }
}

void SortErrors(absl::string_view file, std::vector<std::string>* errors) {
  std::stable_sort(errors->begin(), errors->end(),
                   [&](const std::string& a, const std::string& b) { return PlaceOf(file, a) < PlaceOf(file, b); });
  errors->erase(std::unique(errors->begin(), errors->end()), errors->end());
}

std::string ResolvePath(OptionsReader& reader, absl::string_view key, const std::string& path, const fs::path& base) {
  const std::string resolved = path.find('\0') == std::string::npos ? Absolute(base / path) : "";
  if (resolved.empty()) {
    reader.Error(key, "has a character of code 0, which no path can have");
  } else if (!ParseToml(absl::StrCat("v = ", PrintTomlValue({resolved, ""})), "").ok()) {
    reader.Error(key, "lies in a folder whose name is not valid UTF-8");
  }
  return resolved;
}

}  // namespace weft
