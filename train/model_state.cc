#include "train/model_state.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

constexpr absl::string_view kOptimizerPrefix = "optimizer.";

// "name f32[2, 3]".
std::string Described(absl::string_view name, DType dtype, const Shape& shape) {
  return absl::StrCat(name, " ", DTypeName(dtype), shape.ToString());
}

void AddSlab(absl::string_view prefix, const Parameters& parameters, const Tensor& slab, std::vector<NamedTensor>* tensors) {
  for (const ParameterInfo& info : parameters.list()) {
    tensors->push_back({absl::StrCat(prefix, info.name), Parameters::In(slab, info)});
  }
}

bool IsMoment(absl::string_view name) { return absl::StartsWith(name, kOptimizerPrefix) && absl::StrContains(name, '/'); }

// Compares the tensors of the file that are (or are not) moments with `wanted`.
absl::Status CheckSameSet(const Checkpoint& checkpoint, bool moments, absl::Span<const NamedTensor> wanted) {
  std::vector<std::string> missing, unexpected, different;
  std::vector<const StoredTensor*> left;
  for (const StoredTensor& stored : checkpoint.tensors()) {
    if (IsMoment(stored.name) == moments) left.push_back(&stored);
  }
  for (const NamedTensor& named : wanted) {
    const StoredTensor* stored = checkpoint.Find(named.name);
    const std::string own = Described(named.name, named.value.dtype(), named.value.shape());
    if (stored == nullptr) {
      missing.push_back(own);
      continue;
    }
    if (stored->dtype != named.value.dtype() || !(stored->shape == named.value.shape())) {
      different.push_back(absl::StrCat(own, " is ", DTypeName(stored->dtype), stored->shape.ToString()));
    }
    std::erase(left, stored);
  }
  for (const StoredTensor* stored : left) unexpected.push_back(Described(stored->name, stored->dtype, stored->shape));
  if (missing.empty() && unexpected.empty() && different.empty()) return absl::OkStatus();
  std::string message = absl::StrCat(checkpoint.path(), ": does not fit the ", moments ? "optimizer" : "model");
  if (!missing.empty()) absl::StrAppend(&message, "\n  missing in the file: ", absl::StrJoin(missing, ", "));
  if (!unexpected.empty()) absl::StrAppend(&message, "\n  only in the file: ", absl::StrJoin(unexpected, ", "));
  if (!different.empty()) absl::StrAppend(&message, "\n  other in the file: ", absl::StrJoin(different, ", "));
  return absl::FailedPreconditionError(message);
}

// The tensors `prefix`NAME of the file in a new slab, whose gaps are zero.
absl::Status ReadSlab(const Checkpoint& checkpoint, absl::string_view prefix, const Parameters& parameters, Slab* slab) {
  *slab = Slab(parameters.dtype(), parameters.slab_size());
  for (const ParameterInfo& info : parameters.list()) {
    WEFT_RETURN_IF_ERROR(checkpoint.ReadInto(absl::StrCat(prefix, info.name), Parameters::In(slab->tensor(), info)));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedTensor> ParameterTensors(const Parameters& parameters) {
  std::vector<NamedTensor> tensors;
  AddSlab("", parameters, parameters.slab(), &tensors);
  return tensors;
}

std::vector<NamedTensor> StateTensors(const Parameters& parameters, const Optimizer& optimizer) {
  std::vector<NamedTensor> tensors = ParameterTensors(parameters);
  const auto add = [&](const NamedTensor& own) { tensors.push_back({absl::StrCat(kOptimizerPrefix, own.name), own.value}); };
  for (const NamedTensor& moment : optimizer.state()) add(moment);
  for (const NamedTensor& count : optimizer.counts()) {
    if (count.value.At(0) != static_cast<double>(optimizer.updates())) add(count);
  }
  return tensors;
}

absl::Status LoadParameters(const Checkpoint& checkpoint, Parameters* parameters) {
  WEFT_RETURN_IF_ERROR(CheckSameSet(checkpoint, /*moments=*/false, ParameterTensors(*parameters)));
  Slab slab;
  WEFT_RETURN_IF_ERROR(ReadSlab(checkpoint, "", *parameters, &slab));
  parameters->Mutable().CopyFrom(slab.tensor());
  return absl::OkStatus();
}

absl::Status LoadOptimizer(const Checkpoint& checkpoint, Optimizer* optimizer) {
  std::vector<NamedTensor> wanted;  // under their names in the file
  const auto add = [&](const NamedTensor& own) { wanted.push_back({absl::StrCat(kOptimizerPrefix, own.name), own.value}); };
  for (const NamedTensor& moment : optimizer->state()) add(moment);
  for (const NamedTensor& count : optimizer->counts()) {
    if (checkpoint.Find(absl::StrCat(kOptimizerPrefix, count.name)) != nullptr) add(count);
  }
  WEFT_RETURN_IF_ERROR(CheckSameSet(checkpoint, /*moments=*/true, wanted));
  std::vector<Slab> read;
  for (const NamedTensor& tensor : wanted) {
    read.emplace_back(tensor.value.dtype(), tensor.value.elements());
    WEFT_RETURN_IF_ERROR(checkpoint.ReadInto(tensor.name, read.back().tensor().Reshaped(tensor.value.shape())));
  }
  optimizer->set_updates(checkpoint.meta().optimizer_updates);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i].value.CopyFrom(read[i].tensor().Reshaped(wanted[i].value.shape()));
  return absl::OkStatus();
}

}  // namespace weft
