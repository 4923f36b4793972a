#include "layers/parameters.h"

#include "gmock/gmock.h"
#include "layers/layer_check.h"
#include "tests/layers/layer_rig.h"
#include "tests/layers/model_rig.h"

namespace weft {
namespace {

std::vector<std::string> NamesAndShapes(const Parameters& parameters) {
  std::vector<std::string> lines;
  for (const ParameterInfo& info : parameters.list()) lines.push_back(info.name + " " + info.shape.ToString());
  return lines;
}

TEST(Parameters, EachLayerHasTheseNamesAndShapes) {
  const std::map<std::string, std::vector<std::string>> expected = {
      {"cross_attention",
       {"cross_attention.q.weight [12, 12]", "cross_attention.q.bias [12]", "cross_attention.k.weight [4, 12]",
        "cross_attention.v.weight [4, 12]", "cross_attention.k.bias [4]", "cross_attention.v.bias [4]",
        "cross_attention.o.weight [12, 12]", "cross_attention.o.bias [12]"}},
      {"dropout", {}},
      {"feed_forward",
       {"feed_forward.up.weight [10, 12]", "feed_forward.up.bias [10]", "feed_forward.down.weight [12, 10]",
        "feed_forward.down.bias [12]"}},
      {"layer_norm", {"layer_norm.weight [12]", "layer_norm.bias [12]"}},
      {"learned_positions", {"learned_positions.weight [512, 12]"}},
      {"linear", {"linear.weight [12, 12]", "linear.bias [12]"}},
      {"rms_norm", {"rms_norm.weight [12]"}},
      {"self_attention",
       {"self_attention.q.weight [12, 12]", "self_attention.k.weight [4, 12]", "self_attention.v.weight [4, 12]",
        "self_attention.q.bias [12]", "self_attention.k.bias [4]", "self_attention.v.bias [4]",
        "self_attention.o.weight [12, 12]", "self_attention.o.bias [12]"}},
      {"sinusoidal_positions", {}},
  };
  for (const auto& [type, lines] : expected) EXPECT_EQ(NamesAndShapes(LayerRig(type, {}).parameters), lines) << type;
}

TEST(Parameters, AModelsNamesAreItsPaths) {
  TransformerConfig config = SmallConfig("encoder_decoder");
  config.layers = 1;
  config.bias = false;
  config.positions = "learned";
  config.max_positions = 16;
  const ModelRig rig(config);
  EXPECT_THAT(NamesAndShapes(rig.parameters),
              testing::ElementsAre("source_embedding.weight [9, 12]", "target_embedding.weight [8, 12]",
                                   "encoder.positions.weight [16, 12]", "encoder.0.self_attention.q.weight [12, 12]",
                                   "encoder.0.self_attention.k.weight [12, 12]", "encoder.0.self_attention.v.weight [12, 12]",
                                   "encoder.0.self_attention.o.weight [12, 12]", "encoder.0.self_attention_norm.weight [12]",
                                   "encoder.0.feed_forward.up.weight [20, 12]", "encoder.0.feed_forward.down.weight [12, 20]",
                                   "encoder.0.feed_forward_norm.weight [12]", "encoder.norm.weight [12]",
                                   "decoder.positions.weight [16, 12]", "decoder.0.self_attention.q.weight [12, 12]",
                                   "decoder.0.self_attention.k.weight [12, 12]", "decoder.0.self_attention.v.weight [12, 12]",
                                   "decoder.0.self_attention.o.weight [12, 12]", "decoder.0.self_attention_norm.weight [12]",
                                   "decoder.0.cross_attention.q.weight [12, 12]", "decoder.0.cross_attention.k.weight [12, 12]",
                                   "decoder.0.cross_attention.v.weight [12, 12]", "decoder.0.cross_attention.o.weight [12, 12]",
                                   "decoder.0.cross_attention_norm.weight [12]", "decoder.0.feed_forward.up.weight [20, 12]",
                                   "decoder.0.feed_forward.down.weight [12, 20]", "decoder.0.feed_forward_norm.weight [12]",
                                   "decoder.norm.weight [12]", "output.weight [8, 12]"));
}

TEST(Parameters, InitialValuesDependOnSeedAndNameOnly) {
  TransformerConfig config = SmallConfig("decoder");
  const ModelRig plain(config, {.perturb = false});
  config.decoder_sublayers = {{"self_attention", {}}, {"linear", {}}, {"feed_forward", {}}};
  const ModelRig with_more(config, {.perturb = false});
  const ModelRig other_seed(config, {.seed = 2, .perturb = false});
  EXPECT_GT(with_more.parameters.list().size(), plain.parameters.list().size());
  for (size_t i = 0; i < plain.parameters.list().size(); ++i) {
    const ParameterInfo& info = plain.parameters.list()[i];
    const std::vector<double> values = ToDoubles(plain.parameters.value(static_cast<int>(i)));
    EXPECT_EQ(values, ToDoubles(with_more.parameters.value(with_more.parameters.Find(info.name)))) << info.name;
    if (info.shape.rank() == 2) {
      EXPECT_NE(values, ToDoubles(other_seed.parameters.value(other_seed.parameters.Find(info.name)))) << info.name;
    }
  }
}

TEST(Parameters, StackedWeightsAreDrawnAsOnTheirOwn) {
  Parameters stacked, single;
  Builder a(&stacked), b(&single);
  a.StackedWeights({{"q.weight", 12}, {"k.weight", 4}}, 12);
  b.Weight("k.weight", 4, 12);
  stacked.Allocate(DType::kF64, 3);
  single.Allocate(DType::kF64, 3);
  EXPECT_EQ(ToDoubles(stacked.value(stacked.Find("k.weight"))), ToDoubles(single.value(0)));
}

TEST(Parameters, XavierUniformStaysInItsBoundsAndFillsThem) {
  Parameters parameters;
  Builder(&parameters).Weight("w", 60, 40);
  parameters.Allocate(DType::kF64, 1);
  const double a = std::sqrt(6.0 / 100);
  double largest = 0;
  for (double w : ToDoubles(parameters.value(0))) largest = std::max(largest, std::abs(w));
  EXPECT_LE(largest, a);
  // That none of 2400 uniform draws comes within 1 % of the bound has probability 0.99^2400 < 1e-10.
  EXPECT_GT(largest, 0.99 * a);
}

TEST(Parameters, InitSchemesHaveTheMeanAndVarianceOfTheirFormulas) {
  constexpr int64_t kOut = 300, kIn = 100;
  constexpr double kCount = kOut * kIn;
  struct Expected {
    const char* name;
    double variance;
    bool normal;
  };
  // Of a uniform distribution on [-a, a) the variance is a^2 / 3.
  constexpr Expected kSchemes[] = {
      {"xavier", 6.0 / 400 / 3, false},    {"xavier_normal", 2.0 / 400, true}, {"kaiming_uniform", 6.0 / 100 / 3, false},
      {"kaiming_normal", 2.0 / 100, true}, {"normal", 0.05 * 0.05, true},      {"gpt2", 0.02 * 0.02, true}};
  ASSERT_EQ(std::size(kSchemes), InitScheme::Names().size());
  for (const auto& [name, variance, normal] : kSchemes) {
    Parameters parameters;
    Builder(&parameters, {InitScheme::Named(name), 1, 0.05}).Weight("w", kOut, kIn);
    parameters.Allocate(DType::kF64, 1);
    double sum = 0, squares = 0, largest = 0;
    for (double w : ToDoubles(parameters.value(0))) {
      sum += w;
      squares += w * w;
      largest = std::max(largest, std::abs(w));
    }
    // The standard error of the mean is sqrt(v / n). That of the mean square is sqrt((E x^4 - v^2) / n), with E x^4 = 3 v^2 for
    // a normal, a^4 / 5 = 9/5 v^2 for a uniform distribution. Five of each.
    EXPECT_NEAR(sum / kCount, 0, 5 * std::sqrt(variance / kCount)) << name;
    EXPECT_NEAR(squares / kCount, variance, 5 * variance * std::sqrt((normal ? 2 : 0.8) / kCount)) << name;
    // 30,000 normal draws reach 3 standard deviations for certain (each does with probability 0.0027), uniform ones sqrt(3).
    EXPECT_EQ(largest > 2 * std::sqrt(variance), normal) << name;
  }
}

TEST(Parameters, InitStdIsThatOfWeightsAndEmbeddings) {
  TransformerConfig config = SmallConfig("decoder");
  config.init = "normal";
  config.init_std = 1e-3;
  const ModelRig rig(config, {.perturb = false});
  for (const ParameterInfo& info : rig.parameters.list()) {
    if (info.shape.rank() < 2) continue;
    EXPECT_EQ(static_cast<int>(info.init.kind), static_cast<int>(Init::Kind::kNormal)) << info.name;
    EXPECT_EQ(info.init.scale, 1e-3) << info.name;
  }
}

TEST(Parameters, Gpt2SchemeShrinksMapsIntoTheResidualStream) {
  const auto spread = [](const Parameters& p, const std::string& name) {
    double squares = 0;
    const std::vector<double> values = ToDoubles(p.value(p.Find(name)));
    for (double w : values) squares += w * w;
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  TransformerConfig config = SmallConfig("decoder");
  config.init = "gpt2";
  config.layers = 8;
  config.d_model = 48;
  config.hidden = 192;
  const ModelRig rig(config, {.perturb = false});
  // 48 * 48 draws and more: the relative error of the standard deviation is 1 / sqrt(2 n) = 1.5 %; 5 of these.
  EXPECT_NEAR(spread(rig.parameters, "decoder.0.self_attention.q.weight"), 0.02, 0.075 * 0.02);
  EXPECT_NEAR(spread(rig.parameters, "decoder.0.self_attention.o.weight"), 0.02 / 4, 0.075 * 0.02 / 4);
  EXPECT_NEAR(spread(rig.parameters, "decoder.7.feed_forward.down.weight"), 0.02 / 4, 0.075 * 0.02 / 4);
}

TEST(Parameters, WritersRaiseTheVersion) {
  Parameters parameters;
  Builder(&parameters).Weight("w", 2, 2);
  parameters.Allocate(DType::kF32, 1);
  const uint64_t before = *parameters.version();
  parameters.Mutable();
  EXPECT_GT(*parameters.version(), before);
}

TEST(ParametersDeathTest, NamesAreUniqueAndDeclaredBeforeAllocation) {
  Parameters parameters;
  Builder builder(&parameters);
  builder.Weight("w", 2, 2);
  EXPECT_DEATH(builder.Weight("w", 3, 3), "parameter w declared twice");
  parameters.Allocate(DType::kF32, 1);
  EXPECT_DEATH(builder.Weight("late", 2, 2), "parameter late declared after Allocate");
}

TEST(ParametersDeathTest, ValuesChangedBetweenForwardAndBackwardAreRefused) {
  LayerRig rig("linear", {});
  Context context(rig.parameters);
  context.Begin(rig.gradients.tensor(), {});
  const LayerInput input = MakeInput({1}, {2}, 12);
  const Variable y = rig.layer->Forward(context, context.tape().Constant(Fill(&context.tape(), DType::kF32, input.x, 12)));
  rig.parameters.Mutable();
  EXPECT_DEATH(context.tape().Backward(y, y.value()), "linear");
}

}  // namespace
}  // namespace weft
