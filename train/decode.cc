#include "train/decode.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace weft {
namespace {

// Row `row` of logits [N, V] as doubles.
void CopyRow(const Tensor& logits, int64_t row, std::vector<double>* out) {
  const int64_t width = logits.shape()[1];
  out->resize(width);
  for (int64_t i = 0; i < width; ++i) (*out)[i] = logits.At(row * width + i);
}

// Caches start small and double, so that memory follows the answers' length and not the limit that was asked for.
constexpr int64_t kFirstCapacity = 64;
void MakeRoom(int64_t tokens, int64_t limit, State* state) {
  if (tokens > state->capacity()) state->Grow(std::min(limit, std::max(tokens, 2 * state->capacity())));
}

RandomKey SampleKey(const DecodeOptions& options, int64_t index) {
  return RandomKey{options.seed}.Fold("sample").Fold(static_cast<uint64_t>(index));
}

}  // namespace

int32_t SampleToken(absl::Span<const double> logits, const DecodeOptions& options, double u) {
  const auto n = static_cast<int32_t>(logits.size());
  WEFT_CHECK_GT(n, 0) << "SampleToken";
  const auto largest = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (options.temperature == 0) return largest;

  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0 && options.top_k < n) order.resize(options.top_k);
  std::vector<double> weights;
  double total = 0;
  for (int32_t id : order) {
    weights.push_back(std::exp((logits[id] - logits[largest]) / options.temperature));
    total += weights.back();
  }
  size_t kept = 0;
  double mass = 0;
  while (kept < order.size() && weights[kept] > 0 && (kept == 0 || mass < options.top_p * total)) mass += weights[kept++];
  // The first token whose running sum exceeds u * mass; rounding may leave none: then the last one kept.
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    sum += weights[i];
    if (sum > u * mass) return order[i];
  }
  return order[kept - 1];
}

std::vector<std::vector<int32_t>> DecodeSources(Context& context, const Transformer& model,
                                                absl::Span<const absl::Span<const int32_t>> sources,
                                                absl::Span<const int64_t> indices, int32_t bos, int32_t eos,
                                                const DecodeOptions& options) {
  const auto count = static_cast<int64_t>(sources.size());
  std::vector<std::vector<int32_t>> answers(count);
  if (count == 0) return answers;
  WEFT_CHECK_GT(options.max_new_tokens, 0) << "DecodeSources";
  WEFT_CHECK_EQ(indices.size(), sources.size()) << "DecodeSources";

  // The memory outlives the tape, which is reset for each token.
  std::vector<int32_t> ids;
  std::vector<Sequence> source_rows;
  for (const auto& source : sources) {
    source_rows.push_back({static_cast<int32_t>(ids.size()), static_cast<int32_t>(source.size()), 0, source_rows.size()});
    ids.insert(ids.end(), source.begin(), source.end());
  }
  context.Begin(Tensor(), {});
  const Tensor encoded = model.Encode(context, ids, source_rows).value();
  const Slab memory(encoded.dtype(), encoded.elements());
  const Tensor memory_view = memory.tensor().Reshaped(encoded.shape());
  memory_view.CopyFrom(encoded);

  // The decoder reads <bos> and all answer tokens but the last; one more step may find that an answer of full length ends.
  int64_t steps = options.max_new_tokens + 1;
  if (model.max_length() > 0) steps = std::min(steps, model.max_length());
  std::optional<State> state;
  if (model.decodes_with_state()) state.emplace(count, std::min(steps, kFirstCapacity));

  std::vector<int32_t> active(count);  // indices of answers that go on
  std::iota(active.begin(), active.end(), 0);
  std::vector<Sequence> rows;
  std::vector<int32_t> last_rows;
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
    context.memory = context.tape().Constant(memory_view);
    context.memory_sequences = source_rows;
    context.memory_of = active;
    context.state = state.has_value() ? &*state : nullptr;
    const Variable hidden = model.Decode(context, ids, rows);
    const Tensor scores = model.Logits(context, GatherRows(hidden, last_rows)).value();

    std::vector<int32_t> still;
    for (size_t a = 0; a < active.size(); ++a) {
      const int32_t i = active[a];
      CopyRow(scores, static_cast<int64_t>(a), &logits);
      const double u = SampleKey(options, indices[i]).Uniform(step);
      const int32_t token = SampleToken(logits, options, u);
      if (token == eos || static_cast<int64_t>(answers[i].size()) == options.max_new_tokens) continue;
      answers[i].push_back(token);
      still.push_back(i);
    }
    active = std::move(still);
  }
  return answers;
}

std::vector<int32_t> ContinueText(Context& context, const Transformer& model, absl::Span<const int32_t> prompt, int64_t window,
                                  const DecodeOptions& options, int64_t index, absl::FunctionRef<void(int32_t)> on_token) {
  WEFT_CHECK(!prompt.empty()) << "ContinueText: empty prompt";
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  int64_t limit = model.max_length();
  if (window > 0) limit = limit == 0 ? window : std::min(limit, window);
  const int64_t full_length = static_cast<int64_t>(prompt.size()) + options.max_new_tokens;
  const int64_t capacity = limit == 0 ? full_length : std::min(limit, full_length);

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
    const double u = SampleKey(options, index).Uniform(size - static_cast<int64_t>(prompt.size()));
    text.push_back(SampleToken(logits, options, u));
    on_token(text.back());
  }
  return {text.begin() + static_cast<int64_t>(prompt.size()), text.end()};
}

}  // namespace weft
