#include "data/batch_prefetcher.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "data/token_stream.h"
#include "gtest/gtest.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

ExampleSet MakePairs(int64_t n) {
  ExampleSet set = ExampleSet::Pairs(100, 101);
  for (int64_t i = 0; i < n; ++i) {
    set.AddPair(std::vector<int32_t>(1 + i % 3, static_cast<int32_t>(i)), std::vector<int32_t>(1 + i % 7, 5));
  }
  return set;
}

// So long that the thread has certainly gone as far ahead as it may.
void LetItRunAhead() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

TEST(BatchPrefetcher, GivesTheBatchesOfTheBatcherWithTheirPositions) {
  const ExampleSet set = MakePairs(97);
  for (int64_t pool : {0, 30}) {
    auto batcher = Batcher::Create(&set, {.batch_tokens = 40, .sort_pool = pool, .seed = 4});
    ASSERT_TRUE(batcher.ok());
    BatchPrefetcher prefetcher(*batcher);
    Batch expected, found;
    for (int step = 0; step < 60; ++step) {
      EXPECT_EQ(prefetcher.position(), batcher->position());
      ASSERT_TRUE(batcher->Next(&expected).ok());
      ASSERT_TRUE(prefetcher.Next(&found).ok());
      EXPECT_EQ(found.epoch, expected.epoch);
      EXPECT_EQ(found.sequence_ids, expected.sequence_ids);
      EXPECT_EQ(found.source_ids, expected.source_ids);
      EXPECT_EQ(found.target_labels, expected.target_labels);
      if (step % 20 == 7) LetItRunAhead();
    }
    EXPECT_EQ(prefetcher.position(), batcher->position());
  }
}

TEST(BatchPrefetcher, SeekDropsWhatWasPreparedAlsoForAPlaceThatIsRefused) {
  const ExampleSet set = MakePairs(50);
  auto batcher = Batcher::Create(&set, {.batch_size = 4, .seed = 4});
  BatchPrefetcher prefetcher(*batcher);
  Batch expected, found;
  ASSERT_TRUE(prefetcher.Next(&found).ok());
  LetItRunAhead();
  for (Position place : {Position{0, 0}, Position{3, 40}, Position{0, 7}}) {
    ASSERT_TRUE(batcher->Seek(place).ok());
    ASSERT_TRUE(prefetcher.Seek(place).ok());
    EXPECT_EQ(prefetcher.position(), place);
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(batcher->Next(&expected).ok());
      ASSERT_TRUE(prefetcher.Next(&found).ok());
      EXPECT_EQ(found.sequence_ids, expected.sequence_ids);
    }
  }
  LetItRunAhead();
  EXPECT_EQ(prefetcher.Seek({0, 50}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(prefetcher.position(), batcher->position());
  ASSERT_TRUE(batcher->Next(&expected).ok());
  ASSERT_TRUE(prefetcher.Next(&found).ok());
  EXPECT_EQ(found.sequence_ids, expected.sequence_ids);
}

TEST(BatchPrefetcher, EndsWithTheObjectWhateverTheThreadIsAt) {
  const ExampleSet set = MakePairs(50);
  const auto batcher = Batcher::Create(&set, {.batch_size = 4, .seed = 4});
  Batch batch;
  { const BatchPrefetcher never_started(*batcher); }
  for (int i = 0; i < 20; ++i) {
    BatchPrefetcher prefetcher(*batcher);
    for (int step = 0; step < i % 3; ++step) ASSERT_TRUE(prefetcher.Next(&batch).ok());
    if (i % 5 == 0) LetItRunAhead();
  }
}

TEST(BatchPrefetcher, AnErrorComesInItsPlaceAndStaysUntilSeek) {
  const TemporaryFolder folder;
  std::ofstream(folder.Path("ids")) << std::string(1000, '\1');
  const ExampleSet set =
      ExampleSet::OverlappingWindows(TokenStream::FromFile(*InputFile::Open(folder.Path("ids")), 0, 1000, 2), 9);
  const auto batcher = Batcher::Create(&set, {.batch_size = 10, .shuffle = false});
  std::filesystem::resize_file(folder.Path("ids"), 500);
  BatchPrefetcher prefetcher(*batcher);
  Batch batch;
  for (int step = 0; step < 49; ++step) ASSERT_TRUE(prefetcher.Next(&batch).ok()) << step;
  const Position place = prefetcher.position();
  EXPECT_EQ(prefetcher.Next(&batch).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(prefetcher.Next(&batch).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(prefetcher.position(), place);
  ASSERT_TRUE(prefetcher.Seek({0, 0}).ok());
  EXPECT_TRUE(prefetcher.Next(&batch).ok());
}

TEST(BatchPrefetcher, ASteadyNextKeepsTheMemoryOfItsBatches) {
  const ExampleSet set = MakePairs(300);
  const auto batcher = Batcher::Create(&set, {.batch_tokens = 50, .sort_pool = 64});
  BatchPrefetcher prefetcher(*batcher);
  Batch batch;
  const auto memory = [&] { return std::vector<const void*>{batch.sequence_ids.data(), batch.target_labels.data()}; };
  std::vector<std::vector<const void*>> first;  // of the batches that go round
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(prefetcher.Next(&batch).ok());
    first.push_back(memory());
  }
  for (int step = 0; step < 200; ++step) {
    ASSERT_TRUE(prefetcher.Next(&batch).ok());
    EXPECT_EQ(memory(), first[step % 3]);
  }
}

}  // namespace
}  // namespace weft
