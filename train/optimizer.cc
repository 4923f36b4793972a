#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/parallel.h"
#include "autograd/kernels/optimizer.h"
#include "autograd/kernels/reduce.h"

namespace weft {
namespace {

constexpr int64_t kNormBlock = 8192;    // elements summed in one run; fixes the rounding
constexpr int64_t kUpdateTile = 16384;  // elements of one task; changes no bits

bool IsAdam(const OptimizerConfig& config) { return config.kind == "adam" || config.kind == "adamw"; }

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const Parameters& parameters) : config_(config) {
  WEFT_CHECK(parameters.slab().defined()) << "Optimizer: parameters are not allocated";
  WEFT_CHECK(IsAdam(config) || config.kind == "sgd") << "Optimizer: unknown kind " << config.kind;
  WEFT_CHECK(config.decay == "matrices" || config.decay == "all") << "Optimizer: unknown decay " << config.decay;
  WEFT_CHECK(!IsAdam(config) || config.betas.size() == 2) << "Optimizer: betas has " << config.betas.size() << " numbers";
  for (const ParameterInfo& info : parameters.list()) {
    const bool decays = config.decay == "all" || info.shape.rank() >= 2;
    for (int64_t first = 0; first < info.shape.elements(); first += kUpdateTile) {
      tiles_.push_back({info.offset + first, std::min(kUpdateTile, info.shape.elements() - first), decays});
    }
  }
  const int64_t size = parameters.slab_size();
  block_sums_.resize(static_cast<size_t>((size + kNormBlock - 1) / kNormBlock));
  if (IsAdam(config) || config.momentum != 0) first_ = Slab(parameters.dtype(), size);
  if (IsAdam(config)) second_ = Slab(parameters.dtype(), size);
}

double Optimizer::Norm(const Tensor& slab) {
  const int64_t blocks = static_cast<int64_t>(block_sums_.size());
  DispatchFloat("Optimizer", slab.dtype(), [&](auto type) {
    const auto* x = slab.data<decltype(type)>();
    ParallelFor(blocks, [&](int64_t block) {
      const int64_t first = block * kNormBlock;
      block_sums_[block] = kernels::SumSquares(x + first, std::min(kNormBlock, slab.elements() - first));
    });
  });
  for (int64_t stride = 1; stride < blocks; stride *= 2) {
    for (int64_t i = 0; i + stride < blocks; i += 2 * stride) block_sums_[i] += block_sums_[i + stride];
  }
  return blocks == 0 ? 0.0 : std::sqrt(block_sums_[0]);
}

template <class T>
void Optimizer::Update(const Tile& tile, const Tensor& values, const Tensor& gradients, double scale, double lr) {
  const T* g = gradients.data<T>() + tile.offset;
  T* p = values.data<T>() + tile.offset;
  T* first = first_.tensor().defined() ? first_.tensor().data<T>() + tile.offset : nullptr;
  const double weight_decay = tile.decays ? config_.weight_decay : 0.0;
  if (!IsAdam(config_)) {
    kernels::SgdStep step;
    step.lr = lr;
    step.momentum = config_.momentum;
    step.weight_decay = weight_decay;
    step.nesterov = config_.nesterov;
    step.first_step = updates_ == 1;
    step.grad_scale = scale;
    kernels::Sgd(step, g, p, first, tile.size);
    return;
  }
  kernels::AdamStep step;
  step.lr = lr;
  step.beta1 = config_.betas[0];
  step.beta2 = config_.betas[1];
  step.eps = config_.eps;
  step.weight_decay = weight_decay;
  step.decoupled = config_.kind == "adamw";
  step.bias_correction1 = 1 - std::pow(step.beta1, static_cast<double>(updates_));
  step.bias_correction2 = 1 - std::pow(step.beta2, static_cast<double>(updates_));
  step.grad_scale = scale;
  kernels::Adam(step, g, p, first, second_.tensor().data<T>() + tile.offset, tile.size);
}

UpdateStats Optimizer::Step(Parameters* parameters, const Tensor& gradients, double inverse_tokens, double clip_norm,
                            double lr) {
  WEFT_CHECK(gradients.dtype() == parameters->dtype() && gradients.elements() == parameters->slab_size())
      << "Optimizer: gradients " << gradients.dtype() << gradients.shape() << " for a slab of " << parameters->slab_size()
      << " " << parameters->dtype();
  WEFT_CHECK(clip_norm >= 0) << "Optimizer: clip_norm is " << clip_norm;
  UpdateStats stats;
  stats.grad_norm = Norm(gradients) * inverse_tokens;
  stats.finite = std::isfinite(stats.grad_norm);
  if (!stats.finite) return stats;
  if (clip_norm > 0) stats.clip_scale = std::min(1.0, clip_norm / (stats.grad_norm + 1e-6));
  ++updates_;
  const Tensor values = parameters->Mutable();
  DispatchFloat("Optimizer", values.dtype(), [&](auto type) {
    ParallelFor(static_cast<int64_t>(tiles_.size()), [&](int64_t i) {
      Update<decltype(type)>(tiles_[i], values, gradients, inverse_tokens * stats.clip_scale, lr);
    });
  });
  return stats;
}

std::vector<Optimizer::State> Optimizer::state() const {
  if (IsAdam(config_)) return {{"m", first_.tensor()}, {"v", second_.tensor()}};
  if (first_.tensor().defined()) return {{"momentum", first_.tensor()}};
  return {};
}

std::string FirstNonFinite(const Parameters& parameters, const Tensor& slab) {
  for (const ParameterInfo& info : parameters.list()) {
    const Tensor values = Parameters::In(slab, info);
    const bool finite = DispatchFloat("FirstNonFinite", slab.dtype(), [&](auto type) {
      const auto span = values.span<decltype(type)>();
      return std::all_of(span.begin(), span.end(), [](auto x) { return std::isfinite(x); });
    });
    if (!finite) return info.name;
  }
  return "";
}

std::string LargestElement(const Parameters& parameters, const Tensor& slab) {
  double largest = 0;
  const ParameterInfo* owner = nullptr;
  for (const ParameterInfo& info : parameters.list()) {
    const Tensor values = Parameters::In(slab, info);
    for (int64_t i = 0; i < values.elements(); ++i) {
      if (owner != nullptr && !(std::abs(values.At(i)) > std::abs(largest))) continue;
      largest = values.At(i);
      owner = &info;
    }
  }
  return owner == nullptr ? "none" : absl::StrCat(largest, " in ", owner->name);
}

}  // namespace weft
