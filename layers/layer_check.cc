#include "layers/layer_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "layers/add_norm.h"
#include "layers/embedding.h"
#include "layers/feed_forward.h"
#include "layers/transformer.h"

namespace weft {
namespace {

constexpr RandomKey kKey{20};

// An f64 tensor with memory of its own, standard normal.
class RandomTensor {
 public:
  RandomTensor(const Shape& shape, absl::string_view name) : slab_(DType::kF64, shape.elements()) {
    value_ = slab_.tensor().Reshaped(shape);
    for (int64_t i = 0; i < shape.elements(); ++i) value_.Set(i, kKey.Fold(name).Normal(i));
  }
  const Tensor& value() const { return value_; }

 private:
  Slab slab_;
  Tensor value_;
};

// Moves parameters away from where they start: biases of 0 and scales of 1 would hide mistakes, and weights near 0 make
// gradients that drown in rounding.
void Perturb(Parameters* parameters) {
  const Tensor slab = parameters->Mutable();
  for (const ParameterInfo& info : parameters->list()) {
    const Tensor value = Parameters::In(slab, info);
    const RandomKey key = kKey.Fold("perturb").Fold(info.name);
    for (int64_t i = 0; i < value.elements(); ++i) value.Set(i, value.At(i) + 0.2 * key.Normal(i));
  }
}

// Sequences of these lengths laid end to end.
std::vector<Sequence> EndToEnd(absl::Span<const int32_t> lengths) {
  std::vector<Sequence> sequences;
  int32_t start = 0;
  for (int32_t length : lengths) {
    sequences.push_back({start, length, 0, 3 * sequences.size() + 1});
    start += length;
  }
  return sequences;
}

void Append(GradCheckReport part, const std::string& variant, GradCheckReport* report) {
  report->passed &= part.passed;
  for (GradCheckEntry& entry : part.entries) {
    if (!variant.empty()) absl::StrAppend(&entry.name, " (", variant, ")");
    report->entries.push_back(std::move(entry));
  }
}

// ------------------------------------------------------------------------------------------------------------- layers

// What every layer of a check may inherit, as a sublayer inherits from [model].
Options CheckedOptions() {
  TransformerConfig config;
  config.d_model = 12;
  config.heads = 3;
  config.kv_heads = 3;
  config.hidden = 10;
  config.max_positions = 16;
  return config.Inherited();
}

// One way to configure and call a layer.
struct Variant {
  std::string label;
  Options options;  // beyond CheckedOptions
  bool causal = false;
};

// Finds variants from the fields of a layer's config.
class VariantFinder : public FieldVisitor {
 public:
  explicit VariantFinder(const Options& inherited) : inherited_(inherited) {}

  void Visit(absl::string_view name, bool& field, absl::string_view) override {
    const bool normal = Inherited(name, field);
    Add(name, {!normal, ""}, normal ? "false" : "true");
  }
  void Visit(absl::string_view name, int64_t&, const Range&, absl::string_view) override {
    if (name != "kv_heads") return;
    Add(name, {int64_t{1}, ""}, "1");
    variants.push_back({"heads = 6, kv_heads = 2", Options({{"heads", {int64_t{6}, ""}}, {name, {int64_t{2}, ""}}}), true});
  }
  void Visit(absl::string_view name, double&, const Range&, absl::string_view) override {
    if (absl::EndsWith(name, "dropout")) Add(name, {0.3, ""}, "0.3");
  }
  void Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view> allowed,
              absl::string_view) override {
    const std::string normal = Inherited(name, field);
    for (absl::string_view word : allowed) {
      if (word != normal) Add(name, {std::string(word), ""}, word);
    }
  }
  void Visit(absl::string_view, std::string&, absl::string_view) override {}
  void Visit(absl::string_view, std::vector<std::string>&, absl::string_view) override {}
  void OneOrMore(absl::string_view, std::vector<std::string>&, absl::string_view) override {}
  void Visit(absl::string_view, std::vector<double>&, const Range&, absl::string_view) override {}

