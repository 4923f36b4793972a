#include "train/parameter_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "autograd/base/status.h"
#include "layers/builder.h"
#include "tests/train/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/model_state.h"
#include "train/optimizer.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Parameters> Model(DType dtype = DType::kF64) {
  auto parameters = std::make_unique<Parameters>();
  const Builder root(parameters.get());
  for (const char* block : {"encoder", "decoder"}) {
    Builder layer = root.Sub(block).Sub("0").Sub("linear");
    layer.Weight("weight", 3, 2);
    layer.Parameter("bias", {3}, Init::Normal(1));
    root.Sub(block).Sub("norm").Parameter("weight", {2}, Init::Ones());
  }
  parameters->Allocate(dtype, 1);
  return parameters;
}

OptimizerConfig Config(const std::string& kind, std::vector<OptimizerGroup> groups) {
  OptimizerConfig config;
  config.kind = kind;
  config.groups = std::move(groups);
  if (kind == "sgd") config.momentum = 0.9;
  return config;
}

TEST(ParameterGroups, PatternsMatchWholeNames) {
  const std::string name = "encoder.0.self_attention_norm.weight";
  for (const char* fits : {"encoder.0.self_attention_norm.weight", "*", "**", "encoder.*", "*.weight", "encoder.?.*norm*",
                           "*encoder*weight*", "encoder.*.self*"}) {
    EXPECT_EQ(DistanceToPattern(fits, name), 0) << fits;
  }
  EXPECT_EQ(DistanceToPattern("", name), static_cast<int64_t>(name.size()));
  EXPECT_EQ(DistanceToPattern("encoder", name), static_cast<int64_t>(name.size()) - 7);
  EXPECT_EQ(DistanceToPattern("encoder.??*", name), 0);      // the second ? is a dot
  EXPECT_EQ(DistanceToPattern("encoder.*.nrm.*", name), 2);  // an o and the dot before
  EXPECT_EQ(DistanceToPattern("*.weights", name), 1);
  EXPECT_EQ(DistanceToPattern("a?c", "ac"), 1);
}

TEST(ParameterGroups, TheLastThatFitsHoldsAlone) {
  const auto parameters = Model();
  const std::vector<ParameterRule> rules =
      ParameterRules(Config("adamw", {{.match = "encoder.*", .lr_scale = 0.1, .weight_decay = 0.5},
                                      {.match = "*norm*", .frozen = true},
                                      {.match = "encoder.norm.*", .lr_scale = 2}}),
                     *parameters);
  ASSERT_EQ(rules.size(), 6u);
  EXPECT_EQ(rules[0].group, 0);
  EXPECT_EQ(rules[0].lr_scale, 0.1);
  EXPECT_EQ(rules[0].weight_decay, 0.5);
  EXPECT_EQ(rules[1].weight_decay, 0.5);  // a bias: a group's decay is for all its parameters
  EXPECT_EQ(rules[2].group, 2);           // neither frozen, nor with the first group's decay
  EXPECT_FALSE(rules[2].frozen);
  EXPECT_EQ(rules[2].lr_scale, 2);
  EXPECT_EQ(rules[2].weight_decay, 0);  // a vector
  EXPECT_EQ(rules[3].group, -1);
  EXPECT_EQ(rules[3].weight_decay, 0.01);
  EXPECT_TRUE(rules[5].frozen);
}

TEST(ParameterGroups, PatternsWithoutParametersAreRefusedWithTheNearestNames) {
  const auto parameters = Model();
  const absl::Status status =
      CheckGroups(Config("adamw", {{.match = "encoder.*"}, {.match = "*.nrm.weight", .where = "x.toml:9:9"}}), *parameters);
  EXPECT_EQ(ExitCode(status), 2);
  EXPECT_EQ(status.message(),
            "x.toml:9:9: optimizer.groups.match: found \"*.nrm.weight\", which is the name of no parameter; the nearest names "
            "are encoder.norm.weight, decoder.norm.weight, encoder.0.linear.weight");
  EXPECT_THAT(std::string(CheckGroups(Config("adamw", {{.match = "*", .frozen = true}}), *parameters).message()),
              HasSubstr("all parameters are frozen"));
  EXPECT_TRUE(CheckGroups(Config("adamw", {{.match = "*norm*", .frozen = true}}), *parameters).ok());
}

TEST(ParameterGroups, AreDescribedWithTheirParameters) {
  EXPECT_THAT(DescribeGroups(Config("adamw", {{.match = "encoder.norm.*"},
                                              {.match = "*norm*", .frozen = true},
                                              {.match = "*.bias", .lr_scale = 0.5, .weight_decay = 0}}),
                             *Model()),
              ElementsAre("parameter group \"encoder.norm.*\" (lr_scale 1.0): 0 parameters, 0 numbers; later groups hold for "
                          "all it fits",
                          "parameter group \"*norm*\" (frozen): 2 parameters, 4 numbers: encoder.norm.weight, "
                          "decoder.norm.weight",
                          "parameter group \"*.bias\" (lr_scale 0.5, weight_decay 0.0): 2 parameters, 6 numbers: "
                          "encoder.0.linear.bias, decoder.0.linear.bias"));
}

void Fill(const Tensor& gradients, double value) {
  for (int64_t i = 0; i < gradients.elements(); ++i) gradients.Set(i, value * (1 + i % 5));
}

