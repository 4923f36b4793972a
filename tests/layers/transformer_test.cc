#include "layers/transformer.h"

#include <limits>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "layers/layer_check.h"
#include "tests/layers/model_rig.h"

namespace weft {
namespace {

// ---------------------------------------------------------------------------------------------------- gradients of models

TransformerConfig Variation(const std::string& name) {
  TransformerConfig c = SmallConfig("encoder_decoder");
  if (name == "post_norm") {
    c.norm_place = "post";
    c.activation = "relu";
  } else if (name == "rms_grouped_dropout") {
    c.norm_kind = "rms";
    c.heads = 6;
    c.kv_heads = 2;
    c.dropout = c.attention_dropout = c.hidden_dropout = c.embedding_dropout = 0.2;
    c.activation = "silu";
    c.bias = false;
  } else if (name == "all_tied") {
    c.tied = {"source", "target", "output"};
    c.embedding_scale = true;
  } else if (name == "decoder_tied_learned") {
    c.family = "decoder";
    c.tied = {"target", "output"};
    c.positions = "learned";
    c.init = "gpt2";
    c.activation = "gelu_tanh";
  } else if (name == "decoder_short_positions") {
    c.family = "decoder";
    c.positions = "learned";
    c.max_positions = 2;
  } else if (name == "own_sublayers") {
    c.family = "decoder";
    c.decoder_sublayers = {{"self_attention", Options({{"heads", {int64_t{4}, ""}}})},
                           {"test_running_mean", {}},
                           {"feed_forward", Options({{"hidden", {int64_t{64}, ""}}})},
                           {"feed_forward", {}}};
  } else if (name.rfind("pool_", 0) == 0) {
    c.family = "encoder";
    c.pool = name.substr(5);
  }
  return c;
}

class ModelCheckTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelCheckTest, GradientsMatchDifferences) {
  GradCheckOptions options;
  options.max_elements_per_input = 6;
  const auto report = CheckModel(Variation(GetParam()), options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->passed) << report->ToString();
  for (const GradCheckEntry& entry : report->entries) EXPECT_TRUE(entry.received_gradient) << entry.name;
}

INSTANTIATE_TEST_SUITE_P(All, ModelCheckTest,
                         testing::Values("pre_norm", "post_norm", "rms_grouped_dropout", "all_tied", "decoder_tied_learned",
                                         "decoder_short_positions", "own_sublayers", "pool_mean", "pool_max", "pool_first",
                                         "pool_last"),
                         [](const auto& info) { return info.param; });

TEST(CheckModel, ShrinksSizesAndKeepsTheStructure) {
  TransformerConfig c = SmallConfig("encoder_decoder");
  c.d_model = 512;
  c.layers = 12;
  c.heads = 8;
  c.kv_heads = 2;
  c.hidden = 2048;
  c.encoder_sublayers = {{"self_attention", Options({{"heads", {int64_t{16}, ""}}})}};
  const TransformerConfig small = ShrinkForCheck(c);
  EXPECT_EQ(small.encoder_layers, 2);
  EXPECT_EQ(small.heads, 8);
  EXPECT_EQ(small.kv_heads, 2);
  EXPECT_EQ(small.d_model, 32);
  EXPECT_EQ(small.hidden, 10);
  EXPECT_EQ(small.encoder_sublayers[0].type, "self_attention");
}

TEST(CheckModel, RefusesWhatTheModelRefuses) {
  TransformerConfig c = SmallConfig("decoder");
  c.decoder_sublayers = {{"self_attention", Options({{"kv_heads", {int64_t{2}, ""}}})}};
  EXPECT_TRUE(absl::IsInvalidArgument(CheckModel(c).status()));
}

// ------------------------------------------------------------------------------------------------------------- training

TEST(Transformer, GradientDescentLowersTheLossOfEachFamily) {
  for (const char* family : {"encoder_decoder", "decoder", "encoder"}) {
    ModelRig rig(SmallConfig(family));
    const Batch batch = RandomBatch(*rig.model, {0, 1, 2, 3});
    const double before = GradientOf(rig, batch, 1).loss.mean_loss();
    for (int step = 0; step < 40; ++step) {
      const Gradient gradient = GradientOf(rig, batch, 1);
      const Tensor slab = rig.parameters.Mutable();
      for (int64_t i = 0; i < slab.elements(); ++i) slab.Set(i, slab.At(i) - 0.02 * gradient.values[i]);
    }
    EXPECT_LT(GradientOf(rig, batch, 1).loss.mean_loss(), 0.8 * before) << family;
  }
}

// ------------------------------------------------------------------------------------------------------------- tied weights

TEST(Transformer, TiedWeightsAreOneParameterCountedOnce) {
  TransformerConfig c = SmallConfig("decoder");
  const ModelRig untied(c);
  c.tied = {"target", "output"};
  const ModelRig tied(c);
  EXPECT_EQ(untied.parameters.count() - tied.parameters.count(), kTargetVocabulary * 12);
  EXPECT_EQ(tied.parameters.Find("output.weight"), -1);
  EXPECT_GE(tied.parameters.Find("target_embedding.weight"), 0);
}

TEST(Transformer, GradientOfTiedWeightsIsTheSumOfBothUses) {
  TransformerConfig c = SmallConfig("decoder");
  ModelRig untied(c);
  c.tied = {"target", "output"};
  const ModelRig tied(c);
  // The same model without the tie: every value from the tied one, the head from its embedding.
  const Tensor slab = untied.parameters.Mutable();
  for (const ParameterInfo& info : untied.parameters.list()) {
    const int from = tied.parameters.Find(info.name == "output.weight" ? "target_embedding.weight" : info.name);
    ASSERT_GE(from, 0) << info.name;
    Parameters::In(slab, info).CopyFrom(tied.parameters.value(from));
  }
  const Batch batch = RandomBatch(*tied.model, {0, 1, 2});
  const Gradient one = GradientOf(tied, batch, 1), two = GradientOf(untied, batch, 1);
  EXPECT_NEAR(one.loss.loss, two.loss.loss, 1e-12 * two.loss.loss);
  const auto part = [](const ModelRig& rig, const Gradient& gradient, const char* name) {
    const ParameterInfo& info = rig.parameters.list()[rig.parameters.Find(name)];
    const auto first = gradient.values.begin() + info.offset;
    return std::vector<double>(first, first + info.shape.elements());
  };
  std::vector<double> sum = part(untied, two, "target_embedding.weight");
  const std::vector<double> head = part(untied, two, "output.weight");
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += head[i];
  EXPECT_LT(RelativeError(part(tied, one, "target_embedding.weight"), sum), 1e-12);
}

TEST(Transformer, HeadChangesWithTheTiedEmbedding) {
  TransformerConfig c = SmallConfig("decoder");
  c.tied = {"target", "output"};
  ModelRig rig(c);
  const auto logits = [&] {
    Context context(rig.parameters);
    context.Begin(Tensor(), {});
    std::vector<double> hidden(12, 1.0);
    return ToDoubles(rig.model->Logits(context, context.tape().Constant(Tensor::Of(absl::MakeSpan(hidden), {1, 12}))).value());
  };
  const std::vector<double> before = logits();
  const int index = rig.parameters.Find("target_embedding.weight");
  const Tensor table = Parameters::In(rig.parameters.Mutable(), rig.parameters.list()[index]);
  table.Set(3 * 12, table.At(3 * 12) + 2);
  std::vector<double> expected = before;
  expected[3] += 2;
  EXPECT_LT(RelativeError(logits(), expected), 1e-14);
}

// What Muon takes: all matrices but tables and the map to the answers.
TEST(Transformer, HidesTheMapsBetweenItsFeatures) {
  for (const char* family : {"encoder_decoder", "decoder", "encoder"}) {
    TransformerConfig c = SmallConfig(family);
    c.positions = "learned";
    Parameters parameters;
    ASSERT_TRUE(Transformer::Create(c, {9, 8, 3, false}, &parameters).ok());
    int hidden = 0;
    for (const ParameterInfo& info : parameters.list()) {
      const bool inside = absl::StrContains(info.name, "attention.") || absl::StrContains(info.name, "feed_forward.");
      EXPECT_EQ(info.hidden, inside && info.shape.rank() == 2) << info.name;
      hidden += info.hidden ? 1 : 0;
    }
    EXPECT_GT(hidden, 0);
  }
}

TEST(Transformer, TiedSourceNeedsASharedVocabulary) {
  TransformerConfig c = SmallConfig("encoder_decoder");
  c.tied = {"source", "target"};
  for (const ModelSizes& sizes : {ModelSizes{9, 9, 0, false}, ModelSizes{9, 8, 0, true}}) {
    Parameters parameters;
    const auto model = Transformer::Create(c, sizes, &parameters);
    EXPECT_TRUE(absl::IsInvalidArgument(model.status()));
    EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr("model.tied"));
  }
}

