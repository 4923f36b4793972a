// Transformer: the model of a config. Three families out of the same parts: encoder_decoder (Vaswani et al. 2017), decoder (a
// causal language model), encoder (a classifier: pooled token vectors and a class head). A block is an ordered list of
// sublayers, each in an AddNorm. Immutable once created; Forward functions are const and run on several threads at once, each
// with its own Context.
#ifndef WEFT_LAYERS_TRANSFORMER_H_
#define WEFT_LAYERS_TRANSFORMER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/ops.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/layer.h"
#include "layers/transformer_config.h"

namespace weft {

// What the data decides about a model.
struct ModelSizes {
  int64_t source_vocabulary = 0;   // encoder families
  int64_t target_vocabulary = 0;   // decoder families
  int64_t classes = 0;             // encoder
  bool shared_vocabulary = false;  // source and target ids mean the same symbols
};

// The ids of a shard, laid end to end; which fields are used depends on the family.
struct ModelInput {
  absl::Span<const int32_t> source_ids;
  Sequences source;
  absl::Span<const int32_t> target_ids;
  Sequences target;
  absl::Span<const int32_t> labels;  // one per target token (decoder families) or per sequence (encoder)
};

class Transformer {
 public:
  // Declares all parameters in `parameters` (call its Allocate afterwards). InvalidArgument for a sublayer's bad options, or
  // for tied embeddings whose vocabularies differ.
  static absl::StatusOr<std::unique_ptr<Transformer>> Create(const TransformerConfig& config, const ModelSizes& sizes,
                                                             Parameters* parameters);

  // The summed cross entropy of a shard. `context` has been begun for this pass.
  CrossEntropyResult Loss(Context& context, const ModelInput& input, double label_smoothing) const;

  // The encoder's output [N, D] for source tokens. REQUIRES: a family with an encoder.
  Variable Encode(Context& context, absl::Span<const int32_t> ids, Sequences sequences) const;
  // The decoder's last hidden state [N, D] for target tokens; context.memory (and memory_sequences, memory_of) must be set for
  // encoder_decoder; context.state may be. REQUIRES: a family with a decoder.
  Variable Decode(Context& context, absl::Span<const int32_t> ids, Sequences sequences) const;
  // Scores of the next token [N, V] for hidden states [N, D].
  Variable Logits(Context& context, Variable hidden) const;
  // Class scores [number of sequences, classes]. REQUIRES: family encoder.
  Variable ClassLogits(Context& context, absl::Span<const int32_t> ids, Sequences sequences) const;

  const TransformerConfig& config() const { return config_; }
  const ModelSizes& sizes() const { return sizes_; }
  // Whether every layer of the decoder can go on from cached tokens; if not, decoding computes the whole prefix again.
  bool decodes_with_state() const { return decodes_with_state_; }
  // The longest sequence the model can take, in tokens; 0: any.
  int64_t max_length() const { return max_length_; }
  // FailedPrecondition, naming both lengths, when a sequence of `length` tokens is longer than that. `what` names the sequence.
  absl::Status CheckLength(int64_t length, absl::string_view what) const;

 private:
  // Blocks with what comes before and after them.
  struct Stack {
    std::unique_ptr<Layer> positions;  // null: none
    std::unique_ptr<DropoutLayer> dropout;
    std::vector<std::unique_ptr<Layer>> layers;  // AddNorms of all blocks in order
    std::unique_ptr<Layer> norm;                 // pre-norm only
  };

  Transformer(const TransformerConfig& config, const ModelSizes& sizes) : config_(config), sizes_(sizes) {
    config_.FillDefaults();
  }
  absl::Status Build(Parameters* parameters);
  absl::Status BuildStack(Builder builder, int64_t blocks, const std::vector<SublayerSpec>& specs, Stack* stack);
  Variable Run(const Stack& stack, Context& context, Variable embedded) const;
  bool Tied(absl::string_view side) const;
  // Lowers max_length_ to what `layer` can take.
  void LimitLength(const Layer& layer);

  TransformerConfig config_;
  ModelSizes sizes_;
  std::unique_ptr<Embedding> source_, target_;
  Stack encoder_, decoder_;
  ParameterRef output_, output_bias_;  // head of tokens (no bias) or of classes
  bool decodes_with_state_ = true;
  int64_t max_length_ = 0;
};

}  // namespace weft

#endif  // WEFT_LAYERS_TRANSFORMER_H_
