// FeedForward: down(dropout(activation(up(x)))), position by position (Vaswani et al. 2017, section 3.3, eq. 2).
#ifndef WEFT_LAYERS_FEED_FORWARD_H_
#define WEFT_LAYERS_FEED_FORWARD_H_

#include <memory>
#include <string>

#include "layers/dropout.h"
#include "layers/layer.h"
#include "layers/linear.h"

namespace weft {

class FeedForward : public Layer {
 public:
  struct Config {
    int64_t d_model = 0;
    int64_t hidden = 0;  // 0: 4 * d_model
    std::string activation = "gelu";
    bool bias = true;
    double hidden_dropout = 0;
    void Fields(FieldVisitor& v);
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  // REQUIRES: config.hidden > 0; Create fills in the default.
  FeedForward(const Builder& builder, const Config& config);
  // [N, D] -> [N, D]. Parameters: up.weight [F, D], up.bias [F], down.weight [D, F], down.bias [D].
  Variable Forward(Context& context, Variable x) const override;

 private:
  LinearLayer up_, down_;
  DropoutLayer dropout_;
  Variable (*activation_)(Variable);
};

// The op of "relu", "gelu", "gelu_tanh" or "silu". REQUIRES: one of these.
Variable (*ActivationOp(absl::string_view name))(Variable);

}  // namespace weft

#endif  // WEFT_LAYERS_FEED_FORWARD_H_
