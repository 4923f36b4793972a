// The models that benchmarks run, with the shapes and lengths that a PyTorch user would compare with, and batches of random ids
// for them.
#ifndef WEFT_TOOLS_BENCHMARKS_MODELS_H_
#define WEFT_TOOLS_BENCHMARKS_MODELS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/batcher.h"
#include "layers/transformer.h"

namespace weft::bench {

struct BenchModel {
  const char* name;
  bool is_decoder;  // a language model; else an encoder-decoder with one shared vocabulary
  int64_t vocabulary, window, layers, heads, d_model;
  bool bias;
  int64_t batch;  // sequences
  bool is_ragged;
  int64_t steps;  // that are timed
};

absl::Span<const BenchModel> BenchModels();
// REQUIRES: there is one of that name.
const BenchModel& BenchModelNamed(absl::string_view name);

TransformerConfig ConfigOf(const BenchModel& model);
ModelSizes SizesOf(const BenchModel& model);
// model.batch sequences, ids from a fixed seed.
Batch BatchOf(const BenchModel& model);

// Floating-point operations of a training step on that batch: two per weight of a product and token forward, twice that
// backward; attention's two products over the pairs of query and key that are not masked.
double FlopsOf(const BenchModel& model);

}  // namespace weft::bench

#endif  // WEFT_TOOLS_BENCHMARKS_MODELS_H_
