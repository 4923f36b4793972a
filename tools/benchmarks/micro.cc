// Micro benchmarks of the kernels, on one thread, with Google Benchmark: for work on one kernel, where `weft bench` times whole
// steps and products on all threads. Its own flags choose and repeat (--benchmark_filter=Gelu, --benchmark_repetitions=5);
// WEFT_SIMD caps the instruction set. Arguments in a name are shapes: rows and width, or m, n, k.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <numeric>
#include <vector>

#include "autograd/base/parallel.h"
#include "autograd/kernels/attention.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/loss.h"
#include "autograd/kernels/norm.h"
#include "autograd/kernels/optimizer.h"
#include "autograd/kernels/simd.h"
#include "autograd/kernels/softmax.h"
#include "autograd/ops.h"
#include "autograd/profile.h"

namespace weft {
namespace {

using benchmark::Counter;
using benchmark::State;

// Numbers in (-2, 2): no denormals, no overflow of exp.
std::vector<float> Numbers(int64_t count) {
  std::vector<float> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i * 7919 % 257 - 128) / 65;
  return numbers;
}

// Rates by what one iteration does. `bytes` are read or written.
void Report(State& state, double bytes, double flops = 0) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
  if (flops > 0) state.counters["flops"] = Counter(flops * static_cast<double>(state.iterations()), Counter::kIsRate);
}

// ---------------------------------------------------------------------------------------------------- products
enum class Product : uint8_t { kForward, kInputGradient, kWeightGradient };

template <Product kProduct>
void Gemm(State& state) {
  using kernels::Trans;
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  std::vector<float> x = Numbers(m * k), w = Numbers(n * k), y = Numbers(m * n);
  kernels::GemmOptions<float> add;
  add.accumulate = true;
  for (auto _ : state) {
    if constexpr (kProduct == Product::kForward) {
      kernels::Gemm(Trans::kNo, Trans::kYes, m, n, k, x.data(), k, w.data(), k, y.data(), n);
    } else if constexpr (kProduct == Product::kInputGradient) {
      kernels::Gemm(Trans::kNo, Trans::kNo, m, k, n, y.data(), n, w.data(), k, x.data(), k);
    } else {
      kernels::Gemm(Trans::kYes, Trans::kNo, n, k, m, y.data(), n, x.data(), k, w.data(), k, add);
    }
    benchmark::ClobberMemory();
  }
  const auto elements = static_cast<double>(m * k + n * k + m * n);
  Report(state, 4 * elements, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}

void ProductShapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({256, 192, 64})->Args({768, 384, 128})->Args({768, 128, 512})->Args({256, 768, 768})->Args({16, 768, 768});
}
BENCHMARK(Gemm<Product::kForward>)->Name("GemmNT")->Apply(ProductShapes);
BENCHMARK(Gemm<Product::kInputGradient>)->Name("GemmNN")->Apply(ProductShapes);
BENCHMARK(Gemm<Product::kWeightGradient>)->Name("GemmTN")->Apply(ProductShapes);

// ---------------------------------------------------------------------------------------------------- rows
void RowShapes(benchmark::internal::Benchmark* benchmark) { benchmark->Args({768, 128})->Args({256, 768}); }

void SoftmaxForward(State& state) {
  const int64_t rows = state.range(0), width = state.range(1);
  std::vector<float> x = Numbers(rows * width), y(x.size());
  for (auto _ : state) kernels::SoftmaxForward(x.data(), y.data(), rows, width);
  Report(state, 8.0 * static_cast<double>(x.size()));
}
BENCHMARK(SoftmaxForward)->Apply(RowShapes);

void SoftmaxBackward(State& state) {
  const int64_t rows = state.range(0), width = state.range(1);
  std::vector<float> x = Numbers(rows * width), y(x.size()), dx(x.size());
  kernels::SoftmaxForward(x.data(), y.data(), rows, width);
  for (auto _ : state) kernels::SoftmaxBackward(y.data(), x.data(), dx.data(), rows, width);
  Report(state, 16.0 * static_cast<double>(x.size()));
}
BENCHMARK(SoftmaxBackward)->Apply(RowShapes);

void LayerNormForward(State& state) {
  const int64_t rows = state.range(0), width = state.range(1);
  std::vector<float> x = Numbers(rows * width), y(x.size()), gamma = Numbers(width), beta = Numbers(width);
  std::vector<double> mean(rows), rstd(rows);
  for (auto _ : state) {
    kernels::LayerNormForward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(), rows, width, 1e-5);
  }
  Report(state, 8.0 * static_cast<double>(x.size()));
}
BENCHMARK(LayerNormForward)->Apply(RowShapes);

void LayerNormBackward(State& state) {
  const int64_t rows = state.range(0), width = state.range(1);
  std::vector<float> x = Numbers(rows * width), y(x.size()), dx(x.size()), gamma = Numbers(width), dgamma(width), dbeta(width);
  std::vector<double> mean(rows), rstd(rows);
  kernels::LayerNormForward(x.data(), gamma.data(), nullptr, y.data(), mean.data(), rstd.data(), rows, width, 1e-5);
  for (auto _ : state) {
    kernels::LayerNormBackward(x.data(), gamma.data(), mean.data(), rstd.data(), y.data(), dx.data(), dgamma.data(),
                               dbeta.data(), rows, width);
  }
  Report(state, 16.0 * static_cast<double>(x.size()));
}
BENCHMARK(LayerNormBackward)->Apply(RowShapes);

