#include "tools/benchmarks/measure.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/parallel.h"
#include "autograd/kernels/peak.h"

namespace weft::bench {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Statistics Summarise(std::vector<double> values) {
  WEFT_CHECK(!values.empty()) << "Summarise";
  std::sort(values.begin(), values.end());
  const auto percentile = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  Statistics result;
  result.count = static_cast<int64_t>(values.size());
  result.median = percentile(0.5);
  result.min = values[0];
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  result.spread = (percentile(0.9) - percentile(0.1)) / result.median;
  return result;
}

std::vector<double> Time(const Repetitions& repetitions, int64_t warm_up, absl::FunctionRef<void()> work) {
  for (int64_t i = 0; i < warm_up; ++i) work();
  std::vector<double> times;
  const double begin = Now();
  while (true) {
    const auto done = static_cast<int64_t>(times.size());
    if (repetitions.exactly > 0 ? done >= repetitions.exactly
                                : done >= repetitions.least && Now() - begin >= repetitions.seconds) {
      return times;
    }
    const double start = Now();
    work();
    times.push_back(Now() - start);
  }
}

std::vector<double> PeakRuns(int threads, int runs, int64_t rounds) {
  std::vector<double> rates;
  for (int run = 0; run < runs; ++run) {
    const double start = Now();
    std::vector<int64_t> flops(threads);
    ParallelFor(threads, [&](int64_t i) { flops[i] = kernels::RunMultiplyAdds(rounds); });
    const auto total = static_cast<double>(std::accumulate(flops.begin(), flops.end(), int64_t{0}));
    rates.push_back(total / (Now() - start) * 1e-9);
  }
  return rates;
}

double BestPeak(int threads) {
  const std::vector<double> rates = PeakRuns(threads, 5, 20'000'000);
  return *std::max_element(rates.begin(), rates.end());
}

double PeakRss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Record& Record::SetJson(const char* key, const std::string& json) {
  absl::StrAppend(&fields_, fields_.empty() ? "" : ",", nlohmann::json(key).dump(), ":", json);
  return *this;
}
Record& Record::Set(const char* key, absl::string_view value) {
  return SetJson(key, nlohmann::json(std::string(value)).dump());
}
Record& Record::Set(const char* key, double value) { return SetJson(key, nlohmann::json(value).dump()); }
Record& Record::Set(const char* key, int64_t value) { return SetJson(key, absl::StrCat(value)); }

void Record::Print() const {
  std::printf("{%s}\n", fields_.c_str());
  std::fflush(stdout);
}

}  // namespace weft::bench
