#include "layers/add_norm.h"

#include "layers/norm.h"

namespace weft {

AddNorm::AddNorm(const Builder& block, const std::string& name, const AddNormConfig& config, std::unique_ptr<Layer> sublayer)
    : Layer(block.Sub(name)),
      pre_(config.place == "pre"),
      norm_(MakeNorm(block.Sub(name + "_norm"), config.kind, config.d_model, config.bias, config.norm_eps)),
      sublayer_(std::move(sublayer)),
      dropout_(block.Sub(name + "_dropout"), config.dropout) {
  WEFT_CHECK(pre_ || config.place == "post") << "norm place " << config.place;
}

Variable AddNorm::Forward(Context& context, Variable x) const {
  const Variable y = sublayer_->Forward(context, pre_ ? norm_->Forward(context, x) : x);
  const Variable sum = Add(x, context.tape().LastUse(dropout_.Forward(context, y)));
  return pre_ ? sum : norm_->Forward(context, sum);
}

}  // namespace weft
