// Gradient noise (Neelakantan et al. 2015, eq. 1): normal numbers of a variance that falls with the updates, added to the
// gradient. Each is a pure function of (key, update, parameter's name, element), so that neither threads nor a resume change a
// bit.
#ifndef WEFT_TRAIN_GRADIENT_NOISE_H_
#define WEFT_TRAIN_GRADIENT_NOISE_H_

#include <cstdint>

#include "autograd/base/random.h"
#include "autograd/tensor.h"
#include "layers/parameters.h"

namespace weft {

// Adds to the gradient per token, which is gradients / tokens, noise of variance eta / (1 + t)^0.55 at update t = 0, 1, ...:
// `gradients`, a slab of the layout of `parameters`, receives `tokens` times that. So the norm, clipping and the optimizer see
// it. REQUIRES: eta > 0, tokens > 0.
void AddGradientNoise(double eta, int64_t t, RandomKey key, double tokens, const Parameters& parameters,
                      const Tensor& gradients);

}  // namespace weft

#endif  // WEFT_TRAIN_GRADIENT_NOISE_H_
