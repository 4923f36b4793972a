#include "data/load.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "data/tasks/task.h"
#include "data/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/temp_file.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::unique_ptr<Dataset> Load(const DataOptions& options) {
  auto data = LoadData(options);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *std::move(data) : nullptr;
}

std::vector<int32_t> WindowOf(const ExampleSet& set, int64_t i) {
  std::vector<int32_t> window(set.TargetLength(i) + 1);
  EXPECT_TRUE(set.ReadWindow(i, absl::MakeSpan(window)).ok());
  return window;
}

TEST(LoadTest, ALargeTextInTheCacheGivesTheSameDataAsOneInMemory) {
  // Lines that fit into a piece, and one that is cut a thousand times, at spaces, doubled ones too, and tabs.
  std::string lines, line;
  for (int64_t i = 0; i < 8000; ++i) {
    absl::StrAppend(&lines, i * i % 977, i % 9 == 0 ? "\r\n" : i % 11 == 0 ? " caf\xC3\xA9 " : " ");
    absl::StrAppend(&line, i * i % 977, i % 9 == 0 ? "  " : i % 11 == 0 ? "\tcaf\xC3\xA9 e\xCC\x81" : " ");
  }
  line += '\n';
  const TempFile of_lines("lines", lines), of_a_line("line", line), valid("v", "1 2\r\n9");
  const TemporaryFolder folder;
  const auto pieces = [](const char* kind, bool bytes, const char* normalization) {
    return TokenizerOptions{
        .kind = kind, .vocab_size = bytes ? 320 : 60, .byte_fallback = bytes, .normalization = normalization};
  };
  struct Case {
    const TempFile& train;
    int64_t piece_bytes;
    TokenizerOptions tokenizer;
  };
  std::vector<Case> cases;
  for (const auto& [train, bytes] : {std::pair(&of_lines, kPieceBytes), std::pair(&of_a_line, int64_t{40})}) {
    for (const char* kind : {"char", "byte"}) cases.push_back({*train, bytes, {.kind = kind}});
    cases.push_back({*train, bytes, {.kind = "word", .unknown = true, .min_count = 3}});
    for (const char* kind : {"bpe", "unigram"}) {
      cases.push_back({*train, bytes, pieces(kind, true, "none")});
      cases.push_back({*train, bytes, pieces(kind, false, "nmt_nfkc")});
    }
  }
  for (const auto& [train, piece_bytes, tokenizer] : cases) {
    for (const bool by_fraction : {true, false}) {
      SCOPED_TRACE(absl::StrCat(tokenizer.kind, " ", tokenizer.normalization, " ", piece_bytes));
      DataOptions options{.kind = "text", .train = train.path(), .window = 16, .target_tokenizer = tokenizer};
      if (by_fraction) options.valid_fraction = 0.1;
      if (!by_fraction) options.valid = valid.path();
      const auto held = Load(options);
      options.storage = {.in_memory = 0, .cache = folder.path(), .piece_bytes = piece_bytes};
      const auto cached = Load(options), again = Load(options);
      ASSERT_TRUE(held != nullptr && cached != nullptr && again != nullptr);
      EXPECT_EQ(cached->content_hash, held->content_hash);
      EXPECT_EQ(cached->target_tokenizer->Fingerprint(), held->target_tokenizer->Fingerprint());
      // The same words, after lines that say where the ids are.
      EXPECT_THAT(cached->report, EndsWith(held->report));
      EXPECT_THAT(again->report, HasSubstr("found there\n"));
      for (const auto& [a, b] : {std::pair(&held->train, &cached->train), std::pair(&held->valid, &again->valid)}) {
        ASSERT_EQ(a->size(), b->size());
        for (int64_t i = 0; i < a->size(); i += 97) ASSERT_EQ(WindowOf(*a, i), WindowOf(*b, i)) << i;
      }
    }
  }
}

