#include "layers/transformer_config.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "layers/layer.h"

namespace weft {
namespace {

// The list under `stack`.sublayers, checked against the registry.
std::vector<SublayerSpec> ReadSublayers(const OptionValue& list, absl::string_view stack, const TransformerConfig& config,
                                        std::vector<std::string>* errors) {
  std::vector<SublayerSpec> specs;
  const auto error = [&](const OptionValue& at, absl::string_view message) {
    errors->push_back(absl::StrCat(KeyPrefix(at.where, absl::StrCat("model.", stack), "sublayers"), message));
  };
  const auto* entries = std::get_if<OptionValue::List>(&list.value);
  if (entries == nullptr || entries->empty()) {
    error(list,
          absl::StrCat("found ", list.Describe(), ", allowed a list of at least one table like { type = \"self_attention\" }"));
    return specs;
  }
  std::vector<std::string> names;
  for (const LayerType* type : LayerTypes()) names.push_back(type->name);
  for (const OptionValue& entry : *entries) {
    const auto* table = std::get_if<OptionValue::Table>(&entry.value);
    SublayerSpec spec;
    if (table != nullptr) spec.options = Options(*table);
    const OptionValue* type = spec.options.Find("type");
    if (type == nullptr || !std::holds_alternative<std::string>(type->value)) {
      error(entry, absl::StrCat("found ", entry.Describe(),
                                ", allowed a table with type = \"NAME\", for example { type = \"feed_forward\" }"));
      continue;
    }
    spec.type = std::get<std::string>(type->value);
    const LayerType* layer = FindLayerType(spec.type);
    if (layer == nullptr) {
      const std::string nearest = Nearest(spec.type, names);
      error(*type, absl::StrCat("unknown layer type \"", spec.type, "\"",
                                nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?", " (weft layers lists all)"));
      continue;
    }
    if (const OptionValue* width = spec.options.Find("d_model"); width != nullptr) {
      error(*width, "d_model: every sublayer has the width of the residual stream, model.d_model; take it out here");
    }
    if (layer->traits.needs_memory && (stack == "encoder" || !config.has_encoder())) {
      error(*type, absl::StrCat("\"", spec.type,
                                "\" needs an encoder's output: allowed in the decoder of family = \"encoder_decoder\" only"));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

void ReadNorm(const OptionValue& value, TransformerConfig* config, std::vector<std::string>* errors) {
  const auto* table = std::get_if<OptionValue::Table>(&value.value);
  if (table == nullptr) {
    errors->push_back(absl::StrCat(KeyPrefix(value.where, "model", "norm"), "found ", value.Describe(),
                                   ", allowed { kind = \"layer\", place = \"pre\", eps = 1e-5 }"));
    return;
  }
  const Options options(*table);
  OptionsReader reader("model.norm", options);
  config->NormFields(reader);
  for (std::string& error : reader.Finish()) errors->push_back(std::move(error));
}

OptionValue SublayerList(const std::vector<SublayerSpec>& specs) {
  OptionValue::List list;
  for (const SublayerSpec& spec : specs) list.push_back({spec.options.entries(), ""});
  Options table;
  table.Set("sublayers", {std::move(list), ""});
  return {table.entries(), ""};
}

}  // namespace

void TransformerConfig::Fields(FieldVisitor& v) {
  v.Choice("family", family, {"encoder_decoder", "decoder", "encoder"}, "sequence to sequence, language model, or classifier");
  v.Visit("d_model", d_model, {.min = 1, .max = 1 << 20}, "width of the residual stream");
  v.Visit("layers", layers, {.min = 1, .max = 10000}, "blocks in the encoder and in the decoder");
  v.Visit("encoder_layers", encoder_layers, {.min = 1, .max = 10000}, "blocks in the encoder, where it differs from layers");
  v.Visit("decoder_layers", decoder_layers, {.min = 1, .max = 10000}, "blocks in the decoder, where it differs from layers");
  v.Visit("heads", heads, {.min = 1, .max = 1 << 20}, "attention heads; d_model must be divisible by it");
  v.Visit("kv_heads", kv_heads, {.min = 1, .max = 1 << 20},
          "key/value heads: fewer than heads for grouped-query, 1 for multi-query");
  v.Visit("hidden", hidden, {.min = 1, .max = 1 << 24}, "width inside feed_forward; default 4 * d_model");
  v.Choice("activation", activation, {"relu", "gelu", "gelu_tanh", "silu"}, "non-linearity of feed_forward");
  v.Choice("positions", positions, {"learned", "sinusoidal", "none"}, "how tokens know their place");
  v.Visit("max_positions", max_positions, {.min = 1, .max = 1 << 20},
          "learned: rows of the table, the longest sequence in tokens");
  v.Visit("dropout", dropout, {.min = 0, .max = 1, .max_open = true},
          "on each sublayer's output; default of the other dropouts");
  v.Visit("attention_dropout", attention_dropout, {.min = 0, .max = 1, .max_open = true}, "on attention weights");
  v.Visit("hidden_dropout", hidden_dropout, {.min = 0, .max = 1, .max_open = true}, "inside feed_forward");
  v.Visit("embedding_dropout", embedding_dropout, {.min = 0, .max = 1, .max_open = true}, "on embeddings with positions");
  v.Visit("bias", bias, "biases in linear maps and layer norms");
  v.Visit("tied", tied, "which of \"source\", \"target\", \"output\" share one embedding matrix");
  v.Visit("embedding_scale", embedding_scale, "multiply embeddings by sqrt(d_model)");
  v.Choice("pool", pool, {"mean", "max", "first", "last"}, "encoder: from token vectors to one vector");
  v.Choice("init", init, InitScheme::Names(), "how weights start; xavier is uniform");
  v.Visit("init_std", init_std, {.min = 0, .min_open = true},
          "init = \"normal\": standard deviation of weights and embeddings");
}

void TransformerConfig::NormFields(FieldVisitor& v) {
  v.Choice("kind", norm_kind, {"layer", "rms"}, "layer norm, or root mean square norm");
  v.Choice("place", norm_place, {"pre", "post"}, "x + f(norm x), or norm(x + f x)");
  v.Visit("eps", norm_eps, {.min = 0, .max = 1, .min_open = true}, "added to the variance");
}

TransformerConfig TransformerConfig::Read(const Options& model, std::vector<std::string>* errors) {
  TransformerConfig c;
  const size_t errors_before = errors->size();
  OptionsReader reader("model", model);
  c.Fields(reader);
  if (const OptionValue* norm = reader.Take("norm")) ReadNorm(*norm, &c, errors);
  for (const auto& [stack, present, specs] : {std::tuple{"encoder", c.has_encoder(), &c.encoder_sublayers},
                                              std::tuple{"decoder", c.has_decoder(), &c.decoder_sublayers}}) {
    const OptionValue* table = reader.Take(stack);
    if (table == nullptr) continue;
    const auto* entries = std::get_if<OptionValue::Table>(&table->value);
    if (!present) {
      reader.Error(stack, absl::StrCat("family = \"", c.family, "\" has no ", stack));
    } else if (entries == nullptr || entries->size() != 1 || (*entries)[0].key != "sublayers") {
      reader.Error(stack, absl::StrCat("found ", table->Describe(), ", allowed ", stack, ".sublayers = [...]"));
    } else {
      *specs = ReadSublayers((*entries)[0].value, stack, c, errors);
    }
  }

  if (!reader.Has("attention_dropout")) c.attention_dropout = c.dropout;
  if (!reader.Has("hidden_dropout")) c.hidden_dropout = c.dropout;
  if (!reader.Has("embedding_dropout")) c.embedding_dropout = c.dropout;
  c.FillDefaults();

  if (c.d_model % c.heads != 0) {
    reader.Error(reader.Has("heads") ? "heads" : "d_model",
                 absl::StrCat("d_model = ", c.d_model, " is not divisible by heads = ", c.heads));
  }
  if (c.heads % c.kv_heads != 0) {
    reader.Error("kv_heads", absl::StrCat("heads = ", c.heads, " is not divisible by kv_heads = ", c.kv_heads));
  }
  const auto needs = [&](const char* key, bool fits, const char* families) {
    if (reader.Has(key) && !fits) reader.Error(key, absl::StrCat("is for ", families, ", found family = \"", c.family, "\""));
  };
  needs("pool", c.family == "encoder", "family = \"encoder\"");
  needs("encoder_layers", c.has_encoder(), "families with an encoder");
  needs("decoder_layers", c.has_decoder(), "families with a decoder");
  if (reader.Has("max_positions") && c.positions != "learned") {
    reader.Error("max_positions", absl::StrCat("is for positions = \"learned\", found positions = \"", c.positions, "\""));
  }
  if (reader.Has("init_std") && c.init != "normal") {
    reader.Error("init_std", absl::StrCat("is for init = \"normal\", found init = \"", c.init, "\""));
  }
  if (!c.tied.empty()) {
    std::vector<std::string> allowed;
    if (c.has_encoder() && c.has_decoder()) allowed.push_back("source");
    if (c.has_decoder()) allowed.insert(allowed.end(), {"target", "output"});
    bool good = c.tied.size() >= 2;
    for (const std::string& side : c.tied) {
      good &= std::count(allowed.begin(), allowed.end(), side) == 1 && std::count(c.tied.begin(), c.tied.end(), side) == 1;
    }
    if (!good) {
      reader.Error("tied", absl::StrCat("found [", absl::StrJoin(c.tied, ", "), "], allowed two or more different of [",
                                        absl::StrJoin(allowed, ", "), "] with family = \"", c.family, "\""));
    }
  }
  for (std::string& error : reader.Finish()) errors->push_back(std::move(error));
  if (errors->size() != errors_before) return c;

  // Options of spelled-out sublayers: create each once into throw-away parameters, so that a wrong one is found with all the
  // others.
  const Options inherited = c.Inherited();
  for (const auto& [stack, specs] : {std::pair{"encoder", &c.encoder_sublayers}, std::pair{"decoder", &c.decoder_sublayers}}) {
    for (const SublayerSpec& spec : *specs) {
      Parameters scratch;
      Builder builder = Builder(&scratch).Sub(stack).Sub(spec.type);
      OptionsReader sublayer(absl::StrCat("model.", stack, ".", spec.type), spec.options, &inherited);
      sublayer.Take("type");
      const auto layer = FindLayerType(spec.type)->create(builder, sublayer);
      if (!layer.ok()) errors->push_back(std::string(layer.status().message()));
    }
  }
  return c;
}

void TransformerConfig::FillDefaults() {
  if (encoder_layers == 0) encoder_layers = layers;
  if (decoder_layers == 0) decoder_layers = layers;
  if (kv_heads == 0) kv_heads = heads;
  if (hidden == 0) hidden = 4 * d_model;
}

Options TransformerConfig::Write() const {
  TransformerConfig copy = *this;
  copy.FillDefaults();
  OptionsWriter writer;
  copy.Fields(writer);
  // Keys that do not apply are left out, or reading back would refuse them.
  OptionValue::Table entries;
  for (const Option& entry : writer.options.entries()) {
    if (entry.key == "pool" && family != "encoder") continue;
    if (entry.key == "encoder_layers" && !has_encoder()) continue;
    if (entry.key == "decoder_layers" && !has_decoder()) continue;
    if (entry.key == "max_positions" && positions != "learned") continue;
    if (entry.key == "tied" && tied.empty()) continue;
    if (entry.key == "init_std" && init != "normal") continue;
    entries.push_back(entry);
  }
  Options options(std::move(entries));
  OptionsWriter norm;
  copy.NormFields(norm);
  options.Set("norm", {norm.options.entries(), ""});
  if (!encoder_sublayers.empty()) options.Set("encoder", SublayerList(encoder_sublayers));
  if (!decoder_sublayers.empty()) options.Set("decoder", SublayerList(decoder_sublayers));
  return options;
}

Options TransformerConfig::Inherited() const {
  Options options = Write();
  options.Set("norm_eps", {norm_eps, ""});
  options.Set("max_positions", {max_positions, ""});
  if (kv_heads == heads) options.Remove("kv_heads");
  return options;
}

}  // namespace weft
