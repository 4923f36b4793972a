#include "data/scores/metric.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/check.h"
#include "autograd/base/parallel.h"
#include "data/scores/bleu.h"
#include "data/scores/chrf.h"
#include "data/scores/error_rate.h"
#include "data/unicode.h"

namespace weft {
namespace {

template <typename T, size_t N>
absl::StatusOr<T> ParseName(absl::string_view what, absl::string_view name, const std::pair<const char*, T> (&values)[N]) {
  std::vector<absl::string_view> allowed;
  for (const auto& [known, value] : values) {
    if (name == known) return value;
    allowed.push_back(known);
  }
  return absl::InvalidArgumentError(absl::StrCat(what, ": found ", name, ", allowed: ", absl::StrJoin(allowed, " ")));
}

using Maker = std::unique_ptr<TextMetric> (*)(const TextMetricOptions&);

template <typename M, auto... arguments>
std::unique_ptr<TextMetric> Make(const TextMetricOptions& options) {
  return std::make_unique<M>(options, arguments...);
}

constexpr char kWer[] = "wer", kPer[] = "per", kCer[] = "cer", kExactMatch[] = "exact_match", kAccuracy[] = "accuracy";

// "per" and "accuracy" are the names that "wer" and "exact_match" go by for phonemes and for labels.
const std::pair<const char*, Maker> kMetrics[] = {
    {"bleu", Make<Bleu>},
    {"chrf", Make<Chrf, 0>},
    {"chrf++", Make<Chrf, 2>},
    {kWer, Make<ErrorRate, kWer, ErrorUnit::kWords>},
    {kPer, Make<ErrorRate, kPer, ErrorUnit::kWords>},
    {kCer, Make<ErrorRate, kCer, ErrorUnit::kCharacters>},
    {kExactMatch, Make<ExactMatch, kExactMatch>},
    {kAccuracy, Make<ExactMatch, kAccuracy>},
};

}  // namespace

absl::StatusOr<ScoreTokenizer> ParseScoreTokenizer(absl::string_view name) {
  return ParseName<ScoreTokenizer>("tokenize", name,
                                   {{"13a", ScoreTokenizer::k13a},
                                    {"intl", ScoreTokenizer::kIntl},
                                    {"char", ScoreTokenizer::kChar},
                                    {"none", ScoreTokenizer::kNone}});
}

absl::StatusOr<BleuSmoothing> ParseBleuSmoothing(absl::string_view name) {
  return ParseName<BleuSmoothing>("smooth", name,
                                  {{"exp", BleuSmoothing::kExp},
                                   {"floor", BleuSmoothing::kFloor},
                                   {"add-k", BleuSmoothing::kAddK},
                                   {"none", BleuSmoothing::kNone}});
}

std::string TextMetric::Settings() const { return absl::StrCat("case:", options_.lowercase ? "lc" : "mixed"); }

TextMetric::Numbers TextMetric::Line(absl::string_view hypothesis, absl::Span<const absl::string_view> references) const {
  WEFT_CHECK(!references.empty()) << title() << " of a line without references";
  const auto read = [&](absl::string_view text) { return options_.lowercase ? LowerCase(CodePoints(text)) : CodePoints(text); };
  std::vector<std::u32string> lines;
  for (absl::string_view reference : references) lines.push_back(read(reference));
  return LineOf(read(hypothesis), lines);
}

std::vector<std::string> TextMetricNames() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : kMetrics) names.emplace_back(name);
  return names;
}

absl::StatusOr<std::unique_ptr<TextMetric>> MakeTextMetric(absl::string_view name, const TextMetricOptions& options) {
  const auto maker = ParseName<Maker>("metric", name, kMetrics);
  if (!maker.ok()) return maker.status();
  return (*maker)(options);
}

std::vector<TextMetric::Numbers> ScoreLines(const TextMetric& metric, absl::Span<const absl::string_view> hypotheses,
                                            absl::FunctionRef<std::vector<std::string>(int64_t line)> references) {
  const auto count = static_cast<int64_t>(hypotheses.size());
  std::vector<TextMetric::Numbers> numbers(hypotheses.size());
  constexpr int64_t kLinesAtOnce = 64;
  ParallelFor((count + kLinesAtOnce - 1) / kLinesAtOnce, [&](int64_t block) {
    for (int64_t i = block * kLinesAtOnce; i < std::min(count, (block + 1) * kLinesAtOnce); ++i) {
      const std::vector<std::string> texts = references(i);
      numbers[i] = metric.Line(hypotheses[i], std::vector<absl::string_view>(texts.begin(), texts.end()));
    }
  });
  return numbers;
}

std::vector<TextMetric::Numbers> ScoreLines(const TextMetric& metric, absl::Span<const absl::string_view> hypotheses,
                                            absl::Span<const std::vector<absl::string_view>> references) {
  for (const auto& lines : references) WEFT_CHECK_EQ(lines.size(), hypotheses.size()) << "lines of a reference";
  return ScoreLines(metric, hypotheses, [&](int64_t line) {
    std::vector<std::string> texts;
    for (const auto& lines : references) texts.emplace_back(lines[line]);
    return texts;
  });
}

TextMetric::Numbers SumLines(absl::Span<const TextMetric::Numbers> lines) {
  WEFT_CHECK(!lines.empty());
  TextMetric::Numbers sums(lines[0].size());
  for (const TextMetric::Numbers& line : lines) {
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += line[k];
  }
  return sums;
}

}  // namespace weft
