#include "layers/feed_forward.h"

namespace weft {

Variable (*ActivationOp(absl::string_view name))(Variable) {
  if (name == "relu") return Relu;
  if (name == "gelu") return Gelu;
  if (name == "gelu_tanh") return GeluTanh;
  WEFT_CHECK(name == "silu") << "activation " << std::string(name);
  return Silu;
}

void FeedForward::Config::Fields(FieldVisitor& v) {
  v.Visit("d_model", d_model, {.min = 1}, "width of input and output");
  v.Visit("hidden", hidden, {.min = 0, .max = 1 << 24}, "hidden width; 0 is 4 * d_model");
  v.Choice("activation", activation, {"relu", "gelu", "gelu_tanh", "silu"}, "the non-linearity");
  v.Visit("bias", bias, "biases in both maps");
  VisitDropout(v, "hidden_dropout", hidden_dropout, "dropout after the non-linearity");
}

absl::StatusOr<std::unique_ptr<Layer>> FeedForward::Create(Builder& builder, const Config& config) {
  Config resolved = config;
  if (resolved.hidden == 0) resolved.hidden = 4 * resolved.d_model;
  return std::make_unique<FeedForward>(builder, resolved);
}

FeedForward::FeedForward(const Builder& builder, const Config& config)
    : Layer(builder),
      up_(builder.Sub("up"), config.d_model, config.hidden, config.bias),
      down_(builder.Sub("down"), config.hidden, config.d_model, config.bias, true),
      dropout_(builder.Sub("dropout"), config.hidden_dropout),
      activation_(ActivationOp(config.activation)) {}

Variable FeedForward::Forward(Context& context, Variable x) const {
  const Variable hidden = activation_(context.tape().LastUse(up_.Forward(context, x)));
  return down_.Forward(context, dropout_.Forward(context, hidden));
}

WEFT_REGISTER_LAYER(FeedForward, "feed_forward", "two linear maps with a non-linearity between them");

}  // namespace weft
