#include "autograd/kernels/scratch.h"

#include <algorithm>
#include <bit>

#include "autograd/base/block.h"
#include "autograd/base/check.h"

namespace weft::kernels {

ScratchPool& ScratchPool::Get() {
  static ScratchPool pool;
  return pool;
}

ScratchPool::ScratchPool() {
  // Room for the blocks of many threads, so that giving one back allocates nothing.
  for (std::vector<void*>& list : free_) list.reserve(64);
}

ScratchPool::~ScratchPool() {
  for (int size_class = 0; size_class < kSizeClasses; ++size_class) {
    for (void* data : free_[size_class]) FreeBlock(data, int64_t{1} << size_class);
  }
}

ScratchPool::Block ScratchPool::Acquire(int64_t bytes) {
  WEFT_CHECK_GE(bytes, 0);
  const uint64_t size = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(bytes, 4096)));
  const int size_class = std::countr_zero(size);
  WEFT_CHECK_LT(size_class, kSizeClasses) << "scratch of " << bytes << " bytes";
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<void*>& list = free_[static_cast<size_t>(size_class)];
    if (!list.empty()) {
      void* data = list.back();
      list.pop_back();
      return Block(this, data, size_class);
    }
    ++blocks_;
  }
  return Block(this, AllocateBlock(static_cast<int64_t>(size)), size_class);
}

void ScratchPool::Release(void* data, int size_class) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_[static_cast<size_t>(size_class)].push_back(data);
}

int64_t ScratchPool::blocks() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return blocks_;
}

}  // namespace weft::kernels
