#include "autograd/tape.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"

namespace weft {
namespace {

constexpr char kTaken[] =
    " is used after its LastUse: an op has written its result over it (as the sum of a residual connection over the "
    "sublayer's)";

}  // namespace

std::string Anomaly::ToString() const {
  const std::string where = scope.empty() ? "" : absl::StrCat(" in ", scope);
  const std::string which = number == 0 ? "" : absl::StrCat(" number ", number);
  return absl::StrCat("op ", op, where, ": element ", element, " of ",
                      in_backward ? "the gradient it gave its input" : "its output", which, " ", shape.ToString(), " is ",
                      value);
}

Tensor Variable::value() const {
  WEFT_CHECK(tape != nullptr) << "value() of an undefined Variable";
  const Tape::Slot& slot = tape->slots_[tape->Check(*this, "value()")];
  WEFT_CHECK(!slot.is_taken) << "value() of shape " << slot.value.shape() << kTaken;
  return slot.value;
}

bool Variable::requires_grad() const {
  WEFT_CHECK(tape != nullptr) << "requires_grad() of an undefined Variable";
  return tape->slots_[tape->Check(*this, "requires_grad()")].requires_grad;
}

void Tape::Reset(Mode mode) {
  mode_ = mode;
  ++epoch_;
  backward_done_ = false;
  anomaly_.reset();
  arena_.Reset();
  gradients_.Reset();
  slots_.clear();
  uses_.clear();
  nodes_.clear();
}

int32_t Tape::Check(Variable v, const char* op) const {
  WEFT_CHECK(v.tape == this) << op << ": a Variable of another tape, or undefined";
  WEFT_CHECK(v.epoch == epoch_) << op << ": stale Variable: its tape has been reset since (epoch " << v.epoch << ", now "
                                << epoch_ << ")";
  return v.slot;
}

Variable Tape::AddSlot(const Slot& slot) {
  const auto index = static_cast<int32_t>(slots_.size());
  slots_.push_back(slot);
  if (slot.root < 0) slots_.back().root = index;
  return {this, index, epoch_};
}

Variable Tape::Constant(const Tensor& value) {
  Slot slot;
  slot.value = value;
  return AddSlot(slot);
}

Variable Tape::Input(const Tensor& value) {
  Slot slot;
  slot.value = value;
  slot.requires_grad = mode_ == Mode::kTraining;
  slot.retain = true;
  return AddSlot(slot);
}

Variable Tape::Leaf(const Tensor& value, const Tensor& grad, const uint64_t* version, const char* name, bool is_fresh) {
  Slot slot;
  slot.value = value;
  slot.name = name;
  slot.requires_grad = mode_ == Mode::kTraining && grad.defined();
  if (slot.requires_grad) {
    WEFT_CHECK(grad.shape() == value.shape() && grad.dtype() == value.dtype())
        << "Leaf " << (name ? name : "") << ": gradient " << grad.dtype() << grad.shape() << " of a value " << value.dtype()
        << value.shape();
    slot.grad = grad;
    slot.is_fresh = is_fresh;
  }
  slot.retain = true;
  slot.outside_version = version;
  slot.version_seen = version ? *version : 0;
  return AddSlot(slot);
}

Tensor Tape::Allocate(DType dtype, const Shape& shape) {
  return Tensor(arena_.Allocate(shape.elements() * DTypeSize(dtype)), dtype, shape);
}

Variable Tape::LastUse(Variable v) {
  slots_[Check(v, "LastUse")].is_last = true;
  return v;
}

Tensor Tape::Mutable(Variable v) {
  const Slot& slot = slots_[Check(v, "Mutable")];
  ++slots_[slot.root].version;
  return slot.value;
}

void Tape::Retain(Variable v) {
  Slot& slot = slots_[Check(v, "Retain")];
  WEFT_CHECK(!backward_done_) << "Retain after Backward: the gradient may be gone already";
  slot.retain = true;
}

Tensor Tape::Gradient(Variable v) const {
  const Slot& slot = slots_[Check(v, "Gradient")];
  WEFT_CHECK(slot.retain) << "Gradient of an intermediate value: call Retain on it before Backward";
  return slot.received ? slot.grad : Tensor();
}

Tensor Tape::GradientMemory(int32_t index, bool* holds) {
  Slot& slot = slots_[index];
  if (!slot.requires_grad) return Tensor();
  *holds = slot.received || (slot.grad.defined() && !slot.is_fresh);
  slot.received = true;
  if (!slot.grad.defined()) {
    const int64_t bytes = slot.value.bytes();
    void* memory = slot.retain ? arena_.Allocate(bytes) : gradients_.Take(bytes);
    slot.grad = Tensor(memory, slot.value.dtype(), slot.value.shape());
  }
  return slot.grad;
}

Tensor Tape::GradientInto(int32_t index) {
  bool holds = false;
  const Tensor grad = GradientMemory(index, &holds);
  if (grad.defined() && !holds) grad.Zero();
  return grad;
}

void Tape::Release(int32_t index) {
  Slot& slot = slots_[index];
  if (!slot.grad.defined() || slot.retain) return;
  gradients_.Give(slot.grad.raw());
  slot.grad = Tensor();
}

void Tape::CheckUnchanged(const Node& node) const {
  for (int32_t i = 0; i < node.uses; ++i) {
    const Use& use = uses_[node.first_use + i];
    const Slot& slot = slots_[use.slot];
    const Slot& root = slots_[slot.root];  // of a view: what it views
    WEFT_CHECK(root.version == use.version) << "backward of " << node.name << ": its input " << i << " of shape "
                                            << slot.value.shape() << " was changed after it had been used";
    WEFT_CHECK(root.outside_version == nullptr || *root.outside_version == root.version_seen)
        << "backward of " << node.name << ": parameter " << (root.name ? root.name : "")
        << " was changed between forward and backward";
  }
  for (int32_t i = 0; i < node.outputs; ++i) {
    const Slot& slot = slots_[node.first_output + i];
    // A view has the versions of its root, an input, which the loop above has checked.
    WEFT_CHECK(slot.root != node.first_output + i || slot.version == 0)
        << "backward of " << node.name << ": its output " << i << " of shape " << slot.value.shape()
        << " was changed after it was computed";
  }
}

void Tape::Backward(Variable loss) {
  const Slot& slot = slots_[Check(loss, "Backward")];
  WEFT_CHECK_EQ(slot.value.elements(), 1) << "Backward needs one number, got shape " << slot.value.shape();
  Tensor one = Allocate(slot.value.dtype(), slot.value.shape());
  one.Set(0, 1.0);
  Backward(loss, one);
}

void Tape::Backward(Variable output, const Tensor& upstream) {
  const int32_t last = Check(output, "Backward");
  WEFT_CHECK(mode_ == Mode::kTraining) << "Backward on a tape in inference mode";
  WEFT_CHECK(!backward_done_)
      << "Backward twice: this graph has been used already; Reset the tape and run the forward pass again";
  backward_done_ = true;
  WEFT_CHECK(slots_[last].requires_grad) << "Backward: the output depends on nothing that needs a gradient";
  WEFT_CHECK(upstream.shape() == slots_[last].value.shape() && upstream.dtype() == slots_[last].value.dtype())
      << "Backward: upstream " << upstream.dtype() << upstream.shape() << " for an output " << slots_[last].value.dtype()
      << slots_[last].value.shape();

  const Tensor seed = GradientInto(last);
  DispatchFloat("Backward", seed.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const absl::Span<T> to = seed.span<T>();
    const absl::Span<const T> from = upstream.span<T>();
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  });

