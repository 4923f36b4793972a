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

// Files with these texts and names: one, or sources and targets.
absl::StatusOr<PairSource> Open(const std::vector<std::string>& texts, const std::vector<std::string>& names, bool references,
                                const TableColumns& columns = {}) {
  std::vector<TextSource> files;
  for (size_t i = 0; i < texts.size(); ++i) files.push_back(TextSource::FromText(names[i], texts[i]));
  return PairSource::Open(std::move(files), references, columns);
}

PairSource OpenTable(const std::string& text, bool references = false, const TableColumns& columns = {}) {
  auto pairs = Open({text}, {"f"}, references, columns);
  EXPECT_TRUE(pairs.ok()) << pairs.status();
  return *std::move(pairs);
}

// What going through all lines says.
absl::Status Parse(const std::string& text, bool references = false, const TableColumns& columns = {}) {
  return OpenTable(text, references, columns).ForEach([](const PairLine&) { return absl::OkStatus(); });
}

TEST(PairDataTest, PairsWithAnEmptySideAreSkippedAndCountedAndShiftNothing) {
  // Target 3 is empty, source 5 only spaces, which some tokenizers have ids for; what they stand beside is unknown.
  const PairSource pairs = OpenTable("a\tx\nb\ty\n?\t\nd\tz\n   \t?\n\n");
  const auto target = Build({.kind = "word", .specials = true}, "x y z");
  for (const char* kind : {"char", "word"}) {
    const auto source = Build({.kind = kind}, "a b d");
    const auto set = EncodePairs(pairs, *source, *target);
    ASSERT_TRUE(set.ok()) << set.status();
    ASSERT_EQ(set->set.size(), 3);
    EXPECT_EQ(source->Decode(set->set.Source(2)), "d");
    EXPECT_THAT(set->set.Target(2), ElementsAre(2));
    EXPECT_EQ(set->report.ToString(), "6 lines, 3 kept, skipped 1 empty line and 2 with an empty side (first: line 3)");
  }
}

TEST(PairDataTest, ASideWithoutTokensIsAnEmptySide) {
  // A tab is something to see, but no word.
  const auto pairs = Open({"a\n\t\nb\n", "x\nx\n\t\n"}, {"s", "t"}, false);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  const auto words = Build({.kind = "word", .specials = true}, "a b x");
  const auto set = EncodePairs(*pairs, *words, *words);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->report.ToString(), "3 lines, 1 kept, skipped 2 with an empty side (first: line 2)");
}

// Else no answer at all would be a right one.
TEST(PairDataTest, AFurtherReferenceWithoutTokensIsNone) {
  const auto characters = Build({.kind = "char", .specials = true}, "a \t"),
             words = Build({.kind = "word", .specials = true}, "a");
  for (const bool table : {true, false}) {
    const auto pairs = table ? Open({"a\ta\t \t\t  \ta a\n"}, {"f"}, true)
                             : Open({"a\n", "a\n", " \n", "\n", "\t \n", "a a\n"}, {"s", "t", "u", "v", "w", "x"}, true);
    ASSERT_TRUE(pairs.ok()) << pairs.status();
    const auto set = EncodePairs(*pairs, *words, *words, {.validation = true});
    ASSERT_TRUE(set.ok()) << set.status();
    ASSERT_EQ(set->set.reference_count(0), 2);
    EXPECT_EQ(set->set.ReferenceText(0, 1), "a a");
    EXPECT_THAT(set->set.Reference(0, 1), ElementsAre(0, 0));
    // "\t " is two characters that an answer can have.
    const auto letters = EncodePairs(*pairs, *characters, *characters, {.validation = true});
    ASSERT_TRUE(letters.ok()) << letters.status();
    EXPECT_EQ(letters->set.reference_count(0), table ? 2 : 3);
  }
}

TEST(PairDataTest, MalformedLinesAreNamed) {
  const absl::Status no_tab = Parse("a\tb\nab\n");
  EXPECT_EQ(no_tab.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(no_tab.message()), HasSubstr("f:2: found no tab"));
  const absl::Status three = Parse("a\tb\tc\n");
  EXPECT_EQ(three.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(three.message()), HasSubstr("f:1: found 3 columns"));
}

TEST(PairDataTest, FurtherColumnsAreReferences) {
  const PairSource pairs = OpenTable("ab\tx y\tx\t\tz z\nb\ty\n", true);
  const auto source = Build({.kind = "char"}, "ab");
  const auto target = Build({.kind = "word", .specials = true}, "x x x y y z");
  const auto set = EncodePairs(pairs, *source, *target, {.validation = true});
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->set.reference_count(0), 3);
  EXPECT_THAT(set->set.Reference(0, 0), ElementsAre(0, 1));
  EXPECT_THAT(set->set.Reference(0, 2), ElementsAre(2, 2));
  EXPECT_EQ(set->set.ReferenceText(0, 2), "z z");
  EXPECT_EQ(set->set.SourceText(0), "ab");
  ASSERT_EQ(set->set.reference_count(1), 1);
  EXPECT_THAT(set->set.Reference(1, 0), ElementsAre(1));
}

