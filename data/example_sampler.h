// Subword sampling of training examples: keeps their texts, and segments one anew for each epoch. A draw is a function of
// (key, example, side) alone, so it depends on no thread, neighbour, place in the batch or resume. Batches are composed by the
// plain lengths; a drawn encoding that the model could not take, or that has an unknown symbol, gives way to the plain one.
// A default-made sampler draws nothing and keeps no text. A value; const methods are thread-safe.
#ifndef WEFT_DATA_EXAMPLE_SAMPLER_H_
#define WEFT_DATA_EXAMPLE_SAMPLER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/base/random.h"
#include "data/tokenizer.h"

namespace weft {

class ExampleSampler {
 public:
  enum Side { kSource, kTarget };

  ExampleSampler() = default;
  // Tokenizers may be null for a side that does not exist, and must outlive the sampler.
  ExampleSampler(const Tokenizer* source, const SubwordSampling& source_sampling, const Tokenizer* target,
                 const SubwordSampling& target_sampling);

  bool on() const { return sides_[kSource].sampling.on() || sides_[kTarget].sampling.on(); }
  // The texts of the next example; several columns of a source are joined by tabs, as <sep> joins their ids. Those of a side
  // that is not sampled are not kept.
  void Add(absl::string_view source, absl::string_view target);
  // The most tokens of one side that a model takes, with <eos>.
  void Limit(int64_t tokens) { limit_ = tokens; }

  // The ids of a side of `example` under `key` (of a seed and an epoch): `plain`, or a drawn encoding in `*drawn`, which must
  // live as long as the result.
  absl::Span<const int32_t> Ids(Side side, int64_t example, RandomKey key, absl::Span<const int32_t> plain,
                                std::vector<int32_t>* drawn) const;

 private:
  struct SideData {
    const Tokenizer* tokenizer = nullptr;
    SubwordSampling sampling;
    std::vector<std::string> texts;
  };
  SideData sides_[2];
  int64_t limit_ = std::numeric_limits<int64_t>::max();
};

}  // namespace weft

#endif  // WEFT_DATA_EXAMPLE_SAMPLER_H_
