#include "data/text_data.h"

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> Stream(int64_t n) {
  std::vector<int32_t> stream(n);
  std::iota(stream.begin(), stream.end(), 0);
  return stream;
}

TEST(TextDataTest, NTokensHaveNMinusTWindows) {
  const auto one = TrainingWindows(Stream(9), 8, "f");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->size(), 1);
  EXPECT_THAT(one->Window(0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(one->TargetLength(0), 8);
  const auto two = TrainingWindows(Stream(10), 8, "f");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->size(), 2);
  EXPECT_EQ(two->Window(1).back(), 9);  // the last token is a target
  EXPECT_EQ(two->total_target_tokens(), 16);
}

TEST(TextDataTest, TooFewTokensAreRefusedNamingBothNumbers) {
  for (int64_t n : {0, 1, 7, 8}) {
    const absl::Status status = TrainingWindows(Stream(n), 8, "corpus.txt").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("corpus.txt: " + std::to_string(n) + " training tokens"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("window of 8"));
  }
  EXPECT_EQ(TrainingWindows(Stream(9), 0, "f").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TrainingWindows(Stream(9), -8, "f").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ValidationWindows(Stream(1), 8, "f").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ValidationWindows(Stream(9), 0, "f").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TextDataTest, ValidationTakesEveryTokenButTheFirstAsATargetOnce) {
  for (int64_t n : {2, 8, 9, 10, 16, 17, 18, 100}) {
    const auto set = ValidationWindows(Stream(n), 8, "f");
    ASSERT_TRUE(set.ok()) << set.status();
    std::vector<int32_t> targets;
    for (int64_t i = 0; i < set->size(); ++i) {
      const auto window = set->Window(i);
      EXPECT_EQ(set->TargetLength(i) + 1, window.size());
      EXPECT_LE(set->TargetLength(i), set->max_target_length());
      EXPECT_GE(set->TargetLength(i), set->min_cost());
      targets.insert(targets.end(), window.begin() + 1, window.end());
    }
    std::vector<int32_t> expected = Stream(n);
    expected.erase(expected.begin());
    EXPECT_EQ(targets, expected) << n;
    EXPECT_EQ(set->total_target_tokens(), n - 1);
  }
}

TEST(TextDataTest, FractionTakesTheLastPart) {
  EXPECT_EQ(*ValidationStart(1115394, 0.1, "f"), 1003854);  // the split that nanoGPT makes of tiny Shakespeare
  EXPECT_EQ(*ValidationStart(100, 0.0, "f"), 100);
  EXPECT_EQ(*ValidationStart(100, 0.02, "f"), 98);
}

TEST(TextDataTest, FractionsThatLeaveNothingAreRefused) {
  for (double fraction : {1.0, 1.5, -0.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(ValidationStart(100, fraction, "f").status().code(), absl::StatusCode::kInvalidArgument) << fraction;
  }
  const absl::Status status = ValidationStart(100, 0.001, "f").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0.001 of 100 tokens"));
}

TEST(TextDataTest, UnknownSymbolsAreNamedByLineAndPlaceInIt) {
  const auto tokenizer = BuildTokenizer({.kind = "char"}, {"abc\n"});
  ASSERT_TRUE(tokenizer.ok());
  const absl::Status status = EncodeText(**tokenizer, "abc\nc\nab?\n", "valid.txt").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("valid.txt:3: unknown character \"?\" (U+003F) at character 3"));
  const absl::Status first = EncodeText(**tokenizer, "?", "valid.txt").status();
  EXPECT_THAT(std::string(first.message()), HasSubstr("valid.txt:1: unknown character \"?\" (U+003F) at character 1"));
  EXPECT_EQ(EncodeText(**tokenizer, "", "valid.txt").status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace weft
