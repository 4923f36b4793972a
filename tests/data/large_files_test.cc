// Pairs and labels in files above the limit of memory: the same data, batches and messages as from files in memory.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/batcher.h"
#include "data/load.h"
#include "data/stored_lines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/temp_file.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::unique_ptr<Dataset> Load(const DataOptions& options) {
  auto data = LoadData(options);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *std::move(data) : nullptr;
}

// Both sides and the class of all examples.
std::vector<std::vector<int32_t>> AllIds(const ExampleSet& set) {
  std::vector<std::vector<int32_t>> all;
  std::vector<int32_t> buffer;
  for (int64_t i = 0; i < set.size(); ++i) {
    const auto ids = set.ReadIds(i, &buffer);
    EXPECT_TRUE(ids.ok()) << ids.status();
    if (!ids.ok()) break;
    EXPECT_EQ(set.SourceLength(i), static_cast<int64_t>(ids->source.size()));
    all.emplace_back(ids->source.begin(), ids->source.end());
    all.emplace_back(ids->target.begin(), ids->target.end());
    EXPECT_EQ(set.TargetLength(i), set.kind() == DataKind::kPairs ? static_cast<int64_t>(ids->target.size()) + 1 : 0);
    if (set.kind() == DataKind::kLabels) all.push_back({set.Class(i)});
  }
  return all;
}

// Everything about the batches of two epochs in pools.
std::vector<std::vector<int64_t>> AllBatches(const ExampleSet& set) {
  std::vector<std::vector<int64_t>> all;
  auto batcher = Batcher::Create(&set, {.batch_tokens = 40, .sort_pool = 50, .seed = 3});
  EXPECT_TRUE(batcher.ok()) << batcher.status();
  Batch batch;
  while (batcher->position().epoch < 2) {
    const absl::Status status = batcher->Next(&batch);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) break;
    all.push_back(batch.sequence_ids);
    for (const auto* ids : {&batch.source_ids, &batch.target_ids, &batch.target_labels, &batch.classes}) {
      all.emplace_back(ids->begin(), ids->end());
    }
    all.push_back(batch.source_lengths);
    all.push_back(batch.target_lengths);
  }
  return all;
}

// Loads with all files in memory, and twice with those of training in the cache, which must give the same.
void ExpectTheSameInTheCache(DataOptions options) {
  const TemporaryFolder folder;
  const auto held = Load(options);
  options.storage = {.in_memory = 0, .cache = folder.path()};
  const auto made = Load(options), found = Load(options);
  ASSERT_TRUE(held != nullptr && made != nullptr && found != nullptr);
  EXPECT_THAT(made->report, HasSubstr("made now\n"));
  EXPECT_THAT(found->report, HasSubstr("found there\n"));
  EXPECT_TRUE(held->train.in_memory());
  for (const auto* cached : {&made, &found}) {
    const Dataset& data = **cached;
    EXPECT_FALSE(data.train.in_memory());
    EXPECT_TRUE(data.valid.in_memory());
    EXPECT_EQ(data.content_hash, held->content_hash);
    EXPECT_EQ(data.source_tokenizer->Fingerprint(), held->source_tokenizer->Fingerprint());
    EXPECT_EQ(data.class_names, held->class_names);
    EXPECT_EQ(data.valid_lines.of_example, held->valid_lines.of_example);
    // The same words, after the line that says where the ids are.
    EXPECT_THAT(data.report, EndsWith(held->report));
    EXPECT_EQ(AllIds(data.train), AllIds(held->train));
    EXPECT_EQ(AllIds(data.valid), AllIds(held->valid));
    EXPECT_EQ(AllBatches(data.train), AllBatches(held->train));
    for (int64_t i = 0; i < data.valid.size(); ++i) EXPECT_EQ(data.valid.SourceText(i), held->valid.SourceText(i));
  }
}

// Lines of all kinds: good, blank, without a source or a target, long; n of them, ended by `newline`.
std::string MixedLines(int n, absl::string_view newline, absl::string_view target(int)) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    if (i % 13 != 5)
      absl::StrAppend(&text, i % 17 == 3 ? "" : absl::StrCat(i * i % 977, " caf\xC3\xA9 ", i % 7), "\t", target(i));
    absl::StrAppend(&text, newline);
  }
  return text;
}

