#include "data/label_data.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/base/status.h"
#include "data/text_file.h"

namespace weft {

absl::StatusOr<LabelLines> ParseLabels(absl::string_view text, absl::string_view name) {
  LabelLines out;
  for (absl::string_view line : Lines(text)) {
    const int64_t number = ++out.report.lines;
    if (line.find_first_not_of(' ') == absl::string_view::npos) {
      ++out.report.empty_lines;
      continue;
    }
    const std::vector<absl::string_view> columns = absl::StrSplit(line, '\t');
    if (columns.size() != 2 || columns[1].empty()) {
      return absl::FailedPreconditionError(absl::StrCat(name, ":", number, ": found ", columns.size(),
                                                        columns.size() == 2 ? " columns with an empty class" : " column(s)",
                                                        ", expected text TAB class: \"", line.substr(0, 60), "\""));
    }
    out.labels.push_back({.line = number, .text = columns[0], .label = columns[1]});
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> CollectClasses(const LabelLines& lines, absl::string_view name) {
  std::vector<absl::string_view> all;
  for (const LabelLine& line : lines.labels) all.push_back(line.label);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() < 2) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": found ", all.size(), " class(es), a classifier needs at least 2: ", absl::StrJoin(all, ", ")));
  }
  return std::vector<std::string>(all.begin(), all.end());
}

absl::StatusOr<ExampleSet> EncodeLabels(LabelLines* lines, absl::string_view name, const Tokenizer& tokenizer,
                                        absl::Span<const std::string> class_names, bool keep_texts, ExampleSampler sampler) {
  absl::flat_hash_map<absl::string_view, int32_t> class_ids;
  for (size_t i = 0; i < class_names.size(); ++i) class_ids.emplace(class_names[i], static_cast<int32_t>(i));
  ExampleSet set = ExampleSet::Labels();
  set.SetSampler(std::move(sampler));
  ReadReport& report = lines->report;
  std::vector<int32_t> ids;
  for (const LabelLine& line : lines->labels) {
    const auto found = class_ids.find(line.label);
    if (found == class_ids.end()) {
      const absl::Span<const std::string> shown = class_names.subspan(0, 20);
      return absl::FailedPreconditionError(absl::StrCat(name, ":", line.line, ": unknown class \"", line.label, "\", allowed ",
                                                        absl::StrJoin(shown, ", "),
                                                        shown.size() < class_names.size() ? ", ..." : ""));
    }
    ids.clear();
    WEFT_RETURN_IF_ERROR(EncodeColumn(tokenizer, line.text, name, line.line, "text", &ids));
    if (ids.empty()) {
      if (report.empty_sides++ == 0) report.first_empty_side = line.line;
      continue;
    }
    ++report.kept;
    set.Sample(line.text, "");
    if (keep_texts) {
      set.AddLabel(ids, found->second, line.text);
    } else {
      set.AddLabel(ids, found->second);
    }
  }
  if (set.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(name, ": has no labelled lines (", report.ToString(), ")"));
  }
  return set;
}

}  // namespace weft
