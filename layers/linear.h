// LinearLayer: y = x W^T + b, W [out, in]. As a type of layer ("linear") it maps d_model to d_model; other layers use it for
// their projections. LinearStack: several linear maps of the same input, computed by one product (the packed projections of
// attention).
#ifndef WEFT_LAYERS_LINEAR_H_
#define WEFT_LAYERS_LINEAR_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "layers/layer.h"

namespace weft {

class LinearLayer : public Layer {
 public:
  struct Config {
    int64_t d_model = 0;
    bool bias = true;
    void Fields(FieldVisitor& v);
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  // in -> out, with or without bias. `residual`: the result is added to the residual stream (see InitScheme).
  LinearLayer(const Builder& builder, int64_t in, int64_t out, bool bias, bool residual = false);
  // x [..., in] -> [..., out].
  Variable Forward(Context& context, Variable x) const override;

 private:
  ParameterRef weight_, bias_;
};

class LinearStack {
 public:
  // Maps named e.g. {"q", out_q}, {"k", out_k}: parameters path.q.weight [out_q, in], path.q.bias [out_q] ...
  LinearStack(Builder builder, int64_t in, absl::Span<const std::pair<std::string, int64_t>> maps, bool bias);
  // x [..., in] -> [..., sum of outs]: the results side by side.
  Variable Forward(Context& context, Variable x) const;

 private:
  ParameterRef weight_, bias_;
};

}  // namespace weft

#endif  // WEFT_LAYERS_LINEAR_H_
