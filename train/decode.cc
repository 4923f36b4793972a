#include "train/decode.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "autograd/kernels/loss.h"
#include "autograd/kernels/reduce.h"

namespace weft {
namespace {

// Row `row` of logits [N, V] as doubles.
void CopyRow(const Tensor& logits, int64_t row, std::vector<double>* out) {
  const int64_t width = logits.shape()[1];
  const auto copy = [&](const auto* all) { out->assign(all + row * width, all + (row + 1) * width); };
  logits.dtype() == DType::kF32 ? copy(logits.data<float>()) : copy(logits.data<double>());
}

// Appends the natural log-probabilities of logits [N, V], rows first .. first + count - 1. Computed in double from each row by
// itself: a row's bits do not depend on the others, and logits that differ stay different.
template <typename T>
void AppendLogProbabilities(const Tensor& logits, int64_t first, int64_t count, std::vector<double>* out) {
  const int64_t width = logits.shape()[1];
  for (int64_t r = first; r < first + count; ++r) {
    T* row = logits.data<T>() + r * width;
    const auto largest = static_cast<int32_t>(kernels::ArgMax(row, width));
    double loss;  // of the largest: ln sum exp(row) - row[largest]
    kernels::CrossEntropyRows(row, width, &largest, -1, 1, width, 0, /*gradient=*/false, &loss, nullptr);
    const double log_sum = loss + static_cast<double>(row[largest]);
    out->resize(out->size() + width);
    double* to = out->data() + out->size() - width;
    for (int64_t i = 0; i < width; ++i) to[i] = static_cast<double>(row[i]) - log_sum;
  }
}

// Caches start small and double, so that memory follows the answers' length and not the limit that was asked for.
constexpr int64_t kFirstCapacity = 64;
void MakeRoom(int64_t tokens, int64_t limit, State* state) {
  if (tokens > state->capacity()) state->Grow(std::min(limit, std::max(tokens, 2 * state->capacity())));
}

RandomKey SampleKey(const DecodeOptions& options, int64_t index) {
  return RandomKey{options.seed}.Fold("sample").Fold(static_cast<uint64_t>(index));
}

// What the encoder made of a batch of sources. It outlives the tape, which is reset for each token.
struct Memory {
  Slab slab;
  Tensor view;
  std::vector<Sequence> rows;
};

Memory EncodeSources(Context& context, const Transformer& model, absl::Span<const absl::Span<const int32_t>> sources) {
  Memory memory;
  std::vector<int32_t> ids;
  for (const auto& source : sources) {
    memory.rows.push_back({static_cast<int32_t>(ids.size()), static_cast<int32_t>(source.size()), 0, memory.rows.size()});
    ids.insert(ids.end(), source.begin(), source.end());
  }
  context.Begin(Tensor(), {});
  const Tensor encoded = model.Encode(context, ids, memory.rows).value();
  memory.slab = Slab(encoded.dtype(), encoded.elements());
  memory.view = memory.slab.tensor().Reshaped(encoded.shape());
  memory.view.CopyFrom(encoded);
  return memory;
}

// `asked`, or LongestAnswer if that is less.
int64_t LimitAnswer(const Transformer& model, int64_t asked) {
  return LongestAnswer(model) > 0 ? std::min(asked, LongestAnswer(model)) : asked;
}

// How many tokens of a text of `full_length` a language model looks at.
int64_t Visible(const Transformer& model, int64_t window, int64_t full_length) {
  if (model.max_length() > 0) full_length = std::min(full_length, model.max_length());
  return window > 0 ? std::min(full_length, window) : full_length;
}

// The search of one source: hypotheses, and the slot of the state that each of them has. Slots are first .. first + beam - 1.
struct SourceSearch {
  BeamSearch search;
  int32_t first;
  std::vector<int32_t> slots;

