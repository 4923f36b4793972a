#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/random.h"
#include "autograd/base/status.h"
#include "tools/benchmarks/measure.h"
#include "tools/benchmarks/suites.h"
#include "train/decode.h"

namespace weft::bench {
namespace {

constexpr int64_t kPrompt = 16;  // tokens

// Continues `batch` prompts side by side, as `weft generate` continues one: the prompts in one pass, then a token of each at a
// time, each the most probable.
class Generator {
 public:
  Generator(const Transformer& model, const Parameters& parameters, int64_t batch, int64_t length)
      : model_(model), context_(parameters), batch_(batch), length_(length) {}

  // Seconds of the prompts, and of each step after them, are appended.
  void Run(std::vector<double>* prefill, std::vector<double>* steps) {
    State state(batch_, length_);
    std::vector<int32_t> ids;
    const RandomKey key = RandomKey{1}.Fold("prompt");
    for (int64_t i = 0; i < batch_ * kPrompt; ++i) {
      ids.push_back(static_cast<int32_t>(key.Below(i, model_.sizes().target_vocabulary)));
    }
    double start = Now();
    ids = Step(&state, ids, 0);
    prefill->push_back(Now() - start);
    for (int64_t position = kPrompt; position + 1 <= length_; ++position) {
      start = Now();
      ids = Step(&state, ids, position);
      steps->push_back(Now() - start);
    }
  }

 private:
  // Reads ids.size() / batch tokens of each sequence, the first of which is at `position`, and returns the next of each.
  std::vector<int32_t> Step(State* state, const std::vector<int32_t>& ids, int64_t position) {
    const auto each = static_cast<int32_t>(static_cast<int64_t>(ids.size()) / batch_);
    std::vector<Sequence> rows;
    std::vector<int32_t> last, next;
    for (int32_t i = 0; i < batch_; ++i) {
      rows.push_back({i * each, each, static_cast<int32_t>(position), static_cast<uint64_t>(i)});
      last.push_back((i + 1) * each - 1);
    }
    context_.Begin(Tensor(), {});
    context_.state = state;
    const Tensor logits = model_.Logits(context_, GatherRows(model_.Decode(context_, ids, rows), last)).value();
    const int64_t width = logits.shape()[1];
    std::vector<double> row(width);
    for (int64_t i = 0; i < batch_; ++i) {
      const float* from = logits.data<float>() + i * width;
      std::copy(from, from + width, row.begin());
      next.push_back(SampleToken(row, {}, 0));
    }
    return next;
  }

  const Transformer& model_;
  Context context_;
  int64_t batch_, length_;
};

void Report(const BenchModel& model, int64_t batch, int64_t parameters, const Statistics& step, const Statistics& prefill,
            const BenchFlags& flags) {
  const double tokens_per_s = static_cast<double>(batch) / step.median;
  const double prefill_rate = static_cast<double>(batch * kPrompt) / prefill.median;
  // A step reads every weight once, so memory bandwidth is the limit of a batch of 1.
  const double gb_per_s = static_cast<double>(parameters) * 4e-9 / step.median;
  const std::string name = absl::StrCat(model.name, "/", batch);
  if (flags.json) {
    Record()
        .Set("suite", "generate")
        .Set("threads", int64_t{flags.threads})
        .Set("case", name)
        .Set("model", model.name)
        .Set("batch", batch)
        .Set("prompt_tokens", kPrompt)
        .Set("new_tokens", model.window - kPrompt)
        .Set("median_ms", step.median * 1e3)
        .Set("min_ms", step.min * 1e3)
        .Set("spread", step.spread)
        .Set("repetitions", step.count)
        .Set("tokens_per_s", tokens_per_s)
        .Set("prefill_ms", prefill.median * 1e3)
        .Set("prefill_tokens_per_s", prefill_rate)
        .Set("parameters", parameters)
        .Set("weights_gb_per_s", gb_per_s)
        .Set("peak_rss_mb", PeakRss())
        .Print();
  } else {
    absl::PrintF(
        "generate/%-8s %2d threads  a token each: median %8.3f ms  min %8.3f ms  spread %3.0f %%  %8.0f tokens/s  weights "
        "%5.1f "
        "GB/s  prompts %8.3f ms, %8.0f tokens/s\n",
        name, flags.threads, step.median * 1e3, step.min * 1e3, step.spread * 100, tokens_per_s, gb_per_s, prefill.median * 1e3,
        prefill_rate);
    std::fflush(stdout);
  }
}

}  // namespace

absl::Status RunGenerateSuite(const BenchFlags& flags) {
  int64_t cases = 0;
  for (const char* name : {"nano", "gpt2"}) {
    constexpr int64_t kBatches[] = {1, 16};
    const auto asked = [&](int64_t batch) { return IsAsked(flags, absl::StrCat(name, "/", batch)); };
    if (std::none_of(std::begin(kBatches), std::end(kBatches), asked)) continue;
    const BenchModel& bench_model = BenchModelNamed(name);
    Parameters parameters;
    WEFT_ASSIGN_OR_RETURN(const auto model, Transformer::Create(ConfigOf(bench_model), SizesOf(bench_model), &parameters));
    parameters.Allocate(DType::kF32, 1);
    for (int64_t batch : kBatches) {
      if (!asked(batch)) continue;
      Generator generator(*model, parameters, batch, bench_model.window);
      std::vector<double> prefill, steps;
      generator.Run(&prefill, &steps);
      prefill.clear();
      steps.clear();
      Time({.seconds = 1, .least = 2, .exactly = flags.steps}, 0, [&] { generator.Run(&prefill, &steps); });
      Report(bench_model, batch, parameters.count(), Summarise(steps), Summarise(prefill), flags);
      ++cases;
    }
  }
  return CheckAnyCase("generate", cases, flags);
}

}  // namespace weft::bench
