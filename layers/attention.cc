#include "layers/attention.h"

#include <cstring>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// The attention op with this layer's options; hands the weights to the probe, if there is one.
Variable Attend(Context& context, const AttentionConfig& config, const std::string& path, Columns q, Columns k, Columns v,
                Sequences keys, bool causal, absl::Span<const int32_t> key_of_query) {
  AttentionOptions options;
  options.heads = config.heads;
  options.kv_heads = config.kv_heads;
  options.causal = causal;
  options.key_of_query = key_of_query;
  if (context.training() && config.attention_dropout > 0) {
    options.dropout = config.attention_dropout;
    options.key = context.Key(path);
  }
  if (context.probe != nullptr) {
    const int64_t count = AttentionWeightCount(context.sequences, keys, options);
    options.weights = context.tape().Allocate(q.x.dtype(), {count});
  }
  const Variable y = Attention(q, k, v, context.sequences, keys, options);
  if (context.probe != nullptr) {
    context.probe->AttentionWeights(path, config.heads, context.sequences, keys, key_of_query, options.weights);
  }
  return y;
}

int64_t KvWidth(const AttentionConfig& config) {
  WEFT_CHECK_GT(config.kv_heads, 0) << "attention: the config was not resolved";
  return config.d_model / config.heads * config.kv_heads;
}

// Copies columns first .. first + width - 1 of each new row to the cache, behind what its slot holds.
void Append(const State& state, Sequences sequences, const Tensor& rows, int64_t first, const Tensor& cache) {
  const int64_t width = cache.shape()[1], bytes = DTypeSize(cache.dtype());
  const int64_t stride = rows.shape()[1];
  for (const Sequence& s : sequences) {
    const auto slot = static_cast<int64_t>(s.id);
    WEFT_CHECK(slot < state.slots() && s.position + s.length <= state.capacity())
        << "decoding: slot " << slot << " of " << state.slots() << ", position " << s.position << " + " << s.length << " of "
        << state.capacity();
    for (int64_t t = 0; t < s.length; ++t) {
      const char* from = static_cast<const char*>(rows.raw()) + ((s.start + t) * stride + first) * bytes;
      char* to = static_cast<char*>(cache.raw()) + (slot * state.capacity() + s.position + t) * width * bytes;
      std::memcpy(to, from, width * bytes);
    }
  }
}

}  // namespace

void AttentionConfig::Fields(FieldVisitor& v) {
  v.Visit("d_model", d_model, {.min = 1}, "width of input and output");
  v.Visit("heads", heads, {.min = 1}, "query heads; d_model must be divisible by it");
  v.Visit("kv_heads", kv_heads, {.min = 1}, "key/value heads; heads must be divisible by it; default: as many as heads");
  v.Visit("bias", bias, "biases in all four projections");
  v.Visit("attention_dropout", attention_dropout, {.min = 0, .max = 1, .max_open = true}, "dropout on the attention weights");
}

absl::Status AttentionConfig::Resolve(absl::string_view path) {
  if (heads < 1 || d_model % heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": d_model = ", d_model, " is not divisible by heads = ", heads));
  }
  if (kv_heads == 0) kv_heads = heads;
  if (heads % kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": heads = ", heads, " is not divisible by kv_heads = ", kv_heads));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Layer>> SelfAttention::Create(Builder& builder, const Config& config) {
  Config resolved = config;
  WEFT_RETURN_IF_ERROR(resolved.Resolve(builder.path()));
  return std::make_unique<SelfAttention>(builder, resolved);
}

SelfAttention::SelfAttention(const Builder& builder, const Config& config)
    : Layer(builder),
      config_(config),
      qkv_(builder, config.d_model, {{"q", config.d_model}, {"k", KvWidth(config)}, {"v", KvWidth(config)}}, config.bias),
      out_(builder.Sub("o"), config.d_model, config.d_model, config.bias, true) {}

Variable SelfAttention::Forward(Context& context, Variable x) const {
  const int64_t width = config_.d_model, kv_width = KvWidth(config_);
  const Variable qkv = qkv_.Forward(context, x);
  const Columns q(qkv, 0, width);
  if (context.state == nullptr) {
    const Columns k(qkv, width, kv_width), v(qkv, width + kv_width, kv_width);
    return out_.Forward(context, Attend(context, config_, path(), q, k, v, context.sequences, context.causal, {}));
  }
  State& state = *context.state;
  const Tensor keys = state.Cache(path() + ".keys", x.dtype(), kv_width);
  const Tensor values = state.Cache(path() + ".values", x.dtype(), kv_width);
  Append(state, context.sequences, qkv.value(), width, keys);
  Append(state, context.sequences, qkv.value(), width + kv_width, values);
  // All that is cached now, the new tokens included.
  absl::InlinedVector<Sequence, 64> cached;
  for (const Sequence& s : context.sequences) {
    cached.push_back({static_cast<int32_t>(static_cast<int64_t>(s.id) * state.capacity()), s.position + s.length, 0, s.id});
  }
  Tape& tape = context.tape();
  return out_.Forward(
      context, Attend(context, config_, path(), q, tape.Constant(keys), tape.Constant(values), cached, context.causal, {}));
}

absl::StatusOr<std::unique_ptr<Layer>> CrossAttention::Create(Builder& builder, const Config& config) {
  Config resolved = config;
  WEFT_RETURN_IF_ERROR(resolved.Resolve(builder.path()));
  return std::make_unique<CrossAttention>(builder, resolved);
}

CrossAttention::CrossAttention(const Builder& builder, const Config& config)
    : Layer(builder),
      config_(config),
      query_(builder.Sub("q"), config.d_model, config.d_model, config.bias),
      kv_(builder, config.d_model, {{"k", KvWidth(config)}, {"v", KvWidth(config)}}, config.bias),
      out_(builder.Sub("o"), config.d_model, config.d_model, config.bias, true) {}

Variable CrossAttention::Forward(Context& context, Variable x) const {
  WEFT_CHECK(context.memory.defined()) << path() << ": cross attention without a memory";
  const int64_t kv_width = KvWidth(config_);
  const Variable q = query_.Forward(context, x);
  Variable kv;
  if (context.state == nullptr) {
    kv = kv_.Forward(context, context.memory);
  } else {
    if (!context.state->Fixed(path()).defined()) context.state->SetFixed(path(), kv_.Forward(context, context.memory).value());
    kv = context.tape().Constant(context.state->Fixed(path()));
  }
  const Columns k(kv, 0, kv_width), v(kv, kv_width, kv_width);
  return out_.Forward(context, Attend(context, config_, path(), q, k, v, context.memory_sequences, false, context.memory_of));
}

WEFT_REGISTER_LAYER(SelfAttention, "self_attention", "multi-head attention of the tokens on each other");
WEFT_REGISTER_LAYER(CrossAttention, "cross_attention", "multi-head attention of the tokens on the encoder's output",
                    .needs_memory = true);

}  // namespace weft
