#include "data/pair_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/text_file.h"
#include "data/utf8.h"

namespace weft {
namespace {

// The column of number `number`, "" where the line has fewer.
absl::string_view ColumnAt(const std::vector<absl::string_view>& columns, int64_t number) {
  return number <= static_cast<int64_t>(columns.size()) ? columns[number - 1] : absl::string_view();
}

// Encodes the references of `pair`: the target first; of the others those that are blank or give no tokens are left out, or
// else no answer at all would be a right one.
absl::Status EncodeReferences(const PairLine& pair, const PairSource& pairs, const Tokenizer& target,
                              std::vector<absl::string_view>* texts, std::vector<std::vector<int32_t>>* references) {
  texts->clear();
  references->clear();
  for (int64_t r = 0; r <= static_cast<int64_t>(pair.more.size()); ++r) {
    const absl::string_view text = r == 0 ? pair.target : pair.more[r - 1];
    if (r > 0 && IsBlank(text)) continue;
    std::vector<int32_t> ids;
    WEFT_RETURN_IF_ERROR(EncodeColumn(target, text, pairs.target_name(r), pair.line, "reference", &ids));
    if (ids.empty()) continue;
    // An unknown word has no id that an answer could equal, not even <unk>.
    if (target.unk() >= 0) std::replace(ids.begin(), ids.end(), target.unk(), ExampleSet::kNoId);
    texts->push_back(text);
    references->push_back(std::move(ids));
  }
  return absl::OkStatus();
}

bool Exceeds(const std::vector<int32_t>& ids, int64_t limit) { return limit > 0 && static_cast<int64_t>(ids.size()) > limit; }

// Columns of a line of one file.
absl::Status ParseColumns(absl::string_view text, absl::string_view name, bool allow_references, const TableColumns& columns,
                          PairLine* pair) {
  const std::vector<absl::string_view> found = absl::StrSplit(text, '\t');
  const auto count = static_cast<int64_t>(found.size());
  if (columns.named && count < columns.needed()) {
    return absl::FailedPreconditionError(absl::StrCat(name, ":", pair->line, ": found ", count,
                                                      " column(s), data.columns names ", columns.needed(), ": ", Quote(text)));
  }
  if (count < 2 && !columns.named) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ":", pair->line, ": found no tab, expected source TAB target: ", Quote(text)));
  }
  if (count > 2 && !columns.named && !allow_references) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ":", pair->line, ": found ", count,
                     " columns, expected 2 in a training file (source TAB target); data.columns can name which to read"));
  }
  pair->source = ColumnAt(found, columns.source[0]);
  pair->target = ColumnAt(found, columns.target);
  for (size_t i = 1; i < columns.source.size(); ++i) pair->more_sources.push_back(ColumnAt(found, columns.source[i]));
  if (!allow_references) return absl::OkStatus();
  if (columns.named) {
    for (const int64_t reference : columns.references) pair->more.push_back(ColumnAt(found, reference));
  } else {
    pair->more.assign(found.begin() + 2, found.end());
  }
  return absl::OkStatus();
}

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

absl::StatusOr<PairSource> PairSource::Open(std::vector<TextSource> files, bool allow_references, const TableColumns& columns,
                                            uint64_t seed) {
  WEFT_CHECK(!files.empty()) << "files of pairs";
  PairSource pairs;
  for (const TextSource& file : files) {
    ContentPass pass(file, seed);
    WEFT_RETURN_IF_ERROR(pass.ForEach([](absl::string_view) { return absl::OkStatus(); }));
    WEFT_ASSIGN_OR_RETURN(const ContentHash content, pass.Finish());
    seed = content.hash;
    if (pairs.contents_.empty()) pairs.line_count_ = pass.lines();
    pairs.contents_.push_back(content);
    if (pass.lines() == pairs.line_count_) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("found ", pairs.line_count_, " lines in ", files[0].name(), " and ", pass.lines(), " in ", file.name(),
                     ": line i of one belongs to line i of the other, so both must have as many"));
  }
  pairs.files_ = std::move(files);
  pairs.allow_references_ = allow_references;
  pairs.columns_ = columns;
  return pairs;
}

std::string PairSource::Describe() const {
  return absl::StrJoin(files_, " and ", [](std::string* out, const TextSource& file) { out->append(file.name()); });
}

std::string PairSource::Layout() const { return absl::StrCat(files_.size(), " files, ", columns_.ToString()); }

bool PairSource::is_streamed() const {
  return std::any_of(files_.begin(), files_.end(), [](const TextSource& file) { return file.is_streamed(); });
}

