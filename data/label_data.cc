#include "data/label_data.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/text_file.h"
#include "data/utf8.h"

namespace weft {
namespace {

std::string ListOf(absl::Span<const std::string> names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) { out->append(EscapeControls(name)); });
}

}  // namespace

absl::StatusOr<LabelSource> LabelSource::Open(TextSource file, const TableColumns& columns, uint64_t seed) {
  LabelSource labels;
  ContentPass pass(file, seed);
  WEFT_RETURN_IF_ERROR(pass.ForEach([](absl::string_view) { return absl::OkStatus(); }));
  WEFT_ASSIGN_OR_RETURN(labels.content_, pass.Finish());
  labels.line_count_ = pass.lines();
  labels.file_ = std::move(file);
  labels.columns_ = columns;
  return labels;
}

absl::Status LabelSource::ForEach(absl::FunctionRef<absl::Status(const LabelLine& line)> take) const {
  WEFT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(file_, content_));
  LabelLine label;
  std::vector<absl::string_view> found;
  while (true) {
    absl::string_view line;
    WEFT_ASSIGN_OR_RETURN(const bool more, lines.Next(&line));
    if (!more) return absl::OkStatus();
    ++label.line;
    label.text = label.label = {};
    label.more_texts.clear();
    label.kind = LineKind::kBlank;
    if (!IsBlank(line)) {
      found = absl::StrSplit(line, '\t');
      const auto count = static_cast<int64_t>(found.size());
      const bool fits = columns_.named ? count >= columns_.needed() : count == 2;
      if (!fits || IsBlank(found[columns_.target - 1])) {
        return absl::FailedPreconditionError(absl::StrCat(
            name(), ":", label.line, ": found ", count, fits ? " columns with an empty class" : " column(s)", ", expected ",
            columns_.named ? absl::StrCat(columns_.needed(), " by data.columns") : std::string("text TAB class"), ": ",
            Quote(line)));
      }
      label.text = found[columns_.source[0] - 1];
      label.label = found[columns_.target - 1];
      for (size_t i = 1; i < columns_.source.size(); ++i) label.more_texts.push_back(found[columns_.source[i] - 1]);
      label.kind = KindOfSides(label.text, label.more_texts, label.label);
    }
    WEFT_RETURN_IF_ERROR(take(label));
  }
}

absl::StatusOr<std::vector<std::string>> CollectClasses(const LabelSource& labels) {
  absl::flat_hash_set<std::string> all;
  WEFT_RETURN_IF_ERROR(labels.ForEach([&](const LabelLine& line) {
    if (line.kind == LineKind::kFull) all.emplace(line.label);
    return absl::OkStatus();
  }));
  std::vector<std::string> names(all.begin(), all.end());
  std::sort(names.begin(), names.end());
  if (names.size() >= 2) return names;
  return absl::FailedPreconditionError(
      absl::StrCat(labels.name(), ": found ", names.size(), " class(es), a classifier needs at least 2: ", ListOf(names)));
}

absl::StatusOr<EncodedLines> EncodeLabels(const LabelSource& labels, const Tokenizer& tokenizer,
                                          absl::Span<const std::string> class_names, EncodeOptions options) {
  absl::flat_hash_map<absl::string_view, int32_t> class_ids;
  for (size_t i = 0; i < class_names.size(); ++i) class_ids.emplace(class_names[i], static_cast<int32_t>(i));
  EncodedLines out;
  out.set = ExampleSet::Labels();
  out.set.SetSampler(std::move(options.sampler));
  LineCounter counter({}, tokenizer.unk(), -1);
  std::vector<absl::string_view> texts;
  const auto encode = [&](const LabelLine& line, LineIds* ids) -> absl::Status {
    ids->blank = line.kind == LineKind::kBlank;
    ids->source.clear();
    ids->target.clear();
    if (line.kind != LineKind::kFull) return absl::OkStatus();
    const auto found = class_ids.find(line.label);
    if (found == class_ids.end()) {
      const absl::Span<const std::string> shown = class_names.subspan(0, 20);
      return absl::FailedPreconditionError(absl::StrCat(labels.name(), ":", line.line, ": unknown class ", Quote(line.label),
                                                        ", allowed ", ListOf(shown),
                                                        shown.size() < class_names.size() ? ", ..." : ""));
    }
    ids->target.push_back(found->second);
    texts.assign({line.text});
    texts.insert(texts.end(), line.more_texts.begin(), line.more_texts.end());
    return EncodeSource(tokenizer, texts, labels.name(), line.line, "text", &ids->source);
  };
  LineIds ids;
  if (options.cache != nullptr) {
    WEFT_CHECK(!options.validation && !out.set.sampler().on()) << "labels that need their texts, in the cache";
    const auto classes = static_cast<int64_t>(class_names.size());
    TokenCacheKey key{labels.content_hash(), 0, std::max(tokenizer.size(), classes)};
    key.fingerprint = HashBytes(absl::StrCat("labels, ", labels.columns().ToString(), ", ", tokenizer.Fingerprint()));
    for (const std::string& name : class_names)
      key.fingerprint = HashBytes(absl::StrCat(name.size(), ":", name), key.fingerprint);
    WEFT_ASSIGN_OR_RETURN(TokenStream stream,
                          CacheLines(*options.cache, key, [&](absl::FunctionRef<absl::Status(const LineIds&)> take) {
                            return labels.ForEach([&](const LabelLine& line) -> absl::Status {
                              WEFT_RETURN_IF_ERROR(encode(line, &ids));
                              return take(ids);
                            });
                          }));
    out.set.ReserveStored(labels.line_count());
    WEFT_RETURN_IF_ERROR(ForEachStoredLine(stream, key.vocabulary, [&](int64_t start, const LineIds& line) {
      if (counter.Keep(line)) out.set.AddStoredLabel(start, static_cast<int64_t>(line.source.size()), line.target[0]);
      return absl::OkStatus();
    }));
    out.set.StoreIn(std::move(stream), tokenizer.size(), 0);
  } else {
    WEFT_RETURN_IF_ERROR(labels.ForEach([&](const LabelLine& line) -> absl::Status {
      WEFT_RETURN_IF_ERROR(encode(line, &ids));
      if (!counter.Keep(ids)) return absl::OkStatus();
      const std::string text = absl::StrJoin(texts, "\t");
      out.set.Sample(text, "");
      if (options.validation) {
        out.set.AddLabel(ids.source, ids.target[0], text);
      } else {
        out.set.AddLabel(ids.source, ids.target[0]);
      }
      return absl::OkStatus();
    }));
  }
  out.report = counter.report();
  out.unknown_source = counter.unknown_source();
  if (!out.set.empty()) return out;
  return absl::FailedPreconditionError(absl::StrCat(labels.name(), ": has no labelled lines (", out.report.ToString(), ")"));
}

}  // namespace weft