  Gradients gradients(this);
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    bool reached = false;
    for (int32_t i = 0; i < node->outputs; ++i) reached |= slots_[node->first_output + i].received;
    if (!reached) continue;
    CheckUnchanged(*node);
    if (profile_ == nullptr) {
      node->run(node->closure, gradients);
    } else {
      RunProfiled(*node, gradients);
    }
    for (int32_t i = 0; detects_anomalies_ && i < node->uses; ++i) {
      const Slot& slot = slots_[uses_[node->first_use + i].slot];
      if (slot.received) FindAnomaly(node->name, node->scope, true, i, slot.grad);
    }
    for (void* buffer : scratch_) gradients_.Give(buffer);
    scratch_.clear();
    for (int32_t i = 0; i < node->outputs; ++i) Release(node->first_output + i);
  }
}

void Tape::FindAnomaly(const char* op, absl::string_view scope, bool in_backward, int64_t number, const Tensor& values) {
  if (anomaly_.has_value() || !values.defined() || (values.dtype() != DType::kF32 && values.dtype() != DType::kF64)) return;
  DispatchFloat(op, values.dtype(), [&](auto zero) {
    const auto all = values.span<decltype(zero)>();
    const auto found = std::find_if(all.begin(), all.end(), [](auto x) { return !std::isfinite(x); });
    if (found == all.end()) return;
    anomaly_ = {op, std::string(scope), in_backward, number, values.shape(), found - all.begin(), static_cast<double>(*found)};
  });
}

