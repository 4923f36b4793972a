// Softmax and its logarithm along the rows of a contiguous [rows, width] matrix, single-threaded. Each row is computed by
// itself, with lanes that start at its first element, so its bits do not depend on the number of rows. The float versions use
// Highway with run-time dispatch, sums in double; the double versions are plain loops. No allocation, no state.
#ifndef WEFT_AUTOGRAD_KERNELS_SOFTMAX_H_
#define WEFT_AUTOGRAD_KERNELS_SOFTMAX_H_

#include <cstdint>

namespace weft::kernels {

// y = exp(x - max x) / sum exp(x - max x). y may be x. A row of only -inf gives zeros; NaN or +inf make their row NaN.
void SoftmaxForward(const float* x, float* y, int64_t rows, int64_t width);
void SoftmaxForward(const double* x, double* y, int64_t rows, int64_t width);

// dx += y (dy - sum(dy y)).
void SoftmaxBackward(const float* y, const float* dy, float* dx, int64_t rows, int64_t width);
void SoftmaxBackward(const double* y, const double* dy, double* dx, int64_t rows, int64_t width);

// y = x - max x - ln sum exp(x - max x). y may be x. A row of only -inf stays as it is; NaN or +inf make their row NaN.
void LogSoftmaxForward(const float* x, float* y, int64_t rows, int64_t width);
void LogSoftmaxForward(const double* x, double* y, int64_t rows, int64_t width);

// dx += dy - exp(y) sum(dy).
void LogSoftmaxBackward(const float* y, const float* dy, float* dx, int64_t rows, int64_t width);
void LogSoftmaxBackward(const double* y, const double* dy, double* dx, int64_t rows, int64_t width);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_SOFTMAX_H_
