// One update's gradient: the same for any threads, any sharding, and any split into micro-batches.
#include <chrono>
#include <numeric>

#include "autograd/base/parallel.h"
#include "tests/allocation_count.h"
#include "tests/layers/model_rig.h"
#include "train/gradient.h"

namespace weft {
namespace {

std::vector<int64_t> Ids(int64_t count) {
  std::vector<int64_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TransformerConfig WithDropout(const std::string& family) {
  TransformerConfig config = SmallConfig(family);
  config.dropout = config.attention_dropout = config.hidden_dropout = config.embedding_dropout = 0.2;
  return config;
}

TEST(SplitBatch, RunsOfWholeSequencesThatCoverTheBatch) {
  const ModelRig rig(SmallConfig("encoder_decoder"));
  const Batch batch = RandomBatch(*rig.model, Ids(11));
  for (int64_t shards : {1, 2, 3, 7, 11, 50}) {
    std::vector<BatchView> leaves;
    SplitBatch(batch.View(), shards, &leaves);
    EXPECT_EQ(static_cast<int64_t>(leaves.size()), std::min<int64_t>(shards, 11));
    std::vector<int64_t> ids;
    std::vector<int32_t> labels;
    for (const BatchView& leaf : leaves) {
      EXPECT_GT(leaf.size(), 0);
      ids.insert(ids.end(), leaf.sequence_ids.begin(), leaf.sequence_ids.end());
      labels.insert(labels.end(), leaf.target_labels.begin(), leaf.target_labels.end());
    }
    EXPECT_EQ(ids, batch.sequence_ids);
    EXPECT_EQ(labels, batch.target_labels);
  }
}

TEST(GradientRunner, ThreadsDoNotChangeABit) {
  const ModelRig rig(WithDropout("encoder_decoder"), {.dtype = DType::kF32});
  const Batch batch = RandomBatch(*rig.model, Ids(11));
  for (int64_t shards : {1, 3, 4, 7}) {
    Gradient one;
    Workers(1).Run([&] { one = GradientOf(rig, batch, shards); });
    for (int threads : {2, 4}) {
      Gradient several;
      Workers(threads).Run([&] { several = GradientOf(rig, batch, shards); });
      EXPECT_EQ(several.values, one.values) << shards << " shards, " << threads << " threads";
      EXPECT_EQ(several.loss.loss, one.loss.loss);
    }
  }
}

TEST(GradientRunner, ShardsChangeTheRoundingOnly) {
  for (const char* family : {"encoder_decoder", "decoder", "encoder"}) {
    const ModelRig rig(WithDropout(family));
    const Batch batch = RandomBatch(*rig.model, Ids(11));
    const Gradient one = GradientOf(rig, batch, 1, 0.1);
    EXPECT_EQ(one.loss.targets, batch.loss_terms());
    for (int64_t shards : {2, 3, 5, 11}) {
      const Gradient several = GradientOf(rig, batch, shards, 0.1);
      // Sums of some hundred f64 terms in another order; dropout masks belong to sequences, so they are the same.
      EXPECT_LT(RelativeError(several.values, one.values), 1e-12) << family << ", " << shards << " shards";
      EXPECT_NEAR(several.loss.loss, one.loss.loss, 1e-12 * one.loss.loss);
      EXPECT_EQ(several.loss.targets, one.loss.targets);
      EXPECT_EQ(several.loss.correct, one.loss.correct);
    }
  }
}

TEST(GradientRunner, ShardsInF32AgreeWithinItsRounding) {
  const ModelRig rig(WithDropout("encoder_decoder"), {.dtype = DType::kF32});
  const Batch batch = RandomBatch(*rig.model, Ids(11));
  // Sums of up to 40 terms, each rounded to 6e-8 of itself: below 1e-6 of the largest.
  EXPECT_LT(RelativeError(GradientOf(rig, batch, 4).values, GradientOf(rig, batch, 1).values), 1e-6);
}

TEST(GradientRunner, ALongLeafHoldsTheActivationsOfAPieceOnly) {
  const ModelRig rig(WithDropout("encoder_decoder"));
  const Batch batch = RandomBatch(*rig.model, Ids(400));
  std::vector<BatchView> pieces, whole = {batch.View()};
  const int64_t tokens = static_cast<int64_t>(batch.source_ids.size() + batch.target_ids.size());
  ASSERT_GT(tokens, 2 * kPieceTokens);
  SplitBatch(batch.View(), (tokens + kPieceTokens - 1) / kPieceTokens, &pieces);
  const auto run = [&](absl::Span<const BatchView> leaves, std::vector<double>* gradients) {
    GradientRunner runner(*rig.model, rig.parameters);
    Tensor slab;
    LossSum loss;
    Workers(1).Run([&] {
      for (int i = 0; i < 2; ++i) loss = runner.Run(leaves, 0, RandomKey{3}, &slab);
    });
    *gradients = ToDoubles(slab);
    return std::pair(loss, runner.tape_memory());
  };
  std::vector<double> expected, gradients;
  const auto [want, memory_of_each] = run(pieces, &expected);
  const auto [got, memory] = run(whole, &gradients);
  EXPECT_LT(RelativeError(gradients, expected), 1e-12);
  EXPECT_NEAR(got.loss, want.loss, 1e-12 * want.loss);
  EXPECT_EQ(got.targets, want.targets);
  EXPECT_EQ(got.correct, want.correct);
  EXPECT_EQ(memory, memory_of_each);
}

TEST(GradientRunner, MicroBatchesEqualTheOneBatchDespiteUnequalTokens) {
  const ModelRig rig(WithDropout("decoder"));
  Batch whole = RandomBatch(*rig.model, Ids(7));
  whole.target_labels[2] = whole.target_labels[5] = kIgnoreTarget;
  const Gradient expected = GradientOf(rig, whole, 1);
  EXPECT_EQ(expected.loss.targets, whole.loss_terms() - 2);
  // Leaves of all micro-batches are one list: the first has one sequence, the second the rest.
  const std::vector<BatchView> micro = {whole.View(0, 1), whole.View(1, 6)};
  ASSERT_NE(micro[0].loss_terms(), micro[1].loss_terms());
  GradientRunner runner(*rig.model, rig.parameters);
  Tensor slab;
  const LossSum loss = runner.Run(micro, 0, RandomKey{3}, &slab);
  EXPECT_EQ(loss.targets, expected.loss.targets);
  EXPECT_NEAR(loss.mean_loss(), expected.loss.mean_loss(), 1e-13);
  EXPECT_LT(RelativeError(ToDoubles(slab), expected.values), 1e-12);
}

TEST(GradientRunner, MeanLossCountsTokensNotBatches) {
  // Micro-batches of 1 token with loss 4 and of 3 tokens with loss 1 each: 7 / 4, not the 2.5 of averaged means.
  EXPECT_EQ((LossSum{4.0 + 3.0, 1 + 3, 0}).mean_loss(), 1.75);
}

TEST(GradientRunner, RepeatedRunsGiveTheSameBitsAndKeepTheirMemory) {
  const ModelRig rig(WithDropout("encoder_decoder"), {.dtype = DType::kF32});
  const Batch batch = RandomBatch(*rig.model, Ids(9));
  std::vector<BatchView> leaves;
  SplitBatch(batch.View(), 3, &leaves);
  GradientRunner runner(*rig.model, rig.parameters);
  Tensor slab;
  Workers(1).Run([&] {
    runner.Run(leaves, 0, RandomKey{3}, &slab);
    const std::vector<double> first = ToDoubles(slab);
    runner.Run(leaves, 0, RandomKey{3}, &slab);
    const int64_t memory = runner.memory();
    runner.Run(leaves, 0, RandomKey{3}, &slab);
    EXPECT_EQ(ToDoubles(slab), first);
    EXPECT_EQ(runner.memory(), memory);
    runner.Run(leaves, 0, RandomKey{4}, &slab);
    EXPECT_NE(ToDoubles(slab), first) << "dropout of another update";
  });
}

TEST(GradientRunner, SteadyUpdateAllocatesNothing) {
  const ModelRig rig(WithDropout("encoder_decoder"), {.dtype = DType::kF32});
  const Batch batch = RandomBatch(*rig.model, Ids(9));
  std::vector<BatchView> leaves;
  SplitBatch(batch.View(), 3, &leaves);
  GradientRunner runner(*rig.model, rig.parameters);
  Tensor slab;
  int64_t allocations = 0;
  Workers(1).Run([&] {
    for (uint64_t step = 0; step < 3; ++step) runner.Run(leaves, 0.1, RandomKey{step}, &slab);
    const int64_t before = AllocationCount();
    runner.Run(leaves, 0.1, RandomKey{3}, &slab);
    allocations = AllocationCount() - before;
  });
  EXPECT_EQ(allocations, 0);
}

TEST(GradientRunner, EvaluationIsWithoutDropoutAndSmoothing) {
  const ModelRig dropping(WithDropout("decoder"));
  const ModelRig plain(SmallConfig("decoder"));
  const Batch batch = RandomBatch(*plain.model, Ids(5));
  const std::vector<BatchView> leaves = {batch.View()};
  const LossSum a = GradientRunner(*dropping.model, dropping.parameters).Evaluate(leaves);
  const LossSum b = GradientRunner(*plain.model, plain.parameters).Evaluate(leaves);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.correct, b.correct);
  // In training mode without dropout the model is the same function.
  EXPECT_NEAR(GradientOf(plain, batch, 1).loss.loss, b.loss, 1e-12 * b.loss);
}

TEST(GradientRunner, NamesWhatGotNoGradient) {
  const ModelRig rig(SmallConfig("decoder"));
  const Batch batch = RandomBatch(*rig.model, Ids(3));
  const std::vector<BatchView> leaves = {batch.View()};
  GradientRunner runner(*rig.model, rig.parameters);
  Tensor slab;
  runner.Run(leaves, 0, RandomKey{3}, &slab);
  EXPECT_TRUE(runner.without_gradient().empty());
}

TEST(GradientRunner, TheProfileCountsEveryLeafAndChangesNoBit) {
  const ModelRig rig(SmallConfig("decoder"), {.dtype = DType::kF32});
  const Batch batch = RandomBatch(*rig.model, Ids(11));
  std::vector<BatchView> leaves;
  SplitBatch(batch.View(), 3, &leaves);
  GradientRunner plain(*rig.model, rig.parameters), profiled(*rig.model, rig.parameters);
  profiled.EnableProfile();
  Tensor expected, found;
  double passed = 0;
  Workers(2).Run([&] {
    plain.Run(leaves, 0, {}, &expected);
    const auto start = std::chrono::steady_clock::now();
    profiled.Run(leaves, 0, {}, &found);
    passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  for (int64_t i = 0; i < expected.elements(); ++i) ASSERT_EQ(found.At(i), expected.At(i)) << i;

  const Profile profile = profiled.TotalProfile();
  double seconds = 0;
  for (const ProfileRow& row : profile.rows()) seconds += row.forward.seconds + row.backward.seconds;
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 2 * passed);
  EXPECT_EQ(profile.Find("linear_cross_entropy")->backward.calls, 3);
  EXPECT_EQ(profile.Find("gradient_merge")->backward.calls, 2);  // three leaves, two sums
  EXPECT_EQ(profile.Find("gradient_merge")->backward.bytes, 2 * 3 * expected.bytes());
  // Two a weight and token: the block's products are 4 D^2 and 2 D F.
  const double tokens = static_cast<double>(batch.target_ids.size()), d = 12, hidden = 20, layers = 2;
  EXPECT_EQ(profile.Find("linear")->forward.flops, 2 * tokens * layers * (4 * d * d + 2 * d * hidden));
  EXPECT_EQ(profile.Find("linear")->backward.flops, 2 * profile.Find("linear")->forward.flops);
}

}  // namespace
}  // namespace weft
