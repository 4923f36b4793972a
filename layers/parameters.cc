#include "layers/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/base/block.h"
#include "autograd/base/parallel.h"
#include "autograd/base/random.h"

namespace weft {
namespace {

constexpr int64_t kAlignElements = 16;  // 64 bytes of f32

void Initialise(const Tensor& value, const Init& init, RandomKey key) {
  constexpr int64_t kTile = 4096;
  const int64_t n = value.elements();
  ParallelFor((n + kTile - 1) / kTile, [&](int64_t tile) {
    for (int64_t i = tile * kTile; i < std::min(n, (tile + 1) * kTile); ++i) {
      double x = init.scale;
      if (init.kind == Init::Kind::kNormal) x = init.scale * key.Normal(i);
      if (init.kind == Init::Kind::kUniform) x = init.scale * (2 * key.Uniform(i) - 1);
      value.Set(i, x);
    }
  });
}

}  // namespace

Init Init::Xavier(int64_t in, int64_t out) { return Uniform(std::sqrt(6.0 / static_cast<double>(in + out))); }

namespace {
int64_t SlabBytes(DType dtype, int64_t elements) { return std::max<int64_t>(elements * DTypeSize(dtype), 1); }
}  // namespace

Slab::Slab(DType dtype, int64_t elements) : tensor_(AllocateBlock(SlabBytes(dtype, elements)), dtype, {elements}) {
  tensor_.Zero();
}

Slab::~Slab() {
  if (tensor_.defined()) FreeBlock(tensor_.raw(), SlabBytes(tensor_.dtype(), tensor_.elements()));
}

ParameterRef Parameters::Declare(std::vector<ParameterInfo> members, absl::string_view handle_name) {
  WEFT_CHECK(!slab_.defined()) << "parameter " << members[0].name << " declared after Allocate";
  slab_size_ = (slab_size_ + kAlignElements - 1) / kAlignElements * kAlignElements;
  Handle handle{std::string(handle_name), members[0].shape, slab_size_};
  int64_t rows = 0;
  for (ParameterInfo& member : members) {
    const bool is_new = places_.emplace(member.name, static_cast<int>(list_.size())).second;
    WEFT_CHECK(is_new) << "parameter " << member.name << " declared twice";
    WEFT_CHECK(member.shape.rank() >= 1 && member.shape.With(0, 1) == handle.shape.With(0, 1))
        << "stack of " << members[0].name << " and " << member.name << ": shapes " << handle.shape << " and " << member.shape;
    member.offset = slab_size_;
    slab_size_ += member.shape.elements();
    rows += member.shape[0];
    list_.push_back(std::move(member));
  }
  handle.shape = handle.shape.With(0, rows);
  handles_.push_back(std::move(handle));
  return {static_cast<int32_t>(handles_.size()) - 1};
}

void Parameters::Allocate(DType dtype, uint64_t seed) {
  WEFT_CHECK(!slab_.defined()) << "Parameters::Allocate twice";
  slab_size_ = (slab_size_ + kAlignElements - 1) / kAlignElements * kAlignElements;
  memory_ = Slab(dtype, slab_size_);
  slab_ = memory_.tensor();
  const RandomKey key = RandomKey{seed}.Fold("init");
  for (const ParameterInfo& info : list_) Initialise(In(slab_, info), info.init, key.Fold(info.name));
  ++version_;
}

int Parameters::Find(absl::string_view name) const {
  const auto it = places_.find(name);
  return it == places_.end() ? -1 : it->second;
}

int64_t Parameters::count() const {
  int64_t n = 0;
  for (const ParameterInfo& info : list_) n += info.shape.elements();
  return n;
}

Tensor Parameters::In(const Tensor& slab, const ParameterInfo& info) {
  return Tensor(static_cast<char*>(slab.raw()) + info.offset * DTypeSize(slab.dtype()), slab.dtype(), info.shape);
}

Tensor Parameters::Mutable() {
  ++version_;
  return slab_;
}

}  // namespace weft
