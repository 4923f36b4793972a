#include "data/batcher.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int32_t kBos = 100;
constexpr int32_t kEos = 101;

// n pairs with source lengths 1, 2, 3, 1, ... and target lengths 1..7 in turn; the ids tell the pair.
ExampleSet MakePairs(int64_t n) {
  ExampleSet set = ExampleSet::Pairs(kBos, kEos);
  for (int64_t i = 0; i < n; ++i) {
    set.AddPair(std::vector<int32_t>(1 + i % 3, static_cast<int32_t>(i)),
                std::vector<int32_t>(1 + i % 7, static_cast<int32_t>(i % 100)));
  }
  return set;
}

ExampleSet MakeLabels(int64_t n) {
  ExampleSet set = ExampleSet::Labels();
  for (int64_t i = 0; i < n; ++i) set.AddLabel(std::vector<int32_t>(1 + i % 5, static_cast<int32_t>(i)), i % 2);
  return set;
}

ExampleSet MakeText(int64_t tokens, int64_t window) {
  std::vector<int32_t> stream(tokens);
  std::iota(stream.begin(), stream.end(), 0);
  return ExampleSet::OverlappingWindows(std::move(stream), window);
}

std::vector<int64_t> Epoch(Batcher* batcher) {
  std::vector<int64_t> ids;
  const int64_t epoch = batcher->position().epoch;
  Batch batch;
  while (batcher->position().epoch == epoch) {
    EXPECT_TRUE(batcher->Next(&batch).ok());
    ids.insert(ids.end(), batch.sequence_ids.begin(), batch.sequence_ids.end());
  }
  return ids;
}

TEST(BatcherTest, EpochsArePermutationsThatDifferAndFollowTheSeed) {
  const ExampleSet set = MakePairs(1000);
  std::vector<std::vector<int64_t>> orders;
  for (uint64_t seed : {1, 2, 1}) {
    auto batcher = Batcher::Create(&set, {.batch_size = 7, .seed = seed});
    ASSERT_TRUE(batcher.ok());
    for (int epoch = 0; epoch < 3; ++epoch) orders.push_back(Epoch(&*batcher));
  }
  for (const std::vector<int64_t>& order : orders) {
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 1000);
    EXPECT_EQ(order.size(), 1000);
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  }
  EXPECT_EQ(std::set<std::vector<int64_t>>(orders.begin(), orders.begin() + 6).size(), 6);
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(orders[epoch], orders[6 + epoch]);
}

TEST(BatcherTest, TheOrderDoesNotDependOnTheBatchSize) {
  const ExampleSet set = MakePairs(100);
  auto by_size = Batcher::Create(&set, {.batch_size = 9, .seed = 5});
  auto by_tokens = Batcher::Create(&set, {.batch_tokens = 31, .seed = 5});
  EXPECT_EQ(Epoch(&*by_size), Epoch(&*by_tokens));
}

TEST(BatcherTest, WithoutShuffleTheOrderIsThatOfTheFile) {
  const ExampleSet set = MakePairs(50);
  auto batcher = Batcher::Create(&set, {.batch_size = 8, .shuffle = false, .seed = 3});
  std::vector<int64_t> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(Epoch(&*batcher), expected);
  EXPECT_EQ(Epoch(&*batcher), expected);
}

TEST(BatcherTest, PairsGetBosInFrontAndEosBehind) {
  const ExampleSet set = MakePairs(3);
  auto batcher = Batcher::Create(&set, {.batch_size = 3, .shuffle = false});
  Batch batch;
  EXPECT_TRUE(batcher->Next(&batch).ok());
  EXPECT_THAT(batch.source_ids, ElementsAre(0, 1, 1, 2, 2, 2));
  EXPECT_THAT(batch.source_lengths, ElementsAre(1, 2, 3));
  EXPECT_THAT(batch.target_ids, ElementsAre(kBos, 0, kBos, 1, 1, kBos, 2, 2, 2));
  EXPECT_THAT(batch.target_labels, ElementsAre(0, kEos, 1, 1, kEos, 2, 2, 2, kEos));
  EXPECT_THAT(batch.target_lengths, ElementsAre(2, 3, 4));
  EXPECT_THAT(batch.classes, IsEmpty());
  EXPECT_EQ(batch.loss_terms(), 9);
  EXPECT_EQ(set.max_source_length(), 3);
  EXPECT_EQ(set.max_target_length(), 4);
}

