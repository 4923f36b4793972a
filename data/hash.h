// Hash64: the checksum of checkpoints and token files: XXH64 with seed 0 (Collet, "XXH64 algorithm description", xxHash format
// specification 0.1.1). Four independent 64-bit lanes, 32 bytes a round, so it runs at memory speed; it finds damage, not
// forgery. The same on every machine. A value type; not thread-safe.
#ifndef WEFT_DATA_HASH_H_
#define WEFT_DATA_HASH_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace weft {

class Hash64 {
 public:
  // Appends bytes: any split of the same bytes into calls gives the same digest.
  void Add(absl::string_view bytes);
  // The hash of everything added so far.
  uint64_t Digest() const;

 private:
  void Round(const char* block);

  std::array<uint64_t, 4> lanes_ = {0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0, 0x61C8864E7A143579};
  std::array<char, 32> pending_{};  // the last size_ % 32 bytes
  uint64_t size_ = 0;
};

}  // namespace weft

#endif  // WEFT_DATA_HASH_H_
