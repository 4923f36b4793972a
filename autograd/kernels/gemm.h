// Matrix products C = op(A) op(B), row-major with leading dimensions. Nothing is owned; C must not overlap A or B. Thread-safe.
// f32 promises (with Highway, gemm_f32.cc):
//  - the bits of an element of C depend on its row of op(A), its column of op(B), its bias, its old value and k only: not on m,
//    n, the other rows or columns, the leading dimensions, the number of threads or `parallel`;
//  - a NaN or infinity in op(A) or op(B) reaches only its own row or column;
//  - no allocation in a steady state (scratch.h).
// f64 is Eigen's product on the calling thread: exact for reference work, the same for any number of threads, but its rounding
// may depend on m and n.
#ifndef WEFT_AUTOGRAD_KERNELS_GEMM_H_
#define WEFT_AUTOGRAD_KERNELS_GEMM_H_

#include <cstdint>

namespace weft::kernels {

enum class Trans : uint8_t { kNo, kYes };

template <class T>
struct GemmOptions {
  bool accumulate = false;  // C += instead of C =
  const T* bias = nullptr;  // [n], added to each row; null: none
  bool parallel = true;     // large f32 products may split over the threads of the enclosing Workers
};

// C[m,n] = op(A)[m,k] op(B)[k,n] (+ bias[n]) (+ C). A is stored [m, k] with Trans::kNo and [k, m] with kYes; B [k, n] or [n,
// k]. lda, ldb, ldc: elements from one stored row to the next. With k = 0 the product is zero: C = bias, or 0, or C stays.
// REQUIRES: m, n, k >= 0; leading dimensions >= the stored widths.
void Gemm(Trans ta, Trans tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          float* c, int64_t ldc, GemmOptions<float> options = {});
void Gemm(Trans ta, Trans tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
          double* c, int64_t ldc, GemmOptions<double> options = {});

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_GEMM_H_
