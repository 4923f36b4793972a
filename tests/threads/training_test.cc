// Whole updates on several threads, which the thread sanitizer watches: leaves on their own tapes, the tree of sums, tiles
// inside kernels.
#include <cstring>
#include <vector>

#include "autograd/base/parallel.h"
#include "autograd/kernels/gemm.h"
#include "gtest/gtest.h"
#include "train/evaluate.h"
#include "train/gradient.h"
#include "train/optimizer.h"

namespace weft {
namespace {

// Copying a random string, lengths 1 to 9, symbols 0 to 5, <bos> 6, <eos> 7.
ExampleSet CopyTask(int64_t examples, bool with_references) {
  ExampleSet set = ExampleSet::Pairs(6, 7);
  const RandomKey key{3};
  for (int64_t i = 0; i < examples; ++i) {
    std::vector<int32_t> symbols;
    for (int64_t t = 0; t < 1 + i % 9; ++t) symbols.push_back(static_cast<int32_t>(key.Below(100 * i + t, 6)));
    if (with_references) {
      set.AddPair(symbols, symbols, "", {symbols}, {""});
    } else {
      set.AddPair(symbols, symbols);
    }
  }
  return set;
}

// The bytes of all parameters after three updates with dropout, and what the evaluation printed, on that many threads.
std::vector<char> Train(int threads) {
  TransformerConfig config;
  config.family = "encoder_decoder";
  config.d_model = 16;
  config.layers = 2;
  config.heads = 4;
  config.dropout = config.attention_dropout = config.hidden_dropout = 0.1;
  Parameters parameters;
  const auto model = Transformer::Create(config, {8, 8, 0, true}, &parameters);
  EXPECT_TRUE(model.ok()) << model.status();
  std::vector<char> bytes;
  Workers(threads).Run([&] {
    parameters.Allocate(DType::kF32, 1);
    Optimizer optimizer({}, parameters);
    GradientRunner runner(**model, parameters);
    const ExampleSet train = CopyTask(40, false), valid = CopyTask(12, true);
    auto batcher = Batcher::Create(&train, {.batch_size = 16, .seed = 5});
    EXPECT_TRUE(batcher.ok());
    Batch batch;
    for (uint64_t step = 0; step < 3; ++step) {
      EXPECT_TRUE(batcher->Next(&batch).ok());
      std::vector<BatchView> leaves;
      SplitBatch(batch.View(), 7, &leaves);
      Tensor gradients;
      const LossSum loss = runner.Run(leaves, 0.1, RandomKey{9}.Fold(step), &gradients);
      optimizer.Step(&parameters, gradients, 1.0 / static_cast<double>(loss.targets), 1.0, 1e-2);
    }
    const auto scores = Evaluate(**model, parameters, valid, {"exact_match", "per"}, 3, &runner);
    EXPECT_TRUE(scores.ok()) << scores.status();
    const Tensor slab = parameters.slab();
    bytes.resize(slab.bytes() + sizeof(double));
    std::memcpy(bytes.data(), slab.raw(), slab.bytes());
    const double loss = scores->Get("loss");
    std::memcpy(bytes.data() + slab.bytes(), &loss, sizeof(double));
  });
  return bytes;
}

TEST(TrainingThreads, UpdatesAndScoresHaveTheSameBitsForAnyNumberOfThreads) {
  const std::vector<char> one = Train(1);
  EXPECT_EQ(one, Train(2));
  EXPECT_EQ(one, Train(4));
}

TEST(TrainingThreads, AProductThatForksHasTheSameBitsForAnyNumberOfThreads) {
  constexpr int64_t m = 150, n = 130, k = 90;  // above 2^20 multiply-adds: forks
  std::vector<float> a(m * k), b(k * n);
  const RandomKey key{1};
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(key.Normal(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(key.Fold(1).Normal(i));
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 4}) {
    std::vector<float> c(m * n);
    Workers(threads).Run(
        [&] { kernels::Gemm(kernels::Trans::kNo, kernels::Trans::kNo, m, n, k, a.data(), k, b.data(), n, c.data(), n, {}); });
    results.push_back(std::move(c));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace weft
