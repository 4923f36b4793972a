#include "layers/norm.h"

namespace weft {

void LayerNormLayer::Config::Fields(FieldVisitor& v) {
  v.Visit("d_model", d_model, {.min = 1}, "width");
  v.Visit("bias", bias, "add a bias after the scale");
  v.Visit("norm_eps", norm_eps, {.min = 0, .max = 1, .min_open = true}, "added to the variance, inside the root");
}

absl::StatusOr<std::unique_ptr<Layer>> LayerNormLayer::Create(Builder& builder, const Config& config) {
  return std::make_unique<LayerNormLayer>(builder, config);
}

LayerNormLayer::LayerNormLayer(Builder builder, const Config& config) : Layer(builder), eps_(config.norm_eps) {
  weight_ = builder.Parameter("weight", {config.d_model}, Init::Ones());
  if (config.bias) bias_ = builder.Parameter("bias", {config.d_model}, Init::Zeros());
}

Variable LayerNormLayer::Forward(Context& context, Variable x) const {
  const Tape::Scope scope(context.tape(), path());
  return LayerNorm(x, context.Get(weight_), context.Get(bias_), eps_);
}

void RmsNormLayer::Config::Fields(FieldVisitor& v) {
  v.Visit("d_model", d_model, {.min = 1}, "width");
  v.Visit("norm_eps", norm_eps, {.min = 0, .max = 1, .min_open = true}, "added to the mean square, inside the root");
}

absl::StatusOr<std::unique_ptr<Layer>> RmsNormLayer::Create(Builder& builder, const Config& config) {
  return std::make_unique<RmsNormLayer>(builder, config);
}

RmsNormLayer::RmsNormLayer(Builder builder, const Config& config) : Layer(builder), eps_(config.norm_eps) {
  weight_ = builder.Parameter("weight", {config.d_model}, Init::Ones());
}

Variable RmsNormLayer::Forward(Context& context, Variable x) const {
  const Tape::Scope scope(context.tape(), path());
  return RmsNorm(x, context.Get(weight_), eps_);
}

std::unique_ptr<Layer> MakeNorm(const Builder& builder, absl::string_view kind, int64_t d_model, bool bias, double eps) {
  WEFT_CHECK(kind == "layer" || kind == "rms") << "norm kind " << std::string(kind);
  if (kind == "rms") return std::make_unique<RmsNormLayer>(builder, RmsNormLayer::Config{d_model, eps});
  return std::make_unique<LayerNormLayer>(builder, LayerNormLayer::Config{d_model, bias, eps});
}

WEFT_REGISTER_LAYER(LayerNormLayer, "layer_norm", "scale * (x - mean) / sqrt(variance + eps) + bias over the width");
WEFT_REGISTER_LAYER(RmsNormLayer, "rms_norm", "scale * x / sqrt(mean(x^2) + eps) over the width");

}  // namespace weft
