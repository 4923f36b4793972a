// Scores of text. The expected numbers of BLEU and chrF are sacreBLEU 2.6.0's for these lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "data/scores/bootstrap.h"
#include "data/scores/metric.h"
#include "data/scores/ngrams.h"
#include "data/unicode.h"

namespace weft {
namespace {

using Lines = std::vector<absl::string_view>;
using testing::ElementsAre;

const Lines kHypothesis = {"The quick brown fox jumped over the lazy dog.",
                           "It costs 1,234.50 euros - or 5% more, doesn't it?",
                           "",
                           "Yes",
                           "ΟΔΟΣ ÉTÉ: «ça va?», said Zoë...",
                           "we saw the the the the red boat on the lake"};
const Lines kFirst = {"The quick brown fox jumps over the lazy dog.",
                      "It costs 1,234.5 euros, or 5 % more, does it not?",
                      "An empty answer.",
                      "Yes",
                      "Οδος été: «Ça va?», says Zoë…",
                      "we saw the red boat on the lake"};
const Lines kSecond = {"A quick brown fox jumped over a lazy dog!", "That is 1,234.50 euros - or 5% more, isn't it?", "", "No",
                       "οδος, été: 'ça va', said Zoë...",           "we have seen a red boat on that lake today"};

std::unique_ptr<TextMetric> Metric(const std::string& name, const TextMetricOptions& options = {}) {
  auto metric = MakeTextMetric(name, options);
  EXPECT_TRUE(metric.ok()) << metric.status();
  return *std::move(metric);
}

double Score(const TextMetric& metric, const Lines& hypothesis, const std::vector<Lines>& references) {
  return metric.Score(SumLines(ScoreLines(metric, hypothesis, references)));
}

std::vector<std::u32string> Tokens(ScoreTokenizer tokenizer, absl::string_view line) {
  return ScoreTokens(tokenizer, CodePoints(line));
}

TEST(Scores, BleuEqualsSacreBleuForEachTokenizationCaseAndNumberOfReferences) {
  struct Case {
    const char* tokenizer;
    bool lowercase;
    double one_reference, two_references;
  };
  const Case cases[] = {
      {"13a", false, 43.187395, 66.531743},  {"13a", true, 53.522035, 76.347944},   {"intl", false, 41.275485, 67.542137},
      {"intl", true, 52.630334, 77.352013},  {"char", false, 70.538254, 86.750455}, {"char", true, 77.501067, 92.903925},
      {"none", false, 35.360865, 59.392083}, {"none", true, 42.175990, 66.358055},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.tokenizer, c.lowercase));
    const auto bleu = Metric("bleu", {.tokenizer = *ParseScoreTokenizer(c.tokenizer), .lowercase = c.lowercase});
    EXPECT_NEAR(Score(*bleu, kHypothesis, {kFirst}), c.one_reference, 1e-6);
    EXPECT_NEAR(Score(*bleu, kHypothesis, {kFirst, kSecond}), c.two_references, 1e-6);
  }
}

TEST(Scores, BleuSmoothsOrdersWithoutMatchAsSacreBleuDoes) {
  const std::vector<std::tuple<const char*, double, std::string>> cases = {
      {"exp", 31.947155, "exp"}, {"floor", 16.990442, "floor[0.10]"}, {"add-k", 45.914977, "add-k[1.00]"}, {"none", 0, "none"}};
  for (const auto& [name, score, signature] : cases) {
    const auto bleu = Metric("bleu", {.smoothing = *ParseBleuSmoothing(name)});
    EXPECT_NEAR(Score(*bleu, {"a b c x", "q r"}, {{"a b d c", "q s"}}), score, 1e-6) << name;
    EXPECT_EQ(bleu->Settings(), absl::StrCat("case:mixed|eff:no|tok:13a|smooth:", signature));
  }
}

// "Effective order" is off: a corpus without 4-grams scores 0, right or not.
TEST(Scores, BleuOfLinesTooShortForFourGramsIsZero) {
  EXPECT_EQ(Score(*Metric("bleu"), {"a b c"}, {{"a b c"}}), 0);
  EXPECT_NEAR(Score(*Metric("bleu"), {"a b c d"}, {{"a b c d"}}), 100, 1e-9);
  for (const char* name : {"bleu", "chrf", "chrf++"}) {
    EXPECT_EQ(Score(*Metric(name), {""}, {{"a b c d"}}), 0) << name;
    EXPECT_EQ(Score(*Metric(name), {"a b c d"}, {{""}}), 0) << name;
  }
}

