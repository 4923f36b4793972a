#include "train/optimizer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/parallel.h"
#include "autograd/base/random.h"
#include "gtest/gtest.h"
#include "layers/builder.h"
#include "layers/parameters.h"
#include "tests/train/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/model_state.h"

namespace weft {
namespace {

// A vector parameter per size, all zero, in f64 unless said.
std::unique_ptr<Parameters> Vectors(const std::vector<int64_t>& sizes, DType dtype = DType::kF64) {
  auto parameters = std::make_unique<Parameters>();
  Builder builder(parameters.get());
  for (size_t i = 0; i < sizes.size(); ++i) builder.Parameter(absl::StrCat("p", i), {sizes[i]}, Init::Zeros());
  parameters->Allocate(dtype, 1);
  return parameters;
}

void SetAll(const Parameters& parameters, const Tensor& slab, double value) {
  for (const ParameterInfo& info : parameters.list()) {
    for (int64_t i = 0; i < info.shape.elements(); ++i) Parameters::In(slab, info).Set(i, value);
  }
}

void Set(const Parameters& parameters, const Tensor& slab, int parameter, const std::vector<double>& values) {
  const Tensor tensor = Parameters::In(slab, parameters.list()[parameter]);
  for (size_t i = 0; i < values.size(); ++i) tensor.Set(static_cast<int64_t>(i), values[i]);
}

OptimizerConfig Adam(double eps = 1e-8) {
  OptimizerConfig config;
  config.kind = "adam";
  config.eps = eps;
  config.weight_decay = 0;
  return config;
}

OptimizerConfig Sgd(double momentum = 0) {
  OptimizerConfig config;
  config.kind = "sgd";
  config.momentum = momentum;
  config.weight_decay = 0;
  return config;
}

OptimizerConfig Lion() {
  OptimizerConfig config;
  config.kind = "lion";
  config.betas = {0.9, 0.99};
  config.weight_decay = 0;
  return config;
}

OptimizerConfig Adafactor() {
  OptimizerConfig config;
  config.kind = "adafactor";
  config.weight_decay = 0;
  return config;
}

std::string StateBytes(const Optimizer& optimizer) {
  std::string bytes;
  for (const NamedTensor& state : optimizer.state()) {
    bytes.append(static_cast<const char*>(state.value.raw()), static_cast<size_t>(state.value.bytes()));
  }
  return bytes;
}

TEST(Optimizer, AdamAddsEpsilonToTheCorrectedRoot) {
  const auto parameters = Vectors({1});
  Optimizer optimizer(Adam(1e-3), *parameters);
  const Slab gradients(DType::kF64, parameters->slab_size());
  SetAll(*parameters, gradients.tensor(), 1e-3);
  optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1);
  // m / c1 = g and sqrt(v / c2) = |g|, so the move is lr g / (g + eps) = 0.1 / 2.
  EXPECT_NEAR(parameters->value(0).At(0), -0.05, 1e-12);
}

TEST(Optimizer, AdamCountsUpdatesOncePerStepAlsoAcrossASave) {
  const TemporaryFolder folder;
  const auto parameters = Vectors({1, 1});
  Optimizer optimizer(Adam(), *parameters);
  const Slab gradients(DType::kF64, parameters->slab_size());
  SetAll(*parameters, gradients.tensor(), 1.0);
  optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1);
  for (int i : {0, 1}) EXPECT_NEAR(parameters->value(i).At(0), -0.1, 1e-8);

  CheckpointMeta meta;
  meta.optimizer_updates = optimizer.updates();
  ASSERT_TRUE(SaveCheckpoint(folder.Path("a.weft"), meta, StateTensors(*parameters, optimizer)).ok());
  const auto restored = Vectors({1, 1});
  Optimizer resumed(Adam(), *restored);
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder.Path("a.weft"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_TRUE(LoadParameters(*checkpoint, restored.get()).ok());
  ASSERT_TRUE(LoadOptimizer(*checkpoint, &resumed).ok());

  SetAll(*parameters, gradients.tensor(), 2.0);
  resumed.Step(restored.get(), gradients.tensor(), 1.0, 0.0, 0.1);
  // By hand: m = .29, v = .004999, c1 = .19, c2 = .001999; a counter that starts anew would give -.2297049.
  for (int i : {0, 1}) EXPECT_NEAR(restored->value(i).At(0), -0.1965182, 1e-7);
  EXPECT_EQ(resumed.updates(), 2);
}

TEST(Optimizer, NormAndUpdateCountEachParameterOnce) {
  // The first parameter is tied: two uses have added to its one gradient.
  const auto parameters = Vectors({1, 1});
  Optimizer optimizer(Sgd(), *parameters);
  const Slab gradients(DType::kF64, parameters->slab_size());
  Set(*parameters, gradients.tensor(), 0, {3});
  Set(*parameters, gradients.tensor(), 1, {4});
  const UpdateStats stats = optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 1.0);
  EXPECT_EQ(stats.grad_norm, 5);
  EXPECT_EQ(stats.clip_scale, 1);
  EXPECT_EQ(parameters->value(0).At(0), -3);
  EXPECT_EQ(parameters->value(1).At(0), -4);
}