int64_t Tape::InputBytes(const Node& node, int64_t values, int64_t gradients) const {
  int64_t bytes = 0;
  for (int32_t i = 0; i < node.uses; ++i) {
    const int32_t index = uses_[node.first_use + i].slot;
    bool seen = false;  // x + x reads x once
    for (int32_t j = 0; j < i; ++j) seen |= uses_[node.first_use + j].slot == index;
    const Slot& slot = slots_[index];
    if (!seen) bytes += slot.value.bytes() * (values + (slot.requires_grad ? gradients : 0));
  }
  return bytes;
}

double Tape::ForwardBytes(const Node& node) const {
  int64_t bytes = 0;
  for (int32_t i = 0; i < node.outputs; ++i) {
    const Slot& slot = slots_[node.first_output + i];
    if (slot.root == node.first_output + i) bytes += slot.value.bytes();
  }
  return bytes == 0 ? 0 : static_cast<double>(bytes + InputBytes(node, 1, 0));
}

double Tape::BackwardBytes(const Node& node) const {
  int64_t bytes = InputBytes(node, 1, 2);
  for (int32_t i = 0; i < node.outputs; ++i) bytes += slots_[node.first_output + i].grad.bytes();
  return static_cast<double>(bytes);
}

void Tape::RunProfiled(const Node& node, Gradients& gradients) {
  const ProfileMark mark = profile_->Begin(used());
  node.run(node.closure, gradients);
  ProfilePass& pass = profile_->Row(node.name).backward;
  profile_->End(mark, used(), &pass);
  pass.flops += node.backward_flops;
  pass.bytes += node.backward_bytes < 0 ? BackwardBytes(node) : node.backward_bytes;
}

Tensor Gradients::Of(Variable y) const { return tape_->slots_[tape_->Check(y, "Gradients::Of")].grad; }

Tensor Gradients::Into(Variable x) { return x.defined() ? tape_->GradientInto(tape_->Check(x, "Gradients::Into")) : Tensor(); }

Gradients::Sink Gradients::Onto(Variable x) {
  Sink sink;
  if (x.defined()) sink.grad = tape_->GradientMemory(tape_->Check(x, "Gradients::Onto"), &sink.add);
  return sink;
}

bool Gradients::HandOver(Variable y, Variable x) {
  Tape::Slot& from = tape_->slots_[tape_->Check(y, "Gradients::HandOver")];
  Tape::Slot& to = tape_->slots_[tape_->Check(x, "Gradients::HandOver")];
  WEFT_CHECK(from.value.shape() == to.value.shape() && from.value.dtype() == to.value.dtype())
      << "Gradients::HandOver: " << from.value.shape() << " to " << to.value.shape();
  if (!to.requires_grad || to.received || to.retain || from.retain || !from.grad.defined()) return false;
  to.grad = from.grad;
  to.received = true;
  from.grad = Tensor();
  return true;
}