// Section 2.1 of the paper: no word more often than the reference has it; 2.2: the nearest length counts, not the longest.
TEST(Scores, BleuClipsCountsAndTakesTheNearestLength) {
  const auto bleu = Metric("bleu");
  const std::vector<absl::string_view> references = {"the cat is on the mat", "there is a cat on the mat now"};
  EXPECT_THAT(bleu->Line("the the the the the the the", references), ElementsAre(7, 6, 2, 0, 0, 0, 7, 6, 5, 4));
}

TEST(Scores, ChrfEqualsSacreBleu) {
  struct Case {
    const char* name;
    bool lowercase;
    double one_reference, two_references;
  };
  for (const Case& c : {Case{"chrf", false, 66.800024, 69.918496}, Case{"chrf", true, 74.310693, 76.091333},
                        Case{"chrf++", false, 65.161186, 69.036064}, Case{"chrf++", true, 72.913473, 75.563717}}) {
    const auto chrf = Metric(c.name, {.lowercase = c.lowercase});
    EXPECT_NEAR(Score(*chrf, kHypothesis, {kFirst}), c.one_reference, 1e-6) << c.name << c.lowercase;
    EXPECT_NEAR(Score(*chrf, kHypothesis, {kFirst, kSecond}), c.two_references, 1e-6) << c.name << c.lowercase;
  }
  EXPECT_EQ(Metric("chrf")->Settings(), "case:mixed|eff:yes|nc:6|nw:0|space:no");
  EXPECT_EQ(Metric("chrf++", {.lowercase = true})->Settings(), "case:lc|eff:yes|nc:6|nw:2|space:no");
  EXPECT_EQ(Metric("chrf++")->title(), "chrF2++");
}

TEST(Scores, TokensAreThoseOfTheOriginalScripts) {
  EXPECT_THAT(Tokens(ScoreTokenizer::k13a, "\"1,234.5\" cost 5-10%, &quot;no&amp;lt;<skipped>."),
              ElementsAre(U"\"", U"1,234.5", U"\"", U"cost", U"5", U"-", U"10", U"%", U",", U"\"", U"no", U"<", U"."));
  // The number keeps the period that ends an international line, whatever white space follows it.
  EXPECT_THAT(Tokens(ScoreTokenizer::kIntl, "a «1,5» € in 2020. "),
              ElementsAre(U"a", U"«", U"1,5", U"»", U"€", U"in", U"2020."));
  EXPECT_THAT(Tokens(ScoreTokenizer::k13a, "in 2020. "), ElementsAre(U"in", U"2020", U"."));
  EXPECT_THAT(Tokens(ScoreTokenizer::kChar, " ab\u3000é"), ElementsAre(U"a", U"b", U"é"));
  EXPECT_THAT(Tokens(ScoreTokenizer::kNone, "a,b\u00a0c"), ElementsAre(U"a,b", U"c"));
}

// As a replacement in place would be: 400,000 entities then take more than 50 s, not some 50 ms.
TEST(Scores, EntitiesOfALongLineTakeTimeInProportion) {
  std::u32string line;
  for (int i = 0; i < 400000; ++i) line += U"&amp;";
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::u32string> tokens = ScoreTokens(ScoreTokenizer::k13a, std::move(line));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(tokens, std::vector<std::u32string>(400000, U"&"));
}

TEST(Scores, LowerCaseIsUnicodesWithoutALocale) {
  EXPECT_EQ(LowerCase(U"ÄÉIΣ Straße Ⅷ"), U"äéiς straße ⅷ");
  EXPECT_EQ(LowerCase(U"ΟΔΟΣ' ΣΑΣ. Σ"), U"οδος' σας. σ");
  EXPECT_EQ(LowerCase(U"\u0130"), U"i\u0307");
}

