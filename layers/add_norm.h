// AddNorm: a sublayer f with its residual connection and norm, the unit of which blocks are made.
//   post (Vaswani et al. 2017, section 3.1):   y = norm(x + dropout(f(x)))
//   pre  (Xiong et al. 2020, table 1):         y = x + dropout(f(norm(x)))
#ifndef WEFT_LAYERS_ADD_NORM_H_
#define WEFT_LAYERS_ADD_NORM_H_

#include <memory>
#include <string>

#include "layers/dropout.h"
#include "layers/layer.h"

namespace weft {

struct AddNormConfig {
  int64_t d_model = 0;
  std::string kind = "layer";  // layer | rms
  std::string place = "pre";   // pre | post
  double norm_eps = 1e-5;
  bool bias = true;    // of a layer norm
  double dropout = 0;  // on f's output, before the addition
};

class AddNorm : public Layer {
 public:
  // The norm's parameters are at `builder`'s path + "_norm", so that they never meet a name inside the sublayer.
  AddNorm(const Builder& block, const std::string& name, const AddNormConfig& config, std::unique_ptr<Layer> sublayer);
  Variable Forward(Context& context, Variable x) const override;
  int64_t max_length() const override { return sublayer_->max_length(); }

 private:
  bool pre_;
  std::unique_ptr<Layer> norm_, sublayer_;
  DropoutLayer dropout_;
};

}  // namespace weft

#endif  // WEFT_LAYERS_ADD_NORM_H_