  std::vector<Variant> variants;

 private:
  template <class T>
  T Inherited(absl::string_view name, const T& own) const {
    const OptionValue* value = inherited_.Find(name);
    const T* inherited = value == nullptr ? nullptr : std::get_if<T>(&value->value);
    return inherited == nullptr ? own : *inherited;
  }
  // Looking ahead and causal take turns.
  void Add(absl::string_view name, OptionValue value, absl::string_view text) {
    variants.push_back({absl::StrCat(name, " = ", text), Options({{name, std::move(value)}}), variants.size() % 2 == 1});
  }

  const Options& inherited_;
};

absl::StatusOr<GradCheckReport> CheckVariant(const LayerType& type, const Variant& variant, const GradCheckOptions& options) {
  constexpr int64_t kWidth = 12;
  const std::vector<Sequence> sequences = EndToEnd({3, 1, 4}), memory_sequences = EndToEnd({2, 5, 3});
  const std::vector<int32_t> memory_of = {2, 0, 2};
  const Options inherited = CheckedOptions();
  OptionsReader reader(type.name, variant.options, &inherited);
  Parameters parameters;
  Builder builder = Builder(&parameters).Sub(type.name);
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Layer> layer, type.create(builder, reader));
  parameters.Allocate(DType::kF64, 1);
  Perturb(&parameters);

  const RandomTensor x({RowsOf(sequences), kWidth}, "x"), memory({RowsOf(memory_sequences), kWidth}, "memory");
  std::vector<NamedTensor> inputs = {{absl::StrCat(type.name, ".x"), x.value()}};
  if (type.traits.needs_memory) inputs.push_back({absl::StrCat(type.name, ".memory"), memory.value()});
  return CheckForward(
      &parameters, inputs,
      [&](Context& context, absl::Span<const Variable> in) {
        context.sequences = sequences;
        context.causal = variant.causal;
        if (type.traits.needs_memory) {
          context.memory = in[1];
          context.memory_sequences = memory_sequences;
          if (variant.causal) context.memory_of = memory_of;
        }
        return layer->Forward(context, in[0]);
      },
      options);
}

// ------------------------------------------------------------------------------------------------- parts of a transformer

GradCheckReport CheckAddNorm(const GradCheckOptions& options) {
  constexpr int64_t kWidth = 12;
  const std::vector<Sequence> sequences = EndToEnd({3, 1, 4});
  const RandomTensor x({RowsOf(sequences), kWidth}, "x");
  GradCheckReport report;
  report.passed = true;
  for (const char* place : {"pre", "post"}) {
    for (const char* kind : {"layer", "rms"}) {
      for (const double dropout : {0.0, 0.3}) {
        Parameters parameters;
        const Builder builder = Builder(&parameters).Sub("add_norm");
        FeedForward::Config inner;
        inner.d_model = kWidth;
        inner.hidden = 10;
        const AddNorm layer(builder, "feed_forward", {kWidth, kind, place, 1e-5, true, dropout},
                            std::make_unique<FeedForward>(builder.Sub("feed_forward"), inner));
        parameters.Allocate(DType::kF64, 1);
        Perturb(&parameters);
        const auto forward = [&](Context& context, absl::Span<const Variable> in) {
          context.sequences = sequences;
          return layer.Forward(context, in[0]);
        };
        Append(CheckForward(&parameters, {{"add_norm.x", x.value()}}, forward, options),
               absl::StrCat(place, ", ", kind, dropout > 0 ? ", dropout = 0.3" : ""), &report);
      }
    }
  }
  return report;
}

GradCheckReport CheckEmbedding(const GradCheckOptions& options) {
  constexpr int64_t kWidth = 5, kVocabulary = 7;
  const std::vector<int32_t> ids = {3, 0, 3, 6, 2, 3}, other_ids = {1, 6, 6, 3, 0, 1};
  GradCheckReport report;
  report.passed = true;
  for (const bool shared : {false, true}) {
    Parameters parameters;
    const Embedding embedding(Builder(&parameters).Sub("embedding"), kVocabulary, kWidth, 1, shared ? std::sqrt(kWidth) : 1);
    const Embedding second(embedding, 0.5);
    parameters.Allocate(DType::kF64, 1);
    const auto forward = [&](Context& context, absl::Span<const Variable>) {
      const Variable rows = embedding.Forward(context, ids);
      return shared ? Mul(rows, second.Forward(context, other_ids)) : rows;
    };
    Append(CheckForward(&parameters, {}, forward, options), shared ? "one table, two uses, scaled" : "", &report);
  }
  return report;
}

// ------------------------------------------------------------------------------------------------------------- models

std::vector<int32_t> RandomIds(int64_t count, int64_t below, absl::string_view name) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(kKey.Fold(name).Below(i, below)));
  return ids;
}

// The option `key` of a sublayer, if it is an integer.
const int64_t* IntegerOption(const SublayerSpec& spec, absl::string_view key) {
  const OptionValue* value = spec.options.Find(key);
  return value == nullptr ? nullptr : std::get_if<int64_t>(&value->value);
}

}  // namespace

GradCheckReport CheckForward(Parameters* parameters, absl::Span<const NamedTensor> inputs,
                             absl::FunctionRef<Variable(Context& context, absl::Span<const Variable> inputs)> forward,
                             const GradCheckOptions& options) {
  const RandomKey key = RandomKey{options.seed}.Fold("frozen");
  Slab gradients(DType::kF64, parameters->slab_size());
  const Tensor slab = parameters->Mutable();
  std::vector<Slab> input_gradients;
  std::vector<GradCheckParameter> checked;
  for (const NamedTensor& input : inputs) {
    input_gradients.emplace_back(DType::kF64, input.value.elements());
    checked.push_back({input.name, input.value, input_gradients.back().tensor().Reshaped(input.value.shape())});
  }
  for (const ParameterInfo& info : parameters->list()) {
    checked.push_back({info.name, Parameters::In(slab, info), Parameters::In(gradients.tensor(), info)});
  }

  Context context(*parameters);
  std::vector<Variable> variables;
  // Training mode in every pass: differences are taken of the same code, dropout included.
  const auto run = [&] {
    parameters->Mutable();  // values have changed in place
    context.Begin(gradients.tensor(), key);
    variables.clear();
    for (size_t i = 0; i < inputs.size(); ++i) {
      variables.push_back(context.tape().Leaf(checked[i].value, checked[i].gradient, nullptr, checked[i].name.c_str()));
    }
    const Variable y = forward(context, variables);
    WEFT_CHECK(y.dtype() == DType::kF64) << "CheckForward: the result is " << y.dtype() << ", not f64";
    return y;
  };

  const Variable at_rest = run();
  const Slab weights(DType::kF64, at_rest.value().elements());
  const Tensor upstream = weights.tensor().Reshaped(at_rest.shape());
  for (int64_t i = 0; i < upstream.elements(); ++i) {
    upstream.Set(i, std::copysign(0.5 + RandomKey{options.seed}.Fold("upstream").Uniform(i), at_rest.value().At(i)));
  }
  return CheckParameterGradients(
      checked,
      [&](bool backward) {
        const Variable y = run();
        double loss = 0;
        for (int64_t i = 0; i < upstream.elements(); ++i) loss += upstream.At(i) * y.value().At(i);
        if (backward && y.requires_grad()) context.tape().Backward(y, upstream);
        return loss;
      },
      options);
}

absl::StatusOr<GradCheckReport> CheckLayer(const LayerType& type, const GradCheckOptions& options) {
  GradCheckReport report;
  report.passed = true;
  for (const Variant& plain : {Variant{}, Variant{"causal", {}, true}}) {
    WEFT_ASSIGN_OR_RETURN(GradCheckReport part, CheckVariant(type, plain, options));
    Append(std::move(part), plain.label, &report);
  }
  const Options inherited = CheckedOptions();
  VariantFinder finder(inherited);
  type.describe(finder);
  for (const Variant& variant : finder.variants) {
    absl::StatusOr<GradCheckReport> part = CheckVariant(type, variant, options);
    if (part.ok()) {
      Append(*std::move(part), absl::StrCat(variant.causal ? "causal, " : "", variant.label), &report);
    } else if (!absl::IsInvalidArgument(part.status())) {
      return part.status();
    }
  }
  return report;
}

TransformerConfig ShrinkForCheck(const TransformerConfig& config) {
  constexpr int64_t kBlocks = 2, kHidden = 10, kPositions = 16;
  TransformerConfig small = config;
  const auto or_layers = [&](int64_t own) { return std::min(kBlocks, own == 0 ? config.layers : own); };
  small.layers = std::min(kBlocks, config.layers);
  small.encoder_layers = or_layers(config.encoder_layers);
  small.decoder_layers = or_layers(config.decoder_layers);
  small.kv_heads = config.kv_heads == 0 ? config.heads : config.kv_heads;
  small.hidden = config.hidden == 0 ? kHidden : std::min(kHidden, config.hidden);
  small.max_positions = std::min(kPositions, config.max_positions);
  // A width that every attention layer can split, sublayers with heads of their own included.
  int64_t heads = config.heads;
  for (std::vector<SublayerSpec>* specs : {&small.encoder_sublayers, &small.decoder_sublayers}) {
    for (SublayerSpec& spec : *specs) {
      if (const int64_t* own = IntegerOption(spec, "heads")) heads = std::lcm(heads, *own);
      if (const int64_t* own = IntegerOption(spec, "hidden")) spec.options.Set("hidden", {std::min(kHidden, *own), ""});
    }
  }
  small.d_model = std::min(config.d_model, heads * (heads <= 2 ? 4 : 2));
  return small;
}

absl::StatusOr<GradCheckReport> CheckModel(const TransformerConfig& config, const GradCheckOptions& options) {
  const TransformerConfig small = ShrinkForCheck(config);
  ModelSizes sizes;
  sizes.shared_vocabulary = std::count(small.tied.begin(), small.tied.end(), "source") > 0;
  sizes.source_vocabulary = 9;
  sizes.target_vocabulary = sizes.shared_vocabulary ? 9 : 8;
  sizes.classes = 3;
  Parameters parameters;
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Transformer> model, Transformer::Create(small, sizes, &parameters));
  parameters.Allocate(DType::kF64, 1);
  Perturb(&parameters);

  const auto sequences = [&](std::vector<int32_t> lengths) {
    for (int32_t& length : lengths) {
      if (model->max_length() > 0) length = static_cast<int32_t>(std::min<int64_t>(length, model->max_length()));
    }
    return EndToEnd(lengths);
  };
  const std::vector<Sequence> source = sequences({3, 4, 1}), target = sequences({2, 1, 4});
  const std::vector<int32_t> source_ids = RandomIds(RowsOf(source), sizes.source_vocabulary, "source");
  const std::vector<int32_t> target_ids = RandomIds(RowsOf(target), sizes.target_vocabulary, "target");
  const std::vector<int32_t> labels = small.has_decoder() ? RandomIds(RowsOf(target), sizes.target_vocabulary, "labels")
                                                          : RandomIds(3, sizes.classes, "labels");
  const ModelInput input{source_ids, source, target_ids, target, labels};
  return CheckForward(
      &parameters, {}, [&](Context& context, absl::Span<const Variable>) { return model->Loss(context, input, 0.1).loss; },
      options);
}

std::vector<NamedCheck> LayerChecks() {
  std::vector<NamedCheck> checks;
  for (const LayerType* type : LayerTypes()) {
    checks.push_back({type->name, [type](const GradCheckOptions& options) { return CheckLayer(*type, options); }});
  }
  checks.push_back({"add_norm", CheckAddNorm});
  checks.push_back({"embedding", CheckEmbedding});
  return checks;
}

}  // namespace weft
