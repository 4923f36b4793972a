// Reusable scratch memory for kernels. A kernel's task takes a block, which goes back to the pool at the end of its scope; the
// pool keeps it, so a loop that repeats the same work stops allocating once as many blocks exist as tasks run at a time.
// Contents are whatever the last user left: a kernel must write what it reads. Thread-safe (one short lock an Acquire).
#ifndef WEFT_AUTOGRAD_KERNELS_SCRATCH_H_
#define WEFT_AUTOGRAD_KERNELS_SCRATCH_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace weft::kernels {

class ScratchPool {
 public:
  // A block in use; move-only, returned to the pool by its destructor. The empty one (default) owns nothing.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept : pool_(other.pool_), data_(other.data_), size_class_(other.size_class_) {
      other.pool_ = nullptr;
    }
    Block& operator=(Block&&) = delete;
    ~Block() {
      if (pool_ != nullptr) pool_->Release(data_, size_class_);
    }

    // 64-byte aligned.
    void* data() const { return data_; }

   private:
    friend class ScratchPool;
    Block(ScratchPool* pool, void* data, int size_class) : pool_(pool), data_(data), size_class_(size_class) {}

    ScratchPool* pool_ = nullptr;
    void* data_ = nullptr;
    int size_class_ = 0;
  };

  // The process's pool.
  static ScratchPool& Get();

  ScratchPool();
  ~ScratchPool();
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;

  // At least `bytes` bytes (rounded up to a power of two, at least 4096). REQUIRES: bytes >= 0.
  Block Acquire(int64_t bytes);

  // Blocks allocated so far, in use or kept: constant in a steady state.
  int64_t blocks() const;

 private:
  static constexpr int kSizeClasses = 48;  // block size 2^class bytes

  void Release(void* data, int size_class);

  mutable std::mutex mutex_;
  std::array<std::vector<void*>, kSizeClasses> free_;  // guarded by mutex_
  int64_t blocks_ = 0;                                 // guarded by mutex_
};

// `count` elements of T (trivial): on the stack when they fit into kStackBytes, else from the pool.
template <class T, int64_t kStackBytes = 32768>
class Scratch {
 public:
  explicit Scratch(int64_t count) : Scratch(count, count * static_cast<int64_t>(sizeof(T)) <= kStackBytes) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() { return data_; }

 private:
  Scratch(int64_t count, bool on_stack)
      : block_(on_stack ? ScratchPool::Block() : ScratchPool::Get().Acquire(count * static_cast<int64_t>(sizeof(T)))),
        data_(on_stack ? reinterpret_cast<T*>(stack_) : static_cast<T*>(block_.data())) {}

  alignas(64) unsigned char stack_[kStackBytes];  // left uninitialised on purpose
  ScratchPool::Block block_;
  T* data_;
};

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_SCRATCH_H_
