// Layer normalisation (Ba, Kiros, Hinton 2016, equation 3) and RMS normalisation (Zhang, Sennrich 2019, equation 4) of the rows
// of a contiguous [rows, width] matrix, single-threaded. The float versions use Highway with run-time dispatch and convert each
// row to double lanes for statistics and centring: a constant row gives exactly beta, a row of +-1e20 gives +-1, and rows near
// the largest float do not overflow. Statistics are double, [rows], for both dtypes. A row's bits do not depend on other rows.
// The double versions are plain loops. No allocation, no state. Inputs and outputs must not overlap unless it is stated.
#ifndef WEFT_AUTOGRAD_KERNELS_NORM_H_
#define WEFT_AUTOGRAD_KERNELS_NORM_H_

#include <cstdint>

namespace weft::kernels {

// mean = sum(x) / width; rstd = 1 / sqrt(sum((x - mean)^2) / width + eps); y = (x - mean) rstd gamma + beta.
// gamma and beta: [width]; each may be null (1 and 0). y may be x.
void LayerNormForward(const float* x, const float* gamma, const float* beta, float* y, double* mean, double* rstd, int64_t rows,
                      int64_t width, double eps);
void LayerNormForward(const double* x, const double* gamma, const double* beta, double* y, double* mean, double* rstd,
                      int64_t rows, int64_t width, double eps);

// With h = (x - mean) rstd and g = dy gamma, per row: dx += rstd (g - sum(g) / width - h sum(g h) / width), and over all rows,
// in order: dgamma += sum(dy h), dbeta += sum(dy). Each of dx, dgamma, dbeta may be null, gamma as in the forward pass.
void LayerNormBackward(const float* x, const float* gamma, const double* mean, const double* rstd, const float* dy, float* dx,
                       float* dgamma, float* dbeta, int64_t rows, int64_t width);
void LayerNormBackward(const double* x, const double* gamma, const double* mean, const double* rstd, const double* dy,
                       double* dx, double* dgamma, double* dbeta, int64_t rows, int64_t width);

// rstd = 1 / sqrt(sum(x^2) / width + eps); y = x rstd gamma. gamma: [width], may be null. y may be x.
void RmsNormForward(const float* x, const float* gamma, float* y, double* rstd, int64_t rows, int64_t width, double eps);
void RmsNormForward(const double* x, const double* gamma, double* y, double* rstd, int64_t rows, int64_t width, double eps);

// With h = x rstd and g = dy gamma: dx += rstd (g - h sum(g h) / width); dgamma += sum over rows, in order, of dy h. dx and
// dgamma may be null.
void RmsNormBackward(const float* x, const float* gamma, const double* rstd, const float* dy, float* dx, float* dgamma,
                     int64_t rows, int64_t width);
void RmsNormBackward(const double* x, const double* gamma, const double* rstd, const double* dy, double* dx, double* dgamma,
                     int64_t rows, int64_t width);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_NORM_H_
