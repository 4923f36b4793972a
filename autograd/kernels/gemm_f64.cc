// f64 products: Eigen on the calling thread.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

#include "autograd/base/check.h"
#include "autograd/kernels/gemm.h"

namespace weft::kernels {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using MutableMap = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

ConstMap Stored(Trans trans, const double* data, int64_t rows, int64_t cols, int64_t stride) {
  const int64_t stored_rows = trans == Trans::kNo ? rows : cols, stored_cols = trans == Trans::kNo ? cols : rows;
  WEFT_CHECK_GE(stride, stored_cols) << "leading dimension";
  return {data, stored_rows, stored_cols, Eigen::OuterStride<>(stride)};
}

}  // namespace

void Gemm(Trans ta, Trans tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
          double* c, int64_t ldc, GemmOptions<double> options) {
  WEFT_CHECK(m >= 0 && n >= 0 && k >= 0) << "Gemm: m " << m << " n " << n << " k " << k;
  if (m == 0 || n == 0) return;
  WEFT_CHECK_GE(ldc, n);
  MutableMap result(c, m, n, Eigen::OuterStride<>(ldc));
  if (!options.accumulate) result.setZero();
  if (options.bias != nullptr) result.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(options.bias, n);
  if (k == 0) return;
  const ConstMap left = Stored(ta, a, m, k, lda), right = Stored(tb, b, k, n, ldb);
  if (ta == Trans::kNo && tb == Trans::kNo) result.noalias() += left * right;
  if (ta == Trans::kNo && tb == Trans::kYes) result.noalias() += left * right.transpose();
  if (ta == Trans::kYes && tb == Trans::kNo) result.noalias() += left.transpose() * right;
  if (ta == Trans::kYes && tb == Trans::kYes) result.noalias() += left.transpose() * right.transpose();
}

}  // namespace weft::kernels