TEST(Scores, ErrorRatesAreEditsToTheNearestReferenceOverItsLength) {
  const std::vector<Lines> references = {{"k a t s", "d o g", ""}, {"k ae t", "d aw g z", "x y"}};
  // 0 of 3, 1 of 3 (the first of two equally near), 0 of 0.
  EXPECT_DOUBLE_EQ(Score(*Metric("per"), {"k ae t", "d  aw g", ""}, references), 1.0 / 6);
  EXPECT_DOUBLE_EQ(Score(*Metric("wer"), {"a b c d"}, {{"a"}}), 3);
  EXPECT_DOUBLE_EQ(Score(*Metric("cer"), {"é b"}, {{"éab"}}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(Score(*Metric("wer"), {"A b"}, {{"a b"}}), 0.5);
  EXPECT_DOUBLE_EQ(Score(*Metric("wer", {.lowercase = true}), {"A b"}, {{"a b"}}), 0);
  // Nothing was wanted: each word that came is an error.
  EXPECT_DOUBLE_EQ(Score(*Metric("wer"), {"a b"}, {{""}}), 2);
}

TEST(Scores, ExactMatchTakesAnyReference) {
  const std::vector<Lines> references = {{"a", "b", "", "d"}, {"x", "y", "z", "D"}};
  EXPECT_DOUBLE_EQ(Score(*Metric("exact_match"), {"x", "B", "", "e"}, references), 0.5);
  EXPECT_DOUBLE_EQ(Score(*Metric("accuracy", {.lowercase = true}), {"x", "B", "", "e"}, references), 0.75);
}

TEST(Scores, NgramsKeepTheirCounts) {
  const std::vector<int32_t> a = {1, 2, 1, 2, 3}, b = {2, 1, 2, 1, 2};
  EXPECT_EQ(NgramsOf(a, 2).size(), 4);
  EXPECT_EQ(NgramsOf(a, 6).size(), 0);
  EXPECT_EQ(SharedNgrams(NgramsOf(a, 2), NgramsOf(b, 2)), 3);            // 12 12 21
  EXPECT_EQ(UnionOf(NgramsOf(a, 1), NgramsOf(b, 1)).size(), 2 + 3 + 1);  // 1 1, 2 2 2, 3
}

TEST(Scores, UnknownNamesAreRefusedWithThoseThatExist) {
  EXPECT_EQ(MakeTextMetric("rouge", {}).status().message(),
            "metric: found rouge, allowed: bleu chrf chrf++ wer per cer exact_match accuracy");
  EXPECT_EQ(ParseScoreTokenizer("zh").status().message(), "tokenize: found zh, allowed: 13a intl char none");
  EXPECT_EQ(ParseBleuSmoothing("").status().code(), absl::StatusCode::kInvalidArgument);
}

// 200 lines of which the first output has `first` right and the second `second`.
PairedBootstrap CompareExactMatch(int64_t first, int64_t second, RandomKey key = {kBootstrapSeed}) {
  const auto lines = [](int64_t right) {
    std::vector<TextMetric::Numbers> numbers;
    for (int64_t i = 0; i < 200; ++i) numbers.push_back({i < right ? 1 : 0, 1});
    return numbers;
  };
  return ComparePaired(*Metric("exact_match"), lines(first), lines(second), kBootstrapResamples, key);
}

// The interval of a proportion p of n lines is p +- 1.96 sqrt(p (1 - p) / n), here 0.5 +- 0.0693; its ends, which are
// quantiles of 1000 resamples, have a standard error of about 0.003.
TEST(Scores, BootstrapIntervalsAreThoseOfAProportion) {
  const PairedBootstrap result = CompareExactMatch(100, 100);
  EXPECT_NEAR(result.first.mean, 0.5, 0.005);
  EXPECT_NEAR(result.first.low, 0.5 - 0.0693, 0.012);
  EXPECT_NEAR(result.first.high, 0.5 + 0.0693, 0.012);
  EXPECT_EQ(result.first.low, result.second.low);  // both see the same resamples
}

TEST(Scores, BootstrapTellsALargeDifferenceFromNone) {
  EXPECT_EQ(CompareExactMatch(100, 100).p_value, 1);
  EXPECT_LT(CompareExactMatch(100, 160).p_value, 0.005);
  EXPECT_GT(CompareExactMatch(100, 101).p_value, 0.1);
}

TEST(Scores, BootstrapRepeatsForItsKey) {
  const PairedBootstrap one = CompareExactMatch(100, 110), again = CompareExactMatch(100, 110);
  EXPECT_EQ(one.p_value, again.p_value);
  EXPECT_EQ(one.second.mean, again.second.mean);
  EXPECT_NE(one.second.mean, CompareExactMatch(100, 110, {7}).second.mean);
}

}  // namespace
}  // namespace weft
