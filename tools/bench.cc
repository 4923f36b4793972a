// `weft bench`: which suites run, each in a process of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/benchmarks/suites.h"
#include "tools/verbs.h"

namespace weft {
namespace {

constexpr char kAll[] = "all";

// The suites beside those that train a model.
struct OtherSuite {
  const char* name;
  const char* about;
  absl::Status (*run)(const BenchFlags& flags);
};

constexpr OtherSuite kOthers[] = {
    {"gemm", "matrix products of transformer shapes: NT = x W^T, NN = dy W, TN = dW += dy^T x", bench::RunGemmSuite},
    {"attention", "causal fused attention, 8 heads of 64, T = 64 to 4096, always 4096 tokens", bench::RunAttentionSuite},
    {"generate", "greedy cached decoding: 16 tokens of prompt, 48 more, batch 1 and 16", bench::RunGenerateSuite},
};

// One suite: of one of the two kinds.
struct Suite {
  const char* name;
  const bench::BenchModel* model;
  const OtherSuite* other;

  absl::Status Run(const BenchFlags& flags) const {
    return model != nullptr ? bench::RunTrainingSuite(*model, flags) : other->run(flags);
  }
};

std::vector<Suite> Suites() {
  std::vector<Suite> suites;
  for (const bench::BenchModel& model : bench::BenchModels()) suites.push_back({model.name, &model, nullptr});
  for (const OtherSuite& other : kOthers) suites.push_back({other.name, nullptr, &other});
  return suites;
}

}  // namespace

absl::Status bench::CheckAnyCase(const char* suite, int64_t cases, const BenchFlags& flags) {
  if (cases > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--case: found ", flags.only, ", which is in no name of suite ", suite, "; run the suite to see them"));
}

std::vector<std::string> BenchSuites() {
  std::vector<std::string> names;
  for (const Suite& suite : Suites()) names.push_back(suite.name);
  names.push_back(kAll);
  return names;
}

std::string BenchHelp() {
  std::string help =
      "\nSuites (default: those that train). Each is warmed up and reports median, min, and spread = (90th - 10th percentile) "
      "/ "
      "median.\nTraining steps of made-up data: forward, backward, clipping, AdamW:\n";
  for (const bench::BenchModel& model : bench::BenchModels()) {
    absl::StrAppend(
        &help, absl::StrFormat("  %-15s %s, %d layers, width %d, vocabulary %d, %d sequences of %s\n", model.name,
                               model.is_decoder ? "decoder" : "encoder-decoder", model.layers, model.d_model, model.vocabulary,
                               model.batch, model.is_ragged ? "4 to 22" : absl::StrCat(model.window)));
  }
  absl::StrAppend(&help, "Parts, with many cases each (see --case):\n");
  for (const OtherSuite& other : kOthers) absl::StrAppend(&help, absl::StrFormat("  %-15s %s\n", other.name, other.about));
  absl::StrAppend(
      &help, "  ", kAll,
      "             everything\n\nGF/s count two operations a multiply-add, attention's unmasked pairs only, and nothing that "
      "is "
      "recomputed.\nThe peak is what independent multiply-adds in registers reach with the same threads: in gemm and attention "
      "measured right\nbefore each case (shares are of medians), else once at the start (the best of five).\ngemm runs the "
      "tiny "
      "shapes on one thread. peak_bytes_per_token is what tapes hold for activations and their gradients.\n\n--profile: rows "
      "are ops, for one step. ms = time of the threads inside the op / shards that run at once (an op that waits for\nother "
      "threads counts the wait), so rows sum to less than the step; MB = each tensor moved once; held/t = bytes of tape a "
      "token:\nforward what backward needs, backward gradients of activations.\n\n--config times updates of a config on its "
      "own data, as "
      "weft train makes them, without a run folder. wait_for_batch is how long\nthey stood still until their batch was there; "
      "batches are prepared on a thread of their own.\n");
  return help;
}

absl::Status RunBench(const BenchFlags& flags) {
  if (!flags.config.empty()) return bench::RunConfigSuite(flags);
  const auto asked = [&](const char* name) {
    return std::find(flags.suites.begin(), flags.suites.end(), name) != flags.suites.end();
  };
  std::vector<Suite> chosen;
  bool any_trains = false, any_parts = false;
  for (const Suite& suite : Suites()) {
    const bool trains = suite.model != nullptr;
    if (!asked(suite.name) && !asked(kAll) && !(flags.suites.empty() && trains)) continue;
    chosen.push_back(suite);
    (trains ? any_trains : any_parts) = true;
  }
  if (!flags.only.empty() && !any_parts) return absl::InvalidArgumentError("--case needs a suite with cases, such as gemm");
  if (flags.profile && !any_trains)
    return absl::InvalidArgumentError("--profile needs a suite that trains, such as tiny, or --config");
  if (chosen.size() == 1) return chosen[0].Run(flags);
  // Each in a process of its own, since the system reports the peak memory of a process. No worker thread exists yet, so
  // forking is safe.
  for (const Suite& suite : chosen) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) return absl::UnavailableError("bench: fork failed");
    if (child == 0) {
      const absl::Status status = suite.Run(flags);
      if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
      _exit(ExitCode(status));
    }
    int exit_status = 0;
    if (waitpid(child, &exit_status, 0) < 0 || !WIFEXITED(exit_status) || WEXITSTATUS(exit_status) != 0) {
      return absl::InternalError(absl::StrCat("bench: suite ", suite.name, " failed"));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
