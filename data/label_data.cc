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

absl::StatusOr<LabelLines> ParseLabels(absl::string_view text, absl::string_view name, const TableColumns& columns) {
  LabelLines out;
  for (absl::string_view line : Lines(text)) {
    const int64_t number = ++out.report.lines;
    if (IsBlank(line)) {
      ++out.report.empty_lines;
      continue;
    }
    const std::vector<absl::string_view> found = absl::StrSplit(line, '\t');
    const auto count = static_cast<int64_t>(found.size());
    const bool fits = columns.named ? count >= columns.needed() : count == 2;
    if (!fits || found[columns.target - 1].empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          name, ":", number, ": found ", count, fits ? " columns with an empty class" : " column(s)", ", expected ",
          columns.named ? absl::StrCat(columns.needed(), " by data.columns") : std::string("text TAB class"), ": \"",
          line.substr(0, 60), "\""));
    }
    LabelLine& label = out.labels.emplace_back();
    label.line = number;
    label.text = found[columns.source[0] - 1];
    label.label = found[columns.target - 1];
    for (size_t i = 1; i < columns.source.size(); ++i) label.more_texts.push_back(found[columns.source[i] - 1]);
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
  std::vector<absl::string_view> texts;
  for (const LabelLine& line : lines->labels) {
    const auto found = class_ids.find(line.label);
    if (found == class_ids.end()) {
      const absl::Span<const std::string> shown = class_names.subspan(0, 20);
      return absl::FailedPreconditionError(absl::StrCat(name, ":", line.line, ": unknown class \"", line.label, "\", allowed ",
                                                        absl::StrJoin(shown, ", "),
                                                        shown.size() < class_names.size() ? ", ..." : ""));
    }
    ids.clear();
    texts.assign({line.text});
    texts.insert(texts.end(), line.more_texts.begin(), line.more_texts.end());
    WEFT_RETURN_IF_ERROR(EncodeSource(tokenizer, texts, name, line.line, "text", &ids));
    if (ids.empty()) {
      if (report.empty_sides++ == 0) report.first_empty_side = line.line;
      continue;
    }
    ++report.kept;
    const std::string text = absl::StrJoin(texts, "\t");
    set.Sample(text, "");
    if (keep_texts) {
      set.AddLabel(ids, found->second, text);
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
