#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/random.h"
#include "autograd/ops.h"
#include "tools/benchmarks/measure.h"
#include "tools/benchmarks/suites.h"

namespace weft::bench {
namespace {

// Always as many tokens, in fewer sequences when they are longer: so memory that stays the same is linear in T.
constexpr int64_t kTokens = 4096, kHeads = 8, kHeadWidth = 64, kWidth = kHeads * kHeadWidth;

std::vector<float> Numbers(const char* name, int64_t count) {
  const RandomKey key = RandomKey{1}.Fold(name);
  std::vector<float> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(2 * key.Uniform(i) - 1);
  return numbers;
}

struct Times {
  std::vector<double> forward, backward, both;
  ProfileRow last;
};

void Report(int64_t length, const Times& times, double peak, const BenchFlags& flags) {
  const ProfileRow& row = times.last;
  const Statistics forward = Summarise(times.forward), backward = Summarise(times.backward), both = Summarise(times.both);
  const double forward_gflops = row.forward.flops / forward.median * 1e-9,
               backward_gflops = row.backward.flops / backward.median * 1e-9;
  const int64_t bytes = row.forward.held + row.backward.held;
  const double per_token = static_cast<double>(bytes) / static_cast<double>(kTokens);
  if (flags.json) {
    Record()
        .Set("suite", "attention")
        .Set("threads", int64_t{flags.threads})
        .Set("case", absl::StrCat("T", length))
        .Set("length", length)
        .Set("sequences", kTokens / length)
        .Set("tokens", kTokens)
        .Set("heads", kHeads)
        .Set("d_head", kHeadWidth)
        .Set("median_ms", both.median * 1e3)
        .Set("min_ms", both.min * 1e3)
        .Set("spread", both.spread)
        .Set("repetitions", both.count)
        .Set("forward_ms", forward.median * 1e3)
        .Set("forward_min_ms", forward.min * 1e3)
        .Set("forward_spread", forward.spread)
        .Set("forward_gflops", forward_gflops)
        .Set("backward_ms", backward.median * 1e3)
        .Set("backward_min_ms", backward.min * 1e3)
        .Set("backward_spread", backward.spread)
        .Set("backward_gflops", backward_gflops)
        .Set("peak_gflops", peak)
        .Set("peak_bytes", bytes)
        .Set("peak_bytes_per_token", per_token)
        .Print();
  } else {
    const auto pass = [&](const Statistics& s, double gflops) {
      return absl::StrFormat("%8.3f ms (min %8.3f, spread %3.0f %%) %6.1f GF/s %4.0f %%", s.median * 1e3, s.min * 1e3,
                             s.spread * 100, gflops, gflops / peak * 100);
    };
    absl::PrintF("attention/T%-5d x %2d sequences  forward %s  backward %s  tape %5.1f MB, %.0f B/token\n", length,
                 kTokens / length, pass(forward, forward_gflops), pass(backward, backward_gflops),
                 static_cast<double>(bytes) * 1e-6, per_token);
    std::fflush(stdout);
  }
}

void RunLength(int64_t length, absl::Span<const float> qkv, absl::Span<const float> upstream, const BenchFlags& flags) {
  std::vector<Sequence> sequences;
  for (int64_t start = 0; start < kTokens; start += length) {
    sequences.push_back({static_cast<int32_t>(start), static_cast<int32_t>(length), 0, sequences.size()});
  }
  AttentionOptions options;
  options.heads = kHeads;
  options.causal = true;
  const double peak = Summarise(PeakRuns(flags.threads, 9, 2'000'000)).median;
  Tape tape;
  Profile profile;  // measures the op alone, without the pass that seeds its gradient
  tape.set_profile(&profile);
  Times times;
  const auto run = [&] {
    profile.Clear();
    tape.Reset();
    const Variable x = tape.Input(Tensor::Of(qkv, {kTokens, 3 * kWidth}));
    const Variable y = Attention({x, 0, kWidth}, {x, kWidth, kWidth}, {x, 2 * kWidth, kWidth}, sequences, sequences, options);
    tape.Backward(y, Tensor::Of(upstream, {kTokens, kWidth}));
    times.last = *profile.Find("attention");
    times.forward.push_back(times.last.forward.seconds);
    times.backward.push_back(times.last.backward.seconds);
    times.both.push_back(times.last.forward.seconds + times.last.backward.seconds);
  };
  run();
  run();  // the second one finds the tape's memory in one block
  times = {};
  Time({.seconds = 0.5, .least = 5, .exactly = flags.steps}, 0, run);
  Report(length, times, peak, flags);
}

}  // namespace

absl::Status RunAttentionSuite(const BenchFlags& flags) {
  const std::vector<float> qkv = Numbers("qkv", kTokens * 3 * kWidth), upstream = Numbers("upstream", kTokens * kWidth);
  int64_t cases = 0;
  for (int64_t length = 64; length <= kTokens; length *= 2) {
    if (!IsAsked(flags, absl::StrCat("T", length))) continue;
    RunLength(length, qkv, upstream, flags);
    ++cases;
  }
  return CheckAnyCase("attention", cases, flags);
}

}  // namespace weft::bench