TEST(BatcherTest, TextGivesEachWindowWithItsSuccessors) {
  const ExampleSet set = MakeText(7, 4);
  auto batcher = Batcher::Create(&set, {.batch_size = 2, .shuffle = false});
  Batch batch;
  EXPECT_TRUE(batcher->Next(&batch).ok());
  EXPECT_THAT(batch.target_ids, ElementsAre(0, 1, 2, 3, 1, 2, 3, 4));
  EXPECT_THAT(batch.target_labels, ElementsAre(1, 2, 3, 4, 2, 3, 4, 5));
  EXPECT_THAT(batch.target_lengths, ElementsAre(4, 4));
  EXPECT_THAT(batch.source_lengths, IsEmpty());
  EXPECT_TRUE(batcher->Next(&batch).ok());
  EXPECT_THAT(batch.target_labels, ElementsAre(3, 4, 5, 6));
}

TEST(BatcherTest, LabelsGiveTextsAndClasses) {
  const ExampleSet set = MakeLabels(3);
  auto batcher = Batcher::Create(&set, {.batch_size = 3, .shuffle = false});
  Batch batch;
  EXPECT_TRUE(batcher->Next(&batch).ok());
  EXPECT_THAT(batch.source_ids, ElementsAre(0, 1, 1, 2, 2, 2));
  EXPECT_THAT(batch.classes, ElementsAre(0, 1, 0));
  EXPECT_THAT(batch.target_ids, IsEmpty());
  EXPECT_THAT(batch.target_lengths, IsEmpty());
  EXPECT_EQ(batch.loss_terms(), 3);
}

TEST(BatcherTest, BatchesNeverCrossAnEpoch) {
  const ExampleSet set = MakePairs(10);
  auto batcher = Batcher::Create(&set, {.batch_size = 4, .seed = 1});
  EXPECT_EQ(batcher->CountBatches(0), 3);
  Batch batch;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t size : {4, 4, 2}) {
      EXPECT_TRUE(batcher->Next(&batch).ok());
      EXPECT_EQ(batch.size(), size);
      EXPECT_EQ(batch.epoch, epoch);
    }
    EXPECT_EQ(batcher->position(), (Position{epoch + 1, 0}));
  }
}

TEST(BatcherTest, TokenBudgetsHoldUnlessOneExampleIsLonger) {
  const ExampleSet pairs = MakePairs(200);
  const ExampleSet labels = MakeLabels(200);
  const ExampleSet text = MakeText(60, 5);
  for (const ExampleSet* set : {&pairs, &labels, &text}) {
    for (int64_t budget : {1, 5, 16, 1000000}) {
      auto batcher = Batcher::Create(set, {.batch_tokens = budget, .seed = 2});
      Batch batch;
      int64_t batches = 0;
      int64_t previous_sum = 0;
      for (; batcher->position().epoch == 0; ++batches) {
        EXPECT_TRUE(batcher->Next(&batch).ok());
        ASSERT_GE(batch.size(), 1);
        int64_t sum = 0;
        for (int64_t id : batch.sequence_ids) sum += set->Cost(id);
        EXPECT_TRUE(sum <= budget || batch.size() == 1) << sum << " tokens for " << budget;
        // The first example would not have fitted into the batch before.
        EXPECT_TRUE(batches == 0 || previous_sum + set->Cost(batch.sequence_ids[0]) > budget);
        previous_sum = sum;
        const int64_t counted = set->kind() == DataKind::kLabels ? batch.source_ids.size() : batch.target_ids.size();
        EXPECT_EQ(counted, sum);
      }
      EXPECT_EQ(batcher->CountBatches(0), batches);
    }
  }
}

TEST(BatcherTest, APositionResumesInTheMiddleOfAnEpoch) {
  const ExampleSet set = MakePairs(97);
  for (const BatcherOptions& options :
       {BatcherOptions{.batch_size = 8, .seed = 4}, BatcherOptions{.batch_tokens = 40, .seed = 4}}) {
    auto whole = Batcher::Create(&set, options);
    Batch expected;
    Batch found;
    for (int step = 0; step < 40; ++step) {
      auto resumed = Batcher::Create(&set, options);
      ASSERT_TRUE(resumed->Seek(whole->position()).ok());
      EXPECT_TRUE(whole->Next(&expected).ok());
      EXPECT_TRUE(resumed->Next(&found).ok());
      EXPECT_EQ(found.sequence_ids, expected.sequence_ids);
      EXPECT_EQ(found.source_ids, expected.source_ids);
      EXPECT_EQ(found.target_labels, expected.target_labels);
      EXPECT_EQ(resumed->position(), whole->position());
    }
  }
}

// Options with pools, among them such that a pool is the set, less than a batch, or ends with a smaller batch.
std::vector<BatcherOptions> PoolOptions() {
  std::vector<BatcherOptions> all;
  for (int64_t pool : {1, 5, 24, 40, 97, 1000}) {
    all.push_back({.batch_size = 8, .sort_pool = pool, .seed = 4});
    all.push_back({.batch_tokens = 40, .sort_pool = pool, .seed = 4});
  }
  return all;
}