absl::string_view Words(int i) { return i % 11 == 2 ? "" : i % 5 == 0 ? "a b c d e f g" : i % 2 == 0 ? "b" : "c a"; }
absl::string_view Classes(int i) { return i % 3 == 0 ? "yes" : "no"; }

TEST(LargeFilesTest, LargePairsInTheCacheGiveTheSameDataAsInMemory) {
  for (const absl::string_view newline : {"\n", "\r\n"}) {
    const TempFile train("t", MixedLines(400, newline, Words)), valid("v", "1 2\tb\tc a\n\n9\ta\n");
    for (const TokenizerOptions& source : {TokenizerOptions{.kind = "char"}, TokenizerOptions{.kind = "byte"},
                                           TokenizerOptions{.kind = "word", .unknown = true, .min_count = 3}}) {
      ExpectTheSameInTheCache({.kind = "pairs",
                               .train = train.path(),
                               .valid = valid.path(),
                               .max_target_length = 6,
                               .source_tokenizer = source,
                               .target_tokenizer = {.kind = "word"}});
    }
  }
}

TEST(LargeFilesTest, LargePairsInTwoFilesGiveTheSameDataAsInMemory) {
  std::string sources, targets;
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&sources, i % 7 == 1 ? "  " : absl::StrCat(i * i % 977), "\n");
    absl::StrAppend(&targets, i % 5 == 1 ? "" : Words(i), i == 299 ? "a" : "\n");
  }
  const TempFile source("s", sources), target("t", targets), valid_source("vs", "1\n"), valid_target("vt", "a\n");
  ExpectTheSameInTheCache({.kind = "pairs",
                           .train = source.path(),
                           .valid = valid_source.path(),
                           .train_targets = {target.path()},
                           .valid_targets = {valid_target.path()},
                           .shared_tokenizer = true});
}

TEST(LargeFilesTest, LargeTablesWithNamedColumnsGiveTheSameDataAsInMemory) {
  const TempFile pairs("p", MixedLines(300, "\tx\tx\n", Words));
  std::string lines;
  for (int i = 0; i < 300; ++i)
    absl::StrAppend(&lines, Classes(i), "\t", i % 9 == 4 ? "" : "a", "\t", i % 9 == 4 ? "" : "b c\td", "\n");
  const TempFile labels("l", lines);
  ExpectTheSameInTheCache({.kind = "pairs",
                           .train = pairs.path(),
                           .columns = {.source = {3, 1}, .target = 2, .named = true},
                           .source_tokenizer = {.kind = "byte"},
                           .target_tokenizer = {.kind = "byte"}});
  ExpectTheSameInTheCache({.kind = "labels",
                           .train = labels.path(),
                           .columns = {.source = {2, 3}, .target = 1, .named = true},
                           .source_tokenizer = {.kind = "char"}});
}

TEST(LargeFilesTest, LargeLabelsInTheCacheGiveTheSameDataAsInMemory) {
  const TempFile train("t", MixedLines(400, "\n", Classes)), valid("v", "1 2\tyes\n\n9\tno\n");
  for (const TokenizerOptions& source :
       {TokenizerOptions{.kind = "char"}, TokenizerOptions{.kind = "word", .unknown = true, .min_count = 3}}) {
    ExpectTheSameInTheCache({.kind = "labels", .train = train.path(), .valid = valid.path(), .source_tokenizer = source});
  }
}

