// Decoding: from sources to answers (encoder_decoder), and from a prompt to its continuation (decoder). Greedy or sampling (see
// train/sampling.h), or by beam search (see train/beam.h). Keys and values are cached where every layer of the decoder supports
// it; if not, the prefix is computed again for each token. Sequence i of a batch gives the same tokens, and a search the same
// bits of scores, whatever its neighbours are; sampled tokens depend on (seed, index of the sequence, place) only.
#ifndef WEFT_TRAIN_DECODE_H_
#define WEFT_TRAIN_DECODE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "autograd/base/random.h"
#include "layers/transformer.h"
#include "train/beam.h"
#include "train/sampling.h"

namespace weft {

// The most tokens of an answer: the model reads <bos> and all of them before it can say <eos>. 0: no limit.
inline int64_t LongestAnswer(const Transformer& model) {
  return model.max_length() == 0 ? 0 : std::max<int64_t>(1, model.max_length() - 1);
}

// The answers to sources, without <bos> and <eos>; an answer that does not end within options.max_new_tokens, or within
// LongestAnswer, is cut there. `indices` are the numbers of these sources among all of the call, which key the sampling.
// REQUIRES: family encoder_decoder; sizes agree.
std::vector<std::vector<int32_t>> DecodeSources(Context& context, const Transformer& model,
                                                absl::Span<const absl::Span<const int32_t>> sources,
                                                absl::Span<const int64_t> indices, int32_t bos, int32_t eos,
                                                const DecodeOptions& options);

// How many sources a search takes side by side: about as many rows a step as greedy decoding has, so that caches stay small.
inline int64_t SourcesAtOnce(int64_t beam) { return beam < 128 ? 128 / beam : 1; }

// For each source the n best answers of a beam search, best first, of at most LongestAnswer tokens; the hypotheses of a source
// share its memory, and sources that are done leave the batch. REQUIRES: family encoder_decoder.
std::vector<std::vector<Hypothesis>> SearchSources(Context& context, const Transformer& model,
                                                   absl::Span<const absl::Span<const int32_t>> sources, int32_t bos,
                                                   int32_t eos, const BeamOptions& options);

// Continues `prompt` by options.max_new_tokens tokens and returns those; `on_token` sees each as soon as it is known. When the
// text grows longer than `window` tokens (0: no limit; the model's own limit counts too), the model sees the last `window`
// tokens. `index` keys the sampling; repetition is that of the prompt and the new tokens. REQUIRES: family decoder, prompt not
// empty.
std::vector<int32_t> ContinueText(Context& context, const Transformer& model, absl::Span<const int32_t> prompt, int64_t window,
                                  const DecodeOptions& options, int64_t index, absl::FunctionRef<void(int32_t token)> on_token);

// The n best continuations of `prompt` by options.max_length tokens, or up to `eos` if that is not negative; `window` as above.
// REQUIRES: family decoder, prompt not empty.
std::vector<Hypothesis> SearchText(Context& context, const Transformer& model, absl::Span<const int32_t> prompt, int64_t window,
                                   int32_t eos, const BeamOptions& options);

}  // namespace weft

#endif  // WEFT_TRAIN_DECODE_H_
