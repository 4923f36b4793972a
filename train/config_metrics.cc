// Which metrics a validation may have, and how those on text are read.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "train/config_sections.h"
#include "train/evaluate.h"

namespace weft {

void CheckMetricNames(absl::Span<const std::string> metrics, std::optional<DataKind> kind, absl::string_view kind_name,
                      Section* valid) {
  const std::vector<std::string> names(MetricNames().begin(), MetricNames().end());
  for (size_t i = 0; i < metrics.size(); ++i) {
    const std::string& metric = metrics[i];
    if (std::find(names.begin(), names.end(), metric) == names.end()) {
      const std::string nearest = Nearest(metric, names);
      valid->Error("metrics", absl::StrCat("found \"", metric, "\", allowed ", absl::StrJoin(names, ", "),
                                           nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
    } else if (kind.has_value() && *kind != DataKind::kPairs && ComparesAnswers(metric)) {
      valid->Error("metrics",
                   absl::StrCat("found \"", metric, "\", which compares generated answers: data.kind = \"", kind_name,
                                "\" has none, allowed loss, accuracy", *kind == DataKind::kText ? ", bits_per_byte" : ""));
    } else if (kind.has_value() && *kind != DataKind::kText && metric == kBitsPerByte) {
      valid->Error("metrics",
                   absl::StrCat("found \"", metric, "\", which only data.kind = \"text\" has, found \"", kind_name, "\""));
    }
    if (std::find(metrics.begin(), metrics.begin() + static_cast<int64_t>(i), metric) !=
        metrics.begin() + static_cast<int64_t>(i)) {
      valid->Error("metrics", absl::StrCat("found \"", metric, "\" twice"));
    }
  }
}

std::vector<std::string> ReadTextMetrics(Section* valid, ValidConfig* c) {
  // A choice of metrics on the command line leaves the file's keys for others out.
  const auto check = [&](absl::string_view key, bool used, absl::string_view needed) {
    if (used || (valid->FromCommandLine("metrics") && !valid->FromCommandLine(key))) return;
    valid->Error(
        key, absl::StrCat("has no meaning without ", needed, " in valid.metrics = [", absl::StrJoin(c->metrics, ", "), "]"));
  };
  if (valid->Has("lowercase")) {
    check("lowercase", std::any_of(c->metrics.begin(), c->metrics.end(), IsTextMetric), "bleu, chrf, chrf++, wer or cer");
  }
  const OptionValue* value = valid->reader().Take("bleu");
  if (value == nullptr) return {};
  if (!std::holds_alternative<OptionValue::Table>(value->value)) {
    valid->Error("bleu", absl::StrCat("found ", value->Describe(), ", allowed a table like { tokenize = \"13a\" }"));
    return {};
  }
  check("bleu", std::find(c->metrics.begin(), c->metrics.end(), "bleu") != c->metrics.end(), "bleu");
  const Options table = TableOf(value, "");
  OptionsReader reader("valid.bleu", table);
  c->BleuFields(reader);
  return reader.Finish();
}

}  // namespace weft
