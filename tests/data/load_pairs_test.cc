// Pairs and labels in files: one file and several, columns, limits, lines with a side that is blank.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/load.h"
#include "data/tokenizer_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/temp_file.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Dataset> Load(const DataOptions& options) {
  auto data = LoadData(options);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *std::move(data) : nullptr;
}

TEST(LoadPairsTest, PairsInTwoFilesAreThoseOfOne) {
  const TempFile table("t.tsv", "ab\tX Y\nba\tY\n"), more("v.tsv", "bb\tX\tY Y\n");
  // CRLF, a byte-order mark and a missing newline at the end change nothing.
  const TempFile source("t.en",
                        "\xEF\xBB\xBF"
                        "ab\r\nba\r\n"),
      target("t.de", "X Y\nY");
  const TempFile valid_source("v.en", "bb\n"), valid_target("v.de", "X"), valid_more("v.de2", "Y Y\n");
  const TokenizerOptions words{.kind = "word"};
  const auto one = Load({.kind = "pairs", .train = table.path(), .valid = more.path(), .target_tokenizer = words});
  const auto two = Load({.kind = "pairs",
                         .train = source.path(),
                         .valid = valid_source.path(),
                         .train_targets = {target.path()},
                         .valid_targets = {valid_target.path(), valid_more.path()},
                         .target_tokenizer = words});
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  EXPECT_EQ(one->source_tokenizer->Fingerprint(), two->source_tokenizer->Fingerprint());
  EXPECT_EQ(one->target_tokenizer->Fingerprint(), two->target_tokenizer->Fingerprint());
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(one->train.Source(i), two->train.Source(i));
    EXPECT_EQ(one->train.Target(i), two->train.Target(i));
  }
  EXPECT_EQ(two->valid.reference_count(0), 2);
  EXPECT_EQ(two->valid.ReferenceText(0, 1), one->valid.ReferenceText(0, 1));
  EXPECT_THAT(two->report,
              HasSubstr(absl::StrCat(FullPath(source.path()), " and ", FullPath(target.path()), ": 2 lines, 2 kept")));
}

TEST(LoadPairsTest, TheHashOfTwoFilesIsThatOfBothTexts) {
  const TempFile source("s", "ab\nba\n"), target("t", "x\ny\n"), other("o", "y\nx\n");
  const auto hash = [&](const TempFile& file) {
    return Load({.kind = "pairs", .train = source.path(), .train_targets = {file.path()}})->content_hash;
  };
  EXPECT_EQ(hash(target), hash(target));
  EXPECT_NE(hash(target), hash(other));
}

TEST(LoadPairsTest, LimitsLeaveOutTrainingPairsOnly) {
  const TempFile train("t", "ab\tab\nabab\ta\nb\tb\n"), valid("v", "abab\tabab\n");
  const auto data = Load({.kind = "pairs", .train = train.path(), .valid = valid.path(), .max_source_length = 3});
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->train.size(), 2);
  EXPECT_EQ(data->valid.size(), 1);
  EXPECT_THAT(data->report, HasSubstr("left out 1 longer"));
  EXPECT_THAT(std::string(LoadData({.kind = "pairs", .train = valid.path(), .max_target_length = 3}).status().message()),
              HasSubstr("has no pairs (1 line, 0 kept, left out 1 longer"));
}

TEST(LoadPairsTest, SeveralColumnsReserveASeparator) {
  const TempFile train("t", "ab\tx\tb\nba\ty\ta\n");
  for (const bool shared : {false, true}) {
    const auto data = Load({.kind = "pairs",
                            .train = train.path(),
                            .columns = {.source = {1, 3}, .target = 2, .named = true},
                            .shared_tokenizer = shared});
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(data->source_tokenizer->sep(), data->source_tokenizer->size() - 1);
    EXPECT_EQ(data->target_tokenizer->sep() >= 0, shared);
    EXPECT_EQ(data->source_tokenizer->size() == data->target_tokenizer->size(), shared);
    EXPECT_EQ(data->train.Source(0)[2], data->source_tokenizer->sep());
  }
}

// A file and a checkpoint store a tokenizer without <sep>, which comes of the columns that a job reads.
TEST(LoadPairsTest, ATokenizerFromAFileOrARunFitsWhateverTheColumns) {
  const TempFile train("t", "ab\tx\tb\nba\ty\ta\n");
  const auto built = BuildTokenizer({.kind = "char"}, {"abxy"}), other = BuildTokenizer({.kind = "char"}, {"abxyz"});
  ASSERT_TRUE(built.ok() && other.ok());
  const TempFile file("f", TokenizerFileBytes((*built)->Serialize())), foreign("o", TokenizerFileBytes((*other)->Serialize()));
  const TableColumns two{.source = {1, 3}, .target = 2, .named = true}, one{.source = {1}, .target = 2, .named = true};
  for (const std::string kind : {"pairs", "labels"}) {
    for (const bool shared : {false, true}) {
      if (shared && kind == "labels") continue;
      DataOptions options{.kind = kind,
                          .train = train.path(),
                          .columns = two,
                          .source_tokenizer = {.kind = "char", .file = file.path()},
                          .target_tokenizer = {.kind = "char", .file = file.path()},
                          .shared_tokenizer = shared};
      const auto origin = Load(options);
      ASSERT_NE(origin, nullptr);
      EXPECT_GE(origin->source_tokenizer->sep(), 0);
      options.known_source = origin->source_tokenizer.get();
      options.known_target = origin->target_tokenizer.get();
      for (const TableColumns& columns : {two, one}) {
        options.columns = columns;
        const auto again = Load(options);
        ASSERT_NE(again, nullptr);
        EXPECT_EQ(again->source_tokenizer->sep() >= 0, columns.source.size() == 2);
        EXPECT_EQ(again->source_tokenizer->Serialize().symbols, origin->source_tokenizer->Serialize().symbols);
        if (shared) {
          EXPECT_EQ(again->source_tokenizer->Fingerprint(), again->target_tokenizer->Fingerprint());
        }
      }
      options.source_tokenizer.file = options.target_tokenizer.file = foreign.path();
      EXPECT_THAT(std::string(LoadData(options).status().message()),
                  HasSubstr("is not the tokenizer that the checkpoint was trained with: found the tokenizer char of "));
    }
  }
}

