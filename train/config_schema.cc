#include <cmath>
#include <nlohmann/json.hpp>

#include "data/tasks/task.h"
#include "layers/layer.h"
#include "layers/transformer_config.h"
#include "train/config_sections.h"
#include "train/config_text.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<int64_t>(value);
  return value;
}

Json Words(absl::Span<const absl::string_view> words) {
  Json list = Json::array();
  for (absl::string_view word : words) list.push_back(std::string(word));
  return list;
}

// The keys of a struct as the properties of an object. A default that is outside of the allowed values means "not given", and
// is left out.
class SchemaWriter : public FieldVisitor {
 public:
  using FieldVisitor::Choice;
  void Visit(absl::string_view name, bool& field, absl::string_view doc) override { Add(name, "boolean", doc, field); }
  void Visit(absl::string_view name, int64_t& field, const Range& range, absl::string_view doc) override {
    const auto value = static_cast<double>(field);
    AddRange(range, &Add(name, "integer", doc, range.min <= value && value <= range.max ? Json(field) : Json()));
  }
  void Visit(absl::string_view name, double& field, const Range& range, absl::string_view doc) override {
    const bool allowed = range.min <= field && field <= range.max && !(range.min_open && field == range.min);
    AddRange(range, &Add(name, "number", doc, allowed ? Json(field) : Json()));
  }
  void Visit(absl::string_view name, std::string& field, absl::string_view doc) override {
    Add(name, "string", doc, field.empty() ? Json() : Json(field));
  }
  void Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view> allowed,
              absl::string_view doc) override {
    Add(name, "string", doc, field.empty() ? Json() : Json(field))["enum"] = Words(allowed);
  }
  void Visit(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) override {
    Add(name, "array", doc, Json(field))["items"] = {{"type", "string"}};
  }
  void OneOrMore(absl::string_view name, std::vector<std::string>&, absl::string_view doc) override {
    const Json word = {{"type", "string"}};
    properties[std::string(name)] = {
        {"description", std::string(doc)},
        {"anyOf", {word, {{"type", "array"}, {"items", word}, {"minItems", 1}}}},
    };
  }
  void Visit(absl::string_view name, std::vector<double>& field, const Range& range, absl::string_view doc) override {
    Json items = {{"type", "number"}};
    AddRange(range, &items);
    Add(name, "array", doc, Json(field))["items"] = std::move(items);
  }

  Json properties = Json::object();

 private:
  Json& Add(absl::string_view name, const char* type, absl::string_view doc, const Json& default_value) {
    Json& property = properties[std::string(name)];
    property["type"] = type;
    property["description"] = std::string(doc);
    if (!default_value.is_null()) property["default"] = default_value;
    return property;
  }
  static void AddRange(const Range& range, Json* property) {
    if (std::isfinite(range.min)) (*property)[range.min_open ? "exclusiveMinimum" : "minimum"] = Number(range.min);
    if (std::isfinite(range.max)) (*property)[range.max_open ? "exclusiveMaximum" : "maximum"] = Number(range.max);
  }
};

Json Object(Json properties, std::vector<std::string> required = {}) {
  Json object = {{"type", "object"}, {"additionalProperties", false}};
  if (!required.empty()) object["required"] = std::move(required);
  object["properties"] = std::move(properties);
  return object;
}

// One tokenizer for all sides, or one a side.
Json TokenizerSchema() {
  SchemaWriter writer;
  TokenizerOptions options;
  TokenizerFields(writer, options);
  SchemaWriter sampling;
  SamplingFields(sampling, options.sampling);
  for (auto& [name, property] : sampling.properties.items()) property.erase("default");
  for (const char* key : {"vocab_size", "joiner", "file"}) writer.properties[key].erase("default");
  writer.properties["sampling"] = Object(std::move(sampling.properties));
  writer.properties["sampling"]["description"] = kSamplingDoc;
  const Json side = Object(writer.properties, {"kind"});
  const Json shared = {{"type", "boolean"}, {"description", "pairs: one vocabulary for both sides"}};
  Json both = writer.properties;
  both["shared"] = shared;
  return {{"description", kTokenizerDoc},
          {"anyOf", {Object(both, {"kind"}), Object({{"source", side}, {"target", side}, {"shared", shared}})}}};
}

