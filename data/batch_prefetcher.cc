#include "data/batch_prefetcher.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"

namespace weft {

BatchPrefetcher::BatchPrefetcher(Batcher batcher) : batcher_(std::move(batcher)), position_(batcher_.position()) {}

BatchPrefetcher::~BatchPrefetcher() { Stop(); }

absl::Status BatchPrefetcher::Start() {
  made_ = taken_ = 0;
  stop_ = false;
  try {
    thread_ = std::thread([this] { Prepare(); });
  } catch (const std::system_error& error) {  // the only way in which std::thread says so
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread to prepare batches: ", error.what(), "; raise the limit of processes (ulimit -u)"));
  }
  return absl::OkStatus();
}

void BatchPrefetcher::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  batch_taken_.notify_one();
  thread_.join();
}

void BatchPrefetcher::Prepare() {
  for (int64_t i = 0;; ++i) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      batch_taken_.wait(lock, [&] { return stop_ || made_ - taken_ < kAhead; });
      if (stop_) return;
    }
    Slot& slot = slots_[i % kAhead];
    slot.status = batcher_.Next(&slot.batch);
    slot.after = batcher_.position();
    const bool failed = !slot.status.ok();  // read before Next may see the slot
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++made_;
    }
    batch_made_.notify_one();
    if (failed) return;
  }
}

absl::Status BatchPrefetcher::Next(Batch* batch) {
  if (!thread_.joinable()) WEFT_RETURN_IF_ERROR(Start());
  {
    std::unique_lock<std::mutex> lock(mutex_);
    batch_made_.wait(lock, [&] { return made_ > taken_; });
  }
  Slot& slot = slots_[taken_ % kAhead];  // taken_ changes here only
  WEFT_RETURN_IF_ERROR(slot.status);     // not taken: it stays the next one
  std::swap(slot.batch, *batch);
  position_ = slot.after;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++taken_;
  }
  batch_taken_.notify_one();
  return absl::OkStatus();
}

absl::Status BatchPrefetcher::Seek(Position position) {
  Stop();
  const absl::Status status = batcher_.Seek(position);
  if (status.ok()) {
    position_ = position;
  } else {
    batcher_.Seek(position_).IgnoreError();  // back from where the thread was; that place exists
  }
  return status;
}

}  // namespace weft
