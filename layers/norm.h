// Normalisation over the width D of each token: LayerNorm (Ba, Kiros, Hinton 2016) and RMSNorm (Zhang and Sennrich 2019).
// Scales start at 1, biases at 0.
#ifndef WEFT_LAYERS_NORM_H_
#define WEFT_LAYERS_NORM_H_

#include <memory>
#include <string>

#include "layers/layer.h"

namespace weft {

class LayerNormLayer : public Layer {
 public:
  struct Config {
    int64_t d_model = 0;
    bool bias = true;
    double norm_eps = 1e-5;
    void Fields(FieldVisitor& v);
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  LayerNormLayer(Builder builder, const Config& config);
  Variable Forward(Context& context, Variable x) const override;

 private:
  ParameterRef weight_, bias_;
  double eps_;
};

class RmsNormLayer : public Layer {
 public:
  struct Config {
    int64_t d_model = 0;
    double norm_eps = 1e-5;
    void Fields(FieldVisitor& v);
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  RmsNormLayer(Builder builder, const Config& config);
  Variable Forward(Context& context, Variable x) const override;

 private:
  ParameterRef weight_;
  double eps_;
};

// The norm of `kind`, "layer" or "rms". REQUIRES: one of these.
std::unique_ptr<Layer> MakeNorm(const Builder& builder, absl::string_view kind, int64_t d_model, bool bias, double eps);

}  // namespace weft

#endif  // WEFT_LAYERS_NORM_H_