absl::Status PairSource::ForEach(absl::FunctionRef<absl::Status(const PairLine& line)> take) const {
  std::vector<LineReader> readers;
  for (size_t f = 0; f < files_.size(); ++f) {
    WEFT_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(files_[f], contents_[f]));
    readers.push_back(std::move(reader));
  }
  std::vector<absl::string_view> texts(files_.size());
  PairLine pair;
  while (true) {
    size_t ended = 0;
    for (size_t f = 0; f < readers.size(); ++f) {
      WEFT_ASSIGN_OR_RETURN(const bool more, readers[f].Next(&texts[f]));
      if (!more) ++ended;
    }
    // Files that still have the hashes they had end together.
    if (ended > 0) {
      if (ended == readers.size()) return absl::OkStatus();
      return absl::FailedPreconditionError(absl::StrCat(Describe(), ": changed while they were read; start again"));
    }
    ++pair.line;
    pair.source = pair.target = {};
    pair.more.clear();
    pair.more_sources.clear();
    const bool table = texts.size() == 1;
    if (IsBlank(texts[0]) && (table || IsBlank(texts[1]))) {
      pair.kind = LineKind::kBlank;
    } else {
      if (table) {
        WEFT_RETURN_IF_ERROR(ParseColumns(texts[0], name(), allow_references_, columns_, &pair));
      } else {
        pair.source = texts[0];
        pair.target = texts[1];
        pair.more.assign(texts.begin() + 2, texts.end());
      }
      pair.kind = KindOfSides(pair.source, pair.more_sources, pair.target);
    }
    WEFT_RETURN_IF_ERROR(take(pair));
  }
}

bool LineCounter::Keep(const LineIds& line) {
  const int64_t number = ++report_.lines;
  if (line.blank) {
    ++report_.empty_lines;
    return false;
  }
  if (line.source.empty() || line.target.empty()) {
    if (report_.empty_sides++ == 0) report_.first_empty_side = number;
    return false;
  }
  if (Exceeds(line.source, limits_.source) || Exceeds(line.target, limits_.target)) {
    if (report_.too_long++ == 0) report_.first_too_long = number;
    return false;
  }
  ++report_.kept;
  if (source_unk_ >= 0) unknown_source_ += std::count(line.source.begin(), line.source.end(), source_unk_);
  if (target_unk_ >= 0) unknown_target_ += std::count(line.target.begin(), line.target.end(), target_unk_);
  return true;
}

absl::StatusOr<EncodedLines> EncodePairs(const PairSource& pairs, const Tokenizer& source, const Tokenizer& target,
                                         EncodeOptions options) {
  EncodedLines out;
  out.set = ExampleSet::Pairs(target.bos(), target.eos());
  out.set.SetSampler(std::move(options.sampler));
  LineCounter counter(options.limits, source.unk(), target.unk());
  std::vector<absl::string_view> sources;
  const auto encode = [&](const PairLine& pair, LineIds* ids) -> absl::Status {
    ids->blank = pair.kind == LineKind::kBlank;
    ids->source.clear();
    ids->target.clear();
    if (pair.kind != LineKind::kFull) return absl::OkStatus();
    sources.assign({pair.source});
    sources.insert(sources.end(), pair.more_sources.begin(), pair.more_sources.end());
    WEFT_RETURN_IF_ERROR(EncodeSource(source, sources, pairs.name(), pair.line, "source", &ids->source));
    return EncodeColumn(target, pair.target, pairs.target_name(), pair.line, "target", &ids->target);
  };
  LineIds ids;
  if (options.cache != nullptr) {
    WEFT_CHECK(!options.validation && !out.set.sampler().on()) << "pairs that need their texts, in the cache";
    const int64_t vocabulary = std::max(source.size(), target.size());
    const TokenCacheKey key{
        pairs.content_hash(),
        HashBytes(absl::StrCat("pairs, ", pairs.Layout(), ", ", source.Fingerprint(), ", ", target.Fingerprint())), vocabulary};
    WEFT_ASSIGN_OR_RETURN(TokenStream stream,
                          CacheLines(*options.cache, key, [&](absl::FunctionRef<absl::Status(const LineIds&)> take) {
                            return pairs.ForEach([&](const PairLine& pair) -> absl::Status {
                              WEFT_RETURN_IF_ERROR(encode(pair, &ids));
                              return take(ids);
                            });
                          }));
    out.set.ReserveStored(pairs.line_count());
    WEFT_RETURN_IF_ERROR(ForEachStoredLine(stream, vocabulary, [&](int64_t start, const LineIds& line) {
      if (counter.Keep(line)) {
        out.set.AddStoredPair(start, static_cast<int64_t>(line.source.size()), static_cast<int64_t>(line.target.size()));
      }
      return absl::OkStatus();
    }));
    out.set.StoreIn(std::move(stream), source.size(), target.size());
  } else {
    std::vector<absl::string_view> texts;
    std::vector<std::vector<int32_t>> references;
    WEFT_RETURN_IF_ERROR(pairs.ForEach([&](const PairLine& pair) -> absl::Status {
      WEFT_RETURN_IF_ERROR(encode(pair, &ids));
      if (!counter.Keep(ids)) return absl::OkStatus();
      const std::string source_text = absl::StrJoin(sources, "\t");
      out.set.Sample(source_text, pair.target);
      if (!options.validation) {
        out.set.AddPair(ids.source, ids.target);
        return absl::OkStatus();
      }
      out.of_example.push_back(pair.line);
      WEFT_RETURN_IF_ERROR(EncodeReferences(pair, pairs, target, &texts, &references));
      out.set.AddPair(ids.source, ids.target, source_text, references, texts);
      return absl::OkStatus();
    }));
  }
  out.report = counter.report();
  out.unknown_source = counter.unknown_source();
  out.unknown_target = counter.unknown_target();
  if (!out.set.empty()) return out;
  return absl::FailedPreconditionError(absl::StrCat(pairs.name(), ": has no pairs (", out.report.ToString(), ")"));
}

}  // namespace weft