  // After a step: the first hypothesis that continues another keeps its slot, further ones get slots that are free, so that
  // little is copied. from[slot] is set for those.
  void AssignSlots(int64_t beam, absl::Span<int32_t> from) {
    std::vector<int32_t> next(search.width(), -1);
    std::vector<bool> taken(beam, false);
    for (int64_t i = 0; i < search.width(); ++i) {
      const int32_t slot = slots[search.parent(i)];
      if (taken[slot - first]) continue;
      taken[slot - first] = true;
      next[i] = slot;
    }
    int32_t free = 0;
    for (int64_t i = 0; i < search.width(); ++i) {
      if (next[i] >= 0) continue;
      while (taken[free]) ++free;
      taken[free] = true;
      next[i] = first + free;
      from[next[i]] = slots[search.parent(i)];
    }
    slots = std::move(next);
  }
};

// Searches `count` answers side by side, each after the tokens of `prefix`. A text longer than `capacity` is seen through its
// last `capacity` tokens. `memory` is null in a decoder-only model.
std::vector<std::vector<Hypothesis>> Search(Context& context, const Transformer& model, absl::Span<const int32_t> prefix,
                                            int64_t count, const Memory* memory, int64_t capacity, int32_t eos,
                                            const BeamOptions& options) {
  std::vector<SourceSearch> all;
  for (int64_t i = 0; i < count; ++i) {
    const auto first = static_cast<int32_t>(i * options.beam);
    all.push_back({BeamSearch(options, eos), first, {first}});
  }
  const auto prefix_size = static_cast<int64_t>(prefix.size());
  std::optional<State> state;
  if (model.decodes_with_state()) {
    state.emplace(count * options.beam, std::min(capacity, prefix_size + kFirstCapacity));
  }
  int64_t cached = 0;  // tokens of each text that are in the state
  std::vector<int32_t> active(count), ids, last_rows, memory_of, from(count * options.beam);
  std::iota(active.begin(), active.end(), 0);
  std::vector<Sequence> rows;
  std::vector<double> log_probabilities;
  for (int64_t size = prefix_size; !active.empty(); ++size) {
    const bool slides = size > capacity, uses_state = state.has_value() && !slides;
    const int64_t first = slides ? size - capacity : (uses_state ? cached : 0);
    ids.clear();
    rows.clear();
    last_rows.clear();
    memory_of.clear();
    for (int32_t a : active) {
      for (int64_t i = 0; i < all[a].search.width(); ++i) {
        rows.push_back({static_cast<int32_t>(ids.size()), static_cast<int32_t>(size - first),
                        static_cast<int32_t>(slides ? 0 : first), static_cast<uint64_t>(all[a].slots[i])});
        const absl::Span<const int32_t> tokens = all[a].search.tokens(i);
        if (first < prefix_size) ids.insert(ids.end(), prefix.begin() + first, prefix.end());
        ids.insert(ids.end(), tokens.begin() + std::max<int64_t>(0, first - prefix_size), tokens.end());
        last_rows.push_back(static_cast<int32_t>(ids.size()) - 1);
        memory_of.push_back(a);
      }
    }
    if (uses_state) MakeRoom(size, capacity, &*state);
    context.Begin(Tensor(), {});
    if (memory != nullptr) {
      context.memory = context.tape().Constant(memory->view);
      context.memory_sequences = memory->rows;
      context.memory_of = memory_of;
    }
    context.state = uses_state ? &*state : nullptr;
    const Variable hidden = model.Decode(context, ids, rows);
    const Tensor logits = model.Logits(context, GatherRows(hidden, last_rows)).value();

    std::iota(from.begin(), from.end(), 0);
    std::vector<int32_t> still;
    int64_t row = 0;
    for (int32_t a : active) {
      BeamSearch& search = all[a].search;
      const int64_t width = search.width();
      log_probabilities.clear();
      logits.dtype() == DType::kF32 ? AppendLogProbabilities<float>(logits, row, width, &log_probabilities)
                                    : AppendLogProbabilities<double>(logits, row, width, &log_probabilities);
      row += width;
      search.Step(log_probabilities);
      if (search.done()) continue;
      all[a].AssignSlots(options.beam, absl::MakeSpan(from));
      still.push_back(a);
    }
    active = std::move(still);
    if (uses_state) state->Reorder(from, size);
    cached = size;
  }
  std::vector<std::vector<Hypothesis>> best;
  for (const SourceSearch& one : all) best.push_back(one.search.best());
  return best;
}

}  // namespace

std::vector<std::vector<int32_t>> DecodeSources(Context& context, const Transformer& model,
                                                absl::Span<const absl::Span<const int32_t>> sources,
                                                absl::Span<const int64_t> indices, int32_t bos, int32_t eos,
                                                const DecodeOptions& options) {
  const auto count = static_cast<int64_t>(sources.size());
  std::vector<std::vector<int32_t>> answers(count);
  if (count == 0) return answers;
  WEFT_CHECK_GT(options.max_new_tokens, 0) << "DecodeSources";
  WEFT_CHECK_EQ(indices.size(), sources.size()) << "DecodeSources";

  const Memory memory = EncodeSources(context, model, sources);

  // A token a step: the decoder reads <bos> and all answer tokens but the last.
  const int64_t steps = LimitAnswer(model, options.max_new_tokens);
  std::optional<State> state;
  if (model.decodes_with_state()) state.emplace(count, std::min(steps, kFirstCapacity));

  std::vector<int32_t> active(count);  // indices of answers that go on
  std::iota(active.begin(), active.end(), 0);
  std::vector<Sequence> rows;
  std::vector<int32_t> ids, last_rows;
  std::vector<double> logits;
  for (int64_t step = 0; step < steps && !active.empty(); ++step) {
    if (state.has_value()) MakeRoom(step + 1, steps, &*state);
    ids.clear();
    rows.clear();
    last_rows.clear();
    for (int32_t i : active) {
      const auto start = static_cast<int32_t>(ids.size());
      if (state.has_value()) {
        ids.push_back(step == 0 ? bos : answers[i].back());
        rows.push_back({start, 1, static_cast<int32_t>(step), static_cast<uint64_t>(i)});
      } else {
        ids.push_back(bos);
        ids.insert(ids.end(), answers[i].begin(), answers[i].end());
        rows.push_back({start, static_cast<int32_t>(step) + 1, 0, static_cast<uint64_t>(i)});
      }
      last_rows.push_back(static_cast<int32_t>(ids.size()) - 1);
    }
    context.Begin(Tensor(), {});
    context.memory = context.tape().Constant(memory.view);
    context.memory_sequences = memory.rows;
    context.memory_of = active;
    context.state = state.has_value() ? &*state : nullptr;
    const Variable hidden = model.Decode(context, ids, rows);
    const Tensor scores = model.Logits(context, GatherRows(hidden, last_rows)).value();

    std::vector<int32_t> still;
    for (size_t a = 0; a < active.size(); ++a) {
      const int32_t i = active[a];
      CopyRow(scores, static_cast<int64_t>(a), &logits);
      PenalizeRepetition(answers[i], options.repetition_penalty, absl::MakeSpan(logits));
      if (eos >= 0 && static_cast<int64_t>(answers[i].size()) < options.min_new_tokens) {
        logits[eos] = -std::numeric_limits<double>::infinity();
      }
      const double u = SampleKey(options, indices[i]).Uniform(step);
      const int32_t token = SampleToken(logits, options, u);
      if (token == eos) continue;
      answers[i].push_back(token);
      still.push_back(i);
    }
    active = std::move(still);
  }
  return answers;
}

std::vector<std::vector<Hypothesis>> SearchSources(Context& context, const Transformer& model,
                                                   absl::Span<const absl::Span<const int32_t>> sources, int32_t bos,
                                                   int32_t eos, const BeamOptions& options) {
  if (sources.empty()) return {};
  BeamOptions limited = options;
  limited.max_length = LimitAnswer(model, options.max_length);
  limited.min_length = std::min(options.min_length, limited.max_length);
  int64_t capacity = limited.max_length + 1;
  if (model.max_length() > 0) capacity = std::min(capacity, model.max_length());
  const Memory memory = EncodeSources(context, model, sources);
  return Search(context, model, {&bos, 1}, static_cast<int64_t>(sources.size()), &memory, capacity, eos, limited);
}

std::vector<int32_t> ContinueText(Context& context, const Transformer& model, absl::Span<const int32_t> prompt, int64_t window,
                                  const DecodeOptions& options, int64_t index, absl::FunctionRef<void(int32_t)> on_token) {
  WEFT_CHECK(!prompt.empty()) << "ContinueText: empty prompt";
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  const int64_t full_length = static_cast<int64_t>(prompt.size()) + options.max_new_tokens;
  const int64_t capacity = Visible(model, window, full_length);

  std::optional<State> state;
  if (model.decodes_with_state()) state.emplace(1, std::min(capacity, static_cast<int64_t>(prompt.size()) + kFirstCapacity));
  int64_t cached = 0;  // tokens in the state
  std::vector<double> logits;
  while (static_cast<int64_t>(text.size()) < full_length) {
    // Once the text is longer than the window, its start moves with each token, so every cached key has a new position: compute
    // all again.
    const auto size = static_cast<int64_t>(text.size());
    const bool slides = size > capacity;
    const int64_t first = slides ? size - capacity : (state.has_value() ? cached : 0);
    const int64_t position = slides ? 0 : first;
    context.Begin(Tensor(), {});
    if (state.has_value() && !slides) {
      MakeRoom(size, capacity, &*state);
      context.state = &*state;
    }
    const auto ids = absl::MakeConstSpan(text).subspan(first);
    const Sequence sequence{0, static_cast<int32_t>(ids.size()), static_cast<int32_t>(position), 0};
    const Variable hidden = model.Decode(context, ids, {&sequence, 1});
    cached = size;
    const auto last = static_cast<int32_t>(ids.size()) - 1;
    CopyRow(model.Logits(context, GatherRows(hidden, {&last, 1})).value(), 0, &logits);
    PenalizeRepetition(text, options.repetition_penalty, absl::MakeSpan(logits));
    const double u = SampleKey(options, index).Uniform(size - static_cast<int64_t>(prompt.size()));
    text.push_back(SampleToken(logits, options, u));
    on_token(text.back());
  }
  return {text.begin() + static_cast<int64_t>(prompt.size()), text.end()};
}

std::vector<Hypothesis> SearchText(Context& context, const Transformer& model, absl::Span<const int32_t> prompt, int64_t window,
                                   int32_t eos, const BeamOptions& options) {
  WEFT_CHECK(!prompt.empty()) << "SearchText: empty prompt";
  const int64_t full_length = static_cast<int64_t>(prompt.size()) + options.max_length;
  return Search(context, model, prompt, 1, nullptr, Visible(model, window, full_length), eos, options)[0];
}

}  // namespace weft