TEST(PairDataTest, UnknownWordsInReferencesEqualNothing) {
  const PairSource pairs = OpenTable("a\tx new\n", true);
  const auto source = Build({.kind = "char"}, "a");
  const auto target = Build({.kind = "word", .specials = true, .unknown = true}, "x");
  const auto set = EncodePairs(pairs, *source, *target, {.validation = true});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->set.Target(0), ElementsAre(0, target->unk()));
  EXPECT_THAT(set->set.Reference(0, 0), ElementsAre(0, ExampleSet::kNoId));
}

TEST(PairDataTest, UnknownSymbolsAreNamedByLineAndSide) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, "ab");
  const PairSource pairs = OpenTable("a\tb\n\nb\taxb\n", true);
  const absl::Status status = EncodePairs(pairs, *tokenizer, *tokenizer, {.validation = true}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("f:3: target: unknown character \"x\" (U+0078) at character 2, byte offset 1"));
}

TEST(PairDataTest, FilesWithoutPairsAreRefused) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, "ab");
  const PairSource pairs = OpenTable("\n\n\t\n", false);
  EXPECT_EQ(EncodePairs(pairs, *tokenizer, *tokenizer).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PairDataTest, FilesOfEqualLengthGivePairsThatNothingShifts) {
  // Target 3 is empty, source 5 only spaces: both lines go on both sides.
  const auto pairs = Open({"a\nb\nc\nd\n  \nf\n", "t\nu\n\nw\nx\ny", "T\n\nV\n  \nX\n\n"}, {"a", "b", "c"}, true);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  const auto source = Build({.kind = "char"}, "abcdf ");
  const auto target = Build({.kind = "word", .specials = true}, "T X t u w x y");
  const auto set = EncodePairs(*pairs, *source, *target, {.validation = true});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->of_example, ElementsAre(1, 2, 4, 6));
  EXPECT_EQ(set->report.ToString(), "6 lines, 4 kept, skipped 2 with an empty side (first: line 3)");
  const std::vector<std::string> kept = {"a t", "b u", "d w", "f y"};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(std::string(set->set.SourceText(i)) + " " + set->set.ReferenceText(i, 0), kept[i]);
  EXPECT_EQ(set->set.reference_count(0), 2);
  EXPECT_EQ(set->set.ReferenceText(0, 1), "T");
  for (const int64_t i : {1, 2, 3}) EXPECT_EQ(set->set.reference_count(i), 1) << i;
}

TEST(PairDataTest, FilesOfUnequalLengthAreRefusedWithBothCounts) {
  const absl::Status two = Open({"a\nb\n", "t\nu\nv\n"}, {"x.en", "x.de"}, false).status();
  EXPECT_EQ(two.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(two.message()), HasSubstr("found 2 lines in x.en and 3 in x.de"));
  const absl::Status three = Open({"a\nb\n", "t\nu\n", "t\n"}, {"x.en", "x.de", "y.de"}, true).status();
  EXPECT_THAT(std::string(three.message()), HasSubstr("found 2 lines in x.en and 1 in y.de"));
}

TEST(PairDataTest, ErrorsNameTheFileOfTheirSide) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, "ab");
  const auto error = [&](const std::string& source, const std::string& target, const std::string& reference) {
    const auto pairs = Open({source, target, reference}, {"x.en", "x.de", "y.de"}, true);
    return std::string(EncodePairs(*pairs, *tokenizer, *tokenizer, {.validation = true}).status().message());
  };
  EXPECT_THAT(error("a\n?", "a\nb", "a\nb"), HasSubstr("x.en:2: source: unknown character \"?\""));
  EXPECT_THAT(error("a\nb", "a\n?", "a\nb"), HasSubstr("x.de:2: target: unknown character \"?\""));
  EXPECT_THAT(error("a\nb", "a\nb", "\n?"), HasSubstr("y.de:2: reference: unknown character \"?\""));
}