TEST(BatcherTest, PoolsTakeEveryExampleOnceAndCountTheirBatches) {
  const ExampleSet pairs = MakePairs(97), labels = MakeLabels(97);
  for (const ExampleSet* set : {&pairs, &labels}) {
    for (const BatcherOptions& options : PoolOptions()) {
      auto batcher = Batcher::Create(set, options);
      ASSERT_TRUE(batcher.ok()) << batcher.status();
      std::set<std::vector<int64_t>> orders;
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int64_t> ids;
        int64_t batches = 0;
        Batch batch;
        for (; batcher->position().epoch == epoch; ++batches) {
          ASSERT_TRUE(batcher->Next(&batch).ok());
          EXPECT_EQ(batch.epoch, epoch);
          EXPECT_TRUE(options.batch_size == 0 || batch.size() <= options.batch_size);
          EXPECT_TRUE(options.batch_tokens == 0 || batch.loss_terms() <= options.batch_tokens || batch.size() == 1 ||
                      set->kind() == DataKind::kLabels);
          ids.insert(ids.end(), batch.sequence_ids.begin(), batch.sequence_ids.end());
        }
        EXPECT_EQ(batcher->CountBatches(epoch), batches) << options.sort_pool;
        EXPECT_EQ(ids.size(), 97);
        EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 97);
        orders.insert(ids);
      }
      EXPECT_EQ(orders.size(), 3);
    }
  }
}

TEST(BatcherTest, PoolsAreRunsOfTheOrderWithoutThem) {
  const ExampleSet set = MakePairs(90);
  auto plain = Batcher::Create(&set, {.batch_size = 8, .seed = 4});
  auto pooled = Batcher::Create(&set, {.batch_size = 8, .sort_pool = 30, .seed = 4});
  const std::vector<int64_t> order = Epoch(&*plain), found = Epoch(&*pooled);
  for (int64_t first = 0; first < 90; first += 30) {
    EXPECT_THAT(std::vector<int64_t>(found.begin() + first, found.begin() + first + 30),
                testing::UnorderedElementsAreArray(order.begin() + first, order.begin() + first + 30));
  }
}

TEST(BatcherTest, TheBatchesOfAPoolHaveNeighbouringLengthsInAShuffledOrder) {
  const ExampleSet set = MakePairs(700);
  auto batcher = Batcher::Create(&set, {.batch_size = 10, .sort_pool = 700, .seed = 4});
  Batch batch;
  std::vector<int64_t> shortest;
  for (int step = 0; step < 70; ++step) {
    ASSERT_TRUE(batcher->Next(&batch).ok());
    const auto [low, high] = std::minmax_element(batch.target_lengths.begin(), batch.target_lengths.end());
    EXPECT_EQ(*low, *high);  // 100 of each of the 7 lengths
    shortest.push_back(*low);
  }
  EXPECT_FALSE(std::is_sorted(shortest.begin(), shortest.end()));
  std::sort(shortest.begin(), shortest.end());
  EXPECT_EQ(shortest.front(), 2);
  EXPECT_EQ(shortest.back(), 8);
}

TEST(BatcherTest, APositionResumesInTheMiddleOfAPool) {
  const ExampleSet set = MakePairs(97);
  for (const BatcherOptions& options : PoolOptions()) {
    auto whole = Batcher::Create(&set, options);
    Batch expected, found;
    for (int step = 0; step < 40; ++step) {
      auto resumed = Batcher::Create(&set, options);
      ASSERT_TRUE(resumed->Seek(whole->position()).ok());
      EXPECT_TRUE(whole->Next(&expected).ok());
      EXPECT_TRUE(resumed->Next(&found).ok());
      EXPECT_EQ(found.sequence_ids, expected.sequence_ids);
      EXPECT_EQ(found.target_labels, expected.target_labels);
      EXPECT_EQ(resumed->position(), whole->position());
    }
    // A place inside of a batch still leads through the rest of the epoch.
    auto inside = Batcher::Create(&set, options);
    ASSERT_TRUE(inside->Seek({0, 3}).ok());
    EXPECT_EQ(Epoch(&*inside).size(), 94);
  }
}

