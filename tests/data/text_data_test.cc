#include "data/text_data.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "autograd/base/status.h"
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

std::vector<int32_t> WindowOf(const ExampleSet& set, int64_t i) {
  std::vector<int32_t> window(set.TargetLength(i) + 1);
  EXPECT_TRUE(set.ReadWindow(i, absl::MakeSpan(window)).ok());
  return window;
}

// What EncodeText says of `pieces`; their ids are appended to `ids`.
absl::Status Encode(const Tokenizer& tokenizer, const std::vector<std::string>& pieces, std::vector<int32_t>* ids) {
  const auto text = [&](absl::FunctionRef<absl::Status(absl::string_view)> take) -> absl::Status {
    for (const std::string& piece : pieces) WEFT_RETURN_IF_ERROR(take(piece));
    return absl::OkStatus();
  };
  return EncodeText(tokenizer, text, "valid.txt", [&](absl::Span<const int32_t> part) {
    ids->insert(ids->end(), part.begin(), part.end());
    return absl::OkStatus();
  });
}

TEST(TextDataTest, NTokensHaveNMinusTWindows) {
  const auto one = TrainingWindows(Stream(9), 8, "f");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->size(), 1);
  EXPECT_THAT(WindowOf(*one, 0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(one->TargetLength(0), 8);
  const auto two = TrainingWindows(Stream(10), 8, "f");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->size(), 2);
  EXPECT_EQ(WindowOf(*two, 1).back(), 9);  // the last token is a target
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
      const auto window = WindowOf(*set, i);
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
  EXPECT_EQ(*ValidationStart(10, 0.9, "f"), 1);
  EXPECT_EQ(*ValidationStart(100, 0.9, "f"), 10);
  EXPECT_EQ(*ValidationStart(10, 0.8, "f"), 2);
}

TEST(TextDataTest, FractionsCountAsTheDecimalNumbersTheyAreWrittenAs) {
  for (int64_t percent = 1; percent < 100; ++percent) {
    for (int64_t tokens = 200; tokens < 1200; ++tokens) {
      const double fraction = static_cast<double>(percent) / 100;
      EXPECT_EQ(*ValidationStart(tokens, fraction, "f"), tokens * (100 - percent) / 100) << tokens << " " << fraction;
    }
  }
  // For the usual ones that is what plain doubles give, so that the splits of earlier versions hold.
  for (const double fraction : {0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5}) {
    for (int64_t tokens = 200; tokens <= 1000000; tokens += 1 + tokens / 5000) {
      const auto plain = static_cast<int64_t>(std::floor(static_cast<double>(tokens) * (1.0 - fraction)));
      ASSERT_EQ(*ValidationStart(tokens, fraction, "f"), plain) << tokens << " " << fraction;
    }
  }
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
  std::vector<int32_t> ids;
  const absl::Status status = Encode(**tokenizer, {"abc\nc\nab?\n"}, &ids);
  EXPECT_THAT(std::string(status.message()), HasSubstr("valid.txt:3: unknown character \"?\" (U+003F) at character 3"));
  const absl::Status later = Encode(**tokenizer, {"abc\nc\n", "a\nab?\n"}, &ids);
  EXPECT_THAT(std::string(later.message()), HasSubstr("valid.txt:4: unknown character \"?\" (U+003F) at character 3"));
  EXPECT_EQ(ids, std::vector<int32_t>({1, 2, 3, 0, 3, 0}));  // of the piece that was right
  const absl::Status first = Encode(**tokenizer, {"?"}, &ids);
  EXPECT_THAT(std::string(first.message()), HasSubstr("valid.txt:1: unknown character \"?\" (U+003F) at character 1"));
}

}  // namespace
}  // namespace weft
