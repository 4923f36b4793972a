#include "data/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weft {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5;

static_assert(std::endian::native == std::endian::little, "checkpoints are written in the machine's byte order");

template <class T>
T Load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

uint64_t Mix(uint64_t lane, uint64_t input) { return std::rotl(lane + input * kPrime2, 31) * kPrime1; }

}  // namespace

void Hash64::Round(const char* block) {
  for (int i = 0; i < 4; ++i) lanes_[i] = Mix(lanes_[i], Load<uint64_t>(block + 8 * i));
}

void Hash64::Add(absl::string_view bytes) {
  const size_t held = size_ % 32;
  size_ += bytes.size();
  if (held > 0) {
    const size_t taken = std::min(bytes.size(), 32 - held);
    std::copy_n(bytes.data(), taken, pending_.data() + held);
    bytes.remove_prefix(taken);
    if (held + taken < 32) return;
    Round(pending_.data());
  }
  for (; bytes.size() >= 32; bytes.remove_prefix(32)) Round(bytes.data());
  std::copy_n(bytes.data(), bytes.size(), pending_.data());
}

uint64_t Hash64::Digest() const {
  uint64_t hash = kPrime5;
  if (size_ >= 32) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) hash = (hash ^ Mix(0, lane)) * kPrime1 + kPrime4;
  }
  hash += size_;
  const char* next = pending_.data();
  size_t left = size_ % 32;
  for (; left >= 8; left -= 8, next += 8) hash = std::rotl(hash ^ Mix(0, Load<uint64_t>(next)), 27) * kPrime1 + kPrime4;
  for (; left >= 4; left -= 4, next += 4) {
    hash = std::rotl(hash ^ (Load<uint32_t>(next) * kPrime1), 23) * kPrime2 + kPrime3;
  }
  for (; left > 0; --left, ++next) hash = std::rotl(hash ^ (static_cast<unsigned char>(*next) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace weft
