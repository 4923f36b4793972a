// Muon (Jordan et al. 2024): momentum whose step for a matrix is made orthogonal, so that it moves all directions by the same
// amount, the rare ones too. With g the gradient of a matrix [n, m], mu = `momentum`:
//   b = mu b + (1 - mu) g
//   o = orthogonal((1 - mu) g + mu b)
//   p = (1 - lr weight_decay) p - lr 0.2 sqrt(max(n, m)) o
// where orthogonal(x) is x with its singular values near 1, by five Newton-Schulz steps x = (3.4445 - 4.775 x x' + 2.0315 (x
// x')^2) x from x / ||x||, or 0 if ||x|| <= 1e-30. The factor 0.2 sqrt(max(n, m)) gives the step the size of one of AdamW,
// whose rates and decay so hold here too (Liu et al. 2025, section 2.2). Only for the matrices inside of a model: the rest
// takes AdamW (train/optimizer.h). Owns no state. Bits depend on the inputs only. Step allocates nothing but the kernels'
// scratch memory. Not thread-safe; Step runs on the enclosing Workers.
#ifndef WEFT_TRAIN_MUON_H_
#define WEFT_TRAIN_MUON_H_

#include <cstdint>
#include <vector>

#include "autograd/tensor.h"
#include "layers/parameters.h"
#include "train/parameter_groups.h"

namespace weft {

class Muon {
 public:
  // For those of `parameters` that are `hidden` (ParameterInfo) and not frozen. REQUIRES: parameters are allocated; a rule for
  // each; 0 <= momentum < 1.
  Muon(const Parameters& parameters, const std::vector<ParameterRule>& rules, double momentum);

  // One update with the gradient grad_scale * gradients at rate lr * lr_scale; `momenta` holds b, zero at first. REQUIRES:
  // slabs of the layout of the constructor's parameters. False if a parameter became NaN or infinite.
  bool Step(const Tensor& values, const Tensor& gradients, const Tensor& momenta, double grad_scale, double lr);

 private:
  struct Matrix {
    int64_t offset, rows, columns;
    double lr_scale, weight_decay;
  };
  template <class T>
  bool Update(const Matrix& matrix, const T* gradients, double grad_scale, double lr, T* values, T* momenta) const;

  double momentum_;
  std::vector<Matrix> matrices_;  // the largest first: a hint only
  std::vector<char> finite_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_MUON_H_
