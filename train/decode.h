// Decoding: from sources to answers (encoder_decoder), and from a prompt to its continuation (decoder). Greedy, or sampling
// with temperature, top-k and top-p. Keys and values are cached where every layer of the decoder supports it; if not, the
// prefix is computed again for each token. Sequence i of a batch gives the same tokens whatever its neighbours are; sampled
// tokens depend on (seed, index of the sequence, place) only.
#ifndef WEFT_TRAIN_DECODE_H_
#define WEFT_TRAIN_DECODE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "autograd/base/random.h"
#include "layers/transformer.h"

namespace weft {

struct DecodeOptions {
  int64_t max_new_tokens = 0;  // at most this many, <eos> not counted; REQUIRES: > 0
  double temperature = 0;      // 0: greedy, the largest logit (the first of ties); else logits are divided by it
  int64_t top_k = 0;           // keep the k most probable tokens; 0: all
  double top_p = 1;            // keep the fewest tokens whose probability reaches p (Holtzman et al. 2020, section 3.1)
  uint64_t seed = 1;
};

// One token drawn from `logits` by the options, with `u` uniform in [0, 1). Never a token of probability zero; equal logits
// keep the order of their ids. REQUIRES: not empty; at least one finite logit, no NaN.
int32_t SampleToken(absl::Span<const double> logits, const DecodeOptions& options, double u);

// The answers to sources, without <bos> and <eos>; an answer that does not end within the limit is cut there; the model's
// length limit also cuts. `indices` are the numbers of these sources among all of the call, which key the sampling. REQUIRES:
// family encoder_decoder; sizes agree.
std::vector<std::vector<int32_t>> DecodeSources(Context& context, const Transformer& model,
                                                absl::Span<const absl::Span<const int32_t>> sources,
                                                absl::Span<const int64_t> indices, int32_t bos, int32_t eos,
                                                const DecodeOptions& options);

// Continues `prompt` by options.max_new_tokens tokens and returns those; `on_token` sees each as soon as it is known. When the
// text grows longer than `window` tokens (0: no limit; the model's own limit counts too), the model sees the last `window`
// tokens. `index` keys the sampling. REQUIRES: family decoder, prompt not empty.
std::vector<int32_t> ContinueText(Context& context, const Transformer& model, absl::Span<const int32_t> prompt, int64_t window,
                                  const DecodeOptions& options, int64_t index, absl::FunctionRef<void(int32_t token)> on_token);

}  // namespace weft

#endif  // WEFT_TRAIN_DECODE_H_
