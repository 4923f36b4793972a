#include "data/pair_data.h"

#include <algorithm>
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

TEST(PairDataTest, FilesOfEqualLengthGivePairsThatNothingShifts) {
  // Target 3 is empty, source 5 only spaces: both lines go on both sides.
  const std::vector<std::string> targets = {"t\nu\n\nw\nx\ny", "T\n\nV\n  \nX\n\n"}, names = {"b", "c"};
  auto lines = ParsePairFiles("a\nb\nc\nd\n  \nf\n", "a", targets, names);
  ASSERT_TRUE(lines.ok()) << lines.status();
  const auto source = Build({.kind = "char"}, "abcdf ");
  const auto target = Build({.kind = "word", .specials = true}, "T X t u w x y");
  const auto set = EncodePairs(&*lines, "a", *source, *target, true);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(lines->kept_lines, ElementsAre(1, 2, 4, 6));
  EXPECT_EQ(lines->report.ToString(), "6 lines, 4 kept, skipped 2 with an empty side (first: line 3)");
  const std::vector<std::string> kept = {"a t", "b u", "d w", "f y"};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(std::string(set->SourceText(i)) + " " + set->ReferenceText(i, 0), kept[i]);
  EXPECT_EQ(set->reference_count(0), 2);
  EXPECT_EQ(set->ReferenceText(0, 1), "T");
  for (const int64_t i : {1, 2, 3}) EXPECT_EQ(set->reference_count(i), 1) << i;
}

TEST(PairDataTest, FilesOfUnequalLengthAreRefusedWithBothCounts) {
  const std::vector<std::string> names = {"x.de", "y.de"};
  const absl::Status two = ParsePairFiles("a\nb\n", "x.en", {"t\nu\nv\n"}, {"x.de"}).status();
  EXPECT_EQ(two.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(two.message()), HasSubstr("found 2 lines in x.en and 3 in x.de"));
  const absl::Status three = ParsePairFiles("a\nb\n", "x.en", {"t\nu\n", "t\n"}, names).status();
  EXPECT_THAT(std::string(three.message()), HasSubstr("found 2 lines in x.en and 1 in y.de"));
}

TEST(PairDataTest, ErrorsNameTheFileOfTheirSide) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, "ab");
  const std::vector<std::string> names = {"x.de", "y.de"};
  const auto error = [&](absl::string_view source, const std::string& target, const std::string& reference) {
    auto lines = ParsePairFiles(source, "x.en", {target, reference}, names);
    return std::string(EncodePairs(&*lines, "x.en", *tokenizer, *tokenizer, true).status().message());
  };
  EXPECT_THAT(error("a\n?", "a\nb", "a\nb"), HasSubstr("x.en:2: source: unknown character \"?\""));
  EXPECT_THAT(error("a\nb", "a\n?", "a\nb"), HasSubstr("x.de:2: target: unknown character \"?\""));
  EXPECT_THAT(error("a\nb", "a\nb", "\n?"), HasSubstr("y.de:2: reference: unknown character \"?\""));
}

TEST(PairDataTest, LongerPairsAreLeftOutAndCounted) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, "ab");
  const std::string text = "ab\tab\naba\ta\na\taba\nab\tb\n";
  const auto size = [&](const PairLimits& limits, std::string* report) {
    auto lines = ParsePairs(text, "f", false);
    const auto set = EncodePairs(&*lines, "f", *tokenizer, *tokenizer, false, limits);
    *report = lines->report.ToString();
    return set.ok() ? set->size() : -1;
  };
  std::string report;
  EXPECT_EQ(size({}, &report), 4);
  EXPECT_EQ(size({.source = 3, .target = 3}, &report), 4);
  EXPECT_EQ(size({.source = 2}, &report), 3);
  EXPECT_THAT(report,
              HasSubstr("3 kept, left out 1 longer than data.max_source_length or data.max_target_length (first: line 2)"));
  EXPECT_EQ(size({.source = 2, .target = 2}, &report), 2);
  EXPECT_THAT(report, HasSubstr("left out 2"));
  EXPECT_EQ(size({.source = 1, .target = 1}, &report), -1);
}

