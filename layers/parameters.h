// Parameters: all trainable numbers of a model in one slab, each under a name that is its path
// ("decoder.0.self_attention.q.weight"). Built in two steps: layers declare what they need through a Builder (builder.h); then
// Allocate makes the slab and draws the initial values, keyed by (seed, name), so that adding a layer moves no other. Gradients
// and optimizer moments use slabs of the same layout. Whoever writes values goes through Mutable, which raises the version that
// tapes compare. Reading is thread-safe, writing is not.
#ifndef WEFT_LAYERS_PARAMETERS_H_
#define WEFT_LAYERS_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "autograd/tensor.h"

namespace weft {

// How initial values are drawn.
struct Init {
  enum class Kind : uint8_t { kConstant, kNormal, kUniform };
  Kind kind = Kind::kConstant;
  double scale = 0;  // the constant; the standard deviation; or a for uniform in [-a, a)

  static Init Zeros() { return {}; }
  static Init Ones() { return {Kind::kConstant, 1}; }
  static Init Normal(double std) { return {Kind::kNormal, std}; }
  static Init Uniform(double a) { return {Kind::kUniform, a}; }
  // Uniform with a = sqrt(6 / (in + out)) (Glorot and Bengio 2010, eq. 16).
  static Init Xavier(int64_t in, int64_t out);
};

// A named parameter: a range of the slab. Weights of linear maps are [out, in] as in PyTorch.
struct ParameterInfo {
  std::string name;
  Shape shape;
  int64_t offset = 0;  // elements from the start of the slab
  Init init;
  bool hidden = false;  // a linear map between features inside of the model: neither a table nor the map to its answers
};

// What a layer keeps to reach its parameter: an index into Parameters. Small, copyable. Parameters declared as a stack
// (Builder::Stack) have one handle for all of them.
struct ParameterRef {
  int32_t index = -1;
  bool defined() const { return index >= 0; }
};

// Zeroed, 64-byte-aligned memory for one slab, owned: gradients and moments.
class Slab {
 public:
  Slab() = default;
  Slab(DType dtype, int64_t elements);
  ~Slab();
  Slab(Slab&& other) noexcept : tensor_(std::exchange(other.tensor_, Tensor())) {}
  Slab& operator=(Slab&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

class Parameters {
 public:
  Parameters() = default;
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Makes the slab (f32 or f64) and the initial values: of parameter n, element i comes from
  // RandomKey{seed}.Fold("init").Fold(n). Once.
  void Allocate(DType dtype, uint64_t seed);

  DType dtype() const { return slab_.dtype(); }
  // In the order of declaration.
  const std::vector<ParameterInfo>& list() const { return list_; }
  // Index in list(), or -1.
  int Find(absl::string_view name) const;
  // Trainable numbers, each counted once.
  int64_t count() const;
  // Elements of a slab: count() and the gaps that align each parameter to 64 bytes. Gaps are zero and stay zero.
  int64_t slab_size() const { return slab_size_; }

  // Read-only views. REQUIRES: Allocate was called.
  Tensor slab() const { return slab_; }
  Tensor value(int i) const { return In(slab_, list_[i]); }
  // The range of parameter `info` in any slab of this layout.
  static Tensor In(const Tensor& slab, const ParameterInfo& info);
  // The slab for writing; raises the version.
  Tensor Mutable();
  const uint64_t* version() const { return &version_; }

  // What a handle stands for: a parameter, or a stack of them.
  struct Handle {
    std::string name;
    Shape shape;
    int64_t offset;
  };
  const Handle& handle(ParameterRef ref) const { return handles_[ref.index]; }
  int handle_count() const { return static_cast<int>(handles_.size()); }

 private:
  friend class Builder;
  // Declares parameters that lie next to each other, as rows of one tensor. REQUIRES: names are new; before Allocate.
  ParameterRef Declare(std::vector<ParameterInfo> members, absl::string_view handle_name);

  std::vector<ParameterInfo> list_;
  absl::flat_hash_map<std::string, int> places_;  // name -> index in list_
  std::vector<Handle> handles_;
  int64_t slab_size_ = 0;
  Slab memory_;
  Tensor slab_;
  uint64_t version_ = 0;
};

}  // namespace weft

#endif  // WEFT_LAYERS_PARAMETERS_H_