Tensor Gradients::Scratch(DType dtype, const Shape& shape) {
  void* memory = tape_->gradients_.Take(shape.elements() * DTypeSize(dtype));
  tape_->scratch_.push_back(memory);
  return Tensor(memory, dtype, shape);
}

void Gradients::Recycle(const Tensor& kept) { tape_->gradients_.Donate(kept.raw(), kept.bytes()); }

Op::Op(const char* name, absl::Span<const Variable> inputs) : name_(name) {
  for (const Variable& input : inputs) {
    if (input.defined() && tape_ == nullptr) tape_ = input.tape;
  }
  WEFT_CHECK(tape_ != nullptr) << name << ": no input is defined";
  first_use_ = static_cast<int32_t>(tape_->uses_.size());
  for (const Variable& input : inputs) {
    if (!input.defined()) continue;
    const int32_t index = tape_->Check(input, name);
    Tape::Slot& slot = tape_->slots_[index];
    WEFT_CHECK(!slot.is_taken) << name << ": an input of shape " << slot.value.shape() << kTaken;
    tape_->uses_.push_back({index, tape_->slots_[slot.root].version});
    needs_backward_ |= slot.requires_grad;
    ++uses_;
  }
  if (tape_->profile_ != nullptr) mark_ = tape_->profile_->Begin(tape_->used());
}

void Op::EndProfile() {
  const Tape::Node node{.first_output = first_output_, .outputs = outputs_, .first_use = first_use_, .uses = uses_};
  ProfilePass& pass = tape_->profile_->Row(name_).forward;
  tape_->profile_->End(mark_, tape_->used(), &pass);
  pass.flops += flops_;
  pass.bytes += bytes_ < 0 ? tape_->ForwardBytes(node) : bytes_;
}

void Op::FindAnomaly() {
  for (int32_t i = 0; i < outputs_; ++i) {
    tape_->FindAnomaly(name_, tape_->scope_, false, i, tape_->slots_[first_output_ + i].value);
  }
}

Variable Op::Output(DType dtype, const Shape& shape) {
  Tape::Slot slot;
  slot.value = tape_->Allocate(dtype, shape);
  slot.requires_grad = needs_backward_;
  Variable y = tape_->AddSlot(slot);
  if (outputs_++ == 0) first_output_ = y.slot;
  return y;
}

void Op::OutputIsFree() {
  WEFT_CHECK_EQ(outputs_, 1) << name_ << ": OutputIsFree";
  tape_->slots_[first_output_].is_free = true;
}

Variable Op::Overwrite(Variable x) {
  const int32_t index = tape_->Check(x, name_);
  const auto is_only_use = [&] {
    return std::count_if(tape_->uses_.begin(), tape_->uses_.end(), [&](const Tape::Use& use) { return use.slot == index; }) ==
           1;
  };
  const Tape::Slot& from = tape_->slots_[index];
  if (!from.is_free || !from.is_last || !is_only_use()) return Output(from.value.dtype(), from.value.shape());
  Tape::Slot slot;
  slot.value = from.value;
  slot.requires_grad = needs_backward_;
  tape_->slots_[index].is_taken = true;
  const Variable y = tape_->AddSlot(slot);
  if (outputs_++ == 0) first_output_ = y.slot;
  return y;
}

Variable Op::View(Variable x, const Tensor& value) {
  Tape::Slot slot;
  slot.value = value;
  slot.requires_grad = needs_backward_;
  slot.root = tape_->slots_[tape_->Check(x, name_)].root;
  Variable y = tape_->AddSlot(slot);
  if (outputs_++ == 0) first_output_ = y.slot;
  return y;
}

void Op::Record(void (*run)(const void*, Gradients&), const void* closure) {
  WEFT_CHECK_GT(outputs_, 0) << name_ << ": Backward before any Output";
  tape_->nodes_.push_back(
      {name_, tape_->scope_, run, closure, first_output_, outputs_, first_use_, uses_, backward_flops_, backward_bytes_});
}

}  // namespace weft
