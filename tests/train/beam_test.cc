// Beam search against the enumeration of all hypotheses, over tables of probabilities.
#include "train/beam.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "autograd/base/random.h"
#include "gmock/gmock.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Tokens = std::vector<int32_t>;
using Scorer = std::function<std::vector<double>(absl::Span<const int32_t>)>;

constexpr int32_t kEos = 0, kA = 1, kB = 2;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Case B103: <eos>, a, b; the next token depends on the last one.
std::vector<double> ToyTable(absl::Span<const int32_t> prefix) {
  std::vector<double> p = {.5, .4, .1};
  if (!prefix.empty()) p = prefix.back() == kA ? std::vector<double>{.9, .05, .05} : std::vector<double>{1, 0, 0};
  for (double& x : p) x = std::log(x);
  return p;
}

// A table over `vocabulary` tokens whose rows differ for every prefix.
Scorer RandomTable(uint64_t seed, int64_t vocabulary) {
  return [=](absl::Span<const int32_t> prefix) {
    RandomKey key = RandomKey{seed}.Fold(prefix.size());
    for (int32_t token : prefix) key = key.Fold(static_cast<uint64_t>(token));
    std::vector<double> row(vocabulary);
    double total = 0;
    for (int64_t i = 0; i < vocabulary; ++i) total += row[i] = std::exp(1.5 * key.Normal(i));
    for (double& x : row) x = std::log(x / total);
    return row;
  };
}

// Every hypothesis that ends with <eos> after min_length .. max_length tokens, best first. As plain as can be.
std::vector<Hypothesis> Enumerate(const Scorer& scorer, const BeamOptions& options) {
  std::vector<Hypothesis> all;
  const std::function<void(Tokens, double)> visit = [&](Tokens prefix, double log_probability) {
    const std::vector<double> row = scorer(prefix);
    const auto length = static_cast<int64_t>(prefix.size());
    const double total = log_probability + row[kEos];
    if (length >= options.min_length && total > kMinusInfinity) {
      all.push_back({prefix, total, total / std::pow(length + 1.0, options.length_penalty), true});
    }
    if (length == options.max_length) return;
    for (size_t token = 1; token < row.size(); ++token) {
      if (row[token] == kMinusInfinity) continue;
      prefix.push_back(static_cast<int32_t>(token));
      visit(prefix, log_probability + row[token]);
      prefix.pop_back();
    }
  };
  visit({}, 0);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  return all;
}

std::vector<Tokens> TokensOf(const std::vector<Hypothesis>& hypotheses) {
  std::vector<Tokens> tokens;
  for (const Hypothesis& hypothesis : hypotheses) tokens.push_back(hypothesis.tokens);
  return tokens;
}

void ExpectSame(const std::vector<Hypothesis>& found, std::vector<Hypothesis> expected, int64_t n_best) {
  if (static_cast<int64_t>(expected.size()) > n_best) expected.resize(n_best);
  ASSERT_EQ(TokensOf(found), TokensOf(expected));
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].score, expected[i].score);
    EXPECT_EQ(found[i].log_probability, expected[i].log_probability);
    EXPECT_TRUE(found[i].ended);
  }
}

TEST(BeamSearch, B103_TheToyTableGivesTheAnswersWorkedOutByHand) {
  const auto shortest = SearchBeams(ToyTable, kEos, {.beam = 2, .length_penalty = 0, .max_length = 6});
  ASSERT_EQ(shortest.size(), 1);
  EXPECT_THAT(shortest[0].tokens, IsEmpty());
  EXPECT_NEAR(shortest[0].score, -.693147, 1e-6);
  const auto normalised = SearchBeams(ToyTable, kEos, {.beam = 2, .length_penalty = 1, .max_length = 6});
  ASSERT_EQ(normalised.size(), 1);
  EXPECT_THAT(normalised[0].tokens, ElementsAre(kA));
  EXPECT_NEAR(normalised[0].log_probability, -1.021651, 1e-6);
  EXPECT_NEAR(normalised[0].score, -.510826, 1e-6);
}

TEST(BeamSearch, B103_AWideBeamEqualsFullEnumeration) {
  for (double penalty : {0.0, 0.6, 1.0, 2.5}) {
    for (int64_t n_best : {1, 5, 500}) {
      const BeamOptions toy{.beam = 50, .length_penalty = penalty, .max_length = 6, .n_best = n_best};
      ExpectSame(SearchBeams(ToyTable, kEos, toy), Enumerate(ToyTable, toy), n_best);
      // 64 prefixes of 6 tokens: a beam of 100 loses none.
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const Scorer table = RandomTable(seed, 3);
        const BeamOptions options{.beam = 100, .length_penalty = penalty, .max_length = 6, .n_best = n_best};
        ExpectSame(SearchBeams(table, kEos, options), Enumerate(table, options), n_best);
      }
    }
  }
}

