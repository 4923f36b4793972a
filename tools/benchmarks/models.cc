#include "tools/benchmarks/models.h"

#include <utility>

#include "autograd/base/check.h"
#include "autograd/base/random.h"

namespace weft::bench {
namespace {

constexpr BenchModel kModels[] = {
    {"tiny", true, 65, 32, 2, 2, 64, false, 8, false, 200},
    {"nano", true, 65, 64, 4, 4, 128, false, 12, false, 60},
    {"baby", true, 65, 256, 6, 6, 384, false, 8, false, 8},
    {"gpt2", true, 50304, 64, 12, 12, 768, true, 4, false, 5},
    {"seq2seq", false, 8000, 24, 3, 4, 256, true, 64, false, 8},
    {"seq2seq_ragged", false, 8000, 24, 3, 4, 256, true, 64, true, 8},
};

// Lengths of sequence i: the window, or 4 to 22 with mean 13, like short sentences.
std::pair<int64_t, int64_t> LengthsOf(const BenchModel& model, int64_t i) {
  if (!model.is_ragged) return {model.is_decoder ? 0 : model.window, model.window};
  return {4 + 7 * i % 19, 4 + (11 * i + 5) % 19};
}

}  // namespace

absl::Span<const BenchModel> BenchModels() { return kModels; }

const BenchModel& BenchModelNamed(absl::string_view name) {
  for (const BenchModel& model : kModels) {
    if (model.name == name) return model;
  }
  WEFT_CHECK(false) << "no bench model " << name;
  return kModels[0];
}

TransformerConfig ConfigOf(const BenchModel& model) {
  TransformerConfig config;
  config.family = model.is_decoder ? "decoder" : "encoder_decoder";
  config.d_model = model.d_model;
  config.layers = config.encoder_layers = config.decoder_layers = model.layers;
  config.heads = config.kv_heads = model.heads;
  config.hidden = 4 * model.d_model;
  config.bias = model.bias;
  config.positions = model.is_decoder ? "learned" : "sinusoidal";
  config.max_positions = model.window;
  config.embedding_scale = !model.is_decoder;
  config.tied =
      model.is_decoder ? std::vector<std::string>{"target", "output"} : std::vector<std::string>{"source", "target", "output"};
  return config;
}

ModelSizes SizesOf(const BenchModel& model) { return {model.is_decoder ? 0 : model.vocabulary, model.vocabulary, 0, true}; }

Batch BatchOf(const BenchModel& model) {
  const RandomKey key = RandomKey{1}.Fold(model.name);
  Batch batch;
  uint64_t drawn = 0;
  const auto fill = [&](int64_t count, std::vector<int32_t>* ids) {
    for (int64_t t = 0; t < count; ++t) ids->push_back(static_cast<int32_t>(key.Below(drawn++, model.vocabulary)));
  };
  for (int64_t i = 0; i < model.batch; ++i) {
    const auto [source, target] = LengthsOf(model, i);
    batch.sequence_ids.push_back(i);
    if (source > 0) batch.source_lengths.push_back(source);
    batch.target_lengths.push_back(target);
    fill(source, &batch.source_ids);
    fill(target, &batch.target_ids);
    fill(target, &batch.target_labels);
  }
  return batch;
}

double FlopsOf(const BenchModel& model) {
  const auto d = static_cast<double>(model.d_model), hidden = 4 * d;
  double flops = 0;
  for (int64_t i = 0; i < model.batch; ++i) {
    const auto [source_length, target_length] = LengthsOf(model, i);
    const auto s = static_cast<double>(source_length), t = static_cast<double>(target_length),
               blocks = static_cast<double>(model.layers);
    double products = t * blocks * (4 * d * d + 2 * d * hidden) + t * static_cast<double>(model.vocabulary) * d;
    double pairs = blocks * t * (t + 1) / 2;
    if (!model.is_decoder) {
      products += blocks * (s * (4 * d * d + 2 * d * hidden) + t * 2 * d * d + s * 2 * d * d);
      pairs += blocks * (s * s + t * s);
    }
    flops += 3 * 2 * (products + 2 * d * pairs);
  }
  return flops;
}

}  // namespace weft::bench
