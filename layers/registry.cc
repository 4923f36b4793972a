// The list of layer types. A static library drops object files that nobody refers to, and with them their registrations:
// kBuiltin below refers to each built-in layer, so they are in every program that can ask for a layer by name.
#include <algorithm>
#include <memory>

#include "layers/layer.h"

#define WEFT_BUILTIN_LAYERS(APPLY) \
  APPLY(CrossAttention)            \
  APPLY(DropoutLayer)              \
  APPLY(FeedForward)               \
  APPLY(LayerNormLayer)            \
  APPLY(LearnedPositions)          \
  APPLY(LinearLayer)               \
  APPLY(RmsNormLayer)              \
  APPLY(SelfAttention)             \
  APPLY(SinusoidalPositions)

namespace weft {

#define WEFT_DECLARE(Class) extern const internal::LayerRegistration weft_layer_registration_##Class;
WEFT_BUILTIN_LAYERS(WEFT_DECLARE)
#undef WEFT_DECLARE

namespace {

// Sorted by name. A function-local static, since registrations of other files run before this file's globals may exist.
std::vector<std::unique_ptr<LayerType>>& Registry() {
  static std::vector<std::unique_ptr<LayerType>> types;
  return types;
}

void LinkBuiltins() {
#define WEFT_REFER(Class) &weft_layer_registration_##Class,
  static const internal::LayerRegistration* volatile kBuiltin[] = {WEFT_BUILTIN_LAYERS(WEFT_REFER)};
#undef WEFT_REFER
  // Read, or clang drops the list, and the linker then the layers.
  for (const internal::LayerRegistration* volatile& registration : kBuiltin) {
    [[maybe_unused]] const internal::LayerRegistration* read = registration;
  }
}

}  // namespace

internal::LayerRegistration::LayerRegistration(LayerType type) {
  auto& types = Registry();
  const auto at = std::lower_bound(types.begin(), types.end(), type.name,
                                   [](const auto& a, const std::string& name) { return a->name < name; });
  WEFT_CHECK(at == types.end() || (*at)->name != type.name) << "layer type " << type.name << " is registered twice";
  types.insert(at, std::make_unique<LayerType>(std::move(type)));
}

const LayerType* FindLayerType(absl::string_view name) {
  LinkBuiltins();
  for (const auto& type : Registry()) {
    if (type->name == name) return type.get();
  }
  return nullptr;
}

std::vector<const LayerType*> LayerTypes() {
  LinkBuiltins();
  std::vector<const LayerType*> types;
  for (const auto& type : Registry()) types.push_back(type.get());
  return types;
}

}  // namespace weft
