// A layer as a user would write it, with an op of its own, and without support for cached decoding: y_t = gain * (the mean of
// x_0 .. x_t), or of the whole sequence when not causal. The gain starts at 0, so that in a model the layer changes nothing.
#include "layers/layer.h"

namespace weft {
namespace {

// x [N, D] -> [N, D]; row t of a sequence is the mean of its rows up to t (causal), or of all.
Variable RunningMean(Variable x, Sequences sequences, bool causal) {
  Op op("running_mean", {x});
  const Variable y = op.Output(x.dtype(), x.shape());
  const Sequences kept = op.tape().Copy(sequences);
  const int64_t width = x.shape()[1];
  const auto last = [causal](const Sequence& s, int32_t t) { return causal ? t : s.length - 1; };
  y.value().Zero();
  for (const Sequence& s : kept) {
    for (int32_t t = 0; t < s.length; ++t) {
      for (int64_t d = 0; d < width; ++d) {
        double sum = 0;
        for (int32_t u = 0; u <= last(s, t); ++u) sum += x.value().At((s.start + u) * width + d);
        y.value().Set((s.start + t) * width + d, sum / (last(s, t) + 1));
      }
    }
  }
  op.Backward([=](Gradients& g) {
    const Tensor dx = g.Into(x), dy = g.Of(y);
    if (!dx.defined()) return;
    for (const Sequence& s : kept) {
      for (int32_t t = 0; t < s.length; ++t) {
        for (int32_t u = 0; u <= last(s, t); ++u) {
          for (int64_t d = 0; d < width; ++d) {
            const int64_t to = (s.start + u) * width + d;
            dx.Set(to, dx.At(to) + dy.At((s.start + t) * width + d) / (last(s, t) + 1));
          }
        }
      }
    }
  });
  return y;
}

class RunningMeanLayer : public Layer {
 public:
  struct Config {
    int64_t d_model = 0;
    void Fields(FieldVisitor& v) { v.Visit("d_model", d_model, {.min = 1}, "width"); }
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config) {
    return std::make_unique<RunningMeanLayer>(builder, config);
  }

  RunningMeanLayer(Builder builder, const Config& config)
      : Layer(builder), gain_(builder.Parameter("gain", {config.d_model}, Init::Zeros())) {}
  Variable Forward(Context& context, Variable x) const override {
    return Mul(RunningMean(x, context.sequences, context.causal), context.Get(gain_));
  }

 private:
  ParameterRef gain_;
};

WEFT_REGISTER_LAYER(RunningMeanLayer, "test_running_mean", "the mean of the tokens so far", .decodes_with_state = false);

}  // namespace
}  // namespace weft
