#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_format.h"
#include "tools/benchmarks/measure.h"
#include "tools/benchmarks/suites.h"

namespace weft::bench {
namespace {

// One direction of a row, for one step.
struct Cost {
  double ms, gflops, share, mb, gb_per_s, held_per_token;
  int64_t calls;
};

Cost CostOf(const ProfilePass& pass, int64_t tokens, const StepProfile& step) {
  const auto steps = static_cast<double>(step.steps);
  const double seconds = pass.seconds / steps / static_cast<double>(step.leaves);
  const auto rate = [&](double amount) { return seconds > 0 ? amount / steps / seconds * 1e-9 : 0; };
  Cost cost;
  cost.ms = seconds * 1e3;
  cost.gflops = rate(pass.flops);
  cost.share = cost.gflops / step.peak;
  cost.mb = pass.bytes / steps * 1e-6;
  cost.gb_per_s = rate(pass.bytes);
  cost.held_per_token = static_cast<double>(pass.held) / steps / static_cast<double>(tokens);
  cost.calls = pass.calls / step.steps;
  return cost;
}

void PrintRecord(const std::string& name, const ProfileRow& row, const Cost& forward, const Cost& backward,
                 const StepProfile& step, const BenchFlags& flags) {
  const auto steps = static_cast<double>(step.steps);
  Record()
      .Set("suite", name)
      .Set("profile", row.name)
      .Set("threads", int64_t{flags.threads})
      .Set("steps", step.steps)
      .Set("calls", std::max(forward.calls, backward.calls))
      .Set("share_of_step", (forward.ms + backward.ms) / (step.seconds * 1e3))
      .Set("forward_ms", forward.ms)
      .Set("forward_flops", row.forward.flops / steps)
      .Set("forward_gflops", forward.gflops)
      .Set("forward_share", forward.share)
      .Set("forward_bytes", row.forward.bytes / steps)
      .Set("forward_gb_per_s", forward.gb_per_s)
      .Set("forward_held_per_token", forward.held_per_token)
      .Set("backward_ms", backward.ms)
      .Set("backward_flops", row.backward.flops / steps)
      .Set("backward_gflops", backward.gflops)
      .Set("backward_share", backward.share)
      .Set("backward_bytes", row.backward.bytes / steps)
      .Set("backward_gb_per_s", backward.gb_per_s)
      .Set("backward_held_per_token", backward.held_per_token)
      .Print();
}

void PrintLine(const char* name, const Cost& forward, const Cost& backward, double step_ms) {
  const auto pass = [](const Cost& c) {
    const std::string rate = c.gflops > 0 ? absl::StrFormat("%7.1f %4.0f%%", c.gflops, c.share * 100) : "      -     -";
    return absl::StrFormat("|%9.3f %s %8.1f %6.1f %7.0f", c.ms, rate, c.mb, c.gb_per_s, c.held_per_token);
  };
  absl::PrintF("  %-20s %5d %5.1f%% %s %s\n", name, std::max(forward.calls, backward.calls),
               (forward.ms + backward.ms) / step_ms * 100, pass(forward), pass(backward));
}

}  // namespace

void AddAlone(const char* name, double seconds, double bytes, StepProfile* step) {
  ProfilePass& pass = step->profile.Row(name).backward;
  pass.calls = step->steps;
  pass.seconds = seconds * static_cast<double>(step->leaves);
  pass.bytes = bytes;
}

void PrintProfile(const std::string& name, int64_t tokens, const StepProfile& step, const BenchFlags& flags) {
  std::vector<const ProfileRow*> rows;
  ProfileRow all;  // to sum up
  all.name = "sum";
  for (const ProfileRow& row : step.profile.rows()) {
    rows.push_back(&row);
    all.forward.Add(row.forward);
    all.backward.Add(row.backward);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ProfileRow* a, const ProfileRow* b) {
    return a->forward.seconds + a->backward.seconds > b->forward.seconds + b->backward.seconds;
  });
  rows.push_back(&all);

  if (!flags.json) {
    constexpr char kColumns[] = "|       ms    GF/s  peak       MB   GB/s  held/t";
    absl::PrintF(
        "  %s: mean of %d profiled steps of %.3f ms; ms = thread time / %d shard(s) at once; MB if each tensor moves once\n",
        name, step.steps, step.seconds * 1e3, step.leaves);
    absl::PrintF("  %-20s %5s %6s %-48s %s\n", "", "", "", "| forward", "| backward");
    absl::PrintF("  %-20s %5s %6s %s %s\n", "op", "calls", "step", kColumns, kColumns);
  }
  for (const ProfileRow* row : rows) {
    const Cost forward = CostOf(row->forward, tokens, step), backward = CostOf(row->backward, tokens, step);
    if (flags.json) {
      PrintRecord(name, *row, forward, backward, step, flags);
    } else {
      PrintLine(row->name.c_str(), forward, backward, step.seconds * 1e3);
    }
  }
  std::fflush(stdout);
}

}  // namespace weft::bench