TEST(PairDataTest, NamedColumnsAreReadAndOthersLeftAlone) {
  const TableColumns columns{.source = {3, 1}, .target = 4, .references = {6}, .named = true};
  const std::string text = "a\tid1\tb\tx\tnoise\ty\nb\tid2\t\ty\n";
  const auto source = Build({.kind = "char"}, "<sep>ab");
  source->ReserveSeparator();
  const auto target = Build({.kind = "word", .specials = true}, "x y");
  for (const bool references : {false, true}) {
    auto lines = ParsePairs(text, "f", references, columns);
    ASSERT_TRUE(lines.ok()) << lines.status();
    const auto set = EncodePairs(&*lines, "f", *source, *target, references);
    ASSERT_TRUE(set.ok()) << set.status();
    const int32_t a = source->Encode("a")->at(0), b = source->Encode("b")->at(0), sep = source->sep();
    EXPECT_THAT(set->Source(0), ElementsAre(b, sep, a));
    EXPECT_THAT(set->Source(1), ElementsAre(sep, b));
    EXPECT_EQ(set->reference_count(0), references ? 2 : 0);
    EXPECT_EQ(set->reference_count(1), references ? 1 : 0);
    EXPECT_EQ(set->SourceText(0), references ? "b\ta" : "");
  }
  EXPECT_THAT(std::string(ParsePairs("a\tb\tc\n", "f", true, columns).status().message()),
              HasSubstr("f:1: found 3 column(s), data.columns names 4"));
}

TEST(PairDataTest, ASourceOfSeparatorsAloneIsEmpty) {
  const auto source = Build({.kind = "char"}, "ab");
  source->ReserveSeparator();
  const auto target = Build({.kind = "char", .specials = true}, "x");
  auto lines = ParsePairs("\tx\t\na\tx\t\n", "f", false, {.source = {1, 3}, .target = 2, .named = true});
  ASSERT_TRUE(lines.ok()) << lines.status();
  const auto set = EncodePairs(&*lines, "f", *source, *target, false);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(lines->kept_lines, ElementsAre(2));
  EXPECT_EQ(lines->report.empty_sides, 1);
}

TEST(ColumnsTest, TheSeparatorNeverArisesFromText) {
  for (const char* kind : {"char", "byte", "word"}) {
    const auto tokenizer = Build({.kind = kind, .specials = true}, "a b <sep> <unk>");
    const int64_t plain = tokenizer->size();
    const uint64_t fingerprint = tokenizer->Fingerprint();
    EXPECT_EQ(tokenizer->sep(), -1);
    tokenizer->ReserveSeparator();
    EXPECT_EQ(tokenizer->size(), plain + 1) << kind;
    EXPECT_EQ(tokenizer->sep(), plain) << kind;
    EXPECT_NE(tokenizer->Fingerprint(), fingerprint);
    EXPECT_EQ(tokenizer->TokenText(tokenizer->sep()), "<sep>");
    const auto text = tokenizer->Encode("<sep>");
    ASSERT_TRUE(text.ok());
    EXPECT_THAT(*text, testing::Not(testing::Contains(tokenizer->sep())));
    const auto prompt = EncodePrompt(*tokenizer, "<sep>\ta", 2);
    ASSERT_TRUE(prompt.ok());
    EXPECT_EQ(std::count(prompt->begin(), prompt->end(), tokenizer->sep()), 1) << kind;
    EXPECT_EQ(tokenizer->Decode({tokenizer->sep()}), "");
  }
}

TEST(ColumnsTest, PromptsHaveTheirColumnsBetweenTabs) {
  const auto tokenizer = Build({.kind = "char"}, "ab\t");
  EXPECT_THAT(*EncodePrompt(*tokenizer, "a\tb", 1), ElementsAre(1, 0, 2));  // a character like others
  tokenizer->ReserveSeparator();
  EXPECT_THAT(*EncodePrompt(*tokenizer, "a\tb", 2), ElementsAre(1, 3, 2));
  EXPECT_THAT(*EncodePrompt(*tokenizer, "", 2), testing::IsEmpty());
  EXPECT_THAT(*EncodePrompt(*tokenizer, "\t", 2), testing::IsEmpty());
  EXPECT_THAT(std::string(EncodePrompt(*tokenizer, "ab", 2).status().message()), HasSubstr("found 1 column(s), expected 2"));
  EXPECT_THAT(std::string(EncodePrompt(*tokenizer, "a\t?", 2).status().message()), HasSubstr("column 2: unknown character"));
}

TEST(LabelDataTest, NamedColumnsAreReadAndOthersLeftAlone) {
  const auto tokenizer = Build({.kind = "char"}, "ab");
  tokenizer->ReserveSeparator();
  const TableColumns columns{.source = {2, 3}, .target = 1, .named = true};
  auto lines = ParseLabels("yes\ta\tb\tnote\nno\tb\ta\n", "f", columns);
  ASSERT_TRUE(lines.ok()) << lines.status();
  const std::vector<std::string> classes = {"no", "yes"};
  const auto set = EncodeLabels(&*lines, "f", *tokenizer, classes, true);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->Source(0), ElementsAre(0, 2, 1));
  EXPECT_EQ(set->Class(0), 1);
  EXPECT_EQ(set->SourceText(1), "b\ta");
  EXPECT_THAT(std::string(ParseLabels("yes\ta\n", "f", columns).status().message()), HasSubstr("expected 3 by data.columns"));
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
