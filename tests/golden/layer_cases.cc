// Whole encoder and decoder layers: attention and feed-forward in their AddNorms. The case's name says where the norm is and
// which activation ("encoder_layer_pre_norm_gelu"); eps is PyTorch's default.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "layers/add_norm.h"
#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "tests/golden/golden_case.h"

namespace weft::golden {
namespace {

// PyTorch's name of a tensor, and ours.
using Names = std::vector<std::pair<std::string, std::string>>;

// All but the packed projections.
Names PlainNames(bool decoder) {
  Names modules = {{"self_attn.out_proj", "self_attention.o"},
                   {"linear1", "feed_forward.up"},
                   {"linear2", "feed_forward.down"},
                   {"norm1", "self_attention_norm"}};
  if (decoder) {
    modules.insert(
        modules.end(),
        {{"multihead_attn.out_proj", "cross_attention.o"}, {"norm2", "cross_attention_norm"}, {"norm3", "feed_forward_norm"}});
  } else {
    modules.push_back({"norm2", "feed_forward_norm"});
  }
  Names names;
  for (const auto& [theirs, ours] : modules) {
    for (const char* what : {".weight", ".bias"}) names.push_back({theirs + what, ours + what});
  }
  return names;
}

}  // namespace

void RunEncoderOrDecoderLayer(const Case& c, bool decoder) {
  const bool pre = absl::StrContains(c.name, "pre_norm"), post = absl::StrContains(c.name, "post_norm");
  ASSERT_NE(pre, post) << c.name << ": the name says neither pre_norm nor post_norm";
  const bool relu = absl::StrContains(c.name, "_relu"), gelu = absl::StrContains(c.name, "_gelu");
  ASSERT_NE(relu, gelu) << c.name << ": the name says neither relu nor gelu";

  const Values input = c.Read("input");
  const int64_t batch = input.dim(0), width = input.dim(2);
  const std::vector<int64_t> lengths = LengthsOr(c, "lengths", batch, input.dim(1));
  const Values memory = decoder ? c.Read("memory") : Values{};
  const std::vector<int64_t> memory_lengths = decoder ? LengthsOr(c, "memory_lengths", batch, memory.dim(1)) : lengths;
  const std::vector<Sequence> sequences = EndToEnd(lengths), memory_sequences = EndToEnd(memory_lengths);
  const DType type = c.TypeOf("input");
  const double tolerance = ToleranceOf(type);
  ExpectZeroAtPadding("upstream", c.Read("upstream"), lengths);

  Parameters parameters;
  Builder root(&parameters);
  const AddNormConfig add_norm{width, "layer", pre ? "pre" : "post", 1e-5, true, 0};
  std::vector<std::unique_ptr<Layer>> layers;
  const auto wrap = [&](const char* name, absl::StatusOr<std::unique_ptr<Layer>> sublayer) {
    ASSERT_TRUE(sublayer.ok()) << sublayer.status();
    layers.push_back(std::make_unique<AddNorm>(root, name, add_norm, *std::move(sublayer)));
  };
  AttentionConfig attention;
  attention.d_model = width;
  attention.heads = c.integers.at("heads");
  Builder self = root.Sub("self_attention"), cross = root.Sub("cross_attention"), feed = root.Sub("feed_forward");
  wrap("self_attention", SelfAttention::Create(self, attention));
  if (decoder) wrap("cross_attention", CrossAttention::Create(cross, attention));
  FeedForward::Config feed_forward;
  feed_forward.d_model = width;
  feed_forward.hidden = c.Read("param.linear1.weight").dim(0);
  feed_forward.activation = relu ? "relu" : "gelu";
  wrap("feed_forward", FeedForward::Create(feed, feed_forward));
  parameters.Allocate(type, 1);

  // Packed projections: theirs and ours.
  Names packed = {{"self_attn", "self_attention"}};
  if (decoder) packed.push_back({"multihead_attn", "cross_attention"});
  const char* parts[] = {"q", "k", "v"};
  for (const auto& [theirs, ours] : packed) {
    for (const char* what : {"weight", "bias"}) {
      const auto cut = CutInThree(c.Read(absl::StrCat("param.", theirs, ".in_proj_", what)));
      for (int i = 0; i < 3; ++i) SetParameter(&parameters, absl::StrCat(ours, ".", parts[i], ".", what), cut[i]);
    }
  }
  const Names plain = PlainNames(decoder);
  for (const auto& [theirs, ours] : plain) SetParameter(&parameters, ours, c.Read("param." + theirs).v);
  int64_t in_case = 0;
  for (const std::string& name : c.TensorNames()) in_case += absl::StartsWith(name, "param.");
  ASSERT_EQ(in_case, static_cast<int64_t>(plain.size() + 2 * packed.size()))
      << "the case has parameters that the test does not map";

  const Slab gradients(type, parameters.slab_size());
  Context context(parameters);
  context.Begin(gradients.tensor(), {});
  context.sequences = sequences;
  context.causal = decoder;
  const Variable x = InputOf(&context.tape(), type, RealRows(input, lengths), {RowsOf(sequences), width});
  if (decoder) {
    context.memory = InputOf(&context.tape(), type, RealRows(memory, memory_lengths), {RowsOf(memory_sequences), width});
    context.memory_sequences = memory_sequences;
  }
  Variable y = x;
  for (const auto& layer : layers) y = layer->Forward(context, y);
  const Variable upstream = InputOf(&context.tape(), type, RealRows(c.Read("upstream"), lengths), y.shape());
  context.tape().Backward(y, upstream.value());

  ExpectNear("output", ToDoubles(y.value()), RealRows(c.Read("output"), lengths), tolerance);
  ExpectNear("grad.input", ToDoubles(context.tape().Gradient(x)), RealRows(c.Read("grad.input"), lengths), tolerance);
  if (decoder) {
    ExpectNear("grad.memory", ToDoubles(context.tape().Gradient(context.memory)),
               RealRows(c.Read("grad.memory"), memory_lengths), tolerance);
  }
  const auto gradient = [&](const std::string& name) {
    return ToDoubles(Parameters::In(gradients.tensor(), parameters.list()[parameters.Find(name)]));
  };
  for (const auto& [theirs, ours] : plain) {
    ExpectNear("grad." + theirs, gradient(ours), c.Read("grad." + theirs).v, tolerance);
  }
  for (const auto& [theirs, ours] : packed) {
    for (const char* what : {"weight", "bias"}) {
      std::vector<double> together;
      for (const char* part : parts) {
        const std::vector<double> g = gradient(absl::StrCat(ours, ".", part, ".", what));
        together.insert(together.end(), g.begin(), g.end());
      }
      const std::string name = absl::StrCat("grad.", theirs, ".in_proj_", what);
      ExpectNear(name, together, c.Read(name).v, tolerance);
    }
  }
}

}  // namespace weft::golden
