// Update rules over one range of the parameter slab: parameters p, gradients g and moments in one pass. Element-wise (but for
// SumSquaredProducts), so a range may be split anywhere. Single-threaded, no allocation, no state. The float versions compute
// in float lanes (Highway, run-time dispatch; constants are prepared in double; divisions and roots are exact), the double
// versions are plain loops. No pointer may alias another.
#ifndef WEFT_AUTOGRAD_KERNELS_OPTIMIZER_H_
#define WEFT_AUTOGRAD_KERNELS_OPTIMIZER_H_

#include <cstdint>

namespace weft::kernels {

struct AdamStep {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;                              // AdamW; false: weight_decay p is added to the gradient
  double bias_correction1 = 1, bias_correction2 = 1;  // 1 - beta^t at step t = 1, 2, ...
  double grad_scale = 1;                              // multiplies g first (1 / tokens, clipping)
};

// Kingma, Ba 2015, algorithm 1; decoupled decay: Loshchilov, Hutter 2019, algorithm 2 (with the decay times lr, as in PyTorch).
// With g' = grad_scale g (+ weight_decay p unless decoupled): p *= 1 - lr weight_decay if decoupled; m = beta1 m + (1 - beta1)
// g'; v = beta2 v + (1 - beta2) g'^2; p -= (lr / bias_correction1) m / (sqrt(v) / sqrt(bias_correction2) + eps).
void Adam(const AdamStep& step, const float* g, float* p, float* m, float* v, int64_t n);
void Adam(const AdamStep& step, const double* g, double* p, double* m, double* v, int64_t n);

struct SgdStep {
  double lr = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first_step = false;  // the buffer is set to the gradient rather than blended with it
  double grad_scale = 1;    // multiplies g first
};

// With g' = grad_scale g + weight_decay p: buffer = momentum buffer + g' (g' at the first step); p -= lr d, with d = buffer, or
// g' + momentum buffer for Nesterov's form (Sutskever et al. 2013, in PyTorch's variables). With momentum 0: d = g', and
// `buffer` is not used and may be null.
void Sgd(const SgdStep& step, const float* g, float* p, float* buffer, int64_t n);
void Sgd(const SgdStep& step, const double* g, double* p, double* buffer, int64_t n);

struct LionStep {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  double grad_scale = 1;  // multiplies g first
};

// Chen et al. 2023, algorithm 2. With g' = grad_scale g: p = (1 - lr weight_decay) p - lr sign(beta1 m + (1 - beta1) g');
// m = beta2 m + (1 - beta2) g'. The sign of 0 is 0.
void Lion(const LionStep& step, const float* g, float* p, float* m, int64_t n);
void Lion(const LionStep& step, const double* g, double* p, double* m, int64_t n);

// The passes of Adafactor over one row g of a gradient; train/adafactor.h has the algorithm.
// sums[i] += g[i]^2, in double.
void AddSquares(const float* g, double* sums, int64_t n);
void AddSquares(const double* g, double* sums, int64_t n);
// Sum of (factors[i] g[i])^2, in double.
double SumSquaredProducts(const float* factors, const float* g, int64_t n);
double SumSquaredProducts(const double* factors, const double* g, int64_t n);
// p[i] = keep p[i] - rate factors[i] g[i].
void ScaledStep(double keep, double rate, const float* factors, const float* g, float* p, int64_t n);
void ScaledStep(double keep, double rate, const double* factors, const double* g, double* p, int64_t n);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_OPTIMIZER_H_
