#include "autograd/tensor.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {

absl::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
    case DType::kBF16:
      return "bf16";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << std::string(DTypeName(dtype)); }

int64_t DTypeSize(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 2;
    default:
      return 4;
  }
}

Shape::Shape(absl::Span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  WEFT_CHECK_LE(dims.size(), static_cast<size_t>(kMaxRank)) << "a shape has at most " << kMaxRank << " dimensions";
  for (int i = 0; i < rank_; ++i) {
    WEFT_CHECK_GE(dims[i], 0) << "dimension " << i << " of a shape";
    dims_[i] = dims[i];
  }
}

int64_t Shape::operator[](int i) const {
  WEFT_CHECK(-rank_ <= i && i < rank_) << "dimension " << i << " of shape " << ToString();
  return dims_[i < 0 ? rank_ + i : i];
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int64_t d : dims()) n *= d;
  return n;
}

int64_t Shape::rows() const {
  int64_t n = 1;
  for (int i = 0; i + 1 < rank_; ++i) n *= dims_[i];
  return n;
}

Shape Shape::With(int i, int64_t n) const {
  WEFT_CHECK(-rank_ <= i && i < rank_ && n >= 0) << "dimension " << i << " of shape " << ToString() << " set to " << n;
  Shape shape = *this;
  shape.dims_[i < 0 ? rank_ + i : i] = n;
  return shape;
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims(), ", "), "]"); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.ToString(); }

double Tensor::At(int64_t i) const {
  WEFT_CHECK(0 <= i && i < elements()) << "element " << i << " of shape " << shape_;
  switch (dtype_) {
    case DType::kF32:
      return static_cast<const float*>(data_)[i];
    case DType::kF64:
      return static_cast<const double*>(data_)[i];
    case DType::kI32:
      return static_cast<const int32_t*>(data_)[i];
    case DType::kBF16:
      break;
  }
  WEFT_CHECK(false) << "Tensor::At of bf16";
  return 0;
}

void Tensor::Set(int64_t i, double value) const {
  WEFT_CHECK(0 <= i && i < elements()) << "element " << i << " of shape " << shape_;
  switch (dtype_) {
    case DType::kF32:
      static_cast<float*>(data_)[i] = static_cast<float>(value);
      return;
    case DType::kF64:
      static_cast<double*>(data_)[i] = value;
      return;
    case DType::kI32:
      static_cast<int32_t*>(data_)[i] = static_cast<int32_t>(value);
      return;
    case DType::kBF16:
      break;
  }
  WEFT_CHECK(false) << "Tensor::Set of bf16";
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  WEFT_CHECK_EQ(shape.elements(), elements()) << "shape " << shape_ << " viewed as " << shape;
  return Tensor(data_, dtype_, shape);
}

Tensor Tensor::Rows(int64_t first, int64_t count) const {
  WEFT_CHECK(shape_.rank() >= 1 && 0 <= first && count >= 0 && first + count <= shape_[0])
      << "rows " << first << " to " << first + count << " of shape " << shape_;
  const int64_t row_bytes = shape_[0] == 0 ? 0 : bytes() / shape_[0];
  return Tensor(static_cast<char*>(data_) + first * row_bytes, dtype_, shape_.With(0, count));
}

void Tensor::Zero() const {
  if (bytes() > 0) std::memset(data_, 0, bytes());
}

void Tensor::CopyFrom(const Tensor& other) const {
  WEFT_CHECK(shape_ == other.shape_ && dtype_ == other.dtype_)
      << "copy of " << other.dtype_ << other.shape_ << " into " << dtype_ << shape_;
  if (bytes() > 0) std::memcpy(data_, other.data_, bytes());
}

}  // namespace weft
