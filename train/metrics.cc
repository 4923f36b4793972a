#include "train/metrics.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

std::string JsonNumber(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

// The step of a line of metrics.jsonl, or -1 if it is none.
int64_t StepOf(absl::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return -1;
  const auto step = object.find("step");
  return step != object.end() && step->is_number_integer() ? step->get<int64_t>() : -1;
}

}  // namespace

std::string MetricsLine(int64_t step, absl::Span<const MetricPair> values) {
  std::string line = absl::StrCat("{\"step\":", step);
  for (const auto& [name, value] : values) {
    absl::StrAppend(&line, ",", nlohmann::json(std::string(name)).dump(), ":", JsonNumber(value));
  }
  line += "}\n";
  return line;
}

absl::StatusOr<MetricsWriter> MetricsWriter::Create(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(path, /*truncate=*/true));
  return MetricsWriter(std::move(file));
}

absl::StatusOr<MetricsWriter> MetricsWriter::Resume(const std::string& path, int64_t step) {
  const absl::StatusOr<std::string> old = ReadFile(path);
  if (!old.ok() && !absl::IsNotFound(old.status())) return old.status();
  if (old.ok()) {
    std::string kept;
    std::vector<absl::string_view> lines = absl::StrSplit(*old, '\n');
    lines.pop_back();  // empty, or cut off
    for (absl::string_view line : lines) {
      const int64_t at = StepOf(line);
      if (0 <= at && at <= step) absl::StrAppend(&kept, line, "\n");
    }
    if (kept != *old) WEFT_RETURN_IF_ERROR(AtomicWrite(path, kept));
  }
  WEFT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(path, /*truncate=*/false));
  return MetricsWriter(std::move(file));
}

absl::Status MetricsWriter::Write(int64_t step, absl::Span<const MetricPair> values) {
  return file_.Append(MetricsLine(step, values));
}

bool BestMetric::Observe(int64_t at_step, double metric, bool higher_is_better) {
  const bool first = step < 0 && !std::isnan(metric);
  if (first || (step >= 0 && (higher_is_better ? metric > value : metric < value))) {
    step = at_step;
    value = metric;
    since_improved = 0;
    return true;
  }
  ++since_improved;
  return false;
}

}  // namespace weft
