// Reductions of one range of n elements (n = 0 is fine) to one value, single-threaded. Sums are kept in double lanes that start
// at the first element, so a result depends on the range alone. The float versions use Highway with run-time dispatch, the
// double versions are plain loops. No allocation, no state, safe from any thread.
#ifndef WEFT_AUTOGRAD_KERNELS_REDUCE_H_
#define WEFT_AUTOGRAD_KERNELS_REDUCE_H_

#include <cstdint>

namespace weft::kernels {

// Sum of the elements.
double Sum(const float* x, int64_t n);
double Sum(const double* x, int64_t n);

// Sum of the squares; each square is taken in double, so floats of 1e20 do not overflow.
double SumSquares(const float* x, int64_t n);
double SumSquares(const double* x, int64_t n);

// Sum of a[i] b[i], each product taken in double. a may be b.
double Dot(const float* a, const float* b, int64_t n);
double Dot(const double* a, const double* b, int64_t n);

// Largest element; NaN if one is NaN; -inf for n = 0.
float Max(const float* x, int64_t n);
double Max(const double* x, int64_t n);

// Index of the largest element, the first of equals; of the first NaN if there is one; -1 for n = 0.
int64_t ArgMax(const float* x, int64_t n);
int64_t ArgMax(const double* x, int64_t n);

// Whether no element is infinite or NaN.
bool AllFinite(const float* x, int64_t n);
bool AllFinite(const double* x, int64_t n);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_REDUCE_H_
