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

// What moves all parameters, or with "muon" those that Muon leaves.
bool IsAdam(const OptimizerConfig& config) { return config.kind == "adam" || config.kind == "adamw" || config.kind == "muon"; }

bool TakesMuon(const OptimizerConfig& config, const ParameterInfo& info) { return config.kind == "muon" && info.hidden; }

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const Parameters& parameters)
    : config_(config), rules_(ParameterRules(config, parameters)), parameter_updates_(parameters.list().size(), 0.0) {
  WEFT_CHECK(parameters.slab().defined()) << "Optimizer: parameters are not allocated";
  WEFT_CHECK(IsAdam(config) || config.kind == "sgd" || config.kind == "lion" || config.kind == "adafactor")
      << "Optimizer: unknown kind " << config.kind;
  WEFT_CHECK(config.decay == "matrices" || config.decay == "all") << "Optimizer: unknown decay " << config.decay;
  WEFT_CHECK((!IsAdam(config) && config.kind != "lion") || config.betas.size() == 2)
      << "Optimizer: betas has " << config.betas.size() << " numbers";
  // The norm takes runs of what is not frozen, gaps included: one run, unless a group says otherwise.
  std::vector<Block> runs = {{0, 0}};
  for (size_t i = 0; i < rules_.size(); ++i) {
    const ParameterInfo& info = parameters.list()[i];
    const int64_t end = i + 1 < rules_.size() ? parameters.list()[i + 1].offset : parameters.slab_size();
    counts_.push_back({absl::StrCat("updates/", info.name), Tensor(&parameter_updates_[i], DType::kF64, {1})});
    if (rules_[i].frozen) {
      runs.push_back({end, 0});
      continue;
    }
    runs.back().size = end - runs.back().offset;
    if (TakesMuon(config, info)) continue;
    for (int64_t first = 0; first < info.shape.elements(); first += kUpdateTile) {
      tiles_.push_back({info.offset + first, std::min(kUpdateTile, info.shape.elements() - first), static_cast<int>(i)});
    }
  }
  for (const Block& run : runs) {
    for (int64_t first = 0; first < run.size; first += kNormBlock) {
      blocks_.push_back({run.offset + first, std::min(kNormBlock, run.size - first)});
    }
  }
  block_sums_.resize(blocks_.size());
  tile_finite_.resize(tiles_.size());
  if (IsAdam(config) || config.kind == "lion") AddMoment("m", parameters, &first_);
  if (IsAdam(config)) AddMoment("v", parameters, &second_);
  if (config.kind == "sgd" && config.momentum != 0) AddMoment("momentum", parameters, &first_);
  if (config.kind == "muon") muon_.emplace(parameters, rules_, config.momentum);
  if (config.kind == "adafactor") state_ = adafactor_.emplace(parameters, rules_).state();
}

int Optimizer::MomentSlabs(const OptimizerConfig& config) {
  if (IsAdam(config)) return 2;
  return config.kind == "lion" || (config.kind == "sgd" && config.momentum != 0) ? 1 : 0;
}

void Optimizer::AddMoment(const char* name, const Parameters& parameters, Slab* slab) {
  *slab = Slab(parameters.dtype(), parameters.slab_size());
  for (const ParameterInfo& info : parameters.list()) {
    if (slab == &second_ && TakesMuon(config_, info)) continue;
    state_.push_back({absl::StrCat(name, "/", info.name), Parameters::In(slab->tensor(), info)});
  }
}

void Optimizer::set_updates(int64_t updates) {
  updates_ = updates;
  std::fill(parameter_updates_.begin(), parameter_updates_.end(), static_cast<double>(updates));
}

double Optimizer::Norm(const Tensor& slab) {
  const int64_t blocks = static_cast<int64_t>(block_sums_.size());
  DispatchFloat("Optimizer", slab.dtype(), [&](auto type) {
    const auto* x = slab.data<decltype(type)>();
    ParallelFor(blocks, [&](int64_t block) {
      block_sums_[block] = kernels::SumSquares(x + blocks_[block].offset, blocks_[block].size);
    });
  });
  for (int64_t stride = 1; stride < blocks; stride *= 2) {
    for (int64_t i = 0; i + stride < blocks; i += 2 * stride) block_sums_[i] += block_sums_[i + stride];
  }
  return blocks == 0 ? 0.0 : std::sqrt(block_sums_[0]);
}