// Lines of which one side is blank: the other side gives the vocabulary nothing and may have unknown symbols.
TEST(LoadPairsTest, APairWithABlankSideIsSkippedInOneFileAsInTwo) {
  const TempFile table("t.tsv", "ab\tx y\n  \tZ\nQ\t  \n\tW\n\n  \nba\ty\n"), more("v.tsv", "ab\tx\t \ty y\n?\t\n  \t!\n");
  const TempFile source("t.en", "ab\n  \nQ\n\n\n  \nba\n"), target("t.de", "x y\nZ\n  \nW\n\n\ny\n");
  const TempFile valid_source("v.en", "ab\n?\n  \n"), valid_target("v.de", "x\n\n!\n"), blank("v.de2", " \n\n?\n"),
      valid_more("v.de3", "y y\n\n?\n");
  const TemporaryFolder folder;
  for (const char* kind : {"char", "word", "byte"}) {
    DataOptions one{.train = table.path(), .valid = more.path(), .source_tokenizer = {kind}, .target_tokenizer = {kind}};
    DataOptions two = one;
    two.train = source.path();
    two.train_targets = {target.path()};
    two.valid = valid_source.path();
    two.valid_targets = {valid_target.path(), blank.path(), valid_more.path()};
    DataOptions streamed = one;
    streamed.storage = {.in_memory = 0, .cache = folder.path()};
    const auto first = Load(one);
    ASSERT_NE(first, nullptr);
    EXPECT_THAT(first->report, HasSubstr("7 lines, 2 kept, skipped 2 empty lines and 3 with an empty side (first: line 2)"));
    EXPECT_THAT(first->report, HasSubstr("3 lines, 1 kept, skipped 2 with an empty side (first: line 2)"));
    EXPECT_EQ(first->valid.reference_count(0), 2) << kind;
    EXPECT_EQ(first->valid.ReferenceText(0, 1), "y y");
    EXPECT_EQ(first->source_tokenizer->size(), kind == std::string("byte") ? 256 : 2);
    for (const DataOptions& options : {two, streamed}) {
      const auto data = Load(options);
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(data->source_tokenizer->Fingerprint(), first->source_tokenizer->Fingerprint());
      EXPECT_EQ(data->target_tokenizer->Fingerprint(), first->target_tokenizer->Fingerprint());
      ASSERT_EQ(data->train.size(), 2);
      std::vector<int32_t> a, b;
      for (int64_t i = 0; i < 2; ++i) {
        const auto ids = data->train.ReadIds(i, &a), expected = first->train.ReadIds(i, &b);
        ASSERT_TRUE(ids.ok() && expected.ok());
        EXPECT_EQ(ids->source, expected->source);
        EXPECT_EQ(ids->target, expected->target);
      }
      EXPECT_EQ(data->valid.reference_count(0), 2);
      EXPECT_THAT(data->report, HasSubstr("7 lines, 2 kept, skipped 2 empty lines and 3 with an empty side (first: line 2)"));
    }
  }
}

TEST(LoadPairsTest, ALabelledLineWithoutTextHasNoClassEither) {
  const TempFile train("t", "a\tgood\n  \tugly\nb\tbad\n\tugly\n"), valid("v", "  \tstrange\na\tbad\n");
  for (const char* kind : {"char", "word"}) {
    const auto data =
        Load({.kind = "labels", .train = train.path(), .valid = valid.path(), .source_tokenizer = {.kind = kind}});
    ASSERT_NE(data, nullptr);
    EXPECT_THAT(data->class_names, ElementsAre("bad", "good"));
    EXPECT_EQ(data->source_tokenizer->size(), 2);
    EXPECT_EQ(data->train.size(), 2);
    EXPECT_EQ(data->valid.size(), 1);
    EXPECT_THAT(data->report, HasSubstr("4 lines, 2 kept, skipped 2 with an empty side (first: line 2)"));
  }
}

TEST(LoadPairsTest, OnlyPairsMayBeInSeveralFiles) {
  const TempFile file("t", "abc");
  const auto model = Load({.kind = "text", .train = file.path(), .window = 2});
  ASSERT_NE(model, nullptr);
  EvaluationOptions options;
  options.target_tokenizer = model->target_tokenizer.get();
  options.window = 2;
  const std::vector<std::string> paths = {file.path(), file.path()};
  EXPECT_EQ(LoadEvaluationData(paths, options).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadData({.kind = "text", .train = file.path(), .train_targets = {file.path()}, .window = 2}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft
