#include "train/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "layers/layer.h"
#include "train/session.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kJob[] = R"([run]
dir = "/r"
[data]
kind = "pairs"
train = "/t.tsv"
tokenizer = { source = { kind = "char" }, target = { kind = "word", unknown = true } }
[model]
family = "encoder_decoder"
d_model = 64
hidden = 256
norm = { kind = "rms", place = "pre" }
decoder.sublayers = [{ type = "self_attention", heads = 2 }, { type = "cross_attention" }]
[train]
steps = 100
batch_size = 8
clip_norm = 1.0
[optimizer]
kind = "sgd"
momentum = 0.9
[schedule]
kind = "cosine"
steps = 100
)";

absl::StatusOr<Config> Load(const std::string& text) {
  return ParseConfig({.text = text, .name = "elsewhere.toml"}, {}, CheckModelTable);
}

TEST(FullConfig, HasEveryKeyWithItsHelpAndLoadsToItself) {
  const absl::StatusOr<Config> config = Load(kJob);
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string full = FullConfig(*config);
  const absl::StatusOr<Config> again = Load(full);
  ASSERT_TRUE(again.ok()) << again.status() << full;
  EXPECT_EQ(PrintConfig(*again), PrintConfig(*config));
  for (const auto& [section, fields] : DescribeConfig()) {
    EXPECT_THAT(full, HasSubstr("[" + section + "]\n"));
    for (const FieldDescription& field : fields) {
      EXPECT_THAT(full, HasSubstr(field.doc + "; " + field.allowed + "\n")) << field.name;
    }
  }
  EXPECT_THAT(full, HasSubstr("\nmomentum = 0.9\n"));
  EXPECT_THAT(full, HasSubstr("\n# betas is not set\n"));  // a key of adamw
  EXPECT_THAT(full, HasSubstr("\nnorm = { kind = \"rms\""));
  EXPECT_THAT(full, HasSubstr("\n# [[optimizer.groups]] match: "));
}

TEST(FullConfig, PrintsGroupsOfParameters) {
  const absl::StatusOr<Config> config = Load(absl::StrCat(kJob, "[[optimizer.groups]]\nmatch = \"*norm*\"\nfrozen = true\n"));
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::StatusOr<Config> again = Load(FullConfig(*config));
  ASSERT_TRUE(again.ok()) << again.status() << FullConfig(*config);
  EXPECT_EQ(PrintConfig(*again), PrintConfig(*config));
  ASSERT_EQ(again->optimizer.groups.size(), 1);
}

TEST(MinimalConfig, HasOnlyWhatMattersAndLoadsToTheSame) {
  const absl::StatusOr<Config> config = Load(kJob);
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::StatusOr<std::string> minimal = MinimalConfig(*config, CheckModelTable);
  ASSERT_TRUE(minimal.ok()) << minimal.status();
  EXPECT_EQ(*minimal, R"([run]
dir = "/r"

[data]
kind = "pairs"
train = "/t.tsv"
tokenizer = { target = { kind = "word", unknown = true } }

[model]
family = "encoder_decoder"
d_model = 64
norm = { kind = "rms" }
decoder = { sublayers = [{ type = "self_attention", heads = 2 }, { type = "cross_attention" }] }

[train]
steps = 100
batch_size = 8

[optimizer]
kind = "sgd"
momentum = 0.9

[schedule]
kind = "cosine"
)");
  EXPECT_EQ(PrintConfig(*Load(*minimal)), PrintConfig(*config));
}

// Every object of the schema is closed, and says what its keys are for.
void CheckObjects(const Json& node, const std::string& path, int* objects) {
  if (node.is_array()) {
    for (const Json& item : node) CheckObjects(item, path, objects);
  }
  if (!node.is_object()) return;
  if (node.contains("properties") && node["properties"].is_object() && node.contains("type")) {
    ++*objects;
    EXPECT_EQ(node["type"], "object") << path;
    EXPECT_EQ(node["additionalProperties"], false) << path;
    for (const Json& key : node.value("required", Json::array())) EXPECT_TRUE(node["properties"].contains(key)) << path << key;
  }
  for (const auto& [key, value] : node.items()) CheckObjects(value, path + "/" + key, objects);
}

TEST(ConfigSchema, HasAllKeysWithTypesRangesWordsAndDescriptions) {
  const Json schema = Json::parse(ConfigSchema());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  int objects = 0;
  CheckObjects(schema, "", &objects);
  EXPECT_GT(objects, 12);  // the root, 8 sections, norm, tokenizers, a stack and its layers

  const Json& sections = schema["properties"];
  for (const auto& [section, fields] : DescribeConfig()) {
    const Json& properties = sections[section]["properties"];
    size_t known = 0;
    for (const FieldDescription& field : fields) {
      const size_t dot = field.name.find('.');  // behind it, a key of a table in a list
      const bool in_list = dot != std::string::npos;
      const Json& owner = in_list ? properties[field.name.substr(0, dot)]["items"]["properties"] : properties;
      const std::string key = in_list ? field.name.substr(dot + 1) : field.name;
      ASSERT_TRUE(owner.contains(key)) << section << "." << field.name;
      EXPECT_EQ(owner[key]["description"], field.doc);
      known += in_list ? 0 : 1;
    }
    EXPECT_EQ(properties.size(), known + (section == "optimizer" ? 1 : 0)) << section;
  }
  const Json& train = sections["train"]["properties"];
  EXPECT_EQ(train["steps"]["type"], "integer");
  EXPECT_EQ(train["steps"]["minimum"], 1);
  EXPECT_FALSE(train["steps"].contains("default"));  // 0 stands for "not given" and is not allowed
  EXPECT_EQ(train["label_smoothing"]["type"], "number");
  EXPECT_EQ(train["label_smoothing"]["exclusiveMaximum"], 1);
  EXPECT_EQ(train["shuffle"]["default"], true);
  EXPECT_EQ(sections["optimizer"]["properties"]["lr"]["exclusiveMinimum"], 0);
  EXPECT_EQ(sections["optimizer"]["properties"]["betas"]["items"]["exclusiveMaximum"], 1);
  EXPECT_EQ(sections["optimizer"]["properties"]["kind"]["enum"], Json({"adamw", "adam", "sgd", "lion", "adafactor", "muon"}));
  EXPECT_EQ(sections["model"]["properties"]["family"]["enum"], Json({"encoder_decoder", "decoder", "encoder"}));
  for (const char* key : {"pool", "max_positions", "kv_heads", "norm", "encoder", "decoder"}) {
    EXPECT_TRUE(sections["model"]["properties"].contains(key)) << key;
  }
  // One alternative a registered layer, with its own keys.
  const Json& layers = schema["$defs"]["stack"]["properties"]["sublayers"]["items"]["anyOf"];
  ASSERT_EQ(layers.size(), LayerTypes().size());
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i]["properties"]["type"]["const"], LayerTypes()[i]->name);
    EXPECT_FALSE(layers[i]["properties"].contains("d_model"));
  }
}

}  // namespace
}  // namespace weft
