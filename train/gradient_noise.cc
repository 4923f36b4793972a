#include "train/gradient_noise.h"

#include <algorithm>
#include <cmath>

#include "autograd/base/parallel.h"

namespace weft {

void AddGradientNoise(double eta, int64_t t, RandomKey key, double tokens, const Parameters& parameters,
                      const Tensor& gradients) {
  constexpr int64_t kTile = 4096;  // changes no bits
  const double scale = tokens * std::sqrt(eta / std::pow(1.0 + static_cast<double>(t), 0.55));
  const RandomKey step = key.Fold("gradient noise").Fold(static_cast<uint64_t>(t));
  for (const ParameterInfo& info : parameters.list()) {
    const RandomKey noise = step.Fold(info.name);
    const int64_t n = info.shape.elements();
    DispatchFloat("AddGradientNoise", gradients.dtype(), [&](auto type) {
      using T = decltype(type);
      T* g = gradients.data<T>() + info.offset;
      ParallelFor((n + kTile - 1) / kTile, [&](int64_t tile) {
        for (int64_t i = tile * kTile; i < std::min(n, (tile + 1) * kTile); ++i) {
          g[i] = static_cast<T>(g[i] + scale * noise.Normal(static_cast<uint64_t>(i)));
        }
      });
    });
  }
}

}  // namespace weft
