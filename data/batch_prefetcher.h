// The batches of a Batcher, prepared on a thread of their own, at most two ahead of the one that is trained on, so that
// reading, sorting and copying do not hold up a step. The batches and their order are those of the Batcher; the position is
// that behind the batch handed out last, however far ahead the thread is.
// The thread starts with the first Next and sleeps while two batches are ready; it is none of the Workers and runs beside them
// also when they are one. It ends with the object. The methods are for one thread, that of the training.
#ifndef WEFT_DATA_BATCH_PREFETCHER_H_
#define WEFT_DATA_BATCH_PREFETCHER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <semaphore>
#include <thread>

#include "absl/status/status.h"
#include "data/batcher.h"

namespace weft {

class BatchPrefetcher {
 public:
  // Continues from the batcher's position. Its examples must outlive the prefetcher.
  explicit BatchPrefetcher(Batcher batcher);
  ~BatchPrefetcher();
  BatchPrefetcher(const BatchPrefetcher&) = delete;
  BatchPrefetcher& operator=(const BatchPrefetcher&) = delete;

  // Batcher::Next: waits until the batch is ready and swaps it with `batch`, whose memory is used again; so a steady Next
  // allocates nothing. After an error each call returns it until Seek. ResourceExhausted if no thread can be started.
  absl::Status Next(Batch* batch);
  Position position() const { return position_; }
  // Batcher::Seek. What was prepared is dropped.
  absl::Status Seek(Position position);

 private:
  static constexpr int64_t kAhead = 2;
  struct Slot {
    Batch batch;
    Position after;
    absl::Status status;
  };

  absl::Status Start();
  void Stop();
  void Prepare();  // the thread

  Batcher batcher_;  // the thread's while there is one
  Position position_;
  std::array<Slot, kAhead> slots_;  // slot i % kAhead has batch i: the thread's until it is made, then Next's until it is taken
  int64_t taken_ = 0;               // batches
  // Batches that are made and not taken, and slots that are free. Semaphores, since a condition variable of glibc may wait, in
  // notify_one, for the thread that it woke up the last time. Made anew with each thread.
  std::optional<std::counting_semaphore<kAhead + 1>> made_, free_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace weft

#endif  // WEFT_DATA_BATCH_PREFETCHER_H_
