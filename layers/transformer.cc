#include "layers/transformer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "layers/add_norm.h"
#include "layers/norm.h"
#include "layers/positions.h"

namespace weft {
namespace {

SublayerSpec Spec(const char* type) { return {type, Options({{"type", {std::string(type), ""}}})}; }

Pooling PoolingOf(const std::string& name) {
  if (name == "max") return Pooling::kMax;
  if (name == "first") return Pooling::kFirst;
  return name == "last" ? Pooling::kLast : Pooling::kMean;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::Create(const TransformerConfig& config, const ModelSizes& sizes,
                                                                 Parameters* parameters) {
  auto model = std::unique_ptr<Transformer>(new Transformer(config, sizes));
  WEFT_RETURN_IF_ERROR(model->Build(parameters));
  return model;
}

bool Transformer::Tied(absl::string_view side) const { return std::count(config_.tied.begin(), config_.tied.end(), side) > 0; }

absl::Status Transformer::Build(Parameters* parameters) {
  const TransformerConfig& c = config_;
  if (Tied("source") && (!sizes_.shared_vocabulary || sizes_.source_vocabulary != sizes_.target_vocabulary)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.tied: found [", absl::StrJoin(c.tied, ", "), "], but source and target have vocabularies of their own (",
        sizes_.source_vocabulary, " and ", sizes_.target_vocabulary,
        " symbols); take \"source\" out, or set data.tokenizer = { ..., shared = true }"));
  }
  const int64_t blocks = c.family == "encoder_decoder" ? std::max(c.encoder_layers, c.decoder_layers)
                                                       : (c.has_encoder() ? c.encoder_layers : c.decoder_layers);
  const Builder root(parameters, {InitScheme::Named(c.init), blocks, c.init_std});
  const double std = c.init == "gpt2" ? 0.02 : c.init == "normal" ? c.init_std : 1 / std::sqrt(static_cast<double>(c.d_model));
  const double scale = c.embedding_scale ? std::sqrt(static_cast<double>(c.d_model)) : 1;

  if (c.has_encoder())
    source_ = std::make_unique<Embedding>(root.Sub("source_embedding"), sizes_.source_vocabulary, c.d_model, std, scale);
  if (c.has_decoder()) {
    if (Tied("source") && Tied("target")) {
      target_ = std::make_unique<Embedding>(*source_, scale);
    } else {
      target_ = std::make_unique<Embedding>(root.Sub("target_embedding"), sizes_.target_vocabulary, c.d_model, std, scale);
    }
  }
  if (c.has_encoder()) {
    const std::vector<SublayerSpec> usual = {Spec("self_attention"), Spec("feed_forward")};
    WEFT_RETURN_IF_ERROR(BuildStack(root.Sub("encoder"), c.encoder_layers,
                                    c.encoder_sublayers.empty() ? usual : c.encoder_sublayers, &encoder_));
  }
  if (c.has_decoder()) {
    std::vector<SublayerSpec> specs = c.decoder_sublayers;
    if (specs.empty()) {
      specs = {Spec("self_attention"), Spec("feed_forward")};
      if (c.has_encoder()) specs.insert(specs.begin() + 1, Spec("cross_attention"));
    }
    WEFT_RETURN_IF_ERROR(BuildStack(root.Sub("decoder"), c.decoder_layers, specs, &decoder_));
    for (const SublayerSpec& spec : specs) decodes_with_state_ &= FindLayerType(spec.type)->traits.decodes_with_state;
    Builder output = root.Sub("output");
    if (Tied("output")) {
      output_ = Tied("target") ? target_->table() : source_->table();
    } else {
      output_ = output.HeadWeight("weight", sizes_.target_vocabulary, c.d_model);
    }
  } else {
    Builder classifier = root.Sub("classifier");
    output_ = classifier.HeadWeight("weight", sizes_.classes, c.d_model);
    if (c.bias) output_bias_ = classifier.Parameter("bias", {sizes_.classes}, Init::Zeros());
  }
  return absl::OkStatus();
}

absl::Status Transformer::BuildStack(Builder builder, int64_t blocks, const std::vector<SublayerSpec>& specs, Stack* stack) {
  const TransformerConfig& c = config_;
  if (c.positions == "learned") {
    stack->positions =
        std::make_unique<LearnedPositions>(builder.Sub("positions"), LearnedPositions::Config{c.d_model, c.max_positions});
    LimitLength(*stack->positions);
  } else if (c.positions == "sinusoidal") {
    stack->positions = std::make_unique<SinusoidalPositions>(builder.Sub("positions"), SinusoidalPositions::Config{c.d_model});
  }
  stack->dropout = std::make_unique<DropoutLayer>(builder.Sub("embedding_dropout"), c.embedding_dropout);
  const Options inherited = c.Inherited();
  const AddNormConfig add_norm{c.d_model, c.norm_kind, c.norm_place, c.norm_eps, c.bias, c.dropout};
  for (int64_t b = 0; b < blocks; ++b) {
    const Builder block = builder.Sub(absl::StrCat(b));
    for (size_t i = 0; i < specs.size(); ++i) {
      // The second sublayer of one type in a block is called type_2, the third type_3.
      std::string name = specs[i].type;
      const auto before =
          std::count_if(specs.begin(), specs.begin() + i, [&](const SublayerSpec& s) { return s.type == specs[i].type; });
      if (before > 0) absl::StrAppend(&name, "_", before + 1);
      Builder sublayer_builder = block.Sub(name);
      OptionsReader reader(sublayer_builder.path(), specs[i].options, &inherited);
      reader.Take("type");
      WEFT_ASSIGN_OR_RETURN(auto sublayer, FindLayerType(specs[i].type)->create(sublayer_builder, reader));
      stack->layers.push_back(std::make_unique<AddNorm>(block, name, add_norm, std::move(sublayer)));
      LimitLength(*stack->layers.back());
    }
  }
  if (c.norm_place == "pre") stack->norm = MakeNorm(builder.Sub("norm"), c.norm_kind, c.d_model, c.bias, c.norm_eps);
  return absl::OkStatus();
}

void Transformer::LimitLength(const Layer& layer) {
  if (layer.max_length() == 0) return;
  max_length_ = max_length_ == 0 ? layer.max_length() : std::min(max_length_, layer.max_length());
}

Variable Transformer::Run(const Stack& stack, Context& context, Variable x) const {
  const auto run = [&](const Layer& layer) {
    const Tape::Scope scope(context.tape(), layer.path());
    x = layer.Forward(context, x);
  };
  if (stack.positions != nullptr) run(*stack.positions);
  run(*stack.dropout);
  for (const auto& layer : stack.layers) run(*layer);
  if (stack.norm != nullptr) run(*stack.norm);
  return x;
}

Variable Transformer::Encode(Context& context, absl::Span<const int32_t> ids, Sequences sequences) const {
  WEFT_CHECK(config_.has_encoder()) << "Encode with family " << config_.family;
  context.sequences = sequences;
  context.causal = false;
  return Run(encoder_, context, source_->Forward(context, ids));
}

Variable Transformer::Decode(Context& context, absl::Span<const int32_t> ids, Sequences sequences) const {
  WEFT_CHECK(config_.has_decoder()) << "Decode with family " << config_.family;
  context.sequences = sequences;
  context.causal = true;
  return Run(decoder_, context, target_->Forward(context, ids));
}

Variable Transformer::Logits(Context& context, Variable hidden) const {
  return Linear(hidden, context.Get(output_), context.Get(output_bias_));
}

Variable Transformer::ClassLogits(Context& context, absl::Span<const int32_t> ids, Sequences sequences) const {
  WEFT_CHECK(config_.family == "encoder") << "ClassLogits with family " << config_.family;
  return Logits(context, Pool(Encode(context, ids, sequences), sequences, PoolingOf(config_.pool)));
}

CrossEntropyResult Transformer::Loss(Context& context, const ModelInput& input, double label_smoothing) const {
  const CrossEntropyOptions options{.smoothing = label_smoothing};
  Variable features;
  if (config_.family == "encoder") {
    features = Pool(Encode(context, input.source_ids, input.source), input.source, PoolingOf(config_.pool));
  } else {
    if (config_.has_encoder()) {
      context.memory = Encode(context, input.source_ids, input.source);
      context.memory_sequences = input.source;
    }
    features = Decode(context, input.target_ids, input.target);
  }
  const Tape::Scope scope(context.tape(), config_.has_decoder() ? "output" : "classifier");
  return LinearCrossEntropy(features, context.Get(output_), context.Get(output_bias_), input.labels, options);
}

absl::Status Transformer::CheckLength(int64_t length, absl::string_view what) const {
  if (max_length() == 0 || length <= max_length()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, " has ", length, " tokens, but the table of learned positions has model.max_positions = ", max_length(),
      "; raise it, shorten the sequence, or take positions = \"sinusoidal\""));
}

}  // namespace weft
