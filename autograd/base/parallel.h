// Parallel loops over a list of tiles. What a tile computes depends on its index alone, never on the thread that runs it, and
// the list does not depend on how many threads there are, so results have the same bits for any thread count; but work whose
// bits no cut can change may be cut by the number of threads (EqualTiles). Built on oneTBB; with WEFT_STD_THREADS (the `tsan`
// preset) the same tiles run on std::thread, since Debian's TBB is not instrumented for the sanitizer.
#ifndef WEFT_AUTOGRAD_BASE_PARALLEL_H_
#define WEFT_AUTOGRAD_BASE_PARALLEL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace weft {

// Processors this process may use: affinity mask and cgroup CPU quota (rounded up) counted; at least 1.
int AvailableThreads();

// Calls body(tile) once for each tile in 0..n-1, in any order, on the threads of the enclosing Workers (outside of one: of
// TBB's default arena), and returns when all are done. May be nested: an inner loop runs isolated, so a waiting thread never
// starts a tile of another loop. `body` must not throw.
void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t tile)> body);

// Into how many equal tiles to cut work that starts here, so that no thread is idle: as many as ParallelFor has threads here;
// inside of loops, these divided by the tiles that are still to end, since others run them meanwhile; at least 1. It changes
// with time: only for cuts that change no result.
int64_t EqualTiles();

// Limits a computation to a number of threads. One at a time per process is the normal case; nested Workers use the smaller
// count.
class Workers {
 public:
  // REQUIRES: threads >= 1.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return threads_; }
  // Runs `work` on the calling thread such that each ParallelFor inside uses at most threads() threads, the caller included.
  void Run(absl::FunctionRef<void()> work);

 private:
  struct Impl;
  int threads_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft

#endif  // WEFT_AUTOGRAD_BASE_PARALLEL_H_
