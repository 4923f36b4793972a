// The suites of `weft bench`. Each prints its results to stdout as it goes: lines of a table, or one JSON object a line with
// --json. Each runs on the enclosing Workers.
#ifndef WEFT_TOOLS_BENCHMARKS_SUITES_H_
#define WEFT_TOOLS_BENCHMARKS_SUITES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "autograd/profile.h"
#include "tools/benchmarks/models.h"
#include "tools/verbs.h"

namespace weft::bench {

// One training step: forward, backward, clipping to norm 1, AdamW; dropout 0. Then its profile, when asked for.
absl::Status RunTrainingSuite(const BenchModel& model, const BenchFlags& flags);
// Updates of the config flags.config as `weft train` makes them, from its data, with the time they waited for their batches.
// Writes no run folder.
absl::Status RunConfigSuite(const BenchFlags& flags);
// Matrix products of the shapes of these models, each against the peak measured right before it.
absl::Status RunGemmSuite(const BenchFlags& flags);
// Fused attention, forward and backward, over lengths 64 to 4096.
absl::Status RunAttentionSuite(const BenchFlags& flags);
// Greedy decoding with cached keys and values.
absl::Status RunGenerateSuite(const BenchFlags& flags);

// Whether --case lets this case through.
inline bool IsAsked(const BenchFlags& flags, absl::string_view name) {
  return flags.only.empty() || absl::StrContains(name, flags.only);
}
// For a suite that ran `cases`: InvalidArgument if --case let none through.
absl::Status CheckAnyCase(const char* suite, int64_t cases, const BenchFlags& flags);

// What a profiled step cost.
struct StepProfile {
  Profile profile;  // summed over `steps`
  int64_t steps = 1;
  int64_t leaves = 1;  // that ran at the same time
  double seconds = 0;  // wall time of one step
  double peak = 0;     // GF/s of all threads
};
// Adds a row for what the steps did outside of their leaves: in `seconds`, all steps together. It has the step to itself, while
// the seconds of ops are those of several leaves at once. `bytes` that it moved, or 0.
void AddAlone(const char* name, double seconds, double bytes, StepProfile* step);
void PrintProfile(const std::string& name, int64_t tokens, const StepProfile& step, const BenchFlags& flags);

}  // namespace weft::bench

#endif  // WEFT_TOOLS_BENCHMARKS_SUITES_H_
