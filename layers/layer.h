// Layer: the interface that every layer of a block has, built-in or a user's own. A layer is one file: a Config with defaults
// and its Fields, Create, Forward, and one registration line (see docs/adding_a_layer.md). Layers are immutable once created:
// Forward is const and may run on several threads at once, each with its own Context.
#ifndef WEFT_LAYERS_LAYER_H_
#define WEFT_LAYERS_LAYER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/base/fields.h"
#include "autograd/base/status.h"
#include "autograd/ops.h"
#include "layers/builder.h"
#include "layers/context.h"

namespace weft {

class Layer {
 public:
  virtual ~Layer() = default;
  // x is [N, D]: the tokens of context.sequences laid end to end. The result has the same rows. A layer that mixes along time
  // keeps to the sequences, looks back only when context.causal, and uses context.state if it says so at registration.
  virtual Variable Forward(Context& context, Variable x) const = 0;

  // The longest sequence that the layer can take, in tokens; 0: any.
  virtual int64_t max_length() const { return 0; }

  // "decoder.0.self_attention".
  const std::string& path() const { return path_; }

 protected:
  explicit Layer(const Builder& builder) : path_(builder.path()) {}

 private:
  std::string path_;
};

// What a type of layer can do; said once, at registration.
struct LayerTraits {
  // Forward with context.state continues from the cached tokens. A layer that does not mix along time needs no state and says
  // true.
  bool decodes_with_state = true;
  // Reads context.memory: only in the decoder of an encoder-decoder.
  bool needs_memory = false;
};

// A registered type of layer.
struct LayerType {
  std::string name;  // as in a config: type = "name"
  std::string doc;   // one line
  LayerTraits traits;
  void (*describe)(FieldVisitor&);
  // Reads the config (a key that the layer's table lacks comes from [model]), validates it, and declares the parameters.
  absl::StatusOr<std::unique_ptr<Layer>> (*create)(Builder&, OptionsReader&);
};

// The type called `name`, or null. Built-in types are always there.
const LayerType* FindLayerType(absl::string_view name);
// All types, by name.
std::vector<const LayerType*> LayerTypes();

namespace internal {
// Adds a type before main runs. A name that is taken stops the program.
struct LayerRegistration {
  explicit LayerRegistration(LayerType type);
};

template <class L>
LayerType MakeLayerType(const char* name, const char* doc, LayerTraits traits) {
  return {name, doc, traits,
          [](FieldVisitor& visitor) {
            typename L::Config config;
            config.Fields(visitor);
          },
          [](Builder& builder, OptionsReader& reader) -> absl::StatusOr<std::unique_ptr<Layer>> {
            typename L::Config config;
            config.Fields(reader);
            if (std::vector<std::string> errors = reader.Finish(); !errors.empty()) return ErrorsToStatus(errors);
            auto layer = L::Create(builder, config);
            if (!layer.ok()) return layer.status();
            return std::unique_ptr<Layer>(*std::move(layer));
          }};
}
}  // namespace internal

// One line in the layer's file, at namespace scope:
//   WEFT_REGISTER_LAYER(FeedForward, "feed_forward", "two linear maps with a non-linearity between");
// and optionally the traits: WEFT_REGISTER_LAYER(Mixer, "mixer", "...", .decodes_with_state = false);
#define WEFT_REGISTER_LAYER(Class, name, doc, ...)                                      \
  extern const ::weft::internal::LayerRegistration weft_layer_registration_##Class;     \
  const ::weft::internal::LayerRegistration weft_layer_registration_##Class {           \
    ::weft::internal::MakeLayerType<Class>(name, doc, ::weft::LayerTraits{__VA_ARGS__}) \
  }

}  // namespace weft

#endif  // WEFT_LAYERS_LAYER_H_
