// One training step of fixed models on made-up data: forward, backward, clipping to norm 1, AdamW; dropout 0. The suites'
// shapes and lengths are those that a PyTorch user would compare with.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "autograd/kernels/peak.h"
#include "tools/verbs.h"
#include "train/gradient.h"
#include "train/optimizer.h"

namespace weft {
namespace {

struct Suite {
  const char* name;
  bool is_decoder;  // a language model; else an encoder-decoder with one shared vocabulary
  int64_t vocabulary, window, layers, heads, d_model;
  bool bias;
  int64_t batch;  // sequences
  bool is_ragged;
  int64_t steps;
};

constexpr Suite kSuites[] = {
    {"tiny", true, 65, 32, 2, 2, 64, false, 8, false, 200},
    {"nano", true, 65, 64, 4, 4, 128, false, 12, false, 60},
    {"baby", true, 65, 256, 6, 6, 384, false, 8, false, 8},
    {"gpt2", true, 50304, 64, 12, 12, 768, true, 4, false, 5},
    {"seq2seq", false, 8000, 24, 3, 4, 256, true, 64, false, 8},
    {"seq2seq_ragged", false, 8000, 24, 3, 4, 256, true, 64, true, 8},
};

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

TransformerConfig ModelOf(const Suite& suite) {
  TransformerConfig config;
  config.family = suite.is_decoder ? "decoder" : "encoder_decoder";
  config.d_model = suite.d_model;
  config.layers = config.encoder_layers = config.decoder_layers = suite.layers;
  config.heads = config.kv_heads = suite.heads;
  config.hidden = 4 * suite.d_model;
  config.bias = suite.bias;
  config.positions = suite.is_decoder ? "learned" : "sinusoidal";
  config.max_positions = suite.window;
  config.embedding_scale = !suite.is_decoder;
  config.tied =
      suite.is_decoder ? std::vector<std::string>{"target", "output"} : std::vector<std::string>{"source", "target", "output"};
  return config;
}

// Lengths of sequence i: the window, or 4 to 22 with mean 13, like short sentences.
std::pair<int64_t, int64_t> LengthsOf(const Suite& suite, int64_t i) {
  if (!suite.is_ragged) return {suite.is_decoder ? 0 : suite.window, suite.window};
  return {4 + 7 * i % 19, 4 + (11 * i + 5) % 19};
}

Batch MakeBatch(const Suite& suite) {
  const RandomKey key = RandomKey{1}.Fold(suite.name);
  Batch batch;
  uint64_t drawn = 0;
  const auto fill = [&](int64_t count, std::vector<int32_t>* ids) {
    for (int64_t t = 0; t < count; ++t) ids->push_back(static_cast<int32_t>(key.Below(drawn++, suite.vocabulary)));
  };
  for (int64_t i = 0; i < suite.batch; ++i) {
    const auto [source, target] = LengthsOf(suite, i);
    batch.sequence_ids.push_back(i);
    if (source > 0) batch.source_lengths.push_back(source);
    batch.target_lengths.push_back(target);
    fill(source, &batch.source_ids);
    fill(target, &batch.target_ids);
    fill(target, &batch.target_labels);
  }
  return batch;
}

// Floating-point operations of a step: two per weight of a product and token forward, twice that backward; attention's two
// products over the pairs of query and key that are not masked.
double FlopsOf(const Suite& suite) {
  const auto d = static_cast<double>(suite.d_model), hidden = 4 * d;
  double flops = 0;
  for (int64_t i = 0; i < suite.batch; ++i) {
    const auto [source_length, target_length] = LengthsOf(suite, i);
    const auto s = static_cast<double>(source_length), t = static_cast<double>(target_length),
               blocks = static_cast<double>(suite.layers);
    double products = t * blocks * (4 * d * d + 2 * d * hidden) + t * static_cast<double>(suite.vocabulary) * d;
    double pairs = blocks * t * (t + 1) / 2;
    if (!suite.is_decoder) {
      products += blocks * (s * (4 * d * d + 2 * d * hidden) + t * 2 * d * d + s * 2 * d * d);
      pairs += blocks * (s * s + t * s);
    }
    flops += 3 * 2 * (products + 2 * d * pairs);
  }
  return flops;
}

// Of all threads together, GF/s; the best of several short runs, since a machine may be disturbed but never faster than it is.
double MeasurePeak(int threads) {
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    const double start = Now();
    std::vector<int64_t> flops(threads);
    ParallelFor(threads, [&](int64_t i) { flops[i] = kernels::RunMultiplyAdds(20'000'000); });
    double total = 0;
    for (int64_t f : flops) total += static_cast<double>(f);
    best = std::max(best, total / (Now() - start) * 1e-9);
  }
  return best;
}

absl::Status RunSuite(const Suite& suite, const BenchFlags& flags) {
  const double peak = MeasurePeak(flags.threads);
  Parameters parameters;
  const ModelSizes sizes{suite.is_decoder ? 0 : suite.vocabulary, suite.vocabulary, 0, true};
  WEFT_ASSIGN_OR_RETURN(const auto model, Transformer::Create(ModelOf(suite), sizes, &parameters));
  parameters.Allocate(DType::kF32, 1);
  OptimizerConfig adamw;
  Optimizer optimizer(adamw, parameters);
  GradientRunner runner(*model, parameters);
  const Batch batch = MakeBatch(suite);
  std::vector<BatchView> leaves;
  SplitBatch(batch, ChooseShards(batch.loss_terms(), parameters.count()), &leaves);

  constexpr int64_t kWarmUp = 3;
  const int64_t steps = flags.steps > 0 ? flags.steps : suite.steps;
  std::vector<double> times;
  for (int64_t step = 0; step < kWarmUp + steps; ++step) {
    const double start = Now();
    Tensor gradients;
    const LossSum loss = runner.Run(leaves, suite.is_decoder ? 0.0 : 0.1, {}, &gradients);
    optimizer.Step(&parameters, gradients, 1.0 / static_cast<double>(loss.targets), 1.0, adamw.lr);
    if (step >= kWarmUp) times.push_back(Now() - start);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double flops = FlopsOf(suite), rss = static_cast<double>(usage.ru_maxrss) / 1024;
  if (flags.json) {
    const nlohmann::ordered_json line = {{"suite", suite.name},
                                         {"threads", flags.threads},
                                         {"tokens", batch.loss_terms()},
                                         {"median_ms", median * 1e3},
                                         {"min_ms", times[0] * 1e3},
                                         {"tokens_per_s", static_cast<double>(batch.loss_terms()) / median},
                                         {"parameters", parameters.count()},
                                         {"flops", flops},
                                         {"gflops", flops / median * 1e-9},
                                         {"peak_gflops", peak},
                                         {"peak_rss_mb", rss}};
    absl::PrintF("%s\n", line.dump());
  } else {
    absl::PrintF("%-15s %2d threads  median %9.3f ms  min %9.3f ms  %9.0f tokens/s  %7.1f GF/s of %.0f  peak %6.0f MB\n",
                 suite.name, flags.threads, median * 1e3, times[0] * 1e3, static_cast<double>(batch.loss_terms()) / median,
                 flops / median * 1e-9, peak, rss);
  }
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> BenchSuites() {
  std::vector<std::string> names;
  for (const Suite& suite : kSuites) names.push_back(suite.name);
  return names;
}

absl::Status RunBench(const BenchFlags& flags) {
  std::vector<const Suite*> chosen;
  for (const Suite& suite : kSuites) {
    const bool asked = std::find(flags.suites.begin(), flags.suites.end(), suite.name) != flags.suites.end();
    if (flags.suites.empty() || asked) chosen.push_back(&suite);
  }
  if (chosen.size() == 1) return RunSuite(*chosen[0], flags);
  // Each in a process of its own, since the system reports the peak memory of a process. No worker thread exists yet, so
  // forking is safe.
  for (const Suite* suite : chosen) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) return absl::UnavailableError("bench: fork failed");
    if (child == 0) {
      const absl::Status status = RunSuite(*suite, flags);
      if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
      _exit(ExitCode(status));
    }
    int exit_status = 0;
    if (waitpid(child, &exit_status, 0) < 0 || !WIFEXITED(exit_status) || WEXITSTATUS(exit_status) != 0) {
      return absl::InternalError(absl::StrCat("bench: suite ", suite->name, " failed"));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
