#include "layers/context.h"

#include <cstring>
#include <numeric>

namespace weft {

Tensor State::Cache(const std::string& path, DType dtype, int64_t width) {
  auto [it, is_new] = caches_.try_emplace(path);
  Entry& entry = it->second;
  if (is_new) {
    entry.memory = Slab(dtype, slots_ * capacity_ * width);
    entry.view = entry.memory.tensor().Reshaped({slots_ * capacity_, width});
  }
  WEFT_CHECK(entry.view.dtype() == dtype && entry.view.shape()[1] == width)
      << "cache of " << path << ": asked for " << dtype << " of width " << width << ", holds " << entry.view.dtype()
      << entry.view.shape();
  return entry.view;
}

Tensor State::Fixed(const std::string& path) const {
  const auto it = fixed_.find(path);
  return it == fixed_.end() ? Tensor() : it->second.view;
}

void State::SetFixed(const std::string& path, const Tensor& value) {
  Entry& entry = fixed_[path];
  entry.memory = Slab(value.dtype(), value.elements());
  entry.view = entry.memory.tensor().Reshaped(value.shape());
  entry.view.CopyFrom(value);
}

void State::Grow(int64_t capacity) {
  WEFT_CHECK_GE(capacity, capacity_) << "State::Grow";
  std::vector<int32_t> same(slots_);
  std::iota(same.begin(), same.end(), 0);
  Rearrange(capacity, same);
}

void State::Reorder(absl::Span<const int32_t> from) {
  WEFT_CHECK_EQ(static_cast<int64_t>(from.size()), slots_) << "State::Reorder";
  for (int32_t slot : from) WEFT_CHECK(0 <= slot && slot < slots_) << "State::Reorder: slot " << slot << " of " << slots_;
  Rearrange(capacity_, from);
}

void State::Rearrange(int64_t capacity, absl::Span<const int32_t> from) {
  for (auto& [path, entry] : caches_) {
    const int64_t width = entry.view.shape()[1];
    Slab copy(entry.view.dtype(), slots_ * capacity * width);
    const Tensor target = copy.tensor().Reshaped({slots_ * capacity, width});
    for (int64_t slot = 0; slot < slots_; ++slot) {
      target.Rows(slot * capacity, capacity_).CopyFrom(entry.view.Rows(from[slot] * capacity_, capacity_));
    }
    entry.memory = std::move(copy);
    entry.view = target;
  }
  capacity_ = capacity;
}

void Context::Begin(const Tensor& gradients, RandomKey key, bool is_fresh) {
  gradients_ = gradients;
  is_fresh_ = is_fresh;
  key_ = key;
  tape_.Reset(gradients.defined() ? Tape::Mode::kTraining : Tape::Mode::kInference);
  variables_.assign(parameters_.handle_count(), Variable());
  sequences = memory_sequences = {};
  causal = false;
  memory = {};
  memory_of = {};
  state = nullptr;
  probe = nullptr;
}

Variable Context::Get(ParameterRef ref) {
  if (!ref.defined()) return {};
  Variable& variable = variables_[ref.index];
  if (!variable.defined()) {
    const Parameters::Handle& handle = parameters_.handle(ref);
    variable = tape_.Leaf(PartOf(parameters_.slab(), handle), training() ? PartOf(gradients_, handle) : Tensor(),
                          parameters_.version(), handle.name.c_str(), is_fresh_);
  }
  return variable;
}

bool Context::GotGradient(size_t handle) const {
  return variables_[handle].defined() && tape_.Gradient(variables_[handle]).defined();
}

void Context::ZeroRest() {
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!GotGradient(i)) PartOf(gradients_, parameters_.handle({static_cast<int32_t>(i)})).Zero();
  }
}

std::vector<std::string> Context::WithoutGradient() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!GotGradient(i)) names.push_back(parameters_.handle({static_cast<int32_t>(i)}).name);
  }
  return names;
}

}  // namespace weft
