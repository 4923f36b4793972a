// Attention as layers and as the bare op.
#include <map>

#include "gtest/gtest.h"
#include "layers/attention.h"
#include "tests/golden/golden_case.h"

namespace weft::golden {
namespace {

// Keeps the weights of the one attention layer that it sees.
class KeepWeights : public Probe {
 public:
  void AttentionWeights(const std::string&, int64_t, Sequences, Sequences, absl::Span<const int32_t>,
                        const Tensor& weights) override {
    kept = ToDoubles(weights);
  }
  std::vector<double> kept;
};

// The real part of padded weights [B, H, Tq, Tk], laid out as a Probe gets them.
std::vector<double> RealWeights(const Values& padded, const std::vector<int64_t>& query_lengths,
                                const std::vector<int64_t>& key_lengths) {
  const int64_t heads = padded.dim(1), tq = padded.dim(2), tk = padded.dim(3);
  std::vector<double> real;
  for (int64_t b = 0; b < padded.dim(0); ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < query_lengths[b]; ++i) {
        const auto row = padded.v.begin() + ((b * heads + h) * tq + i) * tk;
        real.insert(real.end(), row, row + key_lengths[b]);
      }
    }
  }
  return real;
}

// [B, H, T, d] as rows [B * T, H * d].
std::vector<double> HeadsToRows(const Values& x) {
  const int64_t heads = x.dim(1), time = x.dim(2), width = x.dim(3);
  std::vector<double> rows;
  for (int64_t b = 0; b < x.dim(0); ++b) {
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        const auto from = x.v.begin() + ((b * heads + h) * time + t) * width;
        rows.insert(rows.end(), from, from + width);
      }
    }
  }
  return rows;
}

}  // namespace

void RunMultiHeadAttention(const Case& c) {
  const Values query = c.Read("query");
  const bool cross = c.switches.at("cross");
  const int64_t batch = query.dim(0), width = query.dim(2);
  const Values memory = cross ? c.Read("memory") : Values{};
  const std::vector<int64_t> key_lengths = LengthsOr(c, "key_lengths", batch, cross ? memory.dim(1) : query.dim(1));
  const std::vector<int64_t> query_lengths = cross ? std::vector<int64_t>(batch, query.dim(1)) : key_lengths;
  const std::vector<Sequence> queries = EndToEnd(query_lengths), keys = EndToEnd(key_lengths);
  const DType type = c.TypeOf("query");
  const double tolerance = ToleranceOf(type);
  ExpectZeroAtPadding("upstream", c.Read("upstream"), query_lengths);

  Parameters parameters;
  AttentionConfig config;
  config.d_model = width;
  config.heads = c.integers.at("heads");
  Builder root(&parameters);
  auto created = cross ? CrossAttention::Create(root, config) : SelfAttention::Create(root, config);
  ASSERT_TRUE(created.ok()) << created.status();
  const std::unique_ptr<Layer> layer = *std::move(created);
  parameters.Allocate(type, 1);
  const char* parts[] = {"q", "k", "v"};
  for (const char* what : {"weight", "bias"}) {
    const auto packed = CutInThree(c.Read(std::string("param.in_proj_") + what));
    for (int i = 0; i < 3; ++i) SetParameter(&parameters, std::string(parts[i]) + "." + what, packed[i]);
    SetParameter(&parameters, std::string("o.") + what, c.Read(std::string("param.out_proj.") + what).v);
  }

  const Slab gradients(type, parameters.slab_size());
  Context context(parameters);
  context.Begin(gradients.tensor(), {});
  KeepWeights probe;
  context.probe = &probe;
  context.sequences = queries;
  context.causal = c.switches.at("causal");
  const Variable x = InputOf(&context.tape(), type, RealRows(query, query_lengths), {RowsOf(queries), width});
  if (cross) {
    context.memory = InputOf(&context.tape(), type, RealRows(memory, key_lengths), {RowsOf(keys), width});
    context.memory_sequences = keys;
  }
  const Variable y = layer->Forward(context, x);
  const Variable upstream = InputOf(&context.tape(), type, RealRows(c.Read("upstream"), query_lengths), y.shape());
  context.tape().Backward(y, upstream.value());

  ExpectNear("output", ToDoubles(y.value()), RealRows(c.Read("output"), query_lengths), tolerance);
  ExpectNear("weights", probe.kept, RealWeights(c.Read("weights"), query_lengths, key_lengths), tolerance);
  ExpectNear("grad.query", ToDoubles(context.tape().Gradient(x)), RealRows(c.Read("grad.query"), query_lengths), tolerance);
  if (cross) {
    ExpectNear("grad.memory", ToDoubles(context.tape().Gradient(context.memory)), RealRows(c.Read("grad.memory"), key_lengths),
               tolerance);
  }
  const auto gradient = [&](const std::string& name) {
    return ToDoubles(Parameters::In(gradients.tensor(), parameters.list()[parameters.Find(name)]));
  };
  for (const char* what : {"weight", "bias"}) {
    std::vector<double> packed;
    for (const char* part : parts) {
      const std::vector<double> g = gradient(std::string(part) + "." + what);
      packed.insert(packed.end(), g.begin(), g.end());
    }
    ExpectNear(std::string("grad.in_proj_") + what, packed, c.Read(std::string("grad.in_proj_") + what).v, tolerance);
    ExpectNear(std::string("grad.out_proj.") + what, gradient(std::string("o.") + what),
               c.Read(std::string("grad.out_proj.") + what).v, tolerance);
  }
}

void RunAttentionCore(const Case& c) {
  const Values q = c.Read("q"), k = c.Read("k"), v = c.Read("v");
  const int64_t batch = q.dim(0);
  const DType type = c.TypeOf("q");
  const double tolerance = ToleranceOf(type);
  const std::vector<Sequence> queries = EndToEnd(std::vector<int64_t>(batch, q.dim(2)));
  const std::vector<Sequence> keys = EndToEnd(std::vector<int64_t>(batch, k.dim(2)));
  Tape tape;
  const auto input = [&](const Values& x) {
    return InputOf(&tape, type, HeadsToRows(x), {batch * x.dim(2), x.dim(1) * x.dim(3)});
  };
  const Variable vq = input(q), vk = input(k), vv = input(v);
  AttentionOptions options;
  options.heads = c.integers.at("heads");
  options.kv_heads = c.integers.at("kv_heads");
  options.causal = c.switches.at("causal");
  const Variable y = Attention(vq, vk, vv, queries, keys, options);
  tape.Backward(y, input(c.Read("upstream")).value());
  ExpectNear("output", ToDoubles(y.value()), HeadsToRows(c.Read("output")), tolerance);
  ExpectNear("grad.q", ToDoubles(tape.Gradient(vq)), HeadsToRows(c.Read("grad.q")), tolerance);
  ExpectNear("grad.k", ToDoubles(tape.Gradient(vk)), HeadsToRows(c.Read("grad.k")), tolerance);
  ExpectNear("grad.v", ToDoubles(tape.Gradient(vv)), HeadsToRows(c.Read("grad.v")), tolerance);
}

}  // namespace weft::golden
