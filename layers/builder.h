// Builder: how a layer gets its parameters. A builder stands for a place in the model ("encoder.0.self_attention"); Sub goes
// one step down. The same constructor code thus declares, names and sizes parameters; values come later (Parameters::Allocate).
#ifndef WEFT_LAYERS_BUILDER_H_
#define WEFT_LAYERS_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "layers/parameters.h"

namespace weft {

// How the weights [out, in] of linear maps start:
//   xavier           uniform, a = sqrt(6 / (in + out)) (Glorot, Bengio 2010, eq. 16)
//   xavier_normal    std = sqrt(2 / (in + out)) (the same, eq. 12)
//   kaiming_uniform  uniform, a = sqrt(6 / in): variance 2 / in as kaiming_normal
//   kaiming_normal   std = sqrt(2 / in) (He et al. 2015, eq. 10)
//   normal           std = InitScheme::std
//   gpt2             std = 0.02; maps that write into the residual stream: divided by sqrt(2 layers) (Radford et al. 2019,
//                    section 2.3)
struct InitScheme {
  enum class Kind : uint8_t { kXavier, kXavierNormal, kKaimingUniform, kKaimingNormal, kNormal, kGpt2 };
  Kind kind = Kind::kXavier;
  int64_t layers = 1;  // blocks whose outputs add up in one residual stream
  double std = 0.02;   // of kNormal

  // The names above, in the order of Kind.
  static absl::Span<const absl::string_view> Names();
  // REQUIRES: one of Names().
  static Kind Named(absl::string_view name);
};

class Builder {
 public:
  // `parameters` must outlive the builder.
  explicit Builder(Parameters* parameters, InitScheme scheme = {}) : parameters_(parameters), scheme_(scheme) {}

  // The builder of a part of this layer; `name` is one path element.
  Builder Sub(absl::string_view name) const;
  // "encoder.0.self_attention"; empty at the root.
  const std::string& path() const { return path_; }

  // A parameter called path().name.
  ParameterRef Parameter(absl::string_view name, const Shape& shape, Init init);
  // The weight [out, in] of a linear map by the model's scheme, `hidden` (ParameterInfo). `residual`: the map writes into the
  // residual stream.
  ParameterRef Weight(absl::string_view name, int64_t out, int64_t in, bool residual = false);
  // The same for the last map, from features to `out` classes, which is not `hidden` (ParameterInfo).
  ParameterRef HeadWeight(absl::string_view name, int64_t out, int64_t in);
  // Several weights [out_i, in] (names "q.weight", "k.weight" ...) that are stored on top of each other, so that one product
  // computes all of them: the handle is their [sum of out_i, in] matrix, while checkpoints see each under its own name. Each is
  // drawn as on its own, and is `hidden`.
  ParameterRef StackedWeights(absl::Span<const std::pair<std::string, int64_t>> names_and_rows, int64_t in);
  // The same for biases: vectors of zeros, stacked.
  ParameterRef StackedBiases(absl::Span<const std::pair<std::string, int64_t>> names_and_rows);

 private:
  std::string Path(absl::string_view name) const;
  Init WeightInit(int64_t out, int64_t in, bool residual) const;

  Parameters* parameters_;
  InitScheme scheme_;
  std::string path_;
};

}  // namespace weft

#endif  // WEFT_LAYERS_BUILDER_H_
