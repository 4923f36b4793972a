#include "train/model_state.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

constexpr absl::string_view kOptimizerPrefix = "optimizer.", kAveragePrefix = "average/";

// What a tensor of a checkpoint is, by its name.
enum class Role { kParameter, kMoment, kAverage };

Role RoleOf(absl::string_view name) {
  if (absl::StartsWith(name, kAveragePrefix)) return Role::kAverage;
  return absl::StartsWith(name, kOptimizerPrefix) && absl::StrContains(name, '/') ? Role::kMoment : Role::kParameter;
}

absl::string_view Owner(Role role) {
  if (role == Role::kMoment) return "optimizer";
  return role == Role::kAverage ? "average of the weights" : "model";
}

// "name f32[2, 3]".
std::string Described(absl::string_view name, DType dtype, const Shape& shape) {
  return absl::StrCat(name, " ", DTypeName(dtype), shape.ToString());
}

void AddSlab(absl::string_view prefix, const Parameters& parameters, const Tensor& slab, std::vector<NamedTensor>* tensors) {
  for (const ParameterInfo& info : parameters.list()) {
    tensors->push_back({absl::StrCat(prefix, info.name), Parameters::In(slab, info)});
  }
}

std::string MomentPrefix(absl::string_view moment) { return absl::StrCat(kOptimizerPrefix, moment, "/"); }

// Compares the tensors of the file that have this role with `wanted`.
absl::Status CheckSameSet(const Checkpoint& checkpoint, Role role, absl::Span<const NamedTensor> wanted) {
  std::vector<std::string> missing, unexpected, different;
  std::vector<const StoredTensor*> left;
  for (const StoredTensor& stored : checkpoint.tensors()) {
    if (RoleOf(stored.name) == role) left.push_back(&stored);
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
  std::string message = absl::StrCat(checkpoint.path(), ": does not fit the ", Owner(role));
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

bool IsParameter(absl::string_view name) { return RoleOf(name) == Role::kParameter; }

std::vector<NamedTensor> ParameterTensors(const Parameters& parameters) {
  std::vector<NamedTensor> tensors;
  AddSlab("", parameters, parameters.slab(), &tensors);
  return tensors;
}

std::vector<NamedTensor> StateTensors(const Parameters& parameters, const Optimizer& optimizer, const WeightAverage* average) {
  std::vector<NamedTensor> tensors = ParameterTensors(parameters);
  for (const Optimizer::State& moment : optimizer.state()) {
    AddSlab(MomentPrefix(moment.name), parameters, moment.slab, &tensors);
  }
  if (average != nullptr) AddSlab(kAveragePrefix, parameters, average->slab(), &tensors);
  return tensors;
}

absl::Status LoadParameters(const Checkpoint& checkpoint, Parameters* parameters) {
  WEFT_RETURN_IF_ERROR(CheckSameSet(checkpoint, Role::kParameter, ParameterTensors(*parameters)));
  Slab slab;
  WEFT_RETURN_IF_ERROR(ReadSlab(checkpoint, "", *parameters, &slab));
  parameters->Mutable().CopyFrom(slab.tensor());
  return absl::OkStatus();
}

absl::Status LoadOptimizer(const Checkpoint& checkpoint, const Parameters& parameters, Optimizer* optimizer) {
  const std::vector<Optimizer::State> moments = optimizer->state();
  std::vector<NamedTensor> wanted;
  for (const Optimizer::State& moment : moments) AddSlab(MomentPrefix(moment.name), parameters, moment.slab, &wanted);
  WEFT_RETURN_IF_ERROR(CheckSameSet(checkpoint, Role::kMoment, wanted));
  std::vector<Slab> slabs(moments.size());
  for (size_t i = 0; i < moments.size(); ++i) {
    WEFT_RETURN_IF_ERROR(ReadSlab(checkpoint, MomentPrefix(moments[i].name), parameters, &slabs[i]));
  }
  for (size_t i = 0; i < moments.size(); ++i) moments[i].slab.CopyFrom(slabs[i].tensor());
  optimizer->set_updates(checkpoint.meta().optimizer_updates);
  return absl::OkStatus();
}

bool HasAverage(const Checkpoint& checkpoint) {
  const std::vector<StoredTensor>& tensors = checkpoint.tensors();
  return std::any_of(tensors.begin(), tensors.end(), [](const StoredTensor& t) { return RoleOf(t.name) == Role::kAverage; });
}

absl::Status LoadAverage(const Checkpoint& checkpoint, const Parameters& parameters, WeightAverage* average) {
  if (!HasAverage(checkpoint)) {
    average->slab().CopyFrom(parameters.slab());
    return absl::OkStatus();
  }
  std::vector<NamedTensor> wanted;
  AddSlab(kAveragePrefix, parameters, average->slab(), &wanted);
  WEFT_RETURN_IF_ERROR(CheckSameSet(checkpoint, Role::kAverage, wanted));
  Slab slab;
  WEFT_RETURN_IF_ERROR(ReadSlab(checkpoint, kAveragePrefix, parameters, &slab));
  average->slab().CopyFrom(slab.tensor());
  return absl::OkStatus();
}

absl::Status LoadForInference(const Checkpoint& checkpoint, Parameters* parameters) {
  if (!HasAverage(checkpoint)) return LoadParameters(checkpoint, parameters);
  WeightAverage average(0.5, *parameters);  // the decay is that of updates, of which there are none
  WEFT_RETURN_IF_ERROR(LoadAverage(checkpoint, *parameters, &average));
  average.Swap(parameters);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> LoadMatching(const Checkpoint& checkpoint, bool partial, Parameters* parameters) {
  const std::string prefix(HasAverage(checkpoint) ? kAveragePrefix : "");
  std::vector<std::string> left, reasons;
  Slab slab(parameters->dtype(), parameters->slab_size());
  slab.tensor().CopyFrom(parameters->slab());
  for (const NamedTensor& named : ParameterTensors(*parameters)) {
    const StoredTensor* stored = checkpoint.Find(prefix + named.name);
    const std::string own = Described(named.name, named.value.dtype(), named.value.shape());
    if (stored == nullptr) {
      reasons.push_back(absl::StrCat(own, " is not in it"));
    } else if (stored->dtype != named.value.dtype() || !(stored->shape == named.value.shape())) {
      reasons.push_back(absl::StrCat(own, " is ", DTypeName(stored->dtype), stored->shape.ToString(), " there"));
    } else {
      const ParameterInfo& info = *std::find_if(parameters->list().begin(), parameters->list().end(),
                                                [&](const ParameterInfo& p) { return p.name == named.name; });
      WEFT_RETURN_IF_ERROR(checkpoint.ReadInto(stored->name, Parameters::In(slab.tensor(), info)));
      continue;
    }
    left.push_back(named.name);
  }
  if (left.size() == parameters->list().size() || (!partial && !left.empty())) {
    return absl::FailedPreconditionError(
        absl::StrCat("train.init_from: ", checkpoint.path(), " does not fit the model: ", absl::StrJoin(reasons, ", "),
                     partial ? "" : "; train.init_partial = true takes what fits and leaves these at their initial values"));
  }
  parameters->Mutable().CopyFrom(slab.tensor());
  return left;
}

}  // namespace weft
