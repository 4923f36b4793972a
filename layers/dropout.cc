#include "layers/dropout.h"

namespace weft {

void VisitDropout(FieldVisitor& v, absl::string_view name, double& p, absl::string_view doc) {
  v.Visit(name, p, {.min = 0, .max = 1, .max_open = true}, doc);
}

void DropoutLayer::Config::Fields(FieldVisitor& v) {
  VisitDropout(v, "dropout", dropout, "probability that an element is zeroed");
}

absl::StatusOr<std::unique_ptr<Layer>> DropoutLayer::Create(Builder& builder, const Config& config) {
  return std::make_unique<DropoutLayer>(builder, config.dropout);
}

Variable DropoutLayer::Forward(Context& context, Variable x) const {
  if (!context.training() || p_ == 0) return x;
  return Dropout(x, context.sequences, p_, context.Key(path()));
}

WEFT_REGISTER_LAYER(DropoutLayer, "dropout", "zeroes elements at random in training");

}  // namespace weft
