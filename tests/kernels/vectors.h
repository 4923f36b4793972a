// Helpers of the kernel tests: seeded vectors, conversions, and distances in units in the last place.
#ifndef WEFT_TESTS_KERNELS_VECTORS_H_
#define WEFT_TESTS_KERNELS_VECTORS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "autograd/base/random.h"

namespace weft::kernels {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// n floats uniform in [low, high).
inline std::vector<float> RandomFloats(int64_t n, uint64_t seed, double low = -2, double high = 2) {
  std::vector<float> out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>(low + (high - low) * RandomKey{seed}.Uniform(static_cast<uint64_t>(i)));
  }
  return out;
}

inline std::vector<double> ToDouble(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// Values that kernels get wrong most easily.
inline std::vector<float> EdgeFloats() {
  return {0.0f,   -0.0f,  1e-45f,  -1e-45f, 1e-39f, -1e-39f, 1.1754944e-38f, 1e-20f,        -1e-20f,        1.0f, -1.0f, 88.7f,
          -88.7f, 104.0f, -104.0f, 1e4f,    -1e4f,  1e20f,   -1e20f,         3.4028235e38f, -3.4028235e38f, kInf, -kInf, kNan};
}

// |actual - expected| in units in the last place of the float next to `expected` (denormals: 2^-149). 0 for two NaN, two equal
// infinities; inf when only one of the two is finite.
inline double Ulps(float actual, double expected) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected) ? 0 : kInf;
  const float nearest = static_cast<float>(expected);
  if (std::isinf(actual) || std::isinf(nearest)) return actual == nearest ? 0 : kInf;
  const int exponent = nearest == 0 ? -126 : std::max(std::ilogb(nearest), -126);
  return std::abs(static_cast<double>(actual) - expected) / std::ldexp(1.0, exponent - 23);
}

inline bool SameBits(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace weft::kernels

#endif  // WEFT_TESTS_KERNELS_VECTORS_H_
