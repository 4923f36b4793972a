#include "autograd/base/block.h"

#include <sys/mman.h>

#include <new>

#include "autograd/base/check.h"

namespace weft {
namespace {

constexpr int64_t kHugePage = 2 << 20;

// Smaller ones would gain little and round up much.
bool IsLarge(int64_t bytes) { return bytes >= 2 * kHugePage; }

std::align_val_t AlignmentOf(int64_t bytes) { return std::align_val_t{IsLarge(bytes) ? static_cast<size_t>(kHugePage) : 64}; }

}  // namespace

void* AllocateBlock(int64_t bytes) {
  WEFT_CHECK_GE(bytes, 1) << "AllocateBlock";
  void* block = ::operator new(static_cast<size_t>(bytes), AlignmentOf(bytes));
  // Whole huge pages only, so that no memory beyond the block is taken. Without the system's consent all works as before.
  if (IsLarge(bytes)) madvise(block, static_cast<size_t>(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
  return block;
}

void FreeBlock(void* block, int64_t bytes) { ::operator delete(block, AlignmentOf(bytes)); }

}  // namespace weft
