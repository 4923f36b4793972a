// Element-wise kernels on plain ranges of n elements (n = 0 is fine), single-threaded: callers split long ranges into fixed
// tiles. The float versions use Highway with run-time dispatch, the double versions are plain loops and their reference. The
// bits of an element depend neither on its place in the range nor on n. NaN and infinities pass as in a plain loop. Pointers
// need no alignment and may alias only where it is stated. No allocation, no state, safe from any thread.
#ifndef WEFT_AUTOGRAD_KERNELS_ELEMENTWISE_H_
#define WEFT_AUTOGRAD_KERNELS_ELEMENTWISE_H_

#include <cstdint>

#include "autograd/kernels/reduce.h"  // IWYU pragma: export

namespace weft::kernels {

// Functions of one argument, with what UnaryBackward reads besides dy.
enum class Unary : uint8_t {
  kNeg,       // -x; reads nothing
  kExp,       // e^x; reads y
  kLog,       // ln x; reads x
  kSqrt,      // square root; reads y
  kSquare,    // x^2; reads x
  kTanh,      // reads y
  kSigmoid,   // 1 / (1 + e^-x); reads y
  kRelu,      // max(0, x), NaN for NaN; reads x. The derivative at 0 is 0
  kGelu,      // x Phi(x), Phi the normal distribution function (Hendrycks, Gimpel 2016, section 2); reads its slope
  kGeluTanh,  // its tanh form 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (same section); reads its slope
  kSilu,      // x sigmoid(x) (same paper, section 2, with the logistic distribution function); reads its slope
};

enum class BackwardReads : uint8_t { kX, kY, kSlope };
BackwardReads WhatBackwardReads(Unary f);

// y[i] = f(x[i]). y may be x. Float errors against f64, measured over all exponents and on dense grids: exp 1 ulp, results
// below the smallest normal float (1.2e-38) being flushed to 0; log 1.1 ulp; tanh 3 ulp; sigmoid 2.5 ulp; sqrt exact; gelu,
// that is the error function, 7 ulp for x >= -12.8 and silu 3.5 ulp for x >= -87.3, 1.1e-36 below; gelu_tanh 2e-7 max(1, |x|)
// absolute.
void UnaryForward(Unary f, const float* x, float* y, int64_t n);
void UnaryForward(Unary f, const double* x, double* y, int64_t n);

// The same, and slope[i] = f'(x[i]) for UnaryBackward. y has the bits of UnaryForward. Float errors of the slope: 4e-7
// absolute. REQUIRES: f reads its slope.
void UnaryForwardWithSlope(Unary f, const float* x, float* y, float* slope, int64_t n);
void UnaryForwardWithSlope(Unary f, const double* x, double* y, double* slope, int64_t n);

// dx[i] += dy[i] f'(x[i]), from `source`: x, y = f(x) or f'(x), as WhatBackwardReads says (of kNeg it may be null). Where dy is
// 0 nothing is added, also where f' is infinite or NaN. Without `add` dx is written instead, and may be dy.
void UnaryBackward(Unary f, const float* source, const float* dy, float* dx, int64_t n, bool add = true);
void UnaryBackward(Unary f, const double* source, const double* dy, double* dx, int64_t n, bool add = true);

enum class Binary : uint8_t { kAdd, kSub, kMul, kDiv };

// out[i] = a[i * a_step] op b[i * b_step]. out may be a where a_step is 1, b where b_step is 1.
// REQUIRES: steps are 1, or 0 for one value used by all elements.
void BinaryForward(Binary op, const float* a, int64_t a_step, const float* b, int64_t b_step, float* out, int64_t n);
void BinaryForward(Binary op, const double* a, int64_t a_step, const double* b, int64_t b_step, double* out, int64_t n);

// y[i] += scale x[i]. y may be x.
void AddScaled(float scale, const float* x, float* y, int64_t n);
void AddScaled(double scale, const double* x, double* y, int64_t n);

// y[i] += a[i] b[i]. Any of the three may be the same.
void AddProduct(const float* a, const float* b, float* y, int64_t n);
void AddProduct(const double* a, const double* b, double* y, int64_t n);

// y[i] = scale x[i]. y may be x.
void Scale(float scale, const float* x, float* y, int64_t n);
void Scale(double scale, const double* x, double* y, int64_t n);

// y[i] = value.
void Fill(float value, float* y, int64_t n);
void Fill(double value, double* y, int64_t n);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_ELEMENTWISE_H_
