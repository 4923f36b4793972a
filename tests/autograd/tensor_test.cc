#include "autograd/tensor.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

TEST(Shape, CountsElementsRowsAndWidth) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_EQ(shape.width(), 4);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape.ToString(), "[2, 3, 4]");
}

TEST(Shape, ScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.rows(), 1);
  EXPECT_EQ(scalar.width(), 1);
  EXPECT_EQ(scalar.ToString(), "[]");
  EXPECT_FALSE(scalar == Shape({1}));
}

TEST(Shape, WithReplacesOneDimension) {
  EXPECT_EQ(Shape({2, 3}).With(-1, 7), Shape({2, 7}));
  EXPECT_EQ(Shape({2, 3}).With(0, 0).elements(), 0);
}

TEST(Tensor, ViewsShareTheCallersMemory) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::Of(absl::MakeSpan(values), {3, 2});
  tensor.Set(3, 40);
  EXPECT_EQ(values[3], 40);
  EXPECT_EQ(tensor.Rows(1, 2).At(1), 40);
  EXPECT_EQ(tensor.Rows(1, 2).shape(), Shape({2, 2}));
  EXPECT_EQ(tensor.Reshaped({6}).At(5), 6);
  EXPECT_EQ(tensor.bytes(), 24);
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, CopyAndZero) {
  std::vector<double> from = {1, 2}, to = {3, 4};
  const Tensor target = Tensor::Of(absl::MakeSpan(to), {2});
  target.CopyFrom(Tensor::Of(absl::MakeSpan(from), {2}));
  EXPECT_EQ(to, from);
  target.Zero();
  EXPECT_EQ(to, std::vector<double>({0, 0}));
}

TEST(Tensor, DTypesHaveNamesAndSizes) {
  EXPECT_EQ(DTypeName(DType::kBF16), "bf16");
  EXPECT_EQ(DTypeSize(DType::kF64), 8);
  EXPECT_EQ(DTypeSize(DType::kI32), 4);
  EXPECT_EQ(DTypeSize(DType::kBF16), 2);
}

TEST(TensorDeathTest, RefusesWhatDoesNotFit) {
  std::vector<float> values(6);
  const Tensor tensor = Tensor::Of(absl::MakeSpan(values), {3, 2});
  EXPECT_DEATH(tensor.data<double>(), "f32 against f64.*\\[3, 2\\]");
  EXPECT_DEATH(tensor.Reshaped({5}), "\\[3, 2\\] viewed as \\[5\\]");
  EXPECT_DEATH(tensor.Rows(2, 2), "rows 2 to 4 of shape \\[3, 2\\]");
  EXPECT_DEATH(tensor.At(6), "element 6");
  EXPECT_DEATH(Tensor::Of(absl::MakeSpan(values), {7}), "\\[7\\]");
  EXPECT_DEATH(Shape({1, 2, 3, 4, 5}), "at most 4");
  EXPECT_DEATH(Shape({-1}), "dimension 0");
  EXPECT_DEATH(Shape({2})[1], "dimension 1 of shape \\[2\\]");
}

}  // namespace
}  // namespace weft
