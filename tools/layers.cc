#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "layers/layer.h"
#include "tools/verbs.h"

namespace weft {

absl::Status RunLayers(const LayersFlags& flags) {
  for (const LayerType* type : LayerTypes()) {
    FieldDescriber describer;
    type->describe(describer);
    if (flags.json) {
      nlohmann::ordered_json json = {{"name", type->name},
                                     {"doc", type->doc},
                                     {"decodes_with_state", type->traits.decodes_with_state},
                                     {"needs_memory", type->traits.needs_memory},
                                     {"options", nlohmann::json::array()}};
      for (const FieldDescription& field : describer.fields) {
        json["options"].push_back({{"name", field.name},
                                   {"type", field.type},
                                   {"default", field.default_value},
                                   {"allowed", field.allowed},
                                   {"doc", field.doc}});
      }
      absl::PrintF("%s\n", json.dump());
      continue;
    }
    absl::PrintF("%s: %s%s\n", type->name, type->doc, type->traits.needs_memory ? " (decoder of an encoder_decoder only)" : "");
    for (const FieldDescription& field : describer.fields) {
      absl::PrintF("  %-18s %s, %s; default %s\n  %-18s %s\n", field.name, field.type, field.allowed, field.default_value, "",
                   field.doc);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
