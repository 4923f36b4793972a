// Builder: how a layer gets its parameters. A builder stands for a place in the model ("encoder.0.self_attention"); Sub goes
// one step down. The same constructor code thus declares, names and sizes parameters; values come later (Parameters::Allocate).
#ifndef WEFT_LAYERS_BUILDER_H_
#define WEFT_LAYERS_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "layers/parameters.h"

namespace weft {

// How linear maps start: kXavier draws by Init::Xavier; kGpt2 is Normal(0.02), with maps that write into the residual stream
// divided by sqrt(2 * layers) (Radford et al. 2019, section 2.3).
struct InitScheme {
  enum class Kind : uint8_t { kXavier, kGpt2 };
  Kind kind = Kind::kXavier;
  int64_t layers = 1;  // blocks whose outputs add up in one residual stream
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
  // The weight [out, in] of a linear map by the model's scheme. `residual`: the map writes into the residual stream.
  ParameterRef Weight(absl::string_view name, int64_t out, int64_t in, bool residual = false);
  // Several weights [out_i, in] (names "q.weight", "k.weight" ...) that are stored on top of each other, so that one product
  // computes all of them: the handle is their [sum of out_i, in] matrix, while checkpoints see each under its own name. Each is
  // drawn as on its own.
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
