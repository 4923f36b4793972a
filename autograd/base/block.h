// Memory in large pieces: slabs, arenas, scratch. Uninitialised, 64-byte aligned (a cache line and the widest vector). Pieces
// of some megabytes lie on huge pages where the system grants them, since products walk many rows at once and each row is on
// another page of 4 KB. Thread-safe; goes through operator new, so that a test can count allocations.
#ifndef WEFT_AUTOGRAD_BASE_BLOCK_H_
#define WEFT_AUTOGRAD_BASE_BLOCK_H_

#include <cstdint>

namespace weft {

// Never null. REQUIRES: bytes >= 1.
void* AllocateBlock(int64_t bytes);
// REQUIRES: the block is from AllocateBlock(bytes) with the same `bytes`.
void FreeBlock(void* block, int64_t bytes);

}  // namespace weft

#endif  // WEFT_AUTOGRAD_BASE_BLOCK_H_