TEST(BatcherTest, PositionsOfOtherDataAreRefused) {
  const ExampleSet set = MakePairs(10);
  auto batcher = Batcher::Create(&set, {.batch_size = 4});
  for (Position bad : {Position{0, 10}, Position{-1, 0}, Position{0, -1}}) {
    EXPECT_EQ(batcher->Seek(bad).code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(batcher->position(), (Position{0, 0}));
}

TEST(BatcherTest, BadSizesAndEmptySetsAreRefused) {
  const ExampleSet set = MakePairs(10);
  for (const BatcherOptions& bad :
       {BatcherOptions{}, BatcherOptions{.batch_size = 1, .batch_tokens = 1}, BatcherOptions{.batch_size = -1},
        BatcherOptions{.batch_size = -1, .batch_tokens = 5}, BatcherOptions{.batch_tokens = -5},
        BatcherOptions{.batch_size = 1, .sort_pool = -1}, BatcherOptions{.batch_size = 1, .shuffle = false, .sort_pool = 2}}) {
    EXPECT_EQ(Batcher::Create(&set, bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
  const ExampleSet empty = ExampleSet::Pairs(kBos, kEos);
  EXPECT_EQ(Batcher::Create(&empty, {.batch_size = 1}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(BatcherTest, ASteadyBatchKeepsItsMemory) {
  const ExampleSet pairs = MakePairs(300);
  const ExampleSet labels = MakeLabels(300);
  const ExampleSet text = MakeText(300, 6);
  for (const ExampleSet* set : {&pairs, &labels, &text}) {
    for (const BatcherOptions& options : {BatcherOptions{.batch_size = 8}, BatcherOptions{.batch_tokens = 50},
                                          BatcherOptions{.batch_tokens = 50, .sort_pool = 64}}) {
      auto batcher = Batcher::Create(set, options);
      Batch batch;
      EXPECT_TRUE(batcher->Next(&batch).ok());
      const Batch* before = &batch;
      const auto memory = [&] {
        return std::vector<const void*>{before->sequence_ids.data(),   before->source_ids.data(),
                                        before->source_lengths.data(), before->target_ids.data(),
                                        before->target_labels.data(),  before->target_lengths.data(),
                                        before->classes.data()};
      };
      const std::vector<const void*> first = memory();
      for (int step = 0; step < 200; ++step) EXPECT_TRUE(batcher->Next(&batch).ok());
      EXPECT_EQ(memory(), first);  // no vector moved, so none grew
    }
  }
}

TEST(BatcherTest, BatchesOfEqualWindowsAreCountedWithoutGoingThroughThem) {
  for (int64_t budget : {1, 6, 7, 31, 1000000}) {
    const ExampleSet text = MakeText(106, 6);
    auto batcher = Batcher::Create(&text, {.batch_tokens = budget});
    Batch batch;
    int64_t batches = 0;
    for (; batcher->position().epoch == 0; ++batches) ASSERT_TRUE(batcher->Next(&batch).ok());
    EXPECT_EQ(batcher->CountBatches(0), batches) << budget;
  }
}

TEST(BatcherTest, ViewsCutABatchIntoItsSequences) {
  const ExampleSet set = MakePairs(5);
  auto batcher = Batcher::Create(&set, {.batch_size = 5, .shuffle = false});
  Batch batch;
  EXPECT_TRUE(batcher->Next(&batch).ok());
  const BatchView view = batch.View(1, 2);
  EXPECT_THAT(view.sequence_ids, ElementsAre(1, 2));
  EXPECT_THAT(view.source_ids, ElementsAre(1, 1, 2, 2, 2));
  EXPECT_THAT(view.source_lengths, ElementsAre(2, 3));
  EXPECT_THAT(view.target_ids, ElementsAre(kBos, 1, 1, kBos, 2, 2, 2));
  EXPECT_THAT(view.target_labels, ElementsAre(1, 1, kEos, 2, 2, 2, kEos));
  EXPECT_EQ(view.loss_terms(), 7);
  EXPECT_EQ(batch.View().target_ids.size(), batch.target_ids.size());
  EXPECT_EQ(batch.View(5, 0).size(), 0);
  EXPECT_DEATH(batch.View(4, 2), "of 5");
}

TEST(BatcherTest, ValidationGoesThroughTheSetOnceInOrder) {
  const ExampleSet set = MakePairs(7);
  for (int64_t size : {1, 2, 3, 8}) {
    ValidationBatches batches(&set, size);
    Batch batch;
    std::vector<int64_t> ids;
    int64_t terms = 0;
    while (*batches.Next(&batch)) {
      ids.insert(ids.end(), batch.sequence_ids.begin(), batch.sequence_ids.end());
      terms += batch.loss_terms();
    }
    EXPECT_THAT(ids, ElementsAre(0, 1, 2, 3, 4, 5, 6));
    EXPECT_EQ(terms, set.total_target_tokens());
    EXPECT_FALSE(*batches.Next(&batch));
  }
}

}  // namespace
}  // namespace weft
