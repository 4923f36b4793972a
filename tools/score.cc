#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "data/scores/bootstrap.h"
#include "data/scores/metric.h"
#include "data/text_file.h"
#include "tools/bleu_flags.h"
#include "tools/signature.h"
#include "tools/verbs.h"

namespace weft {
namespace {

struct ScoredFile {
  std::string path;
  std::unique_ptr<const std::string> text;
  std::vector<absl::string_view> lines;  // views of `text`, which stays where it is when the file is moved
};

absl::StatusOr<std::vector<ScoredFile>> ReadFiles(const std::vector<std::string>& paths) {
  std::vector<ScoredFile> files;
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
    auto kept = std::make_unique<const std::string>(std::move(text));
    std::vector<absl::string_view> lines = Lines(*kept);
    if (lines.empty()) return absl::FailedPreconditionError(absl::StrCat(FullPath(path), ": has no line to score"));
    files.push_back({path, std::move(kept), std::move(lines)});
  }
  return files;
}

absl::Status CheckSameLength(const ScoredFile& hypothesis, const ScoredFile& other) {
  if (hypothesis.lines.size() == other.lines.size()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("found ", hypothesis.lines.size(), " lines in ", FullPath(hypothesis.path),
                                                    " and ", other.lines.size(), " in ", FullPath(other.path),
                                                    ": line i is compared with line i, so both must have as many"));
}

using Json = nlohmann::ordered_json;

void PrintJson(const Json& json) {
  // A path may be no UTF-8.
  absl::PrintF("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// One hypothesis file and what its lines are worth.
struct Output {
  const ScoredFile* file;
  std::vector<TextMetric::Numbers> lines;
  TextMetric::Numbers sums;
};

Json PartsJson(const TextMetric& metric, const Output& output) {
  Json json;
  for (const auto& [name, value] : metric.Parts(output.sums)) json[name] = value;
  return json;
}

std::string PartsText(const TextMetric& metric, const Output& output) {
  std::string text;
  for (const auto& [name, value] : metric.Parts(output.sums)) absl::StrAppendFormat(&text, "  %s %.6g", name, value);
  return text;
}

void PrintOne(const std::string& name, const TextMetric& metric, const std::string& signature, const Output& output,
              bool json) {
  const double score = metric.Score(output.sums);
  if (!json) {
    absl::PrintF("%s|%s = %.4f%s\n", metric.title(), signature, score, PartsText(metric, output));
    return;
  }
  Json object = {{"metric", name},
                 {"score", score},
                 {"signature", signature},
                 {"hypothesis", output.file->path},
                 {"lines", output.lines.size()}};
  object.update(PartsJson(metric, output));
  PrintJson(object);
}

void PrintPair(const std::string& name, const TextMetric& metric, const std::string& signature,
               const std::vector<Output>& outputs, bool json) {
  const PairedBootstrap test = ComparePaired(metric, outputs[0].lines, outputs[1].lines);
  const ScoreInterval intervals[] = {test.first, test.second};
  Json systems = Json::array();
  std::string text;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double score = metric.Score(outputs[i].sums);
    const ScoreInterval& interval = intervals[i];
    absl::StrAppendFormat(&text, "  %s = %.4f  mean %.4f  95%% [%.4f, %.4f]%s\n", outputs[i].file->path, score, interval.mean,
                          interval.low, interval.high, PartsText(metric, outputs[i]));
    Json system = {{"hypothesis", outputs[i].file->path},
                   {"score", score},
                   {"mean", interval.mean},
                   {"low", interval.low},
                   {"high", interval.high}};
    system.update(PartsJson(metric, outputs[i]));
    systems.push_back(system);
  }
  if (!json) {
    absl::PrintF("%s|%s  p = %.4f\n%s", metric.title(), signature, test.p_value, text);
    return;
  }
  PrintJson({{"metric", name},
             {"p_value", test.p_value},
             {"signature", signature},
             {"lines", outputs[0].lines.size()},
             {"systems", systems}});
}

}  // namespace

absl::Status RunScore(const ScoreFlags& flags) {
  if (flags.hypotheses.size() != (flags.paired ? 2 : 1)) {
    return absl::InvalidArgumentError(absl::StrCat("--hypothesis: found ", flags.hypotheses.size(), ", allowed ",
                                                   flags.paired ? "two with --paired" : "one, or two with --paired"));
  }
  TextMetricOptions options;
  options.lowercase = flags.lowercase;
  WEFT_RETURN_IF_ERROR(ReadBleuFlags(flags.tokenize, flags.smooth, flags.metrics, "--metric", &options));
  WEFT_ASSIGN_OR_RETURN(const std::vector<ScoredFile> hypotheses, ReadFiles(flags.hypotheses));
  WEFT_ASSIGN_OR_RETURN(const std::vector<ScoredFile> references, ReadFiles(flags.references));
  for (const ScoredFile& hypothesis : hypotheses) {
    for (const ScoredFile& reference : references) WEFT_RETURN_IF_ERROR(CheckSameLength(hypothesis, reference));
  }
  std::vector<std::vector<absl::string_view>> reference_lines;
  for (const ScoredFile& reference : references) reference_lines.push_back(reference.lines);

  for (const std::string& name : flags.metrics) {
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TextMetric> metric, MakeTextMetric(name, options));
    const std::string signature =
        ScoreSignature(*metric, absl::StrCat(references.size()),
                       flags.paired ? absl::StrCat("|bs:", kBootstrapResamples, "|seed:", kBootstrapSeed) : std::string());
    std::vector<Output> outputs;
    for (const ScoredFile& hypothesis : hypotheses) {
      std::vector<TextMetric::Numbers> lines = ScoreLines(*metric, hypothesis.lines, reference_lines);
      TextMetric::Numbers sums = SumLines(lines);
      outputs.push_back({&hypothesis, std::move(lines), std::move(sums)});
    }
    if (flags.paired) {
      PrintPair(name, *metric, signature, outputs, flags.json);
    } else {
      PrintOne(name, *metric, signature, outputs[0], flags.json);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
