// Cases about what a build may not lose: infinities, NaN, and exact transposes. They run in the build that ships.
#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "tests/cases/job.h"
#include "train/model_state.h"
#include "train/optimizer.h"

namespace weft {
namespace {

TEST(BuildCase, B034_NotANumberAndInfinityAreSeen) {
  EXPECT_EQ(__FINITE_MATH_ONLY__, 0);
  volatile double zero = 0;  // not folded by the compiler
  const double infinite = 1.0 / zero, nan = zero / zero;
  EXPECT_TRUE(std::isinf(infinite));
  EXPECT_FALSE(std::isfinite(infinite));
  EXPECT_TRUE(std::isnan(nan));
  EXPECT_TRUE(nan != nan);
  EXPECT_FALSE(std::isfinite(static_cast<float>(infinite)));
}

TEST(BuildCase, B034_OneNanInAGradientStopsTheUpdateAndIsNamed) {
  const Job job(kPairsJob, UnequalPairs(4));
  const Fresh fresh(job.Load());
  Parameters& parameters = *fresh.session->parameters;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const char* kind : {"adamw", "sgd"}) {
      OptimizerConfig config;
      config.kind = kind;
      Optimizer optimizer(config, parameters);
      const Slab slab(DType::kF32, parameters.slab().elements());
      const Tensor gradients = slab.tensor();
      for (int64_t i = 0; i < gradients.elements(); ++i) gradients.data<float>()[i] = 0.01f;
      gradients.data<float>()[5] = bad;
      const std::vector<float> before = Values(parameters);
      const UpdateStats stats = optimizer.Step(&parameters, gradients, 1.0, 1.0, 1e-3);
      EXPECT_FALSE(stats.finite) << kind;
      EXPECT_EQ(Values(parameters), before);
      EXPECT_NE(FirstNonFinite(parameters, gradients), "");
    }
  }
}

// The same through the whole stack: weights of 1e38 give a loss that is not finite; no weight moves, and what is saved is
// finite: the weights before that update.
TEST(BuildCase, B034_ADivergedRunSavesFiniteWeightsOnly) {
  const Job job(kPairsJob, UnequalPairs(6));
  absl::Status status;
  Workers(1).Run([&] {
    status = Train(job.Load({"optimizer.lr=1e38", "train.steps=9", "train.clip_norm=0", "checkpoint.every=9"}),
                   {.mode = RunDir::Mode::kFresh, .stop = nullptr, .quiet = true})
                 .status();
  });
  EXPECT_EQ(status.code(), kDivergedCode) << status;
  const std::vector<std::string> saved = NamesIn(job.Path("run/checkpoints"));
  ASSERT_EQ(saved.size(), 1);
  for (float value : Values(*LoadSession(job.Path("run/checkpoints/") + saved[0])->parameters))
    ASSERT_TRUE(std::isfinite(value));
}

// Square matrices, where an in-place transpose would overwrite what it still has to read.
TEST(EigenCase, B035_TransposesOfSquaresDoNotAlias) {
  Tape tape;
  tape.Reset(Tape::Mode::kInference);
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const Slab slab(dtype, 4);
    const Tensor x = slab.tensor().Reshaped({2, 2});
    for (int64_t i = 0; i < 4; ++i) x.Set(i, static_cast<double>(i + 1));
    const Variable v = tape.Constant(x);
    const Tensor t = Transpose(v, 0, 1).value();
    const Tensor twice = Transpose(Transpose(v, 0, 1), 0, 1).value();
    const int32_t swapped[] = {1, 0};
    const Tensor rows = GatherRows(v, swapped).value();
    const double transposed[] = {1, 3, 2, 4}, exchanged[] = {3, 4, 1, 2};
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(t.At(i), transposed[i]);
      EXPECT_EQ(twice.At(i), i + 1);
      EXPECT_EQ(rows.At(i), exchanged[i]);
    }
    // x * x^T from one matrix used on both sides.
    const Tensor product = MatMul(v, v, false, true).value();
    const double expected[] = {5, 11, 11, 25};
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(product.At(i), expected[i]);
  }
}

}  // namespace
}  // namespace weft
