// TransformerConfig: the [model] section. One Fields list serves the loader, the printer and the documentation; a block's
// sublayers are an ordered list of registered layer types, so a user's own layer is one more word in it. A key that a
// sublayer's table lacks comes from [model]: heads = 4 there is every attention layer's heads.
#ifndef WEFT_LAYERS_TRANSFORMER_CONFIG_H_
#define WEFT_LAYERS_TRANSFORMER_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autograd/base/fields.h"

namespace weft {

// One sublayer of a block: a registered type and the options of its own table.
struct SublayerSpec {
  std::string type;
  Options options;
};

struct TransformerConfig {
  std::string family = "decoder";  // encoder_decoder | decoder (language model) | encoder (classifier)
  int64_t d_model = 128;
  int64_t layers = 4;
  int64_t encoder_layers = 0;  // 0: layers
  int64_t decoder_layers = 0;  // 0: layers
  int64_t heads = 4;
  int64_t kv_heads = 0;  // 0: heads
  int64_t hidden = 0;    // 0: 4 * d_model
  std::string activation = "gelu";
  std::string norm_kind = "layer";  // [model] norm = { kind = ..., place = ..., eps = ... }
  std::string norm_place = "pre";
  double norm_eps = 1e-5;
  std::string positions = "sinusoidal";  // learned | sinusoidal | none
  int64_t max_positions = 1024;          // learned: rows of the table
  double dropout = 0;                    // on each sublayer's output; the default of the next three
  double attention_dropout = 0;
  double hidden_dropout = 0;
  double embedding_dropout = 0;
  bool bias = true;
  std::vector<std::string> tied;                                   // of source, target, output: these share one matrix
  bool embedding_scale = false;                                    // embeddings times sqrt(d_model)
  std::string pool = "mean";                                       // encoder: mean | max | first | last
  std::string init = "xavier";                                     // xavier | gpt2
  std::vector<SublayerSpec> encoder_sublayers, decoder_sublayers;  // empty: the family's usual ones

  // All keys but the tables norm, encoder and decoder.
  void Fields(FieldVisitor& v);
  // The keys of the table norm.
  void NormFields(FieldVisitor& v);

  // Reads and checks a [model] table; every error goes to `errors`, with its place. On success all zeros that mean "default"
  // are filled in.
  static TransformerConfig Read(const Options& model, std::vector<std::string>* errors);
  // The table that reads back to this config.
  Options Write() const;
  // Fills in the zeros that mean a default: encoder_layers, decoder_layers, kv_heads, hidden. Read does it; so does
  // Transformer::Create for a config made in code.
  void FillDefaults();
  // The options that sublayers inherit. kv_heads only where it differs from heads: a sublayer with heads of its own then has
  // as many key/value heads.
  Options Inherited() const;

  bool has_encoder() const { return family != "decoder"; }
  bool has_decoder() const { return family != "encoder"; }
};

}  // namespace weft

#endif  // WEFT_LAYERS_TRANSFORMER_CONFIG_H_
