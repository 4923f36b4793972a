#include "data/scores/bleu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "data/scores/ngrams.h"

namespace weft {
namespace {

constexpr int64_t kOrders = Bleu::kMaxOrder;

absl::string_view Name(ScoreTokenizer tokenizer) {
  switch (tokenizer) {
    case ScoreTokenizer::k13a:
      return "13a";
    case ScoreTokenizer::kIntl:
      return "intl";
    case ScoreTokenizer::kChar:
      return "char";
    case ScoreTokenizer::kNone:
      return "none";
  }
  return "";
}

// With the value that a signature names too.
absl::string_view Name(BleuSmoothing smoothing) {
  switch (smoothing) {
    case BleuSmoothing::kExp:
      return "exp";
    case BleuSmoothing::kFloor:
      return "floor[0.10]";
    case BleuSmoothing::kAddK:
      return "add-k[1.00]";
    case BleuSmoothing::kNone:
      return "none";
  }
  return "";
}

// p_1 .. p_4 in percent; 0 where there is no n-gram, or no match and no smoothing.
std::array<double, kOrders> Precisions(absl::Span<const int64_t> sums, BleuSmoothing smoothing) {
  std::array<double, kOrders> precisions = {};
  const absl::Span<const int64_t> matches = sums.subspan(2, kOrders), totals = sums.subspan(2 + kOrders, kOrders);
  if (std::all_of(matches.begin(), matches.end(), [](int64_t count) { return count == 0; })) return precisions;
  double halves = 1;
  for (int64_t n = 0; n < kOrders; ++n) {
    const double added = smoothing == BleuSmoothing::kAddK && n > 0 ? 1 : 0;
    const double match = static_cast<double>(matches[n]) + added, total = static_cast<double>(totals[n]) + added;
    if (total == 0) break;
    if (match > 0) {
      precisions[n] = 100 * match / total;
    } else if (smoothing == BleuSmoothing::kExp) {
      halves *= 2;
      precisions[n] = 100 / (halves * total);
    } else if (smoothing == BleuSmoothing::kFloor) {
      precisions[n] = 100 * 0.1 / total;
    }
  }
  return precisions;
}

double BrevityPenalty(int64_t hypothesis, int64_t reference) {
  if (hypothesis >= reference) return 1;
  return hypothesis == 0 ? 0 : std::exp(1 - static_cast<double>(reference) / static_cast<double>(hypothesis));
}

}  // namespace

std::string Bleu::Settings() const {
  return absl::StrCat(TextMetric::Settings(), "|eff:no|tok:", Name(options().tokenizer), "|smooth:", Name(options().smoothing));
}

TextMetric::Numbers Bleu::LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const {
  WordNumbers numbers;
  const std::vector<int32_t> words = numbers.Of(ScoreTokens(options().tokenizer, hypothesis));
  std::vector<std::vector<int32_t>> reference_words;
  for (const std::u32string& reference : references) {
    reference_words.push_back(numbers.Of(ScoreTokens(options().tokenizer, reference)));
  }
  const int64_t length = static_cast<int64_t>(words.size());
  int64_t nearest = static_cast<int64_t>(reference_words[0].size());
  for (const auto& reference : reference_words) {
    const int64_t size = static_cast<int64_t>(reference.size());
    const int64_t further = std::abs(length - size) - std::abs(length - nearest);
    if (further < 0 || (further == 0 && size < nearest)) nearest = size;
  }
  Numbers line(2 + 2 * kOrders);
  line[0] = length;
  line[1] = nearest;
  for (int64_t n = 1; n <= kOrders; ++n) {
    const Ngrams ngrams = NgramsOf(words, n);
    Ngrams known;
    for (const auto& reference : reference_words) known = UnionOf(known, NgramsOf(reference, n));
    line[1 + n] = SharedNgrams(ngrams, known);
    line[1 + kOrders + n] = static_cast<int64_t>(ngrams.size());
  }
  return line;
}

double Bleu::Score(absl::Span<const int64_t> sums) const {
  double log_sum = 0;
  for (double precision : Precisions(sums, options().smoothing)) {
    if (precision == 0) return 0;
    log_sum += std::log(precision);
  }
  return BrevityPenalty(sums[0], sums[1]) * std::exp(log_sum / kOrders);
}

std::vector<std::pair<std::string, double>> Bleu::Parts(absl::Span<const int64_t> sums) const {
  std::vector<std::pair<std::string, double>> parts;
  for (double precision : Precisions(sums, options().smoothing)) {
    parts.emplace_back(absl::StrCat("precision_", parts.size() + 1), precision);
  }
  parts.emplace_back("brevity_penalty", BrevityPenalty(sums[0], sums[1]));
  parts.emplace_back("hypothesis_length", static_cast<double>(sums[0]));
  parts.emplace_back("reference_length", static_cast<double>(sums[1]));
  return parts;
}

}  // namespace weft
