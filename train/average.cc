#include "train/average.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "autograd/kernels/elementwise.h"
#include "train/checkpoint.h"
#include "train/model_state.h"

namespace weft {
namespace {

constexpr int64_t kTile = 1 << 14;  // elements of one task; changes no bits

// Calls f(first, count) for the tiles of n elements, on several threads.
template <class F>
void ForSlabTiles(int64_t n, const F& f) {
  ParallelFor((n + kTile - 1) / kTile, [&](int64_t tile) { f(tile * kTile, std::min(kTile, n - tile * kTile)); });
}

bool SameTokenizer(const SerializedTokenizer& a, const SerializedTokenizer& b) {
  return a.kind == b.kind && a.symbols == b.symbols && a.specials == b.specials && a.unknown == b.unknown &&
         a.joiner == b.joiner && a.scores == b.scores && a.byte_fallback == b.byte_fallback &&
         a.normalization == b.normalization;
}

// Whether parameters of the two can be averaged.
absl::Status CheckFits(const Checkpoint& first, const Checkpoint& other) {
  const auto differ = [&](absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat(other.path(), ": its ", what, " are not those of ", first.path(), "; average checkpoints of one run"));
  };
  if (!SameTokenizer(first.meta().source_tokenizer, other.meta().source_tokenizer) ||
      !SameTokenizer(first.meta().target_tokenizer, other.meta().target_tokenizer)) {
    return differ("tokenizers");
  }
  if (first.meta().class_names != other.meta().class_names) return differ("classes");
  int64_t count = 0;
  for (const StoredTensor& stored : other.tensors()) count += IsParameter(stored.name) ? 1 : 0;
  for (const StoredTensor& stored : first.tensors()) {
    if (!IsParameter(stored.name)) continue;
    --count;
    const StoredTensor* twin = other.Find(stored.name);
    if (twin == nullptr || !(twin->shape == stored.shape) || twin->dtype != stored.dtype) {
      return differ(absl::StrCat("parameters (first at ", stored.name, ")"));
    }
  }
  return count == 0 ? absl::OkStatus() : differ("parameters");
}

// sum += the tensor's values.
absl::Status AddStored(const Checkpoint& checkpoint, const StoredTensor& stored, absl::Span<double> sum) {
  Slab values(stored.dtype, stored.shape.elements());
  const Tensor tensor = values.tensor().Reshaped(stored.shape);
  WEFT_RETURN_IF_ERROR(checkpoint.ReadInto(stored.name, tensor));
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += tensor.At(static_cast<int64_t>(i));
  return absl::OkStatus();
}

}  // namespace

WeightAverage::WeightAverage(double decay, const Parameters& parameters)
    : decay_(decay), slab_(parameters.dtype(), parameters.slab_size()) {
  WEFT_CHECK(decay > 0 && decay < 1) << "WeightAverage: decay " << decay;
  slab_.tensor().CopyFrom(parameters.slab());
}

void WeightAverage::Update(const Parameters& parameters, int64_t t) {
  const double decay = std::min(decay_, (1.0 + static_cast<double>(t)) / (10.0 + static_cast<double>(t)));
  DispatchFloat("WeightAverage", slab().dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = parameters.slab().data<T>();
    T* average = slab().data<T>();
    ForSlabTiles(slab().elements(), [&](int64_t i, int64_t n) {
      kernels::Scale(static_cast<T>(decay), average + i, average + i, n);
      kernels::AddScaled(static_cast<T>(1 - decay), from + i, average + i, n);
    });
  });
}

void WeightAverage::Swap(Parameters* parameters) {
  const Tensor values = parameters->Mutable();
  DispatchFloat("WeightAverage", values.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T *a = values.data<T>(), *b = slab().data<T>();
    ForSlabTiles(values.elements(), [&](int64_t i, int64_t n) { std::swap_ranges(a + i, a + i + n, b + i); });
  });
}

absl::Status MeanOfCheckpoints(absl::Span<const std::string> paths, const std::string& output) {
  std::vector<Checkpoint> checkpoints;
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(path));
    if (!checkpoints.empty()) WEFT_RETURN_IF_ERROR(CheckFits(checkpoints.front(), checkpoint));
    checkpoints.push_back(std::move(checkpoint));
  }
  const auto newest = std::max_element(checkpoints.begin(), checkpoints.end(),
                                       [](const Checkpoint& a, const Checkpoint& b) { return a.meta().step < b.meta().step; });
  std::vector<Slab> slabs;
  std::vector<NamedTensor> tensors;
  for (const StoredTensor& stored : newest->tensors()) {
    if (!IsParameter(stored.name)) continue;
    std::vector<double> sum(static_cast<size_t>(stored.shape.elements()), 0.0);
    for (const Checkpoint& checkpoint : checkpoints) {
      WEFT_RETURN_IF_ERROR(AddStored(checkpoint, *checkpoint.Find(stored.name), absl::MakeSpan(sum)));
    }
    slabs.emplace_back(stored.dtype, stored.shape.elements());
    const Tensor mean = slabs.back().tensor().Reshaped(stored.shape);
    for (size_t i = 0; i < sum.size(); ++i) {
      mean.Set(static_cast<int64_t>(i), sum[i] / static_cast<double>(checkpoints.size()));
    }
    tensors.push_back({stored.name, mean});
  }
  return SaveCheckpoint(output, newest->meta(), tensors, WriteOutput);
}

}  // namespace weft