TEST(LoadTest, ALargeTextIsRefusedForWhatASmallOneIs) {
  const TemporaryFolder folder;
  DataOptions options{.kind = "text", .window = 2, .storage = {.in_memory = 0, .cache = folder.path()}};
  const auto message_for = [&](absl::string_view bytes, const std::string& kind) {
    const TempFile file("t", bytes);
    options.train = file.path();
    options.target_tokenizer = {.kind = kind};
    const absl::Status large = LoadData(options).status();
    DataOptions small = options;
    small.storage.in_memory = 1000;
    EXPECT_EQ(large, LoadData(small).status());
    return std::string(large.message());
  };
  EXPECT_THAT(message_for("abc\nde\xFFgh\n", "char"), HasSubstr(":2: invalid UTF-8 at byte offset 6"));
  EXPECT_THAT(message_for(" \t ", "word"), HasSubstr("word tokenizer: the training text has no symbols"));
  EXPECT_THAT(message_for("ab", "char"), HasSubstr("2 training tokens are too few"));
  EXPECT_THAT(message_for("", "byte"), HasSubstr("is empty"));
  const TempFile train("a", "abcabc\n"), valid("v", "ab\nabxc\n");
  options.train = train.path();
  options.valid = valid.path();
  options.target_tokenizer = {.kind = "char"};
  EXPECT_THAT(std::string(LoadData(options).status().message()),
              HasSubstr(":2: unknown character \"x\" (U+0078) at character 3"));
}

TEST(LoadTest, ALargeTextIsEvaluatedAsASmallOneIs) {
  const TempFile file("t", "abcabcabcd");
  const TemporaryFolder folder;
  const auto data = Load({.kind = "text", .train = file.path(), .window = 3});
  EvaluationOptions options{.kind = DataKind::kText, .target_tokenizer = data->target_tokenizer.get(), .window = 4};
  const auto held = LoadEvaluationData(file.path(), options);
  options.storage = {.in_memory = 0, .cache = folder.path()};
  const auto cached = LoadEvaluationData(file.path(), options);
  ASSERT_TRUE(held.ok() && cached.ok()) << cached.status();
  EXPECT_EQ(held->content_hash, cached->content_hash);
  EXPECT_EQ(WindowOf(held->examples, 2), WindowOf(cached->examples, 2));
}

TEST(LoadTest, TextByFraction) {
  const TempFile file("t", "abcabcabcd");
  const auto data = Load({.kind = "text", .train = file.path(), .valid_fraction = 0.2, .window = 3});
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->kind, DataKind::kText);
  EXPECT_EQ(data->source_tokenizer, nullptr);
  EXPECT_EQ(data->target_tokenizer->size(), 4);  // the vocabulary covers the validation part
  EXPECT_EQ(data->train.size(), 5);
  EXPECT_EQ(data->valid.size(), 1);
  EXPECT_THAT(WindowOf(data->valid, 0), ElementsAre(2, 3));
  EXPECT_THAT(data->report, HasSubstr("8 tokens"));
}

TEST(LoadTest, ReportsTheShareOfUnknownWords) {
  const TempFile train("t", "a b a\tx\nb a c\tx y\n"), valid("v", "a q r b\tx\n");
  TokenizerOptions words{.kind = "word", .unknown = true, .min_count = 2};
  const auto data =
      Load({.train = train.path(), .valid = valid.path(), .source_tokenizer = words, .target_tokenizer = {"word"}});
  ASSERT_NE(data, nullptr);
  EXPECT_THAT(data->report, HasSubstr("; <unk>: 1 of 6 source tokens (17 %)\n"));
  EXPECT_THAT(data->report, HasSubstr("; <unk>: 2 of 4 source tokens (50 %)\n"));
}

TEST(LoadTest, KnownTokenizersAreTakenInPlaceOfNewOnes) {
  const TempFile first("f", "abc\tde\n"), second("s", "a\te\n"), foreign("x", "a\tz\n");
  const auto origin = Load({.train = first.path()});
  ASSERT_NE(origin, nullptr);
  DataOptions options{.train = second.path()};
  options.known_source = origin->source_tokenizer.get();
  options.known_target = origin->target_tokenizer.get();
  const auto data = Load(options);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->source_tokenizer->Serialize().symbols, origin->source_tokenizer->Serialize().symbols);
  EXPECT_EQ(data->target_tokenizer->size(), origin->target_tokenizer->size());
  EXPECT_EQ(data->train.Target(0)[0], 1);
  options.train = foreign.path();
  EXPECT_THAT(std::string(LoadData(options).status().message()), HasSubstr("unknown character \"z\""));
}

