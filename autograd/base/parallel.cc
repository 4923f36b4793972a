#include "autograd/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "autograd/base/check.h"

#ifdef WEFT_STD_THREADS
#include <vector>
#else
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#endif

namespace weft {
namespace {

// The CPU quota of the process's own cgroup (v2 `cpu.max`, else v1), in processors; 0 when there is none.
double CgroupQuota() {
  std::string path, line;
  std::ifstream self("/proc/self/cgroup");
  while (std::getline(self, line)) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  for (const std::string& file : {"/sys/fs/cgroup" + path + "/cpu.max", std::string("/sys/fs/cgroup/cpu.max")}) {
    std::ifstream in(file);
    std::string quota;
    double period = 0;
    if (in >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  }
  std::ifstream quota_v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), period_v1("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (quota_v1 >> quota && period_v1 >> period && quota > 0 && period > 0) return quota / period;
  return 0;
}

// A running loop; it lives on the stack of the thread that started it.
struct Loop {
  std::atomic<int64_t> unfinished;  // tiles
  const Loop* outside;              // the one in whose tile it was started; null: none
};

// The loop of the tile that this thread runs. There is no other way to know it: tiles move between threads.
thread_local const Loop* innermost = nullptr;

void RunTile(Loop& loop, int64_t tile, absl::FunctionRef<void(int64_t)> body) {
  const Loop* before = std::exchange(innermost, &loop);
  body(tile);
  innermost = before;
  loop.unfinished.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

int AvailableThreads() {
  cpu_set_t set;
  int count = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof(set), &set) == 0) count = CPU_COUNT(&set);
  const double quota = CgroupQuota();
  if (quota > 0) count = std::min(count, static_cast<int>(std::ceil(quota)));
  return std::max(count, 1);
}

#ifdef WEFT_STD_THREADS

namespace {
// Threads of the innermost running Workers; only one runs at a time under this build's tests.
std::atomic<int> active_threads{2};
}  // namespace

struct Workers::Impl {};
Workers::Workers(int threads) : threads_(threads) { WEFT_CHECK_GE(threads, 1); }
Workers::~Workers() = default;

void Workers::Run(absl::FunctionRef<void()> work) {
  const int before = active_threads.exchange(threads_);
  work();
  active_threads.store(before);
}

namespace {
int64_t ThreadsHere() { return active_threads.load(); }
}  // namespace

void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body) {
  Loop loop = {n, innermost};
  std::atomic<int64_t> next{0};
  const auto run = [&] {
    for (int64_t tile = next.fetch_add(1); tile < n; tile = next.fetch_add(1)) RunTile(loop, tile, body);
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < std::min<int64_t>(n, active_threads.load()); ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
}

#else

// TBB needs both limits: the arena's concurrency and the number of worker threads of the process.
struct Workers::Impl {
  explicit Impl(int threads) : limit(tbb::global_control::max_allowed_parallelism, threads), arena(threads) {}
  tbb::global_control limit;
  tbb::task_arena arena;
};

Workers::Workers(int threads) : threads_(threads) {
  WEFT_CHECK_GE(threads, 1);
  impl_ = std::make_unique<Impl>(threads);
}
Workers::~Workers() = default;

void Workers::Run(absl::FunctionRef<void()> work) {
  impl_->arena.execute([&] { work(); });
}

namespace {
int64_t ThreadsHere() { return tbb::this_task_arena::max_concurrency(); }
}  // namespace

void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body) {
  if (n <= 1) {
    if (n == 1) body(0);
    return;
  }
  Loop loop = {n, innermost};
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(
        int64_t{0}, n, int64_t{1}, [&](int64_t tile) { RunTile(loop, tile, body); }, tbb::simple_partitioner());
  });
}

#endif

int64_t EqualTiles() {
  int64_t beside = 1;
  for (const Loop* loop = innermost; loop != nullptr; loop = loop->outside) {
    beside *= loop->unfinished.load(std::memory_order_relaxed);
  }
  return std::max<int64_t>(1, ThreadsHere() / beside);
}

}  // namespace weft
