#include "data/pair_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/text_file.h"

namespace weft {
namespace {

// The column of number `number`, "" where the line has fewer.
absl::string_view ColumnAt(const std::vector<absl::string_view>& columns, int64_t number) {
  return number <= static_cast<int64_t>(columns.size()) ? columns[number - 1] : absl::string_view();
}

// Encodes further references of `pair`: the target first, empty ones left out.
absl::Status EncodeReferences(const PairLine& pair, const PairLines& lines, absl::string_view name, const Tokenizer& target,
                              std::vector<absl::string_view>* texts, std::vector<std::vector<int32_t>>* references) {
  texts->clear();
  references->clear();
  for (size_t r = 0; r <= pair.more.size(); ++r) {
    const absl::string_view text = r == 0 ? pair.target : pair.more[r - 1];
    if (r > 0 && text.empty()) continue;
    const absl::string_view file = lines.target_names.empty() ? name : absl::string_view(lines.target_names[r]);
    texts->push_back(text);
    std::vector<int32_t>& ids = references->emplace_back();
    WEFT_RETURN_IF_ERROR(EncodeColumn(target, text, file, pair.line, "reference", &ids));
    // An unknown word has no id that an answer could equal, not even <unk>.
    if (target.unk() >= 0) std::replace(ids.begin(), ids.end(), target.unk(), ExampleSet::kNoId);
  }
  return absl::OkStatus();
}

bool Exceeds(const std::vector<int32_t>& ids, int64_t limit) { return limit > 0 && static_cast<int64_t>(ids.size()) > limit; }

}  // namespace

std::string ReadReport::ToString() const {
  std::string text = absl::StrCat(lines, lines == 1 ? " line, " : " lines, ", kept, " kept");
  if (empty_lines > 0) absl::StrAppend(&text, ", skipped ", empty_lines, empty_lines == 1 ? " empty line" : " empty lines");
  if (empty_sides > 0) {
    absl::StrAppend(&text, empty_lines > 0 ? " and " : ", skipped ", empty_sides, " with an empty side (first: line ",
                    first_empty_side, ")");
  }
  if (too_long > 0) {
    absl::StrAppend(&text, ", left out ", too_long,
                    " longer than data.max_source_length or data.max_target_length (first: line ", first_too_long, ")");
  }
  return text;
}

absl::StatusOr<PairLines> ParsePairs(absl::string_view text, absl::string_view name, bool allow_references,
                                     const TableColumns& columns) {
  PairLines out;
  for (absl::string_view line : Lines(text)) {
    const int64_t number = ++out.report.lines;
    if (IsBlank(line)) {
      ++out.report.empty_lines;
      continue;
    }
    const std::vector<absl::string_view> found = absl::StrSplit(line, '\t');
    const auto count = static_cast<int64_t>(found.size());
    if (columns.named && count < columns.needed()) {
      return absl::FailedPreconditionError(absl::StrCat(name, ":", number, ": found ", count, " column(s), data.columns names ",
                                                        columns.needed(), ": \"", line.substr(0, 60), "\""));
    }
    if (count < 2 && !columns.named) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, ":", number, ": found no tab, expected source TAB target: \"", line.substr(0, 60), "\""));
    }
    if (count > 2 && !columns.named && !allow_references) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, ":", number, ": found ", count,
                       " columns, expected 2 in a training file (source TAB target); data.columns can name which to read"));
    }
    PairLine& pair = out.pairs.emplace_back();
    pair.line = number;
    pair.source = ColumnAt(found, columns.source[0]);
    pair.target = ColumnAt(found, columns.target);
    for (size_t i = 1; i < columns.source.size(); ++i) pair.more_sources.push_back(ColumnAt(found, columns.source[i]));
    if (!allow_references) continue;
    if (columns.named) {
      for (const int64_t reference : columns.references) pair.more.push_back(ColumnAt(found, reference));
    } else {
      pair.more.assign(found.begin() + 2, found.end());
    }
  }
  return out;
}

