#include "layers/positions.h"

#include <cmath>

namespace weft {

void LearnedPositions::Config::Fields(FieldVisitor& v) {
  v.Visit("d_model", d_model, {.min = 1}, "width");
  v.Visit("max_positions", max_positions, {.min = 1, .max = 1 << 20}, "rows of the table: the longest sequence, in tokens");
}

absl::StatusOr<std::unique_ptr<Layer>> LearnedPositions::Create(Builder& builder, const Config& config) {
  return std::make_unique<LearnedPositions>(builder, config);
}

LearnedPositions::LearnedPositions(Builder builder, const Config& config)
    : Layer(builder), max_positions_(config.max_positions) {
  table_ = builder.Parameter("weight", {config.max_positions, config.d_model}, Init::Normal(0.02));
}

Variable LearnedPositions::Forward(Context& context, Variable x) const {
  const Tensor ids = context.tape().Allocate(DType::kI32, {x.shape()[0]});
  ids.Zero();
  for (const Sequence& s : context.sequences) {
    for (int32_t t = 0; t < s.length; ++t) ids.data<int32_t>()[s.start + t] = s.position + t;
  }
  return Add(GatherRows(context.Get(table_), ids.span<int32_t>()), context.tape().LastUse(x));
}

void SinusoidalPositions::Config::Fields(FieldVisitor& v) { v.Visit("d_model", d_model, {.min = 1}, "width"); }

absl::StatusOr<std::unique_ptr<Layer>> SinusoidalPositions::Create(Builder& builder, const Config& config) {
  return std::make_unique<SinusoidalPositions>(builder, config);
}

SinusoidalPositions::SinusoidalPositions(const Builder& builder, const Config& config) : Layer(builder) {
  for (int64_t i = 0; i < config.d_model; i += 2)
    frequencies_.push_back(std::exp(-std::log(10000.0) * static_cast<double>(i) / static_cast<double>(config.d_model)));
}

Variable SinusoidalPositions::Forward(Context& context, Variable x) const {
  const int64_t width = x.shape()[1];
  const Tensor table = context.tape().Allocate(x.dtype(), x.shape());
  table.Zero();
  DispatchFloat("sinusoidal_positions", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (const Sequence& s : context.sequences) {
      for (int32_t t = 0; t < s.length; ++t) {
        T* row = table.data<T>() + (s.start + t) * width;
        for (int64_t i = 0; i < width; i += 2) {
          const double angle = (s.position + t) * frequencies_[i / 2];
          row[i] = static_cast<T>(std::sin(angle));
          if (i + 1 < width) row[i + 1] = static_cast<T>(std::cos(angle));
        }
      }
    }
  });
  return Add(context.tape().Constant(table), context.tape().LastUse(x));
}

WEFT_REGISTER_LAYER(LearnedPositions, "learned_positions", "adds a learned vector for each position");
WEFT_REGISTER_LAYER(SinusoidalPositions, "sinusoidal_positions", "adds sines and cosines of the position");

}  // namespace weft