template <class T>
bool Optimizer::Update(const Tile& tile, const Tensor& values, const Tensor& gradients, double scale, double lr) {
  const T* g = gradients.data<T>() + tile.offset;
  T* p = values.data<T>() + tile.offset;
  T* first = first_.tensor().defined() ? first_.tensor().data<T>() + tile.offset : nullptr;
  const ParameterRule& rule = rules_[tile.parameter];
  const double updates = parameter_updates_[tile.parameter];
  if (config_.kind == "sgd") {
    kernels::SgdStep step;
    step.lr = lr * rule.lr_scale;
    step.momentum = config_.momentum;
    step.weight_decay = rule.weight_decay;
    step.nesterov = config_.nesterov;
    step.first_step = updates == 1;
    step.grad_scale = scale;
    kernels::Sgd(step, g, p, first, tile.size);
  } else if (config_.kind == "lion") {
    kernels::LionStep step;
    step.lr = lr * rule.lr_scale;
    step.beta1 = config_.betas[0];
    step.beta2 = config_.betas[1];
    step.weight_decay = rule.weight_decay;
    step.grad_scale = scale;
    kernels::Lion(step, g, p, first, tile.size);
  } else {
    kernels::AdamStep step;
    step.lr = lr * rule.lr_scale;
    step.beta1 = config_.betas[0];
    step.beta2 = config_.betas[1];
    step.eps = config_.eps;
    step.weight_decay = rule.weight_decay;
    step.decoupled = config_.kind != "adam";
    step.bias_correction1 = 1 - std::pow(step.beta1, updates);
    step.bias_correction2 = 1 - std::pow(step.beta2, updates);
    step.grad_scale = scale;
    kernels::Adam(step, g, p, first, second_.tensor().data<T>() + tile.offset, tile.size);
  }
  return kernels::AllFinite(p, tile.size);  // while the tile is in the cache
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
  for (size_t i = 0; i < rules_.size(); ++i) parameter_updates_[i] += rules_[i].frozen ? 0 : 1;
  const Tensor values = parameters->Mutable();
  const double scale = inverse_tokens * stats.clip_scale;
  if (adafactor_.has_value()) {
    stats.weights_finite = adafactor_->Step(values, gradients, scale, lr, parameter_updates_);
    return stats;
  }
  DispatchFloat("Optimizer", values.dtype(), [&](auto type) {
    ParallelFor(static_cast<int64_t>(tiles_.size()),
                [&](int64_t i) { tile_finite_[i] = Update<decltype(type)>(tiles_[i], values, gradients, scale, lr) ? 1 : 0; });
  });
  stats.weights_finite = std::find(tile_finite_.begin(), tile_finite_.end(), 0) == tile_finite_.end();
  if (muon_.has_value()) stats.weights_finite &= muon_->Step(values, gradients, first_.tensor(), scale, lr);
  return stats;
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

namespace {
// "1.2e+06 in NAME", of the element with the largest absolute value.
std::string LargestElement(const Parameters& parameters, const Tensor& slab) {
  double largest = 0;
  const ParameterInfo* owner = nullptr;
  for (const ParameterInfo& info : parameters.list()) {
    const Tensor values = Parameters::In(slab, info);
    for (int64_t i = 0; i < values.elements(); ++i) {
      if (owner != nullptr && std::abs(values.At(i)) <= std::abs(largest)) continue;
      largest = values.At(i);
      owner = &info;
    }
  }
  return owner == nullptr ? "none" : absl::StrCat(largest, " in ", owner->name);
}
}  // namespace

std::string DescribeNonFinite(const Parameters& parameters, const Tensor& gradients) {
  const std::string weight = FirstNonFinite(parameters, parameters.slab()), gradient = FirstNonFinite(parameters, gradients);
  return absl::StrCat(
      weight.empty() ? "; largest weight: " + LargestElement(parameters, parameters.slab()) : "; first such weight: " + weight,
      gradient.empty() ? "" : "; first such gradient: ", gradient);
}

}  // namespace weft