absl::StatusOr<PairLines> ParsePairFiles(absl::string_view source, absl::string_view source_name,
                                         absl::Span<const std::string> targets, absl::Span<const std::string> target_names) {
  WEFT_CHECK(!targets.empty() && targets.size() == target_names.size()) << "files of targets";
  const std::vector<absl::string_view> source_lines = Lines(source);
  std::vector<std::vector<absl::string_view>> target_lines;
  for (size_t r = 0; r < targets.size(); ++r) {
    target_lines.push_back(Lines(targets[r]));
    if (target_lines[r].size() == source_lines.size()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("found ", source_lines.size(), " lines in ", source_name, " and ", target_lines[r].size(), " in ",
                     target_names[r], ": line i of one belongs to line i of the other, so both must have as many"));
  }
  PairLines out;
  out.target_names.assign(target_names.begin(), target_names.end());
  for (size_t i = 0; i < source_lines.size(); ++i) {
    const int64_t number = ++out.report.lines;
    const bool no_source = IsBlank(source_lines[i]), no_target = IsBlank(target_lines[0][i]);
    if (no_source && no_target) {
      ++out.report.empty_lines;
    } else if (no_source || no_target) {
      if (out.report.empty_sides++ == 0) out.report.first_empty_side = number;
    } else {
      PairLine& pair = out.pairs.emplace_back();
      pair.line = number;
      pair.source = source_lines[i];
      pair.target = target_lines[0][i];
      for (size_t r = 1; r < targets.size(); ++r) {
        const absl::string_view text = target_lines[r][i];
        pair.more.push_back(IsBlank(text) ? absl::string_view() : text);
      }
    }
  }
  return out;
}

absl::StatusOr<ExampleSet> EncodePairs(PairLines* lines, absl::string_view name, const Tokenizer& source,
                                       const Tokenizer& target, bool keep_references, const PairLimits& limits,
                                       ExampleSampler sampler) {
  ExampleSet set = ExampleSet::Pairs(target.bos(), target.eos());
  set.SetSampler(std::move(sampler));
  ReadReport& report = lines->report;
  const absl::string_view target_name = lines->target_names.empty() ? name : absl::string_view(lines->target_names[0]);
  std::vector<absl::string_view> sources, texts;
  std::vector<std::vector<int32_t>> references;
  std::vector<int32_t> source_ids, target_ids;
  for (const PairLine& pair : lines->pairs) {
    source_ids.clear();
    target_ids.clear();
    sources.assign({pair.source});
    sources.insert(sources.end(), pair.more_sources.begin(), pair.more_sources.end());
    WEFT_RETURN_IF_ERROR(EncodeSource(source, sources, name, pair.line, "source", &source_ids));
    WEFT_RETURN_IF_ERROR(EncodeColumn(target, pair.target, target_name, pair.line, "target", &target_ids));
    if (source_ids.empty() || target_ids.empty()) {
      if (report.empty_sides == 0 || pair.line < report.first_empty_side) report.first_empty_side = pair.line;
      ++report.empty_sides;
      continue;
    }
    if (Exceeds(source_ids, limits.source) || Exceeds(target_ids, limits.target)) {
      if (report.too_long++ == 0) report.first_too_long = pair.line;
      continue;
    }
    ++report.kept;
    lines->kept_lines.push_back(pair.line);
    const std::string source_text = absl::StrJoin(sources, "\t");
    set.Sample(source_text, pair.target);
    if (keep_references) {
      WEFT_RETURN_IF_ERROR(EncodeReferences(pair, *lines, name, target, &texts, &references));
      set.AddPair(source_ids, target_ids, source_text, references, texts);
    } else {
      set.AddPair(source_ids, target_ids);
    }
  }
  if (set.empty()) return absl::FailedPreconditionError(absl::StrCat(name, ": has no pairs (", report.ToString(), ")"));
  return set;
}

}  // namespace weft