TEST(LoadTest, NewlineStyleAndByteOrderMarkChangeNothing) {
  const TempFile windows("w",
                         "\xEF\xBB\xBF"
                         "a\r\nb\r\n");
  const TempFile unix_file("u", "a\nb\n");
  const auto one = Load({.kind = "text", .train = windows.path(), .window = 2});
  const auto two = Load({.kind = "text", .train = unix_file.path(), .window = 2});
  ASSERT_TRUE(one != nullptr && two != nullptr);
  EXPECT_EQ(one->content_hash, two->content_hash);
  EXPECT_EQ(one->target_tokenizer->Fingerprint(), two->target_tokenizer->Fingerprint());
  EXPECT_EQ(WindowOf(one->train, 1), WindowOf(two->train, 1));
}

TEST(LoadTest, NulIsAnOrdinarySymbol) {
  const TempFile file("n", absl::string_view("a\0b\n", 4));
  for (const char* kind : {"char", "byte"}) {
    const auto data = Load({.kind = "text", .train = file.path(), .window = 3, .target_tokenizer = {.kind = kind}});
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(WindowOf(data->train, 0).size(), 4);
    EXPECT_EQ(data->target_tokenizer->Decode(WindowOf(data->train, 0)), std::string("a\0b\n", 4));
  }
}

TEST(LoadTest, WithoutValidationTheReportSaysSo) {
  const TempFile file("t", "abcabc");
  const auto data = Load({.kind = "text", .train = file.path(), .window = 2});
  ASSERT_NE(data, nullptr);
  EXPECT_TRUE(data->valid.empty());
  EXPECT_THAT(data->report, HasSubstr("valid: none"));
}

TEST(LoadTest, UselessTextIsRefusedWithItsReason) {
  const TempFile file("t", "abcabcabcabc");
  const TempFile empty("e", "");
  const TempFile one("o", "a");
  const TempFile strange("s", "ab\nx");
  struct Case {
    DataOptions options;
    absl::StatusCode code;
    std::string message;
  };
  const absl::StatusCode config = absl::StatusCode::kInvalidArgument;
  const absl::StatusCode data = absl::StatusCode::kFailedPrecondition;
  const std::vector<Case> cases = {
      {{.kind = "text", .train = empty.path(), .window = 3}, data, "is empty"},
      {{.kind = "text", .train = one.path(), .window = 1}, data, "1 training tokens"},
      {{.kind = "text", .train = file.path(), .window = 12}, data, "12 training tokens are too few for a window of 12"},
      {{.kind = "text", .train = file.path(), .valid = empty.path(), .window = 3}, data, "is empty"},
      {{.kind = "text", .train = file.path(), .valid = one.path(), .window = 3}, data, "1 validation tokens"},
      {{.kind = "text", .train = file.path(), .valid = strange.path(), .window = 3}, data, ":1: unknown character U+000A"},
      {{.kind = "text", .train = file.path(), .valid_fraction = 0.01, .window = 3}, data, "valid_fraction 0.01 of 12"},
      {{.kind = "text", .train = file.path(), .valid_fraction = 1.0, .window = 3}, config, "valid_fraction"},
      {{.kind = "text", .train = file.path(), .valid = file.path(), .valid_fraction = 0.5, .window = 3}, config, "both set"},
      {{.kind = "text", .train = file.path(), .window = 0}, config, "data.window"},
      {{.kind = "text", .train = "", .window = 3}, config, "data.train"},
      {{.kind = "text", .train = "/no/such/file", .window = 3}, absl::StatusCode::kNotFound, "/no/such/file"},
      {{.kind = "txt", .train = file.path()}, config, "data.kind"},
  };
  for (const Case& c : cases) {
    const absl::Status status = LoadData(c.options).status();
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(LoadTest, PairsBuildTheirVocabulariesFromTraining) {
  const TempFile train("train", "ab\tX Y\nba\tY\n");
  const TempFile valid("valid", "bb\tX\tY Y\n");
  const auto data = Load({.kind = "pairs", .train = train.path(), .valid = valid.path(), .target_tokenizer = {.kind = "word"}});
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->source_tokenizer->size(), 2);
  EXPECT_EQ(data->source_tokenizer->bos(), -1);
  EXPECT_EQ(data->target_tokenizer->size(), 4);
  EXPECT_EQ(data->train.eos(), data->target_tokenizer->eos());
  EXPECT_EQ(data->train.size(), 2);
  EXPECT_EQ(data->train.reference_count(0), 0);
  EXPECT_EQ(data->valid.reference_count(0), 2);
  EXPECT_THAT(data->report, HasSubstr("2 lines, 2 kept"));
}

TEST(LoadTest, SharedVocabulariesGiveEqualIds) {
  const TempFile train("train", "ab\tbc\n");
  const auto data = Load({.kind = "pairs", .train = train.path(), .shared_tokenizer = true});
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->source_tokenizer->Fingerprint(), data->target_tokenizer->Fingerprint());
  EXPECT_EQ(data->source_tokenizer->size(), 5);
  EXPECT_THAT(data->train.Source(0), ElementsAre(0, 1));
  EXPECT_THAT(data->train.Target(0), ElementsAre(1, 2));
}

