#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "layers/layer.h"
#include "tools/verbs.h"

namespace weft {
namespace {

// A width or a number of heads of 0 stands for what [model] says.
std::string DefaultOf(const FieldDescription& field) {
  return field.default_value == "0" && absl::StrContains(field.allowed, ">= 1") ? "that of [model]" : field.default_value;
}

}  // namespace

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
                                   {"default", DefaultOf(field)},
                                   {"allowed", field.allowed},
                                   {"doc", field.doc}});
      }
      absl::PrintF("%s\n", json.dump());
      continue;
    }
    absl::PrintF("%s: %s%s\n", type->name, type->doc, type->traits.needs_memory ? " (decoder of an encoder_decoder only)" : "");
    for (const FieldDescription& field : describer.fields) {
      absl::PrintF("  %-18s %s, %s; default %s\n  %-18s %s\n", field.name, field.type, field.allowed, DefaultOf(field), "",
                   field.doc);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
