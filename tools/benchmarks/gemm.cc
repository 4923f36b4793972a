#include "autograd/kernels/gemm.h"

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/arena.h"
#include "autograd/base/parallel.h"
#include "tools/benchmarks/measure.h"
#include "tools/benchmarks/suites.h"

namespace weft::bench {
namespace {

// A linear layer of a model: y[M, N] = x[M, K] W[N, K]^T.
struct Layer {
  const char* model;
  int64_t m, n, k;
};

constexpr Layer kLayers[] = {
    {"tiny", 256, 192, 64},      {"tiny", 256, 256, 64},       {"tiny", 256, 64, 256},       {"nano", 768, 384, 128},
    {"nano", 768, 128, 128},     {"nano", 768, 512, 128},      {"nano", 768, 128, 512},      {"gpt2", 256, 2304, 768},
    {"gpt2", 256, 768, 768},     {"gpt2", 256, 3072, 768},     {"gpt2", 256, 768, 3072},     {"gpt2", 256, 50304, 768},
    {"baby", 2048, 1152, 384},   {"baby", 2048, 384, 384},     {"baby", 2048, 1536, 384},    {"baby", 2048, 384, 1536},
    {"seq2seq", 1536, 768, 256}, {"seq2seq", 1536, 1024, 256}, {"seq2seq", 1536, 256, 1024}, {"seq2seq", 1536, 8000, 256},
    {"large", 2048, 2048, 512},  {"large", 16384, 1536, 384},
};

// Numbers of ordinary size; which ones does not matter to the speed. In an arena, as where models have theirs: huge pages
// count.
float* Numbers(Arena& arena, int64_t count) {
  auto* numbers = static_cast<float*>(arena.Allocate(count * static_cast<int64_t>(sizeof(float))));
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i * 7919 % 257 - 128) / 1024;
  return numbers;
}

struct Case {
  const char* kind;
  std::string name;
  Layer layer;
  int threads;
};

// Shares of the peak, by kind.
using Shares = std::map<std::string, std::vector<double>>;

// Returns the share of the peak.
double RunCase(const Case& c, absl::FunctionRef<void()> product, const BenchFlags& flags) {
  product();  // packs and pages are warm before the peak is taken
  const Statistics peak = Summarise(PeakRuns(c.threads, 9, 2'000'000));
  const Statistics time = Summarise(Time({.seconds = 0.2, .least = 5, .exactly = flags.steps}, 1, product));
  const auto [model, m, n, k] = c.layer;
  const double gflop = 2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double rate = gflop / time.median;
  if (flags.json) {
    Record()
        .Set("suite", "gemm")
        .Set("threads", int64_t{c.threads})
        .Set("case", c.name)
        .Set("kind", c.kind)
        .Set("m", m)
        .Set("n", n)
        .Set("k", k)
        .Set("median_ms", time.median * 1e3)
        .Set("min_ms", time.min * 1e3)
        .Set("spread", time.spread)
        .Set("repetitions", time.count)
        .Set("gflops", rate)
        .Set("best_gflops", gflop / time.min)
        .Set("peak_gflops", peak.median)
        .Set("share", rate / peak.median)
        .Print();
  } else {
    absl::PrintF(
        "%-26s %2d threads  median %9.4f ms  min %9.4f ms  spread %4.0f %%  %7.1f GF/s (best %7.1f) of %6.1f  %5.1f %%\n",
        c.name, c.threads, time.median * 1e3, time.min * 1e3, time.spread * 100, rate, gflop / time.min, peak.median,
        rate / peak.median * 100);
    std::fflush(stdout);
  }
  return rate / peak.median;
}

// The three products of one layer: forward, gradient of the input, gradient of the weights.
void RunLayer(const Layer& layer, int threads, const BenchFlags& flags, Shares* shares) {
  using kernels::Trans;
  const int64_t m = layer.m, n = layer.n, k = layer.k;
  const std::string name = absl::StrCat(layer.model, "/", m, "x", n, "x", k, "/");
  const auto asked = [&](const char* kind) { return IsAsked(flags, name + kind); };
  if (!asked("NT") && !asked("NN") && !asked("TN")) return;
  Arena arena;
  const float *x = Numbers(arena, m * k), *w = Numbers(arena, n * k), *dy = Numbers(arena, m * n);
  float *y = Numbers(arena, m * n), *dx = Numbers(arena, m * k), *dw = Numbers(arena, n * k);
  const auto run = [&](const char* kind, absl::FunctionRef<void()> product) {
    if (asked(kind)) (*shares)[kind].push_back(RunCase({kind, name + kind, layer, threads}, product, flags));
  };
  run("NT", [&] { kernels::Gemm(Trans::kNo, Trans::kYes, m, n, k, x, k, w, k, y, n); });
  run("NN", [&] { kernels::Gemm(Trans::kNo, Trans::kNo, m, k, n, dy, n, w, k, dx, k); });
  kernels::GemmOptions<float> add;
  add.accumulate = true;
  run("TN", [&] { kernels::Gemm(Trans::kYes, Trans::kNo, n, k, m, dy, n, x, k, dw, k, add); });
}

}  // namespace

absl::Status RunGemmSuite(const BenchFlags& flags) {
  Shares shares;
  for (const Layer& layer : kLayers) {
    // A tiny model's shards run one a thread, so its products have one thread each.
    const int threads = absl::string_view(layer.model) == "tiny" ? 1 : flags.threads;
    Workers(threads).Run([&] { RunLayer(layer, threads, flags, &shares); });
  }
  int64_t cases = 0;
  for (const auto& [kind, values] : shares) {
    const Statistics share = Summarise(values);
    cases += share.count;
    if (!flags.json) {
      absl::PrintF("%s: share of the peak %.1f %% in the mean of %d shapes, %.1f %% at least\n", kind, share.mean * 100,
                   share.count, share.min * 100);
    }
  }
  return CheckAnyCase("gemm", cases, flags);
}

}  // namespace weft::bench