void CrossEntropy(State& state) {
  const int64_t rows = state.range(0), width = state.range(1);
  std::vector<float> logits = Numbers(rows * width);
  std::vector<int32_t> targets(rows), argmax(rows);
  std::vector<double> losses(rows);
  for (int64_t i = 0; i < rows; ++i) targets[i] = static_cast<int32_t>(31 * i % width);
  for (auto _ : state) {  // in place: the gradients of one pass are the logits of the next
    kernels::CrossEntropyRows(logits.data(), width, targets.data(), -100, rows, width, 0.1, true, losses.data(), argmax.data());
  }
  Report(state, 8.0 * static_cast<double>(logits.size()));
}
BENCHMARK(CrossEntropy)->Args({768, 65})->Args({64, 8000})->Args({16, 50304});

// ---------------------------------------------------------------------------------------------------- ranges
void GeluForward(State& state) {
  std::vector<float> x = Numbers(state.range(0)), y(x.size());
  std::vector<float> slope(state.range(0));
  for (auto _ : state) kernels::UnaryForwardWithSlope(kernels::Unary::kGelu, x.data(), y.data(), slope.data(), state.range(0));
  Report(state, 8.0 * static_cast<double>(x.size()));
}
BENCHMARK(GeluForward)->Arg(1 << 14)->Arg(1 << 18);

void GeluBackward(State& state) {
  std::vector<float> x = Numbers(state.range(0)), dx(x.size());
  for (auto _ : state) {
    kernels::UnaryBackward(kernels::Unary::kGelu, x.data(), x.data(), dx.data(), state.range(0));
  }
  Report(state, 12.0 * static_cast<double>(x.size()));
}
BENCHMARK(GeluBackward)->Arg(1 << 14)->Arg(1 << 18);

void Adam(State& state) {
  const std::vector<float> g = Numbers(state.range(0));
  std::vector<float> p = g, m(g.size()), v(g.size());
  for (auto _ : state) kernels::Adam({}, g.data(), p.data(), m.data(), v.data(), state.range(0));
  Report(state, 28.0 * static_cast<double>(g.size()));
}
BENCHMARK(Adam)->Arg(1 << 16)->Arg(1 << 22);

// ---------------------------------------------------------------------------------------------------- look-up
// The op, timed by the tape's profile: rows of a table copied, or their gradients added into it. Vocabulary, width, tokens.
template <bool kBackward>
void Embedding(State& state) {
  const int64_t vocabulary = state.range(0), width = state.range(1), tokens = state.range(2);
  std::vector<float> table = Numbers(vocabulary * width), gradient(table.size()), upstream = Numbers(tokens * width);
  std::vector<int32_t> ids(tokens);
  for (int64_t i = 0; i < tokens; ++i) ids[i] = static_cast<int32_t>(7919 * i % vocabulary);
  Tape tape;
  Profile profile;
  tape.set_profile(&profile);
  for (auto _ : state) {
    tape.Reset();
    profile.Clear();
    const Variable y = GatherRows(tape.Leaf(Tensor::Of(absl::MakeSpan(table), {vocabulary, width}),
                                            Tensor::Of(absl::MakeSpan(gradient), {vocabulary, width})),
                                  ids);
    if (kBackward) tape.Backward(y, Tensor::Of(absl::MakeSpan(upstream), {tokens, width}));
    const ProfileRow& row = *profile.Find("gather_rows");
    state.SetIterationTime((kBackward ? row.backward : row.forward).seconds);
  }
  Report(state, (kBackward ? 12.0 : 8.0) * static_cast<double>(upstream.size()));
}
BENCHMARK(Embedding<false>)->Name("EmbeddingGather")->Args({65, 128, 768})->Args({50304, 768, 256})->UseManualTime();
BENCHMARK(Embedding<true>)->Name("EmbeddingScatter")->Args({65, 128, 768})->Args({50304, 768, 256})->UseManualTime();

// ---------------------------------------------------------------------------------------------------- attention
// Causal, one sequence; heads, width of a head, length.
template <bool kBackward>
void Attention(State& state) {
  const int64_t heads = state.range(0), d_head = state.range(1), length = state.range(2), width = heads * d_head;
  std::vector<float> qkv = Numbers(length * 3 * width), dqkv(qkv.size()), out(length * width), log_sums(length * heads);
  const kernels::SequenceSpan span{0, length, 0, length, 0};
  kernels::AttentionArgs<float> args;
  args.shape = {heads, heads, d_head, true, 0.125};
  args.sequences = {&span, 1};
  args.q = qkv.data();
  args.k = qkv.data() + width;
  args.v = qkv.data() + 2 * width;
  args.ldq = args.ldk = args.ldv = 3 * width;
  kernels::AttentionForward(args, out.data(), width, log_sums.data(), nullptr);
  for (auto _ : state) {
    if (kBackward) {
      kernels::AttentionBackward(args, out.data(), width, log_sums.data(), out.data(), width, dqkv.data(), 3 * width,
                                 dqkv.data() + width, 3 * width, dqkv.data() + 2 * width, 3 * width);
    } else {
      kernels::AttentionForward(args, out.data(), width, log_sums.data(), nullptr);
    }
  }
  const double pairs = static_cast<double>(length) * static_cast<double>(length + 1) / 2;
  Report(state, 4.0 * static_cast<double>(qkv.size() + out.size()),
         (kBackward ? 8.0 : 4.0) * static_cast<double>(width) * pairs);
}
BENCHMARK(Attention<false>)->Name("AttentionForward")->Args({4, 32, 64})->Args({12, 64, 64})->Args({6, 64, 256});
BENCHMARK(Attention<true>)->Name("AttentionBackward")->Args({4, 32, 64})->Args({12, 64, 64})->Args({6, 64, 256});

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  const absl::Status status = weft::kernels::CheckSimdEnvironment();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  weft::Workers(1).Run([] { benchmark::RunSpecifiedBenchmarks(); });
  benchmark::Shutdown();
  return 0;
}
