// What the tests of whole models share: a small Transformer with random weights, and batches of random ids.
#ifndef WEFT_TESTS_LAYERS_MODEL_RIG_H_
#define WEFT_TESTS_LAYERS_MODEL_RIG_H_

#include <memory>
#include <string>
#include <vector>

#include "data/batcher.h"
#include "layers/transformer.h"
#include "tests/layers/layer_rig.h"
#include "train/gradient.h"

namespace weft {

inline constexpr int64_t kSourceVocabulary = 9, kTargetVocabulary = 8, kClasses = 3;

inline TransformerConfig SmallConfig(const std::string& family) {
  TransformerConfig config;
  config.family = family;
  config.d_model = 12;
  config.layers = 2;
  config.heads = 3;
  config.hidden = 20;
  return config;
}

struct ModelRigOptions {
  DType dtype = DType::kF64;
  uint64_t seed = 1;
  bool perturb = true;
};

class ModelRig {
 public:
  explicit ModelRig(const TransformerConfig& config, ModelRigOptions options = {}) {
    ModelSizes sizes{kSourceVocabulary, kTargetVocabulary, kClasses, false};
    for (const std::string& side : config.tied) {
      if (side == "source") sizes = {kTargetVocabulary, kTargetVocabulary, kClasses, true};
    }
    auto created = Transformer::Create(config, sizes, &parameters);
    EXPECT_TRUE(created.ok()) << created.status();
    model = *std::move(created);
    parameters.Allocate(options.dtype, options.seed);
    if (options.perturb) Perturb(&parameters);
  }

  Parameters parameters;
  std::unique_ptr<Transformer> model;
};

// Sequences of random ids; a sequence's numbers depend on its id alone. Lengths differ from 1 to 6.
inline Batch RandomBatch(const Transformer& model, absl::Span<const int64_t> ids) {
  Batch batch;
  for (int64_t id : ids) {
    const RandomKey key = RandomKey{31}.Fold(static_cast<uint64_t>(id));
    const auto draw = [&](const char* name, int64_t count, int64_t below, std::vector<int32_t>* into) {
      for (int64_t i = 0; i < count; ++i) into->push_back(static_cast<int32_t>(key.Fold(name).Below(i, below)));
    };
    const int64_t source = 1 + (5 * id) % 6, target = 1 + (7 * id + 2) % 6;
    batch.sequence_ids.push_back(id);
    if (model.config().has_encoder()) {
      batch.source_lengths.push_back(source);
      draw("source", source, model.sizes().source_vocabulary, &batch.source_ids);
    }
    if (model.config().has_decoder()) {
      batch.target_lengths.push_back(target);
      draw("target", target, model.sizes().target_vocabulary, &batch.target_ids);
      draw("label", target, model.sizes().target_vocabulary, &batch.target_labels);
    } else {
      draw("class", 1, model.sizes().classes, &batch.classes);
    }
  }
  return batch;
}

// Sum of losses and gradients of a batch that is cut into `shards` leaves.
struct Gradient {
  LossSum loss;
  std::vector<double> values;
};
inline Gradient GradientOf(const ModelRig& rig, const Batch& batch, int64_t shards, double smoothing = 0) {
  GradientRunner runner(*rig.model, rig.parameters);
  std::vector<BatchView> leaves;
  SplitBatch(batch.View(), shards, &leaves);
  Tensor slab;
  const LossSum loss = runner.Run(leaves, smoothing, RandomKey{3}, &slab);
  return {loss, ToDoubles(slab)};
}

}  // namespace weft

#endif  // WEFT_TESTS_LAYERS_MODEL_RIG_H_
