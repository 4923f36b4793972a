#include "data/scores/chrf.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "data/scores/ngrams.h"
#include "data/unicode.h"

namespace weft {
namespace {

constexpr double kBetaSquared = 4;

std::vector<int32_t> Characters(const std::u32string& text) {
  std::vector<int32_t> characters;
  for (char32_t c : text) {
    if (!IsUnicodeSpace(c)) characters.push_back(static_cast<int32_t>(c));
  }
  return characters;
}

bool IsMark(char32_t c) { return c < 0x80 && absl::ascii_ispunct(static_cast<unsigned char>(c)); }

std::vector<std::u32string> WordsAndMarks(const std::u32string& text) {
  std::vector<std::u32string> words;
  for (const std::u32string& word : Words(text)) {
    // "(hi)" gives "(hi" and ")": one mark a word.
    const size_t end = word.size() - 1;
    const size_t split = end > 0 && IsMark(word[end]) ? end : end > 0 && IsMark(word[0]) ? 1 : 0;
    if (split > 0) words.push_back(word.substr(0, split));
    words.push_back(word.substr(split));
  }
  return words;
}

// All n-grams of a line, by order; the ids they are views of live as long.
class LineNgrams {
 public:
  LineNgrams(const std::u32string& text, int64_t word_order, WordNumbers* numbers) : characters_(Characters(text)) {
    for (int64_t n = 1; n <= Chrf::kCharacterOrder; ++n) orders_.push_back(NgramsOf(characters_, n));
    if (word_order == 0) return;
    words_ = numbers->Of(WordsAndMarks(text));
    for (int64_t n = 1; n <= word_order; ++n) orders_.push_back(NgramsOf(words_, n));
  }
  LineNgrams(const LineNgrams&) = delete;
  LineNgrams& operator=(const LineNgrams&) = delete;

  const std::vector<Ngrams>& orders() const { return orders_; }

 private:
  std::vector<int32_t> characters_, words_;
  std::vector<Ngrams> orders_;
};

struct PrecisionAndRecall {
  double precision = 0, recall = 0;
};

PrecisionAndRecall MeansOf(absl::Span<const int64_t> sums) {
  PrecisionAndRecall means;
  int64_t orders = 0;
  for (size_t i = 0; i < sums.size(); i += 3) {
    if (sums[i] == 0 || sums[i + 1] == 0) continue;
    means.precision += static_cast<double>(sums[i + 2]) / static_cast<double>(sums[i]);
    means.recall += static_cast<double>(sums[i + 2]) / static_cast<double>(sums[i + 1]);
    ++orders;
  }
  if (orders == 0) return means;
  means.precision /= static_cast<double>(orders);
  means.recall /= static_cast<double>(orders);
  return means;
}

}  // namespace

std::string Chrf::title() const { return absl::StrCat("chrF2", std::string(word_order_, '+')); }

std::string Chrf::Settings() const {
  return absl::StrCat(TextMetric::Settings(), "|eff:yes|nc:", kCharacterOrder, "|nw:", word_order_, "|space:no");
}

TextMetric::Numbers Chrf::LineOf(const std::u32string& hypothesis, absl::Span<const std::u32string> references) const {
  WordNumbers numbers;
  const LineNgrams ours(hypothesis, word_order_, &numbers);
  Numbers best;
  double best_score = -1;
  for (const std::u32string& reference : references) {
    const LineNgrams theirs(reference, word_order_, &numbers);
    Numbers line;
    for (size_t i = 0; i < ours.orders().size(); ++i) {
      const Ngrams &a = ours.orders()[i], &b = theirs.orders()[i];
      line.push_back(b.empty() ? 0 : static_cast<int64_t>(a.size()));
      line.push_back(static_cast<int64_t>(b.size()));
      line.push_back(SharedNgrams(a, b));
    }
    const double score = Score(line);
    if (score > best_score) {
      best_score = score;
      best = std::move(line);
    }
  }
  return best;
}

double Chrf::Score(absl::Span<const int64_t> sums) const {
  const auto [precision, recall] = MeansOf(sums);
  if (precision + recall == 0) return 0;
  return 100 * ((1 + kBetaSquared) * precision * recall / (kBetaSquared * precision + recall));
}

std::vector<std::pair<std::string, double>> Chrf::Parts(absl::Span<const int64_t> sums) const {
  const auto [precision, recall] = MeansOf(sums);
  return {{"precision", 100 * precision}, {"recall", 100 * recall}};
}

}  // namespace weft