// ------------------------------------------------------------------------------------------------------------- options

TEST(Transformer, AConfigMadeInCodeGetsTheDefaults) {
  TransformerConfig c;
  c.d_model = 8;
  c.heads = 2;
  c.layers = 3;
  Parameters parameters;
  const auto model = Transformer::Create(c, {.target_vocabulary = 5}, &parameters);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(parameters.list()[parameters.Find("decoder.2.feed_forward.up.weight")].shape, Shape({32, 8}));
  EXPECT_EQ((*model)->config().kv_heads, 2);
}

TEST(Transformer, LengthsBeyondThePositionTableAreRefused) {
  TransformerConfig c = SmallConfig("decoder");
  EXPECT_TRUE(ModelRig(c).model->CheckLength(1 << 20, "the text").ok());
  c.positions = "learned";
  c.max_positions = 5;
  const ModelRig learned(c);
  EXPECT_TRUE(learned.model->CheckLength(5, "the text").ok());
  const absl::Status status = learned.model->CheckLength(6, "the prompt");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), testing::AllOf(testing::HasSubstr("the prompt has 6"), testing::HasSubstr("= 5")));
  // A table inside the blocks counts too.
  c.positions = "none";
  c.decoder_sublayers = {{"learned_positions", Options({{"max_positions", {int64_t{4}, ""}}})}, {"self_attention", {}}};
  EXPECT_EQ(ModelRig(c).model->max_length(), 4);
}

