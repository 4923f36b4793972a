// Arena: bump allocation for the life of one step. Allocate hands out 64-byte-aligned memory; Reset takes all of it back at
// once, in O(blocks), and keeps the memory. Blocks that a step had to add become one block at the next Reset, so that after the
// largest step nothing is allocated from the system any more. Nothing is constructed or destroyed: only trivial types belong
// here. Not thread-safe: one arena, one thread at a time.
#ifndef WEFT_AUTOGRAD_ARENA_H_
#define WEFT_AUTOGRAD_ARENA_H_

#include <cstdint>
#include <vector>

namespace weft {

class Arena {
 public:
  static constexpr int64_t kAlignment = 64;  // bytes: a cache line and the widest vector

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` of uninitialised memory, valid until Reset. REQUIRES: bytes >= 0. Never null.
  void* Allocate(int64_t bytes);
  // Forgets all allocations; the memory stays.
  void Reset();

  // Bytes handed out since the last Reset, and bytes held.
  int64_t used() const { return used_; }
  int64_t capacity() const { return capacity_; }

 private:
  struct Block {
    char* data;
    int64_t size;
  };
  void AddBlock(int64_t at_least);

  std::vector<Block> blocks_;  // the last one is being filled
  int64_t offset_ = 0;         // first free byte of the last block
  int64_t used_ = 0;
  int64_t capacity_ = 0;
};

// Buffers of varying size that come back in any order: a best-fit free list over an Arena, for gradients of activations, which
// live from their first use to the end of their producer's backward. Not thread-safe.
class BufferPool {
 public:
  // 64-byte-aligned, uninitialised.
  void* Take(int64_t bytes);
  // REQUIRES: `buffer` came from Take and has not been given back since Reset.
  void Give(void* buffer);
  // Lets the pool cut buffers out of `memory`, which nothing else uses any more, until Reset. REQUIRES: 64-byte-aligned.
  void Donate(void* memory, int64_t bytes);
  // Forgets all buffers and donations; the memory stays.
  void Reset();
  // Bytes of all buffers that exist, taken or free, since the last Reset, and bytes held; without donations.
  int64_t used() const { return arena_.used(); }
  int64_t capacity() const { return arena_.capacity(); }

 private:
  struct Free {
    int64_t size;
    void* data;
  };
  struct Donation {  // what is left of it
    char* data;
    int64_t size;
  };
  Arena arena_;
  std::vector<Free> free_;
  std::vector<Donation> donations_;
};

}  // namespace weft

#endif  // WEFT_AUTOGRAD_ARENA_H_
