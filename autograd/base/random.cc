#include "autograd/base/random.h"

#include <cmath>
#include <numbers>

#include "Random123/philox.h"
#include "autograd/base/check.h"

namespace weft {
namespace {

// FNV-1a, 64 bits; only a way from a name to a number, Philox does the mixing.
uint64_t HashName(absl::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

std::array<uint32_t, 4> Philox(uint64_t key, uint64_t low, uint32_t third, uint32_t fourth) {
  r123::Philox4x32 generator;
  r123::Philox4x32::ctr_type counter = {{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), third, fourth}};
  r123::Philox4x32::key_type words = {{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}};
  const r123::Philox4x32::ctr_type out = generator(counter, words);
  return {out[0], out[1], out[2], out[3]};
}

uint64_t Join(uint32_t low, uint32_t high) { return (static_cast<uint64_t>(high) << 32) | low; }

// Words 2 and 3 of the counter keep the streams of keys, numbers and names apart.
constexpr uint32_t kFoldStream = 1;
constexpr uint32_t kNameStream = 2;

}  // namespace

RandomKey RandomKey::Fold(uint64_t value) const {
  const auto words = Philox(bits, value, kFoldStream, 0);
  return {Join(words[0], words[1])};
}

RandomKey RandomKey::Fold(absl::string_view name) const {
  const auto words = Philox(bits, HashName(name), kNameStream, 0);
  return {Join(words[0], words[1])};
}

std::array<uint32_t, 4> RandomKey::Block(uint64_t counter) const { return Philox(bits, counter, 0, 0); }

uint32_t RandomKey::Word(uint64_t i) const { return Block(i / 4)[i % 4]; }

double RandomKey::Uniform(uint64_t i) const {
  const auto words = Block(i / 2);
  const uint64_t pair = i % 2 == 0 ? Join(words[0], words[1]) : Join(words[2], words[3]);
  return static_cast<double>(pair >> 11) * 0x1.0p-53;
}

double RandomKey::Normal(uint64_t i) const {
  const auto words = Block(i);
  // The first number in (0, 1], so that its logarithm is finite.
  const double u = static_cast<double>((Join(words[0], words[1]) >> 11) + 1) * 0x1.0p-53;
  const double v = static_cast<double>(Join(words[2], words[3]) >> 11) * 0x1.0p-53;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

int64_t RandomKey::Below(uint64_t i, int64_t n) const {
  WEFT_CHECK_GT(n, 0);
  const auto words = Block(i);
  // 64 random bits times n, upper half: the bias is below n / 2^64.
  const unsigned __int128 product = static_cast<unsigned __int128>(Join(words[0], words[1])) * static_cast<uint64_t>(n);
  return static_cast<int64_t>(product >> 64);
}

Permutation::Permutation(RandomKey key, int64_t n) : key_(key), n_(n), half_bits_(1) {
  WEFT_CHECK_GE(n, 0);
  while ((int64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
}

int64_t Permutation::operator[](int64_t i) const {
  WEFT_CHECK(0 <= i && i < n_) << "permutation of " << n_ << " elements asked for place " << i;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = static_cast<uint64_t>(i);
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t next = left ^ (key_.Block((round << 32) | right)[0] & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= static_cast<uint64_t>(n_));
  return static_cast<int64_t>(value);
}

}  // namespace weft
