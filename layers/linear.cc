#include "layers/linear.h"

#include "absl/strings/str_cat.h"

namespace weft {

void LinearLayer::Config::Fields(FieldVisitor& v) {
  v.Visit("d_model", d_model, {.min = 1}, "width of input and output");
  v.Visit("bias", bias, "add a bias");
}

absl::StatusOr<std::unique_ptr<Layer>> LinearLayer::Create(Builder& builder, const Config& config) {
  return std::make_unique<LinearLayer>(builder, config.d_model, config.d_model, config.bias, true);
}

LinearLayer::LinearLayer(const Builder& builder, int64_t in, int64_t out, bool bias, bool residual) : Layer(builder) {
  Builder here = builder;
  weight_ = here.Weight("weight", out, in, residual);
  if (bias) bias_ = here.Parameter("bias", {out}, Init::Zeros());
}

Variable LinearLayer::Forward(Context& context, Variable x) const {
  const Tape::Scope scope(context.tape(), path());
  return Linear(x, context.Get(weight_), context.Get(bias_));
}

LinearStack::LinearStack(Builder builder, int64_t in, absl::Span<const std::pair<std::string, int64_t>> maps, bool bias) {
  std::vector<std::pair<std::string, int64_t>> weights, biases;
  for (const auto& [name, out] : maps) {
    weights.emplace_back(absl::StrCat(name, ".weight"), out);
    biases.emplace_back(absl::StrCat(name, ".bias"), out);
  }
  weight_ = builder.StackedWeights(weights, in);
  if (bias) bias_ = builder.StackedBiases(biases);
}

Variable LinearStack::Forward(Context& context, Variable x) const {
  return Linear(x, context.Get(weight_), context.Get(bias_));
}

WEFT_REGISTER_LAYER(LinearLayer, "linear", "y = x W^T + b, d_model to d_model");

}  // namespace weft
