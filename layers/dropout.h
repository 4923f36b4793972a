// DropoutLayer: inverted dropout (Srivastava et al. 2014) in training, the identity else.
#ifndef WEFT_LAYERS_DROPOUT_H_
#define WEFT_LAYERS_DROPOUT_H_

#include <memory>
#include <string>

#include "layers/layer.h"

namespace weft {

class DropoutLayer : public Layer {
 public:
  struct Config {
    double dropout = 0;
    void Fields(FieldVisitor& v);
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  DropoutLayer(const Builder& builder, double p) : Layer(builder), p_(p) {}
  Variable Forward(Context& context, Variable x) const override;

 private:
  double p_;
};

// The field that every layer with dropout has under its own name.
void VisitDropout(FieldVisitor& v, absl::string_view name, double& p, absl::string_view doc);

}  // namespace weft

#endif  // WEFT_LAYERS_DROPOUT_H_
