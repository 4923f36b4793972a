#include "autograd/arena.h"

#include <algorithm>

#include "autograd/base/block.h"
#include "autograd/base/check.h"

namespace weft {
namespace {

constexpr int64_t kFirstBlock = 64 << 10;

int64_t RoundUp(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + Arena::kAlignment - 1) & ~(Arena::kAlignment - 1); }

}  // namespace

Arena::~Arena() {
  for (const Block& block : blocks_) FreeBlock(block.data, block.size);
}

void Arena::AddBlock(int64_t at_least) {
  // Doubling keeps the number of blocks, and so the cost of a growing step, logarithmic.
  const int64_t size = RoundUp(std::max({at_least, capacity_, kFirstBlock}));
  blocks_.push_back({static_cast<char*>(AllocateBlock(size)), size});
  capacity_ += size;
  offset_ = 0;
}

void* Arena::Allocate(int64_t bytes) {
  WEFT_CHECK_GE(bytes, 0) << "Arena::Allocate";
  const int64_t size = RoundUp(bytes);
  if (blocks_.empty() || offset_ + size > blocks_.back().size) AddBlock(size);
  void* data = blocks_.back().data + offset_;
  offset_ += size;
  used_ += size;
  return data;
}

void Arena::Reset() {
  if (blocks_.size() > 1) {
    // One block of what the step used, not of what was held: doubling may have held twice as much.
    const int64_t size = used_;
    for (const Block& block : blocks_) FreeBlock(block.data, block.size);
    blocks_.clear();
    capacity_ = 0;
    AddBlock(size);
  }
  offset_ = 0;
  used_ = 0;
}

namespace {
// In front of each pooled buffer, in a cache line of its own so that the buffer stays aligned.
struct Header {
  int64_t size;
};
}  // namespace

void* BufferPool::Take(int64_t bytes) {
  const int64_t size = RoundUp(bytes);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    // A buffer more than twice too large is left for a request that needs it.
    if (it->size >= size && it->size <= 2 * size && (best == free_.end() || it->size < best->size)) best = it;
  }
  if (best != free_.end()) {
    void* data = best->data;
    *best = free_.back();
    free_.pop_back();
    return data;
  }
  const int64_t whole = size + Arena::kAlignment;
  const auto donation =
      std::find_if(donations_.begin(), donations_.end(), [&](const Donation& left) { return left.size >= whole; });
  char* raw;
  if (donation != donations_.end()) {
    raw = donation->data;
    donation->data += whole;
    donation->size -= whole;
  } else {
    raw = static_cast<char*>(arena_.Allocate(whole));
  }
  reinterpret_cast<Header*>(raw)->size = size;
  return raw + Arena::kAlignment;
}

void BufferPool::Donate(void* memory, int64_t bytes) { donations_.push_back({static_cast<char*>(memory), bytes}); }

void BufferPool::Give(void* buffer) {
  const char* raw = static_cast<const char*>(buffer) - Arena::kAlignment;
  free_.push_back({reinterpret_cast<const Header*>(raw)->size, buffer});
}

void BufferPool::Reset() {
  arena_.Reset();
  free_.clear();
  donations_.clear();
}

}  // namespace weft
