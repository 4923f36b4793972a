// Tensor: a trivially copyable view of a dense, row-major block of numbers: pointer, shape (rank 0..4) and dtype. It owns
// nothing and has no strides: memory belongs to a Tape's arena, to a parameter slab or to the caller, who keeps it alive while
// views of it are used. Like absl::Span, constness is shallow. Rank 0 is a scalar (one element).
#ifndef WEFT_AUTOGRAD_TENSOR_H_
#define WEFT_AUTOGRAD_TENSOR_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/base/check.h"

namespace weft {

enum class DType : uint8_t { kF32, kF64, kI32, kBF16 };  // kBF16 is for storage only: no op computes in it

// "f32", "f64", "i32", "bf16".
absl::string_view DTypeName(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);
// Bytes of one element.
int64_t DTypeSize(DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};

// Up to four dimensions, each >= 0.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;  // a scalar
  // REQUIRES: at most kMaxRank dimensions, none negative.
  Shape(std::initializer_list<int64_t> dims) : Shape(absl::MakeConstSpan(dims.begin(), dims.size())) {}
  explicit Shape(absl::Span<const int64_t> dims);

  int rank() const { return rank_; }
  // Dimension i; negative i counts from the end (-1 is the last). REQUIRES: -rank() <= i < rank().
  int64_t operator[](int i) const;
  // Product of all dimensions; 1 for a scalar.
  int64_t elements() const;
  // Last dimension (1 for a scalar) and the number of rows of that width.
  int64_t width() const { return rank_ == 0 ? 1 : dims_[rank_ - 1]; }
  int64_t rows() const;
  absl::Span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // A copy with dimension i (negative counts from the end) set to n.
  Shape With(int i, int64_t n) const;
  // "[2, 3]".
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims() == b.dims(); }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape);

class Tensor {
 public:
  Tensor() = default;  // no tensor: defined() is false
  Tensor(void* data, DType dtype, const Shape& shape) : data_(data), shape_(shape), dtype_(dtype) {}
  // A view of the caller's numbers. REQUIRES: values.size() == shape.elements().
  template <class T>
  static Tensor Of(absl::Span<T> values, const Shape& shape) {
    WEFT_CHECK_EQ(static_cast<int64_t>(values.size()), shape.elements()) << "Tensor::Of with shape " << shape;
    return Tensor(const_cast<std::remove_const_t<T>*>(values.data()), DTypeOf<std::remove_const_t<T>>::value, shape);
  }

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * DTypeSize(dtype_); }
  void* raw() const { return data_; }

  // The first element. REQUIRES: dtype() is T's.
  template <class T>
  T* data() const {
    WEFT_CHECK_EQ(dtype_, DTypeOf<T>::value) << "tensor of shape " << shape_ << " read as another dtype";
    return static_cast<T*>(data_);
  }
  template <class T>
  absl::Span<T> span() const {
    return {data<T>(), static_cast<size_t>(elements())};
  }
  // Element i in row-major order, converted to double (f32, f64, i32); for tests, printing and reference code.
  double At(int64_t i) const;
  void Set(int64_t i, double value) const;
  // The same numbers under another shape. REQUIRES: equal element counts.
  Tensor Reshaped(const Shape& shape) const;
  // Rows first..first+count-1 of the leading dimension, as a view.
  Tensor Rows(int64_t first, int64_t count) const;
  // All bytes to zero.
  void Zero() const;
  // REQUIRES: equal shape and dtype.
  void CopyFrom(const Tensor& other) const;

 private:
  void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::kF32;
};

// A tensor under a name: how models, optimizers and checks hand their numbers around. The value stays a view of its owner's
// memory.
struct NamedTensor {
  std::string name;
  Tensor value;
};

// Calls f(float{}) or f(double{}) by dtype: the one place where run-time dtype becomes a template argument. `op` names the
// caller.
template <class F>
decltype(auto) DispatchFloat(const char* op, DType dtype, F&& f) {
  WEFT_CHECK(dtype == DType::kF32 || dtype == DType::kF64) << op << ": needs f32 or f64, got " << dtype;
  if (dtype == DType::kF32) return f(float{});
  return f(double{});
}

}  // namespace weft

#endif  // WEFT_AUTOGRAD_TENSOR_H_