TEST(Optimizer, ClipsToTheGlobalNormOnce) {
  const auto parameters = Vectors({1, 1});
  Optimizer optimizer(Sgd(), *parameters);
  const Slab gradients(DType::kF64, parameters->slab_size());
  Set(*parameters, gradients.tensor(), 0, {30});
  Set(*parameters, gradients.tensor(), 1, {40});
  // Sums over ten tokens: the gradient is [3, 4].
  const UpdateStats stats = optimizer.Step(parameters.get(), gradients.tensor(), 0.1, 1.0, 1.0);
  EXPECT_NEAR(stats.grad_norm, 5, 1e-12);
  EXPECT_NEAR(stats.clip_scale, 1 / (5 + 1e-6), 1e-12);
  EXPECT_NEAR(parameters->value(0).At(0), -0.6, 1e-6);
  EXPECT_NEAR(parameters->value(1).At(0), -0.8, 1e-6);
}

TEST(Optimizer, NormOfLargeFloatsDoesNotOverflow) {
  const auto parameters = Vectors({128}, DType::kF32);
  Optimizer optimizer(Sgd(), *parameters);
  const Slab gradients(DType::kF32, parameters->slab_size());
  SetAll(*parameters, gradients.tensor(), 1e19);
  const UpdateStats stats = optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 1.0, 1.0);
  EXPECT_TRUE(stats.finite);
  EXPECT_NEAR(stats.grad_norm / (1e19 * std::sqrt(128.0)), 1, 1e-6);  // 1e19 rounds to f32 by 3e-8
  // Direction kept: 128 equal parts of a unit vector.
  for (int64_t i = 0; i < 128; ++i) EXPECT_NEAR(parameters->value(0).At(i), -1 / std::sqrt(128.0), 1e-6);
}

TEST(Optimizer, NonFiniteGradientsChangeNothing) {
  for (double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    for (DType dtype : {DType::kF32, DType::kF64}) {
      const auto parameters = Vectors({3, 20}, dtype);
      Optimizer optimizer(Adam(), *parameters);
      const Slab gradients(dtype, parameters->slab_size());
      SetAll(*parameters, gradients.tensor(), 0.5);
      ASSERT_TRUE(optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 1.0, 0.1).finite);
      const double value = parameters->value(1).At(7), moment = optimizer.state()[3].value.At(7);
      Parameters::In(gradients.tensor(), parameters->list()[1]).Set(7, bad);
      const UpdateStats stats = optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 1.0, 0.1);
      EXPECT_FALSE(stats.finite);
      EXPECT_EQ(optimizer.updates(), 1);
      EXPECT_EQ(parameters->value(1).At(7), value);
      EXPECT_EQ(optimizer.state()[3].value.At(7), moment);
      EXPECT_EQ(FirstNonFinite(*parameters, gradients.tensor()), "p1");
      EXPECT_EQ(FirstNonFinite(*parameters, parameters->slab()), "");
    }
  }
}

TEST(Optimizer, ZeroGradientsLeaveZeros) {
  const auto parameters = Vectors({5});
  Optimizer optimizer(Adam(), *parameters);
  const Slab gradients(DType::kF64, parameters->slab_size());
  const UpdateStats stats = optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 1.0, 0.1);
  EXPECT_EQ(stats.grad_norm, 0);
  EXPECT_EQ(stats.clip_scale, 1);
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(parameters->value(0).At(i), 0);
}

TEST(OptimizerDeathTest, RefusesBadClipNorms) {
  const auto parameters = Vectors({1});
  Optimizer optimizer(Sgd(), *parameters);
  const Slab gradients(DType::kF64, parameters->slab_size());
  EXPECT_DEATH(optimizer.Step(parameters.get(), gradients.tensor(), 1.0, -1.0, 0.1), "clip_norm is -1");
  EXPECT_DEATH(optimizer.Step(parameters.get(), gradients.tensor(), 1.0, std::nan(""), 0.1), "clip_norm is");
}

TEST(Optimizer, DecaysMatricesOnlyUnlessToldAll) {
  for (const char* kind : {"adamw", "adam", "sgd", "lion", "adafactor", "muon"}) {
    for (const char* decay : {"matrices", "all"}) {
      Parameters parameters;
      Builder builder(&parameters);
      builder.Weight("weight", 2, 2);
      builder.Parameter("bias", {2}, Init::Ones());
      parameters.Allocate(DType::kF64, 1);
      SetAll(parameters, parameters.Mutable(), 1);
      OptimizerConfig config;
      config.kind = kind;
      config.weight_decay = 0.5;
      config.decay = decay;
      Optimizer optimizer(config, parameters);
      const Slab gradients(DType::kF64, parameters.slab_size());
      optimizer.Step(&parameters, gradients.tensor(), 1.0, 0.0, 0.1);
      EXPECT_LT(parameters.value(0).At(3), 1) << kind;
      if (std::string(decay) == "all") {
        EXPECT_LT(parameters.value(1).At(1), 1) << kind;
      } else {
        EXPECT_EQ(parameters.value(1).At(1), 1) << kind;
      }
    }
  }
}