// Columns of tab-separated files, by number.
Json ColumnsSchema() {
  const Json number = {{"type", "integer"}, {"minimum", 1}, {"maximum", kMaxColumn}};
  const Json numbers = {{"anyOf", {number, {{"type", "array"}, {"items", number}, {"minItems", 1}, {"uniqueItems", true}}}}};
  Json columns = Object({{"source", numbers}, {"target", number}, {"references", numbers}}, {"source", "target"});
  columns["description"] = kColumnsDoc;
  return columns;
}

Json BleuSchema() {
  SchemaWriter writer;
  ValidConfig().BleuFields(writer);
  Json bleu = Object(std::move(writer.properties));
  bleu["description"] = kBleuDoc;
  return bleu;
}

// The blocks of a stack: every registered layer with its own options. Those that a table lacks come from [model], so there are
// no defaults.
Json StackSchema() {
  Json layers = Json::array();
  for (const LayerType* type : LayerTypes()) {
    SchemaWriter writer;
    type->describe(writer);
    Json properties = {{"type", {{"const", type->name}, {"description", type->doc}}}};
    for (auto& [name, property] : writer.properties.items()) {
      if (name == "d_model") continue;  // always that of [model]
      property.erase("default");
      properties[name] = property;
    }
    layers.push_back(Object(std::move(properties), {"type"}));
  }
  const Json list = {{"type", "array"},
                     {"description", "the sublayers of each block, in order, each inside Add&Norm"},
                     {"minItems", 1},
                     {"items", {{"anyOf", std::move(layers)}}}};
  return Object({{"sublayers", list}}, {"sublayers"});
}

Json ModelSchema() {
  SchemaWriter model, norm;
  TransformerConfig config;
  config.Fields(model);
  config.NormFields(norm);
  model.properties["tied"]["items"]["enum"] = {"source", "target", "output"};
  model.properties["norm"] = Object(norm.properties);
  model.properties["encoder"] = {{"$ref", "#/$defs/stack"}};
  model.properties["decoder"] = {{"$ref", "#/$defs/stack"}};
  return Object(std::move(model.properties));
}

}  // namespace

std::string ConfigSchema() {
  Json sections;
  ForEachSection([&](absl::string_view name, auto section) {
    SchemaWriter writer;
    section.Fields(writer);
    Json& keys = writer.properties;
    std::vector<std::string> required;
    // What Fields cannot say.
    if (name == "data") {
      required = {"kind"};
      keys["kind"].erase("default");
      for (const TaskInfo& task : Tasks()) keys["task"]["enum"].push_back(std::string(task.name));
      keys["columns"] = ColumnsSchema();
      keys["tokenizer"] = TokenizerSchema();
    } else if (name == "optimizer") {
      keys["betas"]["minItems"] = keys["betas"]["maxItems"] = 2;
      SchemaWriter group;
      OptimizerGroup().Fields(group);
      keys["groups"] = {{"type", "array"},
                        {"description", "parameters with a rule of their own; of several that fit, the last holds"},
                        {"items", Object(std::move(group.properties), {"match"})}};
    } else if (name == "valid") {
      keys["metrics"]["items"]["enum"] = Words(MetricNames());
      keys["metrics"]["uniqueItems"] = true;
      keys["bleu"] = BleuSchema();
    }
    sections[std::string(name)] = Object(std::move(keys), std::move(required));
    if (name == "data") sections["model"] = ModelSchema();
  });
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "Weft config"}};
  schema.update(Object(std::move(sections), {"data", "train"}));
  schema["$defs"] = {{"stack", StackSchema()}};
  return schema.dump(2) + "\n";
}

}  // namespace weft