TEST(LargeFilesTest, LargePairsAndLabelsAreRefusedForWhatSmallOnesAre) {
  const TemporaryFolder folder;
  const auto expect_message = [&](DataOptions options, absl::string_view part) {
    const absl::Status small = LoadData(options).status();
    options.storage = {.in_memory = 0, .cache = folder.path()};
    const absl::Status large = LoadData(options).status();
    EXPECT_EQ(large, small);
    EXPECT_THAT(std::string(small.message()), HasSubstr(part));
  };
  const TempFile halves("h", "\n\t\n\n");
  for (const char* kind : {"char", "word", "byte"}) {
    expect_message({.kind = "pairs", .train = halves.path(), .source_tokenizer = {kind}, .target_tokenizer = {kind}},
                   "has no pairs (3 lines, 0 kept, skipped 2 empty lines and 1 with an empty side (first: line 2)");
  }
  const std::string good = MixedLines(50, "\n", Words), good_labels = MixedLines(50, "\n", Classes);
  for (const auto& [bytes, part] :
       std::vector<std::pair<std::string, std::string>>{{good + "ab\n", ":51: found no tab"},
                                                        {good + "a\tb\tc\n", ":51: found 3 columns"},
                                                        {good + "a\tb\xFF\n", ":51: invalid UTF-8 at byte offset"},
                                                        {"\n\n", "has no pairs (2 lines, 0 kept, skipped 2 empty lines)"},
                                                        {"\xEF\xBB\xBF", "is empty"},
                                                        {"", "is empty"}}) {
    const TempFile file("p", bytes);
    expect_message({.kind = "pairs", .train = file.path()}, part);
    expect_message(
        {.kind = "pairs", .train = file.path(), .source_tokenizer = {.kind = "byte"}, .target_tokenizer = {.kind = "byte"}},
        part);
  }
  for (const auto& [bytes, part] :
       std::vector<std::pair<std::string, std::string>>{{good_labels + "ab\n", ":51: found 1 column"},
                                                        {good_labels + "a\t\n", "an empty class"},
                                                        {"a\tyes\n", "found 1 class(es)"}}) {
    const TempFile file("l", bytes);
    expect_message({.kind = "labels", .train = file.path()}, part);
  }
  const TempFile source("s", "a\nb\nc\n"), target("t", "a\nb\n");
  expect_message({.kind = "pairs", .train = source.path(), .train_targets = {target.path()}}, "found 3 lines in ");
  // A symbol that known tokenizers lack.
  const TempFile known_file("k", "a\tb\n"), unknown_file("u", "a\tb\n\na\tbb?\n");
  const auto known = Load({.kind = "pairs", .train = known_file.path()});
  ASSERT_NE(known, nullptr);
  expect_message({.kind = "pairs",
                  .train = unknown_file.path(),
                  .known_source = known->source_tokenizer.get(),
                  .known_target = known->target_tokenizer.get()},
                 ":3: target: unknown character \"?\"");
}

TEST(LargeFilesTest, FilesCountTogether) {
  const TempFile source("s", "abc\nabc\n"), target("t", "abc\nabc\n");
  const TemporaryFolder folder;
  DataOptions options{.kind = "pairs", .train = source.path(), .train_targets = {target.path()}};
  options.storage = {.in_memory = 16, .cache = folder.path()};
  EXPECT_TRUE(Load(options)->train.in_memory());
  options.storage.in_memory = 15;
  EXPECT_FALSE(Load(options)->train.in_memory());
}

TEST(LargeFilesTest, SubwordSamplingHoldsWhatItDrawsFrom) {
  const TempFile train("t", MixedLines(200, "\n", Words));
  const TemporaryFolder folder;
  DataOptions options{.kind = "pairs",
                      .train = train.path(),
                      .source_tokenizer = {.kind = "unigram", .vocab_size = 280, .sampling = {.alpha = 0.2}},
                      .target_tokenizer = {.kind = "word"}};
  const auto held = Load(options);
  options.storage = {.in_memory = 0, .cache = folder.path()};
  const auto large = Load(options);
  ASSERT_TRUE(held != nullptr && large != nullptr);
  EXPECT_TRUE(large->train.in_memory());
  EXPECT_EQ(AllBatches(large->train), AllBatches(held->train));
}

TEST(LargeFilesTest, OtherColumnsHaveOtherFilesInTheCache) {
  const TempFile pairs("p", "a\tb\tc\nc\tb\ta\n");
  const TemporaryFolder folder;
  const auto report = [&](int64_t source, int64_t target, const std::string& kind) {
    return Load({.kind = kind,
                 .train = pairs.path(),
                 .columns = {.source = {source}, .target = target, .named = true},
                 .source_tokenizer = {.kind = "byte"},
                 .target_tokenizer = {.kind = "byte"},
                 .storage = {.in_memory = 0, .cache = folder.path()}})
        ->report;
  };
  EXPECT_THAT(report(1, 2, "pairs"), HasSubstr("made now"));
  EXPECT_THAT(report(2, 1, "pairs"), HasSubstr("made now"));
  EXPECT_THAT(report(2, 1, "labels"), HasSubstr("made now"));
  EXPECT_THAT(report(2, 3, "labels"), HasSubstr("made now"));
  EXPECT_THAT(report(1, 2, "pairs"), HasSubstr("found there"));
}

