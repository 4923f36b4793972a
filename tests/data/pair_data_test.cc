#include "data/pair_data.h"

#include <memory>
#include <string>

#include "data/label_data.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Tokenizer> Build(const TokenizerOptions& options, absl::string_view text) {
  auto tokenizer = BuildTokenizer(options, {text});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(PairDataTest, PairsWithAnEmptySideAreSkippedAndCountedAndShiftNothing) {
  // Target 3 is empty, source 5 only spaces: three characters, but no words.
  const absl::string_view text = "a\tx\nb\ty\nc\t\nd\tz\n   \tx\n\n";
  const auto characters = Build({.kind = "char"}, "abcd ");
  const auto words = Build({.kind = "word"}, "a b c d");
  const auto target = Build({.kind = "word", .specials = true}, "x y z");
  auto lines = ParsePairs(text, "f", false);
  ASSERT_TRUE(lines.ok()) << lines.status();
  PairLines again = *lines;
  const auto four = EncodePairs(&*lines, "f", *characters, *target, false);
  ASSERT_TRUE(four.ok()) << four.status();
  EXPECT_EQ(four->size(), 4);
  EXPECT_THAT(four->Source(2), ElementsAre(4));
  EXPECT_THAT(four->Target(2), ElementsAre(2));
  EXPECT_EQ(lines->report.ToString(), "6 lines, 4 kept, skipped 1 empty line and 1 with an empty side (first: line 3)");
  const auto three = EncodePairs(&again, "f", *words, *target, false);
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(three->size(), 3);
  EXPECT_EQ(again.report.empty_sides, 2);
}

TEST(PairDataTest, MalformedLinesAreNamed) {
  const absl::Status no_tab = ParsePairs("a\tb\nab\n", "train.tsv", false).status();
  EXPECT_EQ(no_tab.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(no_tab.message()), HasSubstr("train.tsv:2: found no tab"));
  const absl::Status three = ParsePairs("a\tb\tc\n", "train.tsv", false).status();
  EXPECT_EQ(three.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(three.message()), HasSubstr("train.tsv:1: found 3 columns"));
}

TEST(PairDataTest, FurtherColumnsAreReferences) {
  auto lines = ParsePairs("ab\tx y\tx\t\tz z\nb\ty\n", "valid.tsv", true);
  ASSERT_TRUE(lines.ok()) << lines.status();
  const auto source = Build({.kind = "char"}, "ab");
  const auto target = Build({.kind = "word", .specials = true}, "x x x y y z");
  const auto set = EncodePairs(&*lines, "valid.tsv", *source, *target, true);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->reference_count(0), 3);
  EXPECT_THAT(set->Reference(0, 0), ElementsAre(0, 1));
  EXPECT_THAT(set->Reference(0, 2), ElementsAre(2, 2));
  EXPECT_EQ(set->ReferenceText(0, 2), "z z");
  EXPECT_EQ(set->SourceText(0), "ab");
  ASSERT_EQ(set->reference_count(1), 1);
  EXPECT_THAT(set->Reference(1, 0), ElementsAre(1));
}

TEST(PairDataTest, UnknownWordsInReferencesEqualNothing) {
  auto lines = ParsePairs("a\tx new\n", "valid.tsv", true);
  const auto source = Build({.kind = "char"}, "a");
  const auto target = Build({.kind = "word", .specials = true, .unknown = true}, "x");
  const auto set = EncodePairs(&*lines, "valid.tsv", *source, *target, true);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->Target(0), ElementsAre(0, target->unk()));
  EXPECT_THAT(set->Reference(0, 0), ElementsAre(0, ExampleSet::kNoId));
}

TEST(PairDataTest, UnknownSymbolsAreNamedByLineAndSide) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, "ab");
  auto lines = ParsePairs("a\tb\n\nb\taxb\n", "valid.tsv", true);
  const absl::Status status = EncodePairs(&*lines, "valid.tsv", *tokenizer, *tokenizer, true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("valid.tsv:3: target: unknown character \"x\" (U+0078) at character 2, byte offset 1"));
}

TEST(PairDataTest, FilesWithoutPairsAreRefused) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, "ab");
  auto lines = ParsePairs("\n\n\t\n", "f", false);
  ASSERT_TRUE(lines.ok());
  EXPECT_EQ(EncodePairs(&*lines, "f", *tokenizer, *tokenizer, false).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(LabelDataTest, ClassesAreThoseOfTheTrainingFileSorted) {
  const auto tokenizer = Build({.kind = "char"}, "ab");
  auto train = ParseLabels("ab\tgood\nb\tbad\n\na\tgood\n\tbad\n", "train.tsv");
  ASSERT_TRUE(train.ok()) << train.status();
  const auto classes = CollectClasses(*train, "train.tsv");
  ASSERT_TRUE(classes.ok());
  EXPECT_THAT(*classes, ElementsAre("bad", "good"));
  const auto set = EncodeLabels(&*train, "train.tsv", *tokenizer, *classes, false);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->size(), 3);
  EXPECT_EQ(set->Class(0), 1);
  EXPECT_EQ(set->Class(1), 0);
  EXPECT_THAT(set->Source(0), ElementsAre(0, 1));
  EXPECT_EQ(train->report.ToString(), "5 lines, 3 kept, skipped 1 empty line and 1 with an empty side (first: line 5)");
  auto valid = ParseLabels("a\tgood\nb\tugly\n", "valid.tsv");
  const absl::Status status = EncodeLabels(&*valid, "valid.tsv", *tokenizer, *classes, true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("valid.tsv:2: unknown class \"ugly\", allowed bad, good"));
}

TEST(LabelDataTest, MalformedLinesAreNamed) {
  for (absl::string_view bad : {"a\tx\nb\n", "a\tx\nb\tx\ty\n", "a\tx\nb\t\n"}) {
    const absl::Status status = ParseLabels(bad, "train.tsv").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("train.tsv:2: "));
  }
  const auto one_class = ParseLabels("a\tx\nb\tx\n", "train.tsv");
  EXPECT_EQ(CollectClasses(*one_class, "train.tsv").status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace weft