std::string Bytes(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes())};
}

constexpr const char* kKinds[] = {"adamw", "adam", "sgd", "lion", "adafactor", "muon"};

TEST(ParameterGroups, FrozenParametersKeepTheirBitsAndStayOutOfTheNorm) {
  for (const char* kind : kKinds) {
    for (DType dtype : {DType::kF32, DType::kF64}) {
      const auto parameters = Model(dtype);
      OptimizerConfig config = Config(kind, {{.match = "encoder.*", .frozen = true}});
      config.weight_decay = 0.1;
      config.decay = "all";
      Optimizer optimizer(config, *parameters);
      std::vector<std::string> before;
      for (int i = 0; i < 6; ++i) before.push_back(Bytes(parameters->value(i)));
      const Slab gradients(dtype, parameters->slab_size());
      double squares = 0;
      for (int i = 0; i < 6; ++i) {
        const Tensor g = Parameters::In(gradients.tensor(), parameters->list()[i]);
        // A frozen parameter may even have a gradient that is not finite.
        for (int64_t e = 0; e < g.elements(); ++e) g.Set(e, i < 3 ? std::nan("") : 0.5);
        if (i >= 3) squares += 0.25 * static_cast<double>(g.elements());
      }
      for (int t = 0; t < 3; ++t) {
        const UpdateStats stats = optimizer.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1);
        EXPECT_TRUE(stats.finite && stats.weights_finite) << kind;
        EXPECT_DOUBLE_EQ(stats.grad_norm, std::sqrt(squares)) << kind;
      }
      for (int i = 0; i < 6; ++i) EXPECT_EQ(Bytes(parameters->value(i)) == before[i], i < 3) << kind << " " << i;
      for (const NamedTensor& state : optimizer.state()) {
        const bool frozen = state.name.find("encoder") != std::string::npos;
        const std::string bytes = Bytes(state.value);
        EXPECT_EQ(bytes == std::string(bytes.size(), '\0'), frozen) << kind << " " << state.name;
      }
    }
  }
}

TEST(ParameterGroups, ScaleTheRateAndSetTheDecay) {
  for (const char* kind : kKinds) {
    // The scaled half must move as a whole model at the scaled rate and that decay.
    const auto grouped = Model(), whole = Model();
    OptimizerConfig config = Config(kind, {{.match = "decoder.*", .lr_scale = 0.25, .weight_decay = 0.5}});
    Optimizer a(config, *grouped);
    config.groups.clear();
    config.weight_decay = 0.5;
    config.decay = "all";
    Optimizer b(config, *whole);
    const Slab gradients(DType::kF64, grouped->slab_size());
    for (int t = 1; t <= 3; ++t) {
      Fill(gradients.tensor(), t);
      a.Step(grouped.get(), gradients.tensor(), 1.0, 0.0, 0.1);
      b.Step(whole.get(), gradients.tensor(), 1.0, 0.0, 0.025);
    }
    for (int i = 3; i < 6; ++i) EXPECT_EQ(Bytes(grouped->value(i)), Bytes(whole->value(i))) << kind << " " << i;
    EXPECT_NE(Bytes(grouped->value(0)), Bytes(whole->value(0))) << kind;
  }
}

// A parameter that was frozen for three updates begins at t = 1 when it thaws, also when a checkpoint lies between.
TEST(ParameterGroups, ThawedParametersStartTheirOwnCount) {
  const TemporaryFolder folder;
  for (const char* kind : kKinds) {
    const auto parameters = Model();
    Optimizer frozen(Config(kind, {{.match = "encoder.*", .frozen = true}}), *parameters);
    const Slab gradients(DType::kF64, parameters->slab_size());
    Fill(gradients.tensor(), 1);
    for (int t = 0; t < 3; ++t) frozen.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1);
    CheckpointMeta meta;
    meta.optimizer_updates = frozen.updates();
    EXPECT_EQ(meta.optimizer_updates, 3);
    ASSERT_TRUE(SaveCheckpoint(folder.Path("a.weft"), meta, StateTensors(*parameters, frozen)).ok());
    const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder.Path("a.weft"));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();

    Optimizer thawed(Config(kind, {}), *parameters);
    ASSERT_TRUE(LoadOptimizer(*checkpoint, &thawed).ok());
    thawed.Step(parameters.get(), gradients.tensor(), 1.0, 0.0, 0.1);
    EXPECT_EQ(thawed.updates(), 4);
    const auto fresh = Model();
    Optimizer first(Config(kind, {}), *fresh);
    first.Step(fresh.get(), gradients.tensor(), 1.0, 0.0, 0.1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Bytes(parameters->value(i)), Bytes(fresh->value(i))) << kind << " " << i;
    // And its count stays apart in the next checkpoint.
    ASSERT_TRUE(SaveCheckpoint(folder.Path("b.weft"), meta, StateTensors(*parameters, thawed)).ok());
    const absl::StatusOr<Checkpoint> next = Checkpoint::Open(folder.Path("b.weft"));
    ASSERT_TRUE(next.ok());
    EXPECT_NE(next->Find("optimizer.updates/encoder.norm.weight"), nullptr);
    EXPECT_EQ(next->Find("optimizer.updates/decoder.norm.weight"), nullptr);
  }
}

}  // namespace
}  // namespace weft
