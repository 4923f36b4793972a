#include "data/pair_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/text_file.h"

namespace weft {

std::string ReadReport::ToString() const {
  std::string text = absl::StrCat(lines, lines == 1 ? " line, " : " lines, ", kept, " kept");
  if (empty_lines > 0) absl::StrAppend(&text, ", skipped ", empty_lines, empty_lines == 1 ? " empty line" : " empty lines");
  if (empty_sides > 0) {
    absl::StrAppend(&text, empty_lines > 0 ? " and " : ", skipped ", empty_sides, " with an empty side (first: line ",
                    first_empty_side, ")");
  }
  return text;
}

absl::StatusOr<PairLines> ParsePairs(absl::string_view text, absl::string_view name, bool allow_references) {
  PairLines out;
  for (absl::string_view line : Lines(text)) {
    const int64_t number = ++out.report.lines;
    if (line.find_first_not_of(' ') == absl::string_view::npos) {
      ++out.report.empty_lines;
      continue;
    }
    const std::vector<absl::string_view> columns = absl::StrSplit(line, '\t');
    if (columns.size() < 2) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, ":", number, ": found no tab, expected source TAB target: \"", line.substr(0, 60), "\""));
    }
    if (columns.size() > 2 && !allow_references) {
      return absl::FailedPreconditionError(absl::StrCat(name, ":", number, ": found ", columns.size(),
                                                        " columns, expected 2 in a training file (source TAB target)"));
    }
    PairLine pair{.line = number, .source = columns[0], .target = columns[1], .more = {}};
    for (size_t i = 2; i < columns.size(); ++i) {
      if (!columns[i].empty()) pair.more.push_back(columns[i]);
    }
    out.pairs.push_back(std::move(pair));
  }
  return out;
}

absl::Status EncodeColumn(const Tokenizer& tokenizer, absl::string_view text, absl::string_view name, int64_t line,
                          absl::string_view side, std::vector<int32_t>* ids) {
  const int64_t offset = tokenizer.TryEncode(text, ids);
  if (offset < 0) return absl::OkStatus();
  const absl::Status status = tokenizer.UnknownSymbol(text, offset);
  return absl::Status(status.code(), absl::StrCat(name, ":", line, ": ", side, ": ", status.message()));
}

absl::StatusOr<ExampleSet> EncodePairs(PairLines* lines, absl::string_view name, const Tokenizer& source,
                                       const Tokenizer& target, bool keep_references, ExampleSampler sampler) {
  ExampleSet set = ExampleSet::Pairs(target.bos(), target.eos());
  set.SetSampler(std::move(sampler));
  ReadReport& report = lines->report;
  std::vector<int32_t> source_ids;
  std::vector<int32_t> target_ids;
  for (const PairLine& pair : lines->pairs) {
    source_ids.clear();
    target_ids.clear();
    WEFT_RETURN_IF_ERROR(EncodeColumn(source, pair.source, name, pair.line, "source", &source_ids));
    WEFT_RETURN_IF_ERROR(EncodeColumn(target, pair.target, name, pair.line, "target", &target_ids));
    if (source_ids.empty() || target_ids.empty()) {
      if (report.empty_sides++ == 0) report.first_empty_side = pair.line;
      continue;
    }
    ++report.kept;
    set.Sample(pair.source, pair.target);
    if (!keep_references) {
      set.AddPair(source_ids, target_ids);
      continue;
    }
    std::vector<absl::string_view> texts = {pair.target};
    texts.insert(texts.end(), pair.more.begin(), pair.more.end());
    std::vector<std::vector<int32_t>> references(texts.size());
    for (size_t r = 0; r < texts.size(); ++r) {
      WEFT_RETURN_IF_ERROR(EncodeColumn(target, texts[r], name, pair.line, "reference", &references[r]));
      // An unknown word has no id that an answer could equal, not even <unk>.
      if (target.unk() >= 0) std::replace(references[r].begin(), references[r].end(), target.unk(), ExampleSet::kNoId);
    }
    set.AddPair(source_ids, target_ids, pair.source, references, texts);
  }
  if (set.empty()) return absl::FailedPreconditionError(absl::StrCat(name, ": has no pairs (", report.ToString(), ")"));
  return set;
}

}  // namespace weft
