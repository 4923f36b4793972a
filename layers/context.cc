#include "layers/context.h"

#include <algorithm>

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
  for (auto& [path, entry] : caches_) {
    const int64_t width = entry.view.shape()[1];
    Slab copy(entry.view.dtype(), slots_ * capacity * width);
    const Tensor target = copy.tensor().Reshaped({slots_ * capacity, width});
    for (int64_t slot = 0; slot < slots_; ++slot) {
      target.Rows(slot * capacity, capacity_).CopyFrom(entry.view.Rows(slot * capacity_, capacity_));
    }
    entry.memory = std::move(copy);
    entry.view = target;
  }
  capacity_ = capacity;
}

void State::Reorder(absl::Span<const int32_t> from, int64_t tokens) {
  WEFT_CHECK_EQ(static_cast<int64_t>(from.size()), slots_) << "State::Reorder";
  WEFT_CHECK(0 <= tokens && tokens <= capacity_) << "State::Reorder: " << tokens << " tokens of " << capacity_;
  std::vector<int64_t> moving;
  for (int64_t slot = 0; slot < slots_; ++slot) {
    WEFT_CHECK(0 <= from[slot] && from[slot] < slots_) << "State::Reorder: slot " << from[slot] << " of " << slots_;
    if (from[slot] != slot) moving.push_back(slot);
  }
  if (moving.empty()) return;
  // By way of a buffer, so that slots may also change places.
  std::vector<char> buffer;
  for (auto& [path, entry] : caches_) {
    const int64_t row_bytes = entry.view.shape()[1] * DTypeSize(entry.view.dtype());
    const int64_t bytes = tokens * row_bytes, stride = capacity_ * row_bytes;
    buffer.resize(static_cast<int64_t>(moving.size()) * bytes);
    char* cache = static_cast<char*>(entry.view.raw());
    char* next = buffer.data();
    for (int64_t slot : moving) next = std::copy_n(cache + from[slot] * stride, bytes, next);
    next = buffer.data();
    for (int64_t slot : moving) {
      std::copy_n(next, bytes, cache + slot * stride);
      next += bytes;
    }
  }
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