// Each search that stops early finds what the same search finds when it may not stop: with more hypotheses asked for than there
// are, it runs to max_length.
TEST(BeamSearch, B103_StoppingEarlyLosesNothing) {
  int64_t saved = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    int64_t calls = 0;
    const Scorer table = [&, inner = RandomTable(seed, 6)](absl::Span<const int32_t> prefix) {
      ++calls;
      return inner(prefix);
    };
    for (double penalty : {0.0, 0.5, 1.0, 3.0}) {
      for (int64_t n_best : {1, 3}) {
        BeamOptions options{.beam = 4, .length_penalty = penalty, .max_length = 20, .n_best = n_best};
        calls = 0;
        const auto early = SearchBeams(table, kEos, options);
        const int64_t early_calls = calls;
        options.n_best = 1000;
        calls = 0;
        ExpectSame(early, SearchBeams(table, kEos, options), n_best);
        saved += calls - early_calls;
      }
    }
  }
  EXPECT_GT(saved, 0);
}

TEST(BeamSearch, B104_HypothesesAreDistinctSortedAndNoMoreThanThereAre) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Scorer table = RandomTable(seed, 3);
    for (int64_t beam : {1, 2, 5, 100}) {
      const BeamOptions options{.beam = beam, .min_length = 2, .max_length = 6, .n_best = 5};
      const auto found = SearchBeams(table, kEos, options);
      ASSERT_FALSE(found.empty());
      EXPECT_LE(found.size(), 5);
      const std::vector<Tokens> tokens = TokensOf(found);
      EXPECT_EQ(std::set<Tokens>(tokens.begin(), tokens.end()).size(), tokens.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_GE(found[i].tokens.size(), 2) << "<eos> is barred before min_length";
        EXPECT_EQ(std::count(tokens[i].begin(), tokens[i].end(), kEos), 0);
        if (i > 0) {
          EXPECT_LE(found[i].score, found[i - 1].score);
        }
      }
      if (beam == 1) {
        EXPECT_EQ(found.size(), 1);
      }
      if (beam == 100) ExpectSame(found, Enumerate(table, options), 5);
    }
  }
}

TEST(BeamSearch, B104_ABeamOfOneIsGreedy) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Scorer table = RandomTable(seed, 5);
    for (int64_t min_length : {0, 2}) {
      Tokens greedy;
      while (greedy.size() < 7) {
        std::vector<double> row = table(greedy);
        if (static_cast<int64_t>(greedy.size()) < min_length) row[kEos] = kMinusInfinity;
        const auto token = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
        if (token == kEos) break;
        greedy.push_back(token);
      }
      for (double penalty : {0.0, 1.0}) {
        const BeamOptions options{.length_penalty = penalty, .min_length = min_length, .max_length = 7};
        EXPECT_EQ(SearchBeams(table, kEos, options)[0].tokens, greedy) << "seed " << seed;
      }
    }
  }
}

TEST(BeamSearch, TiesGoToTheLowerTokenThenToTheEarlierHypothesis) {
  const Scorer uniform = [](absl::Span<const int32_t>) { return std::vector<double>(4, std::log(0.25)); };
  const BeamOptions options{.beam = 3, .length_penalty = 0, .min_length = 2, .max_length = 2, .n_best = 9};
  EXPECT_THAT(TokensOf(SearchBeams(uniform, kEos, options)), ElementsAre(Tokens{1, 1}, Tokens{2, 1}, Tokens{3, 1}));
}

TEST(BeamSearch, HypothesesAreCutOnlyWhereNoneCanEnd) {
  const Scorer endless = [](absl::Span<const int32_t>) {
    return std::vector<double>{kMinusInfinity, std::log(.75), std::log(.25)};
  };
  for (int32_t eos : {kEos, -1}) {
    const auto found = SearchBeams(endless, eos, {.beam = 2, .max_length = 3, .n_best = 2});
    ASSERT_EQ(found.size(), 2);
    EXPECT_THAT(found[0].tokens, ElementsAre(kA, kA, kA));
    EXPECT_FALSE(found[0].ended);
    EXPECT_NEAR(found[0].score, std::log(.75), 1e-15);  // the mean of three
  }
  // A hypothesis of full length pays for its <eos> like any other.
  const auto full = SearchBeams(ToyTable, kEos, {.beam = 1, .min_length = 1, .max_length = 1});
  EXPECT_TRUE(full[0].ended);
  EXPECT_NEAR(full[0].log_probability, -1.021651, 1e-6);
}

TEST(BeamSearch, TokensOfProbabilityZeroAndNanAreNeverTaken) {
  const Scorer broken = [](absl::Span<const int32_t> prefix) {
    return prefix.empty() ? std::vector<double>{kMinusInfinity, std::nan(""), -1}
                          : std::vector<double>{-1, kMinusInfinity, std::nan("")};
  };
  EXPECT_THAT(TokensOf(SearchBeams(broken, kEos, {.beam = 9, .max_length = 5, .n_best = 9})), ElementsAre(Tokens{kB}));
  const Scorer nothing = [](absl::Span<const int32_t>) { return std::vector<double>(3, std::nan("")); };
  EXPECT_THAT(SearchBeams(nothing, kEos, {.beam = 2, .max_length = 5}), IsEmpty());
}

TEST(BeamSearchDeathTest, OptionsWithoutMeaningAreRefused) {
  EXPECT_DEATH(BeamSearch({.beam = 0, .max_length = 1}, kEos), "beam");
  EXPECT_DEATH(BeamSearch({.min_length = 2, .max_length = 1}, kEos), "min_length");
  EXPECT_DEATH(BeamSearch({.length_penalty = -1, .max_length = 1}, kEos), "length_penalty");
}

}  // namespace
}  // namespace weft
