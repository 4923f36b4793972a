// The optimizer: one update of all parameters from the summed gradients of one batch. Owns the moments, which but for
// Adafactor's are slabs of the layout of the parameter slab, and the count of updates. The bits of an update depend on its
// inputs only, never on threads: the norm is a sum of fixed blocks joined by a fixed binary tree, the rules are element-wise,
// but for those of Adafactor and Muon. Step allocates nothing. Not thread-safe; Step runs on the enclosing Workers.
#ifndef WEFT_TRAIN_OPTIMIZER_H_
#define WEFT_TRAIN_OPTIMIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "layers/parameters.h"
#include "train/adafactor.h"
#include "train/config.h"
#include "train/muon.h"
#include "train/parameter_groups.h"

namespace weft {

struct UpdateStats {
  double grad_norm = 0;        // global 2-norm of the gradient (after the division by tokens), before clipping
  double clip_scale = 1;       // what clipping multiplied the gradient with; 1 = not clipped
  bool finite = true;          // false: the norm is NaN or infinite, and nothing was changed
  bool weights_finite = true;  // false: an updated parameter became NaN or infinite in this step
};

class Optimizer {
 public:
  // Zeroed moments for `parameters` in their dtype. REQUIRES: parameters are allocated; a config that the loader accepts, whose
  // groups pass CheckGroups.
  Optimizer(const OptimizerConfig& config, const Parameters& parameters);

  // One update with the gradient g = inverse_tokens * gradients:
  //   norm = ||g||_2 over all parameters that are not frozen, each counted once (also a tied one)
  //   clip = min(1, clip_norm / (norm + 1e-6)), or 1 when clip_norm is 0 (Pascanu et al. 2013, as in PyTorch's clip_grad_norm_)
  // then AdamW, Adam, SGD, Lion (autograd/kernels/optimizer.h), Adafactor (train/adafactor.h) or Muon (train/muon.h; AdamW for
  // what is not `hidden`) on clip * g at rate `lr`, with each parameter's scale of the rate and decay (ParameterRules). A
  // frozen parameter and its moments keep their bits. If the norm is not finite, no parameter, moment or count changes.
  // `gradients` is a slab of the parameters' layout: sums of losses over all tokens of the update. REQUIRES: `parameters` are
  // those of the constructor; clip_norm >= 0.
  UpdateStats Step(Parameters* parameters, const Tensor& gradients, double inverse_tokens, double clip_norm, double lr);

  // Slabs of the parameters' size that the moments take (Adafactor's are far smaller than one).
  static int MomentSlabs(const OptimizerConfig& config);

  // Updates made, whatever the number of parameters.
  int64_t updates() const { return updates_; }
  // Also sets the count of each parameter.
  void set_updates(int64_t updates);

  // The moments of each parameter NAME: "m/NAME" and "v/NAME" for Adam, AdamW and what Muon leaves to it, "m/NAME" for Lion and
  // what Muon takes, "momentum/NAME" for SGD with momentum, those of Adafactor::state, none for plain SGD. Writing into them
  // restores them (with set_updates and counts).
  const std::vector<NamedTensor>& state() const { return state_; }
  // Updates of each parameter, one f64 number "updates/NAME": t of the bias correction. It is updates() unless the parameter
  // was frozen for a time.
  const std::vector<NamedTensor>& counts() const { return counts_; }

 private:
  struct Tile {
    int64_t offset;  // elements from the start of the slab
    int64_t size;
    int parameter;
  };
  struct Block {
    int64_t offset, size;
  };

  // A moment "NAME/PARAMETER" for each parameter, in a slab of its layout.
  void AddMoment(const char* name, const Parameters& parameters, Slab* slab);
  // The square root of the sum of squares of what is not frozen in a slab, in double.
  double Norm(const Tensor& slab);
  // Updates one tile. False if it is no longer finite.
  template <class T>
  bool Update(const Tile& tile, const Tensor& values, const Tensor& gradients, double scale, double lr);

  OptimizerConfig config_;
  std::vector<ParameterRule> rules_;       // by parameter
  std::vector<double> parameter_updates_;  // by parameter: counts_ are views of it
  std::vector<Tile> tiles_;                // of what is not frozen, nor Muon's
  std::vector<char> tile_finite_;
  std::vector<Block> blocks_;  // of what is not frozen, for the norm
  std::vector<double> block_sums_;
  Slab first_;   // m, or the momentum buffer
  Slab second_;  // v
  std::optional<Adafactor> adafactor_;
  std::optional<Muon> muon_;
  std::vector<NamedTensor> state_, counts_;
  int64_t updates_ = 0;
};

// The name of the first parameter, in order of declaration, that has a NaN or infinite element in `slab` (gradients or values
// of this layout); empty if there is none.
std::string FirstNonFinite(const Parameters& parameters, const Tensor& slab);
// What a message about a diverged training says of its numbers: "; first such weight: NAME; first such gradient: NAME", those
// that are not finite, or "; largest weight: 1.2e+06 in NAME" where all weights are.
std::string DescribeNonFinite(const Parameters& parameters, const Tensor& gradients);

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIMIZER_H_
