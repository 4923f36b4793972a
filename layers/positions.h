// Positions added to embeddings: x + P[position of the token]. Learned: P is a parameter (Gehring et al. 2017). Sinusoidal:
// P[p, 2i] = sin(p / 10000^(2i / D)), P[p, 2i + 1] = cos of the same (Vaswani et al. 2017, section 3.5); for odd D the last
// column is a sine.
#ifndef WEFT_LAYERS_POSITIONS_H_
#define WEFT_LAYERS_POSITIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"

namespace weft {

class LearnedPositions : public Layer {
 public:
  struct Config {
    int64_t d_model = 0;
    int64_t max_positions = 1024;
    void Fields(FieldVisitor& v);
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  LearnedPositions(Builder builder, const Config& config);
  // REQUIRES: every position < max_positions.
  Variable Forward(Context& context, Variable x) const override;
  int64_t max_length() const override { return max_positions_; }

 private:
  int64_t max_positions_;
  ParameterRef table_;
};

class SinusoidalPositions : public Layer {
 public:
  struct Config {
    int64_t d_model = 0;
    void Fields(FieldVisitor& v);
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  SinusoidalPositions(const Builder& builder, const Config& config);
  Variable Forward(Context& context, Variable x) const override;

 private:
  std::vector<double> frequencies_;  // 10000^(-2i / D) of column pair i
};

}  // namespace weft

#endif  // WEFT_LAYERS_POSITIONS_H_
