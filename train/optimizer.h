// The optimizer: one update of all parameters from the summed gradients of one batch. Owns the moment slabs, which have the
// layout of the parameter slab, and the count of updates. The bits of an update depend on its inputs only, never on threads:
// the norm is a sum of fixed blocks joined by a fixed binary tree, the rest is element-wise. Step allocates nothing. Not
// thread-safe; Step runs on the enclosing Workers.
#ifndef WEFT_TRAIN_OPTIMIZER_H_
#define WEFT_TRAIN_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "autograd/tensor.h"
#include "layers/parameters.h"
#include "train/config.h"

namespace weft {

struct UpdateStats {
  double grad_norm = 0;   // global 2-norm of the gradient (after the division by tokens), before clipping
  double clip_scale = 1;  // what clipping multiplied the gradient with; 1 = not clipped
  bool finite = true;     // false: the norm is NaN or infinite, and nothing was changed
};

class Optimizer {
 public:
  // Zeroed moments for `parameters` in their dtype. REQUIRES: parameters are allocated; a config that the loader accepts.
  Optimizer(const OptimizerConfig& config, const Parameters& parameters);

  // One update with the gradient g = inverse_tokens * gradients:
  //   norm = ||g||_2 over all parameters, each counted once (also a tied one)
  //   clip = min(1, clip_norm / (norm + 1e-6)), or 1 when clip_norm is 0 (Pascanu et al. 2013, as in PyTorch's clip_grad_norm_)
  // then AdamW, Adam or SGD (autograd/kernels/optimizer.h) on clip * g at rate `lr`. Weight decay touches parameters of rank >=
  // 2 only, or all with decay = "all". If the norm is not finite, no parameter, moment or count changes. `gradients` is a slab
  // of the parameters' layout: sums of losses over all tokens of the update. REQUIRES: `parameters` are those of the
  // constructor; clip_norm >= 0.
  UpdateStats Step(Parameters* parameters, const Tensor& gradients, double inverse_tokens, double clip_norm, double lr);

  // Updates made: t of the bias correction, once an update, whatever the number of parameters.
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

  // The moments: "m" and "v" for Adam and AdamW, "momentum" for SGD with momentum, none for plain SGD. Writing into the slabs
  // restores them (with set_updates).
  struct State {
    std::string name;
    Tensor slab;
  };
  std::vector<State> state() const;

 private:
  struct Tile {
    int64_t offset;  // elements from the start of the slab
    int64_t size;
    bool decays;
  };

  // The square root of the sum of squares of a slab, in double.
  double Norm(const Tensor& slab);
  template <class T>
  void Update(const Tile& tile, const Tensor& values, const Tensor& gradients, double scale, double lr);

  OptimizerConfig config_;
  std::vector<Tile> tiles_;
  std::vector<double> block_sums_;
  Slab first_;   // m, or the momentum buffer
  Slab second_;  // v
  int64_t updates_ = 0;
};

// The name of the first parameter, in order of declaration, that has a NaN or infinite element in `slab` (gradients or values
// of this layout); empty if there is none.
std::string FirstNonFinite(const Parameters& parameters, const Tensor& slab);
// The element of the largest absolute value, NaN left out: "1.2e+06 in decoder.0.feed_forward.up.weight".
std::string LargestElement(const Parameters& parameters, const Tensor& slab);

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIMIZER_H_
