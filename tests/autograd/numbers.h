// Helpers of the op tests: owned tensors, and comparison with plain loops in double.
#ifndef WEFT_TESTS_AUTOGRAD_NUMBERS_H_
#define WEFT_TESTS_AUTOGRAD_NUMBERS_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "autograd/base/parallel.h"
#include "autograd/base/random.h"
#include "autograd/op_checks.h"
#include "autograd/tensor.h"
#include "gtest/gtest.h"

namespace weft {

// A tensor with memory of its own.
class Numbers {
 public:
  // Standard normal numbers times `scale`; an f32 tensor holds the rounded numbers of the f64 one of the same seed.
  Numbers(DType dtype, const Shape& shape, uint64_t seed, double scale = 1) : Numbers(dtype, shape) {
    for (int64_t i = 0; i < shape.elements(); ++i) tensor_.Set(i, scale * RandomKey{seed}.Normal(i));
  }
  Numbers(DType dtype, const Shape& shape, const std::vector<double>& values) : Numbers(dtype, shape) {
    EXPECT_EQ(static_cast<int64_t>(values.size()), shape.elements());
    for (size_t i = 0; i < values.size(); ++i) tensor_.Set(static_cast<int64_t>(i), values[i]);
  }
  Numbers(Numbers&&) = default;

  const Tensor& tensor() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }  // NOLINT: implicit on purpose

 private:
  Numbers(DType dtype, const Shape& shape) : memory_(shape.elements() + 1), tensor_(memory_.data(), dtype, shape) {}

  std::vector<double> memory_;
  Tensor tensor_;
};

inline std::vector<double> ToDoubles(const Tensor& tensor) {
  std::vector<double> values(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = tensor.At(i);
  return values;
}

inline std::vector<char> ToBytes(const Tensor& tensor) {
  const char* first = static_cast<const char*>(tensor.raw());
  return std::vector<char>(first, first + tensor.bytes());
}

// Largest |a - b| over the elements.
inline double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

// Runs the catalogue's gradient checks whose names begin with `prefix`; there must be at least one.
inline void ExpectGradientsOf(const std::string& prefix) {
  int checks = 0;
  for (const OpCheck& check : OpChecks()) {
    if (check.name.rfind(prefix, 0) != 0) continue;
    const GradCheckReport report = check.run(GradCheckOptions());
    EXPECT_TRUE(report.passed) << check.name << "\n" << report.ToString();
    ++checks;
  }
  EXPECT_GT(checks, 0) << prefix;
}

}  // namespace weft

#endif  // WEFT_TESTS_AUTOGRAD_NUMBERS_H_