TEST(Transformer, SecondSublayerOfATypeHasAName) {
  TransformerConfig c = SmallConfig("decoder");
  c.decoder_sublayers = {{"feed_forward", {}}, {"self_attention", {}}, {"feed_forward", {}}};
  const ModelRig rig(c);
  EXPECT_GE(rig.parameters.Find("decoder.1.feed_forward_2.up.weight"), 0);
  EXPECT_GE(rig.parameters.Find("decoder.1.feed_forward_2_norm.weight"), 0);
}

// ------------------------------------------------------------------------------------------------------------- sequences

TEST(Transformer, SentenceAloneEqualsTheSentenceInABatch) {
  for (const char* family : {"encoder_decoder", "decoder", "encoder"}) {
    const ModelRig rig(SmallConfig(family), {.dtype = DType::kF32});
    const Batch all = RandomBatch(*rig.model, {0, 1, 2, 3, 4});
    GradientRunner runner(*rig.model, rig.parameters);
    double sum = 0;
    for (int64_t i = 0; i < all.size(); ++i) {
      const BatchView one = all.View(i, 1);
      sum += runner.Evaluate({&one, 1}).loss;
    }
    const BatchView together = all.View();
    // Losses are f64 sums of row losses that are the same bits; their order differs.
    EXPECT_NEAR(runner.Evaluate({&together, 1}).loss, sum, 1e-12 * sum) << family;
  }
}

TEST(Transformer, TrainingModeWithoutDropoutComputesWhatInferenceDoes) {
  const ModelRig rig(SmallConfig("encoder"));
  const std::vector<Sequence> sequences = {{0, 2, 0, 0}, {2, 3, 0, 1}};
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
  const Slab gradients(DType::kF64, rig.parameters.slab_size());
  Context context(rig.parameters);
  context.Begin(gradients.tensor(), RandomKey{1});
  const std::vector<double> training = ToDoubles(rig.model->Encode(context, ids, sequences).value());
  context.Begin(Tensor(), {});
  EXPECT_EQ(ToDoubles(rig.model->Encode(context, ids, sequences).value()), training);
  EXPECT_EQ(training.size(), 5u * 12u);
}

// Every op that writes a gradient where it first arrives writes all of it.
TEST(Transformer, AFreshSlabMayHoldGarbage) {
  for (const char* family : {"encoder_decoder", "decoder", "encoder"}) {
    for (const char* place : {"pre", "post"}) {
      TransformerConfig c = SmallConfig(family);
      c.norm_place = place;
      c.positions = "learned";
      c.max_positions = 16;  // more than are used
      const ModelRig rig(c, {.dtype = DType::kF32});
      const std::vector<Sequence> sequences = {{0, 2, 0, 0}, {2, 3, 0, 1}};
      const std::vector<int32_t> ids = {1, 2, 3, 4, 5}, classes = {0, 2};
      const ModelInput input{ids, sequences, ids, sequences, std::string(family) == "encoder" ? classes : ids};
      const auto gradients = [&](bool is_fresh, double start) {
        const Slab slab(DType::kF32, rig.parameters.slab_size());
        for (const ParameterInfo& info : rig.parameters.list()) {
          const Tensor part = Parameters::In(slab.tensor(), info);
          for (int64_t i = 0; i < part.elements(); ++i) part.Set(i, start);
        }
        Context context(rig.parameters);
        context.Begin(slab.tensor(), RandomKey{1}, is_fresh);
        context.tape().Backward(rig.model->Loss(context, input, 0).loss);
        if (is_fresh) context.ZeroRest();
        return ToDoubles(slab.tensor());
      };
      EXPECT_EQ(gradients(true, std::numeric_limits<double>::quiet_NaN()), gradients(false, 0)) << family << " " << place;
    }
  }
}

TEST(Transformer, DropoutIsOffInInference) {
  TransformerConfig c = SmallConfig("decoder");
  const ModelRig plain(c);
  c.dropout = c.attention_dropout = c.hidden_dropout = c.embedding_dropout = 0.5;
  const ModelRig dropping(c);
  const std::vector<Sequence> sequences = {{0, 4, 0, 0}};
  const std::vector<int32_t> ids = {1, 2, 3, 4};
  const auto infer = [&](const ModelRig& rig, RandomKey key) {
    Context context(rig.parameters);
    context.Begin(Tensor(), key);
    return ToDoubles(rig.model->Decode(context, ids, sequences).value());
  };
  const std::vector<double> expected = infer(plain, {});
  EXPECT_EQ(infer(dropping, RandomKey{1}), expected);
  EXPECT_EQ(infer(dropping, RandomKey{2}), expected);
}

}  // namespace
}  // namespace weft
