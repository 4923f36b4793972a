// Filters and penalties of sampling; that a sampled token never has probability zero (more of it in
// tests/layers/decode_test.cc).
#include "train/sampling.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "autograd/base/random.h"
#include "gmock/gmock.h"

namespace weft {
namespace {

using testing::ElementsAre;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

TEST(SampleToken, B106_ATokenOfProbabilityZeroIsNeverDrawn) {
  std::vector<double> logits(50000, 1.0);
  logits.back() = kMinusInfinity;
  for (double u : {0.0, 1 - 0x1p-24, 1 - 0x1p-53}) EXPECT_LT(SampleToken(logits, {.temperature = 1}, u), 49999);
  logits.front() = kMinusInfinity;
  EXPECT_EQ(SampleToken(logits, {.temperature = 1}, 0), 1);
  for (double u : {1 - 0x1p-24, 1 - 0x1p-53}) EXPECT_EQ(SampleToken(logits, {.temperature = 1}, u), 49998);
}

TEST(SampleToken, B106_FrequenciesAmongTheTopFortyAreThoseOfTheModel) {
  std::vector<double> logits(60);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = -0.05 * static_cast<double>(i);
  double total = 0;
  for (int i = 0; i < 40; ++i) total += std::exp(logits[i]);
  constexpr int kDraws = 100000;
  std::vector<int> counts(60);
  for (int i = 0; i < kDraws; ++i) ++counts[SampleToken(logits, {.temperature = 1, .top_k = 40}, RandomKey{23}.Uniform(i))];
  for (int i = 0; i < 60; ++i) {
    const double p = i < 40 ? std::exp(logits[i]) / total : 0;
    EXPECT_NEAR(counts[i], kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p))) << "token " << i;
  }
}

std::set<int32_t> Drawn(const std::vector<double>& logits, const DecodeOptions& options) {
  std::set<int32_t> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(SampleToken(logits, options, i / 1000.0));
  return drawn;
}

TEST(SampleToken, MinPKeepsWhatIsLikelyEnoughNextToTheLargest) {
  const std::vector<double> logits = {std::log(0.1), std::log(0.4), std::log(0.19), std::log(0.31)};
  EXPECT_THAT(Drawn(logits, {.temperature = 1, .min_p = 0}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Drawn(logits, {.temperature = 1, .min_p = 0.3}), ElementsAre(1, 2, 3));  // 0.3 * 0.4 = 0.12
  EXPECT_THAT(Drawn(logits, {.temperature = 1, .min_p = 0.5}), ElementsAre(1, 3));
  EXPECT_THAT(Drawn(logits, {.temperature = 1, .min_p = 1}), ElementsAre(1));
  // With the temperature applied first: (0.1 / 0.4) ^ 0.5 = 0.5.
  EXPECT_THAT(Drawn(logits, {.temperature = 2, .min_p = 0.49}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Drawn(logits, {.temperature = 2, .top_k = 3, .min_p = 0.49}), ElementsAre(1, 2, 3));
}

TEST(PenalizeRepetition, B107_LowersBothSignsOncePerToken) {
  const auto after = [](double penalty) {
    std::vector<double> logits = {-1, -2, .5};
    PenalizeRepetition({0, 2, 0}, penalty, absl::MakeSpan(logits));
    return logits;
  };
  EXPECT_THAT(after(2), ElementsAre(-2, -2, .25));
  EXPECT_THAT(after(1), ElementsAre(-1, -2, .5));
  EXPECT_THAT(after(0.5), ElementsAre(-.5, -2, 1));
}

TEST(PenalizeRepetitionDeathTest, B107_PenaltiesThatAreNotPositiveAreRefused) {
  std::vector<double> logits = {1};
  for (double penalty : {0.0, -1.0})
    EXPECT_DEATH(PenalizeRepetition({0}, penalty, absl::MakeSpan(logits)), "PenalizeRepetition");
}

}  // namespace
}  // namespace weft
