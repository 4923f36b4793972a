// Gradient checks of layers and whole models, for `weft gradcheck` and for users' own programs: the gradients of Backward
// against central differences of the same forward code, in f64, with ragged sequences and frozen dropout (see
// autograd/grad_check.h for what counts as an error). Entries are named by the path of the parameter, with the variant in
// parentheses: "self_attention.q.weight (causal, kv_heads = 1)"; the input and the memory of a layer are entries too. Pure
// functions: everything they need is made for the check and dropped.
#ifndef WEFT_LAYERS_LAYER_CHECK_H_
#define WEFT_LAYERS_LAYER_CHECK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "autograd/grad_check.h"
#include "layers/context.h"
#include "layers/layer.h"
#include "layers/transformer_config.h"

namespace weft {

// Checks any forward code: the gradients that reach every parameter, and every one of `inputs` (f64 tensors, written to during
// the check and restored). `forward` gets a context in training mode, always begun with the same random key, and one Variable
// an input; it returns an f64 value of any shape. The loss is the weighted sum of that value's elements, with random weights of
// the elements' own signs, so that the loss is no sum of large terms that cancel. REQUIRES: parameters are allocated as f64.
GradCheckReport CheckForward(Parameters* parameters, absl::Span<const NamedTensor> inputs,
                             absl::FunctionRef<Variable(Context& context, absl::Span<const Variable> inputs)> forward,
                             const GradCheckOptions& options = {});

// Checks a registered type of layer with small odd sizes, looking ahead and causal, and then in variants found from its own
// Fields: each switch turned over, each other word of a choice, each key that ends in "dropout" at 0.3; layers with kv_heads
// also grouped. Variants whose options the layer refuses are left out; an error of the plain form is returned.
absl::StatusOr<GradCheckReport> CheckLayer(const LayerType& type, const GradCheckOptions& options = {});

// Checks the model of a config, shrunk (at most 2 blocks a side, a few numbers a head, vocabularies of about 10 symbols) with
// its structure kept: family, heads, norms, tied matrices, activation, positions, pooling, sublayers, the user's own included,
// and dropout. Random ids, ragged sequences, label smoothing 0.1. One entry a parameter. InvalidArgument where
// Transformer::Create refuses the shrunk model.
absl::StatusOr<GradCheckReport> CheckModel(const TransformerConfig& config, const GradCheckOptions& options = {});
// The config that CheckModel checks.
TransformerConfig ShrinkForCheck(const TransformerConfig& config);

// A check under a name.
struct NamedCheck {
  std::string name;
  std::function<absl::StatusOr<GradCheckReport>(const GradCheckOptions&)> run;
};
// All registered layers by name, users' own included, then add_norm and embedding.
std::vector<NamedCheck> LayerChecks();

}  // namespace weft

#endif  // WEFT_LAYERS_LAYER_CHECK_H_