TEST(LargeFilesTest, PairsWhoseFileIsDamagedAreAnErrorUntilItIsMadeAnew) {
  const TempFile train("t", MixedLines(400, "\n", Words));
  const TemporaryFolder folder;
  const DataOptions options{.kind = "pairs", .train = train.path(), .storage = {.in_memory = 0, .cache = folder.path()}};
  const auto whole = Load(options);
  ASSERT_NE(whole, nullptr);
  const auto batches = AllBatches(whole->train);
  const std::string path = std::filesystem::directory_iterator(folder.path())->path().string();
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  const int64_t source_ids = whole->source_tokenizer->size(), target_ids = whole->target_tokenizer->size();
  ASSERT_LT(target_ids, source_ids);
  // An id that only the other side has, a mark, one that nobody has; at last a file that is cut.
  for (const int64_t id : {target_ids, source_ids, int64_t{255}, int64_t{-1}}) {
    const auto data = Load(options);
    ASSERT_NE(data, nullptr);
    if (id >= 0) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(64) << std::string(size - 64, static_cast<char>(id));
    } else {
      std::filesystem::resize_file(path, size / 2);
    }
    std::vector<int32_t> buffer;
    const absl::Status status = data->train.ReadIds(data->train.size() - 1, &buffer).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << id << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    const auto again = Load(options);
    ASSERT_NE(again, nullptr);
    EXPECT_THAT(again->report, HasSubstr("made anew"));
    EXPECT_EQ(AllBatches(again->train), batches);
  }
}

// More than a block of ids, so that lines cross the border of two.
TEST(StoredLinesTest, LinesComeBackWithTheirPlaces) {
  constexpr int64_t kVocabulary = 1000;
  std::vector<LineIds> lines;
  for (int32_t i = 0; i < 20000; ++i) {
    LineIds& line = lines.emplace_back();
    line.blank = i % 7 == 3;
    if (line.blank) continue;
    line.source.assign(i % 5, i % 999);
    line.target.assign(i % 9, 999);
  }
  const TemporaryFolder folder;
  std::string report;
  const auto stream = CacheLines({folder.path(), &report}, {1, 2, kVocabulary}, [&](auto take) {
    absl::Status status;
    for (size_t i = 0; i < lines.size() && status.ok(); ++i) status = take(lines[i]);
    return status;
  });
  ASSERT_TRUE(stream.ok()) << stream.status();
  size_t count = 0;
  const absl::Status status = ForEachStoredLine(*stream, kVocabulary, [&](int64_t start, const LineIds& line) {
    EXPECT_EQ(line.blank, lines[count].blank) << count;
    EXPECT_EQ(line.source, lines[count].source) << count;
    EXPECT_EQ(line.target, lines[count].target) << count;
    std::vector<int32_t> source(line.source.size());
    EXPECT_TRUE(stream->Read(start, absl::MakeSpan(source)).ok());
    EXPECT_EQ(source, line.source) << count;
    ++count;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(count, lines.size());
}

TEST(StoredLinesTest, ListsThatAreNoLinesAreRefused) {
  const auto status_of = [](const std::vector<int32_t>& ids) {
    return ForEachStoredLine(TokenStream(ids), 5, [](int64_t, const LineIds&) { return absl::OkStatus(); });
  };
  EXPECT_TRUE(status_of({1, 5, 2, 5, 6, 5, 5}).ok());
  EXPECT_THAT(std::string(status_of({1, 5, 2}).message()), HasSubstr("a line without end at token 0"));
  EXPECT_THAT(std::string(status_of({6, 1, 5, 6}).message()), HasSubstr("a blank line within another at token 3"));
}

}  // namespace
}  // namespace weft
