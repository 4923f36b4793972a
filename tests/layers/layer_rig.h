// What the tests of layers share: a layer of a registered type with random weights, inputs whose numbers depend on (sequence,
// place) only, and passes through it whose results come back as plain doubles (exact for f32, so equal doubles are equal bits).
#ifndef WEFT_TESTS_LAYERS_LAYER_RIG_H_
#define WEFT_TESTS_LAYERS_LAYER_RIG_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "layers/layer.h"
#include "layers/transformer_config.h"

namespace weft {

inline std::vector<double> ToDoubles(const Tensor& tensor) {
  std::vector<double> values(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = tensor.At(i);
  return values;
}

// Largest |a - b|, relative to the largest |b| (absolute when that is below 1e-30).
inline double RelativeError(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double error = 0, scale = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double e = std::abs(a[i] - b[i]);
    error = std::isnan(e) ? INFINITY : std::max(error, e);
    scale = std::max(scale, std::abs(b[i]));
  }
  return scale < 1e-30 ? error : error / scale;
}

// Adds 0.2 times standard normal numbers to all parameters, so that no bias is 0 and no scale is 1.
inline void Perturb(Parameters* parameters) {
  const Tensor slab = parameters->Mutable();
  for (const ParameterInfo& info : parameters->list()) {
    const Tensor value = Parameters::In(slab, info);
    for (int64_t i = 0; i < value.elements(); ++i) value.Set(i, value.At(i) + 0.2 * RandomKey{7}.Fold(info.name).Normal(i));
  }
}

// into's parameters get the values of from's parameters of the same names.
inline void CopyByName(const Parameters& from, Parameters* into) {
  const Tensor slab = into->Mutable();
  ASSERT_EQ(from.list().size(), into->list().size());
  for (const ParameterInfo& info : into->list()) {
    const int index = from.Find(info.name);
    ASSERT_GE(index, 0) << info.name;
    const Tensor source = from.value(index), target = Parameters::In(slab, info);
    for (int64_t i = 0; i < target.elements(); ++i) target.Set(i, source.At(i));
  }
}

struct RigOptions {
  DType dtype = DType::kF32;
  int64_t d_model = 12, heads = 3, kv_heads = 1, hidden = 10;
  double dropout = 0;
  uint64_t seed = 1;
  bool perturb = true;
};

// A layer of a registered type.
class LayerRig {
 public:
  LayerRig(const std::string& type_name, const RigOptions& options) : type(*FindLayerType(type_name)), options(options) {
    TransformerConfig config;
    config.d_model = options.d_model;
    config.heads = options.heads;
    config.kv_heads = options.kv_heads;
    config.hidden = options.hidden;
    config.max_positions = 512;
    config.dropout = config.attention_dropout = config.hidden_dropout = options.dropout;
    const Options inherited = config.Inherited(), own;
    OptionsReader reader(type_name, own, &inherited);
    Builder builder = Builder(&parameters).Sub(type_name);
    auto created = type.create(builder, reader);
    EXPECT_TRUE(created.ok()) << created.status();
    layer = *std::move(created);
    parameters.Allocate(options.dtype, options.seed);
    if (options.perturb) Perturb(&parameters);
    gradients = Slab(options.dtype, parameters.slab_size());
  }

