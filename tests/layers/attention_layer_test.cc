// Known values of the attention layers: which columns belong to which head, and the scale of the scores.
#include "gtest/gtest.h"
#include "layers/attention.h"
#include "tests/layers/layer_rig.h"

namespace weft {
namespace {

class KeepWeights : public Probe {
 public:
  void AttentionWeights(const std::string& path, int64_t heads, Sequences, Sequences, absl::Span<const int32_t>,
                        const Tensor& weights) override {
    this->path = path;
    this->heads = heads;
    kept = ToDoubles(weights);
  }
  std::string path;
  int64_t heads = 0;
  std::vector<double> kept;
};

// The output of a self-attention layer whose four projections are the identity, and its weights.
std::vector<double> IdentityAttention(int64_t width, int64_t heads, std::vector<double> x, KeepWeights* probe) {
  Parameters parameters;
  AttentionConfig config;
  config.d_model = width;
  config.heads = heads;
  Builder builder = Builder(&parameters).Sub("block");
  auto layer = SelfAttention::Create(builder, config);
  EXPECT_TRUE(layer.ok()) << layer.status();
  parameters.Allocate(DType::kF64, 1);
  const Tensor slab = parameters.Mutable();
  for (const ParameterInfo& info : parameters.list()) {
    const Tensor value = Parameters::In(slab, info);
    value.Zero();
    for (int64_t i = 0; info.shape.rank() == 2 && i < width; ++i) value.Set(i * width + i, 1);
  }
  const auto rows = static_cast<int64_t>(x.size()) / width;
  const std::vector<Sequence> sequences = {{0, static_cast<int32_t>(rows), 0, 0}};
  Context context(parameters);
  context.Begin(Tensor(), {});
  context.sequences = sequences;
  context.probe = probe;
  return ToDoubles((*layer)->Forward(context, context.tape().Constant(Tensor::Of(absl::MakeSpan(x), {rows, width}))).value());
}

// softmax(x x^T / sqrt(d)) x for rows x [T, d].
std::vector<double> OneHead(const std::vector<double>& x, int64_t d, std::vector<double>* weights) {
  const auto time = static_cast<int64_t>(x.size()) / d;
  std::vector<double> y(x.size(), 0.0);
  for (int64_t i = 0; i < time; ++i) {
    std::vector<double> w(time);
    double total = 0;
    for (int64_t j = 0; j < time; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < d; ++c) dot += x[i * d + c] * x[j * d + c];
      total += w[j] = std::exp(dot / std::sqrt(static_cast<double>(d)));
    }
    for (int64_t j = 0; j < time; ++j) {
      weights->push_back(w[j] / total);
      for (int64_t c = 0; c < d; ++c) y[i * d + c] += w[j] / total * x[j * d + c];
    }
  }
  return y;
}

TEST(AttentionLayer, HeadsAreRunsOfColumnsAndNeverMixTimeSteps) {
  // x = [[0, 1, 2, 3], [4, 5, 6, 7]] / 4: head 0 sees columns 0 and 1, head 1 columns 2 and 3.
  std::vector<double> x;
  for (int i = 0; i < 8; ++i) x.push_back(i / 4.0);
  KeepWeights probe;
  const std::vector<double> y = IdentityAttention(4, 2, x, &probe);
  std::vector<double> weights;
  const std::vector<double> head0 = OneHead({x[0], x[1], x[4], x[5]}, 2, &weights);
  const std::vector<double> head1 = OneHead({x[2], x[3], x[6], x[7]}, 2, &weights);
  EXPECT_LT(RelativeError(probe.kept, weights), 1e-14);
  EXPECT_LT(RelativeError(y, {head0[0], head0[1], head1[0], head1[1], head0[2], head0[3], head1[2], head1[3]}), 1e-14);
  EXPECT_EQ(probe.path, "block");
  EXPECT_EQ(probe.heads, 2);
}

TEST(AttentionLayer, ScoresAreDividedByTheRootOfTheHeadWidth) {
  // Width 4, two heads: query [2, 0] against keys [2, 0] and [0, 0] in head 0. Scores 4 / sqrt(2) and 0.
  KeepWeights probe;
  IdentityAttention(4, 2, {2, 0, 0, 0, 0, 0, 0, 0}, &probe);
  EXPECT_NEAR(probe.kept[0], 0.944193, 1e-6);
  EXPECT_NEAR(probe.kept[1], 0.055807, 1e-6);
}

TEST(AttentionLayer, AProbeChangesNothing) {
  const std::vector<double> x = {1, -2, 0.5, 3, 0, 1, 1, 0};
  KeepWeights probe;
  EXPECT_LT(RelativeError(IdentityAttention(4, 1, x, &probe), IdentityAttention(4, 1, x, nullptr)), 1e-14);
}

TEST(AttentionLayer, HeadCountsThatDoNotDivideAreRefusedNamingBothValues) {
  Parameters parameters;
  Builder builder = Builder(&parameters).Sub("decoder.0.self_attention");
  AttentionConfig config;
  config.d_model = 10;
  config.heads = 3;
  const auto uneven = SelfAttention::Create(builder, config);
  EXPECT_TRUE(absl::IsInvalidArgument(uneven.status()));
  EXPECT_EQ(uneven.status().message(), "decoder.0.self_attention: d_model = 10 is not divisible by heads = 3");
  config.d_model = 12;
  config.heads = 4;
  config.kv_heads = 3;
  const auto groups = CrossAttention::Create(builder, config);
  EXPECT_TRUE(absl::IsInvalidArgument(groups.status()));
  EXPECT_EQ(groups.status().message(), "decoder.0.self_attention: heads = 4 is not divisible by kv_heads = 3");
  EXPECT_TRUE(parameters.list().empty());
}

TEST(AttentionLayerDeathTest, CrossAttentionNeedsAMemory) {
  const LayerRig rig("cross_attention", {});
  Context context(rig.parameters);
  context.Begin(Tensor(), {});
  const LayerInput input = MakeInput({1}, {2}, 12);
  context.sequences = input.sequences;
  const Variable x = context.tape().Constant(Fill(&context.tape(), DType::kF32, input.x, 12));
  EXPECT_DEATH(rig.layer->Forward(context, x), "cross attention without a memory");
}

}  // namespace
}  // namespace weft
