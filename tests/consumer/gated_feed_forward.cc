// A layer of one's own, in one file: down(silu(gate(x)) * up(x)), the gated feed-forward of Shazeer 2020 ("GLU Variants Improve
// Transformer", eq. 6: FFN_SwiGLU). In a config: { type = "gated_feed_forward", hidden = 64 }.
#include "layers/layer.h"
#include "layers/linear.h"
#include "silu_gate.h"

namespace consumer {

class GatedFeedForward : public weft::Layer {
 public:
  struct Config {
    int64_t d_model = 0;
    int64_t hidden = 0;
    bool bias = true;
    void Fields(weft::FieldVisitor& v) {
      v.Visit("d_model", d_model, {.min = 1}, "width of input and output");
      v.Visit("hidden", hidden, {.min = 1, .max = 1 << 24}, "width between the maps");
      v.Visit("bias", bias, "biases in all three maps");
    }
  };
  static absl::StatusOr<std::unique_ptr<weft::Layer>> Create(weft::Builder& builder, const Config& config) {
    return std::make_unique<GatedFeedForward>(builder, config);
  }

  GatedFeedForward(const weft::Builder& builder, const Config& config)
      : Layer(builder),
        gate_(builder.Sub("gate"), config.d_model, config.hidden, config.bias),
        up_(builder.Sub("up"), config.d_model, config.hidden, config.bias),
        down_(builder.Sub("down"), config.hidden, config.d_model, config.bias, /*residual=*/true) {}

  weft::Variable Forward(weft::Context& context, weft::Variable x) const override {
    return down_.Forward(context, SiluGate(gate_.Forward(context, x), up_.Forward(context, x)));
  }

 private:
  weft::LinearLayer gate_, up_, down_;
};

WEFT_REGISTER_LAYER(GatedFeedForward, "gated_feed_forward", "down(silu(gate(x)) * up(x))");

}  // namespace consumer