TEST(Optimizer, LionMovesByTheSignAndDecaysApart) {
  Parameters parameters;
  Builder(&parameters).Parameter("w", {2, 1}, Init::Ones());
  parameters.Allocate(DType::kF64, 1);
  OptimizerConfig config = Lion();
  config.weight_decay = 0.5;
  Optimizer optimizer(config, parameters);
  const Slab gradients(DType::kF64, parameters.slab_size());
  Set(parameters, gradients.tensor(), 0, {2, 0});
  optimizer.Step(&parameters, gradients.tensor(), 1.0, 0.0, 0.1);
  EXPECT_NEAR(parameters.value(0).At(0), 0.95 - 0.1, 1e-15);
  EXPECT_NEAR(parameters.value(0).At(1), 0.95, 1e-15);  // sign(0) = 0
  // m = .02: the blend .9 m + .1 g = -.002 turns round with g = -.2, m becomes .99 .02 - .01 .2.
  Set(parameters, gradients.tensor(), 0, {-0.2, 0});
  optimizer.Step(&parameters, gradients.tensor(), 1.0, 0.0, 0.1);
  EXPECT_NEAR(parameters.value(0).At(0), 0.95 * 0.85 + 0.1, 1e-15);
  ASSERT_EQ(optimizer.state().size(), 1u);
  EXPECT_EQ(optimizer.state()[0].name, "m/w");
  EXPECT_NEAR(optimizer.state()[0].value.At(0), 0.0178, 1e-15);
}

TEST(Optimizer, SaysWhenAWeightIsNoLongerFinite) {
  for (const OptimizerConfig& config : {Adam(), Sgd(), Lion(), Adafactor()}) {
    for (DType dtype : {DType::kF32, DType::kF64}) {
      const auto parameters = Vectors({3, 40000}, dtype);
      Optimizer optimizer(config, *parameters);
      const Slab gradients(dtype, parameters->slab_size());
      SetAll(*parameters, gradients.tensor(), 0.5);
      EXPECT_TRUE(optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1).weights_finite) << config.kind;
      for (double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        Parameters::In(parameters->Mutable(), parameters->list()[1]).Set(39999, bad);
        const UpdateStats stats = optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1);
        EXPECT_TRUE(stats.finite);
        EXPECT_FALSE(stats.weights_finite) << config.kind << " " << dtype;
      }
    }
  }
}

TEST(Optimizer, SgdMomentumFollowsItsRecurrence) {
  const auto parameters = Vectors({1});
  Optimizer optimizer(Sgd(0.9), *parameters);
  const Slab gradients(DType::kF64, parameters->slab_size());
  SetAll(*parameters, gradients.tensor(), 1.0);
  optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1);
  EXPECT_NEAR(parameters->value(0).At(0), -0.1, 1e-15);
  optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1);
  EXPECT_NEAR(parameters->value(0).At(0), -0.1 - 0.19, 1e-15);
  EXPECT_EQ(optimizer.state().size(), 1u);
  EXPECT_EQ(Optimizer(Sgd(), *parameters).state().size(), 0u);
}

// Three updates of a model with several tiles and norm blocks; the bytes of its parameters and moments.
std::string TrainedBytes(const OptimizerConfig& config, DType dtype, int threads) {
  const auto parameters = std::make_unique<Parameters>();
  Builder builder(parameters.get());
  builder.Parameter("vector", {50001}, Init::Zeros());
  builder.Parameter("small", {7}, Init::Zeros());
  builder.Parameter("matrix", {301, 203}, Init::Normal(1));
  parameters->Allocate(dtype, 1);
  Optimizer optimizer(config, *parameters);
  const Slab gradients(dtype, parameters->slab_size());
  Workers workers(threads);
  std::string bytes;
  workers.Run([&] {
    for (uint64_t step = 0; step < 3; ++step) {
      for (const ParameterInfo& info : parameters->list()) {
        const RandomKey key = RandomKey{step}.Fold(info.name);
        for (int64_t i = 0; i < info.shape.elements(); ++i) Parameters::In(gradients.tensor(), info).Set(i, key.Normal(i));
      }
      const UpdateStats stats = optimizer.Step(parameters.get(), gradients.tensor(), 0.01, 0.5, 0.1);
      bytes.append(reinterpret_cast<const char*>(&stats.grad_norm), sizeof(double));
    }
  });
  bytes.append(static_cast<const char*>(parameters->slab().raw()), parameters->slab().bytes());
  return bytes + StateBytes(optimizer);
}

TEST(Optimizer, SameBitsForAnyNumberOfThreads) {
  for (const OptimizerConfig& config : {Adam(), Sgd(0.9), Lion(), Adafactor()}) {
    for (DType dtype : {DType::kF32, DType::kF64}) {
      const std::string one = TrainedBytes(config, dtype, 1);
      EXPECT_TRUE(one == TrainedBytes(config, dtype, 2)) << config.kind << " " << dtype;
      EXPECT_TRUE(one == TrainedBytes(config, dtype, 4)) << config.kind << " " << dtype;
    }
  }
}

}  // namespace
}  // namespace weft