TEST(PairDataTest, LongerPairsAreLeftOutAndCounted) {
  const auto tokenizer = Build({.kind = "char", .specials = true}, "ab");
  const std::string text = "ab\tab\naba\ta\na\taba\nab\tb\n";
  const auto size = [&](const PairLimits& limits, std::string* report) {
    const PairSource pairs = OpenTable(text, false);
    const auto set = EncodePairs(pairs, *tokenizer, *tokenizer, {.limits = limits});
    *report = set.ok() ? set->report.ToString() : "";
    return set.ok() ? set->set.size() : -1;
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
    const PairSource pairs = OpenTable(text, references, columns);
    const auto set = EncodePairs(pairs, *source, *target, {.validation = references});
    ASSERT_TRUE(set.ok()) << set.status();
    const int32_t a = source->Encode("a")->at(0), b = source->Encode("b")->at(0), sep = source->sep();
    EXPECT_THAT(set->set.Source(0), ElementsAre(b, sep, a));
    EXPECT_THAT(set->set.Source(1), ElementsAre(sep, b));
    EXPECT_EQ(set->set.reference_count(0), references ? 2 : 0);
    EXPECT_EQ(set->set.reference_count(1), references ? 1 : 0);
    EXPECT_EQ(set->set.SourceText(0), references ? "b\ta" : "");
  }
  EXPECT_THAT(std::string(Parse("a\tb\tc\n", true, columns).message()),
              HasSubstr("f:1: found 3 column(s), data.columns names 4"));
}

TEST(PairDataTest, ASourceOfSeparatorsAloneIsEmpty) {
  const auto source = Build({.kind = "char"}, "ab");
  source->ReserveSeparator();
  const auto target = Build({.kind = "char", .specials = true}, "x");
  const PairSource pairs = OpenTable("\tx\t\na\tx\t\n", false, {.source = {1, 3}, .target = 2, .named = true});
  const auto set = EncodePairs(pairs, *source, *target);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->set.size(), 1);
  EXPECT_EQ(set->report.empty_sides, 1);
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
  for (const char* blank : {"", "  ", "\t", " \t  "}) EXPECT_THAT(*EncodePrompt(*tokenizer, blank, 2), testing::IsEmpty());
  EXPECT_THAT(std::string(EncodePrompt(*tokenizer, "ab", 2).status().message()), HasSubstr("found 1 column(s), expected 2"));
  EXPECT_THAT(std::string(EncodePrompt(*tokenizer, "a\t?", 2).status().message()), HasSubstr("column 2: unknown character"));
}

LabelSource OpenLabels(const std::string& text, const TableColumns& columns = {}) {
  auto labels = LabelSource::Open(TextSource::FromText("f", text), columns);
  EXPECT_TRUE(labels.ok()) << labels.status();
  return *std::move(labels);
}

absl::Status ParseLabels(const std::string& text, const TableColumns& columns = {}) {
  return OpenLabels(text, columns).ForEach([](const LabelLine&) { return absl::OkStatus(); });
}

TEST(LabelDataTest, NamedColumnsAreReadAndOthersLeftAlone) {
  const auto tokenizer = Build({.kind = "char"}, "ab");
  tokenizer->ReserveSeparator();
  const TableColumns columns{.source = {2, 3}, .target = 1, .named = true};
  const LabelSource labels = OpenLabels("yes\ta\tb\tnote\nno\tb\ta\n", columns);
  const std::vector<std::string> classes = {"no", "yes"};
  const auto set = EncodeLabels(labels, *tokenizer, classes, {.validation = true});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->set.Source(0), ElementsAre(0, 2, 1));
  EXPECT_EQ(set->set.Class(0), 1);
  EXPECT_EQ(set->set.SourceText(1), "b\ta");
  EXPECT_THAT(std::string(ParseLabels("yes\ta\n", columns).message()), HasSubstr("expected 3 by data.columns"));
}

TEST(LabelDataTest, ClassesAreThoseOfTheTrainingFileSorted) {
  const auto tokenizer = Build({.kind = "char"}, "ab");
  const LabelSource train = OpenLabels("ab\tgood\nb\tbad\n\na\tgood\n\tbad\n");
  const auto classes = CollectClasses(train);
  ASSERT_TRUE(classes.ok());
  EXPECT_THAT(*classes, ElementsAre("bad", "good"));
  const auto set = EncodeLabels(train, *tokenizer, *classes);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->set.size(), 3);
  EXPECT_EQ(set->set.Class(0), 1);
  EXPECT_EQ(set->set.Class(1), 0);
  EXPECT_THAT(set->set.Source(0), ElementsAre(0, 1));
  EXPECT_EQ(set->report.ToString(), "5 lines, 3 kept, skipped 1 empty line and 1 with an empty side (first: line 5)");
  const LabelSource valid = OpenLabels("a\tgood\nb\tugly\n");
  const absl::Status status = EncodeLabels(valid, *tokenizer, *classes, {.validation = true}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("f:2: unknown class \"ugly\", allowed bad, good"));
}

TEST(LabelDataTest, MalformedLinesAreNamed) {
  for (absl::string_view bad : {"a\tx\nb\n", "a\tx\nb\tx\ty\n", "a\tx\nb\t\n", "a\tx\nb\t \n"}) {
    const absl::Status status = ParseLabels(std::string(bad));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("f:2: "));
  }
  EXPECT_EQ(CollectClasses(OpenLabels("a\tx\nb\tx\n")).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace weft
