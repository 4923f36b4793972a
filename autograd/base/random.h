// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011). A number is a pure function of (key, counter): no state, no order of calls, so results cannot depend on threads,
// shards or resume. Keys are derived from each other by Fold: seed -> step -> sequence -> layer. All functions are pure and
// thread-safe.
#ifndef WEFT_AUTOGRAD_BASE_RANDOM_H_
#define WEFT_AUTOGRAD_BASE_RANDOM_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace weft {

// 64 random bits that select one stream of numbers.
struct RandomKey {
  uint64_t bits = 0;

  // A new key, as good as independent of this one and of every other Fold of it.
  RandomKey Fold(uint64_t value) const;
  // The same from a name (a layer path, a parameter name).
  RandomKey Fold(absl::string_view name) const;

  // The four 32-bit words of block `counter` (Random123's philox4x32 with counter {lo, hi, 0, 0} and key {lo, hi}).
  std::array<uint32_t, 4> Block(uint64_t counter) const;
  // Element `i` of this key's endless list of 32-bit words: word i % 4 of block i / 4.
  uint32_t Word(uint64_t i) const;
  // Element i of a list of doubles, uniform in [0, 1), 53 bits.
  double Uniform(uint64_t i) const;
  // Element i of a list of standard normal doubles (Box-Muller).
  double Normal(uint64_t i) const;
  // Element i of a list of integers uniform in [0, n). REQUIRES: n > 0.
  int64_t Below(uint64_t i, int64_t n) const;
};

// A keyed permutation of 0..n-1, computed element by element and never stored: a Feistel network on the next power of four,
// walked until the value falls below n (Black, Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
class Permutation {
 public:
  // REQUIRES: n >= 0.
  Permutation(RandomKey key, int64_t n);
  int64_t size() const { return n_; }
  // The element at place i. REQUIRES: 0 <= i < size().
  int64_t operator[](int64_t i) const;

 private:
  RandomKey key_;
  int64_t n_;
  int half_bits_;
};

}  // namespace weft

#endif  // WEFT_AUTOGRAD_BASE_RANDOM_H_
