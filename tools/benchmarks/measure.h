// How benchmarks measure and report: repeated timings and their statistics, the machine's limit, and one JSON line a result.
// Plain values, nothing is shared.
#ifndef WEFT_TOOLS_BENCHMARKS_MEASURE_H_
#define WEFT_TOOLS_BENCHMARKS_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace weft::bench {

// Seconds on a clock that never steps.
double Now();

struct Statistics {
  int64_t count = 0;
  double median = 0, min = 0, mean = 0;
  double spread = 0;  // (90th percentile - 10th) / median, percentiles interpolated; 0 for one value
};
// REQUIRES: at least one value.
Statistics Summarise(std::vector<double> values);

// How long to repeat a piece of work.
struct Repetitions {
  double seconds = 0.2;  // in all, and
  int64_t least = 3;     // at least this often,
  int64_t exactly = 0;   // unless this is given
};
// Seconds of each run of `work`, after `warm_up` runs that do not count.
std::vector<double> Time(const Repetitions& repetitions, int64_t warm_up, absl::FunctionRef<void()> work);

// Floating-point operations a second, in GF/s, that `threads` threads do together when nothing waits for memory: `runs` values,
// some 3 ms each for `rounds` = 2 million.
std::vector<double> PeakRuns(int threads, int runs, int64_t rounds);
// The best of several runs of 30 ms: a machine may be disturbed, but is never faster than it is.
double BestPeak(int threads);

// Of this process so far, in MB.
double PeakRss();

// One result. Keys keep their order.
class Record {
 public:
  Record& Set(const char* key, absl::string_view value);
  Record& Set(const char* key, double value);
  Record& Set(const char* key, int64_t value);
  // One JSON object on a line of stdout, flushed.
  void Print() const;

 private:
  Record& SetJson(const char* key, const std::string& json);
  std::string fields_;
};

}  // namespace weft::bench

#endif  // WEFT_TOOLS_BENCHMARKS_MEASURE_H_