  const LayerType& type;
  const RigOptions options;
  Parameters parameters;
  std::unique_ptr<Layer> layer;
  Slab gradients;
};

// Random rows for some sequences, and for the memories of all of them.
struct LayerInput {
  std::vector<Sequence> sequences, memory_sequences;
  std::vector<double> x, memory;
  bool causal = false;
};

inline int32_t MemoryLength(uint64_t id) { return 1 + static_cast<int32_t>((5 * id + 2) % 7); }

// Sequences with these ids and lengths. Rows depend on the id and the place alone.
inline LayerInput MakeInput(const std::vector<uint64_t>& ids, const std::vector<int32_t>& lengths, int64_t width) {
  LayerInput input;
  const auto append = [&](uint64_t id, int32_t length, const char* name, std::vector<Sequence>* sequences,
                          std::vector<double>* rows) {
    sequences->push_back({static_cast<int32_t>(static_cast<int64_t>(rows->size()) / width), length, 0, id});
    for (int64_t i = 0; i < length * width; ++i) rows->push_back(RandomKey{11}.Fold(name).Fold(id).Normal(i));
  };
  for (size_t i = 0; i < ids.size(); ++i) {
    append(ids[i], lengths[i], "x", &input.sequences, &input.x);
    append(ids[i], MemoryLength(ids[i]), "memory", &input.memory_sequences, &input.memory);
  }
  return input;
}

inline Tensor Fill(Tape* tape, DType dtype, const std::vector<double>& values, int64_t width) {
  const Tensor tensor = tape->Allocate(dtype, {static_cast<int64_t>(values.size()) / width, width});
  for (size_t i = 0; i < values.size(); ++i) tensor.Set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

// Everything that a training pass computes.
struct Pass {
  std::vector<double> y, dx, dmemory, gradients;
  friend bool operator==(const Pass&, const Pass&) = default;
};

// Forward and backward with an upstream gradient that depends on the sequence and the place, like x.
inline Pass Train(const LayerRig& rig, const LayerInput& input) {
  const int64_t width = rig.options.d_model;
  const DType dtype = rig.options.dtype;
  rig.gradients.tensor().Zero();
  Context context(rig.parameters);
  context.Begin(rig.gradients.tensor(), RandomKey{5});
  Tape& tape = context.tape();
  context.sequences = input.sequences;
  context.causal = input.causal;
  const Variable x = tape.Input(Fill(&tape, dtype, input.x, width));
  Variable memory;
  if (rig.type.traits.needs_memory) {
    memory = context.memory = tape.Input(Fill(&tape, dtype, input.memory, width));
    context.memory_sequences = input.memory_sequences;
  }
  const Variable y = rig.layer->Forward(context, x);
  std::vector<double> upstream;
  for (const Sequence& s : input.sequences) {
    for (int64_t i = 0; i < s.length * width; ++i) upstream.push_back(RandomKey{12}.Fold(s.id).Normal(i));
  }
  tape.Backward(y, Fill(&tape, dtype, upstream, width));
  Pass pass;
  pass.y = ToDoubles(y.value());
  if (tape.Gradient(x).defined()) pass.dx = ToDoubles(tape.Gradient(x));
  if (memory.defined()) pass.dmemory = ToDoubles(tape.Gradient(memory));
  pass.gradients = ToDoubles(rig.gradients.tensor());
  return pass;
}

// Forward only, in inference mode. With a state, memory_of and the memory of all sequences may be given by `input`.
inline std::vector<double> Infer(const LayerRig& rig, const LayerInput& input, State* state = nullptr,
                                 absl::Span<const int32_t> memory_of = {}) {
  const int64_t width = rig.options.d_model;
  Context context(rig.parameters);
  context.Begin(Tensor(), {});
  Tape& tape = context.tape();
  context.sequences = input.sequences;
  context.causal = input.causal;
  context.state = state;
  if (rig.type.traits.needs_memory) {
    context.memory = tape.Constant(Fill(&tape, rig.options.dtype, input.memory, width));
    context.memory_sequences = input.memory_sequences;
    context.memory_of = memory_of;
  }
  return ToDoubles(rig.layer->Forward(context, tape.Constant(Fill(&tape, rig.options.dtype, input.x, width))).value());
}

// Rows first .. first + count - 1 of a matrix of that width.
inline std::vector<double> Rows(const std::vector<double>& matrix, int64_t width, int64_t first, int64_t count) {
  return {matrix.begin() + first * width, matrix.begin() + (first + count) * width};
}

}  // namespace weft

#endif  // WEFT_TESTS_LAYERS_LAYER_RIG_H_