TEST(LoadTest, LabelsLoadWithTheirClasses) {
  const TempFile train("train", "a b\tpos\nb\tneg\n");
  const TempFile valid("valid", "a\tneg\n");
  const auto data =
      Load({.kind = "labels", .train = train.path(), .valid = valid.path(), .source_tokenizer = {.kind = "word"}});
  ASSERT_NE(data, nullptr);
  EXPECT_THAT(data->class_names, ElementsAre("neg", "pos"));
  EXPECT_EQ(data->train.Class(0), 1);
  EXPECT_EQ(data->valid.Class(0), 0);
  EXPECT_EQ(data->valid.SourceText(0), "a");
  EXPECT_EQ(data->target_tokenizer, nullptr);
}

TEST(LoadTest, EveryTaskLoads) {
  for (const TaskInfo& task : Tasks()) {
    DataOptions options{.kind = "task", .task = std::string(task.name), .train_size = 60, .valid_size = 30, .seed = 3};
    options.source_tokenizer.kind = "";
    options.target_tokenizer.kind = "";
    const auto data = Load(options);
    ASSERT_NE(data, nullptr) << task.name;
    EXPECT_EQ(data->kind, task.kind);
    EXPECT_EQ(data->train.size(), 60);
    EXPECT_EQ(data->valid.size(), 30);
    options.seed = 4;
    EXPECT_NE(Load(options)->content_hash, data->content_hash) << task.name;
  }
}

TEST(LoadTest, TasksTakeNoFiles) {
  EXPECT_EQ(LoadData({.kind = "task", .task = "copy", .train = "x"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadData({.kind = "task", .task = "kopy"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(LoadTest, EvaluationUsesTheTokenizersItGets) {
  const TempFile train("train", "ab\tX Y\nba\tY\n");
  const auto data = Load({.kind = "pairs", .train = train.path(), .target_tokenizer = {.kind = "word"}});
  ASSERT_NE(data, nullptr);
  const EvaluationOptions options{.kind = DataKind::kPairs,
                                  .source_tokenizer = data->source_tokenizer.get(),
                                  .target_tokenizer = data->target_tokenizer.get(),
                                  .class_names = {}};
  const TempFile test("test", "bb\tY\tX X\n\na\tX\n");
  const auto evaluation = LoadEvaluationData(test.path(), options);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->examples.size(), 2);
  EXPECT_EQ(evaluation->examples.reference_count(0), 2);
  EXPECT_THAT(evaluation->report, HasSubstr("skipped 1 empty line"));
  const TempFile strange("strange", "bb\tY\nabc\tX\n");
  const absl::Status status = LoadEvaluationData(strange.path(), options).status();
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_THAT(std::string(status.message()), HasSubstr(":2: source: unknown character \"c\" (U+0063) at character 3"));
}

TEST(LoadTest, EvaluationOfTextAndLabels) {
  const TempFile text("text", "abab");
  const auto model = Load({.kind = "text", .train = text.path(), .window = 2});
  ASSERT_NE(model, nullptr);
  EvaluationOptions options;
  options.kind = DataKind::kText;
  options.target_tokenizer = model->target_tokenizer.get();
  options.window = 2;
  const auto windows = LoadEvaluationData(text.path(), options);
  ASSERT_TRUE(windows.ok()) << windows.status();
  EXPECT_EQ(windows->examples.total_target_tokens(), 3);
  const TempFile labels("labels", "ab\tx\nba\ty\n");
  options.kind = DataKind::kLabels;
  options.source_tokenizer = model->target_tokenizer.get();
  options.class_names = {"y", "x"};
  const auto labelled = LoadEvaluationData(labels.path(), options);
  ASSERT_TRUE(labelled.ok()) << labelled.status();
  EXPECT_EQ(labelled->examples.Class(0), 1);
}

}  // namespace
}  // namespace weft
