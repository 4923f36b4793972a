// Tape: records what a computation did, so that Backward can walk it from the end and add up gradients. Define-by-run: user
// code calls ops (autograd/ops.h) in plain C++ and each leaves one entry. Entries are in topological order by construction, so
// Backward is one loop: no sort, no recursion. A tape belongs to one thread at a time; several tapes are independent (no
// globals).
//
// Memory: values live in the tape's arena until Reset; gradients of intermediate values come from a pool and go back as soon as
// their producer's backward has run. Leaf values belong to the caller. After the largest step, a step allocates nothing.
//
// Misuse is a bug of the caller and stops the program, naming the op: a handle of another tape or of before the last Reset,
// Backward twice, a value changed (through Mutable, or a parameter's version) after an op has used it.
#ifndef WEFT_AUTOGRAD_TAPE_H_
#define WEFT_AUTOGRAD_TAPE_H_

#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/arena.h"
#include "autograd/profile.h"
#include "autograd/tensor.h"

namespace weft {

class Tape;
class Gradients;

// A small handle of a value on a tape; copy it freely. Valid until the tape's next Reset; use after that is refused.
struct Variable {
  Tape* tape = nullptr;
  int32_t slot = -1;
  uint32_t epoch = 0;

  bool defined() const { return tape != nullptr; }
  // The value; the view is valid until Reset. Write only through Tape::Mutable. Returned by value, as is the shape: a reference
  // would dangle when the next op makes the tape's list of slots grow.
  Tensor value() const;
  Shape shape() const { return value().shape(); }
  DType dtype() const { return value().dtype(); }
  bool requires_grad() const;
};

// The first value of a pass that is NaN or infinite, as Tape::DetectAnomalies finds it.
struct Anomaly {
  std::string op;            // "linear"
  std::string scope;         // of the layer that ran it: "decoder.0.feed_forward.up"; may be empty
  bool in_backward = false;  // a gradient that the op's backward function gave its input, else an output
  int64_t number = 0;        // of the output or the input, from 0
  Shape shape;
  int64_t element = 0;  // its place, row-major
  double value = 0;

  // "op linear in decoder.0.feed_forward.up: element 17 of its output [12, 64] is nan".
  std::string ToString() const;
};

class Tape {
 public:
  // kInference records no backward functions and keeps nothing for them.
  enum class Mode : uint8_t { kTraining, kInference };

  explicit Tape(Mode mode = Mode::kTraining) : mode_(mode) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Forgets everything recorded; all Variables become stale; memory is kept.
  void Reset() { Reset(mode_); }
  void Reset(Mode mode);
  Mode mode() const { return mode_; }

  // --- Leaves. The caller keeps the memory alive, and unchanged, until Backward.
  // A value without gradient.
  Variable Constant(const Tensor& value);
  // A value whose gradient the tape keeps until Reset (see Gradient).
  Variable Input(const Tensor& value);
  // A value whose gradient is ADDED into `grad` (same shape and dtype) by Backward; with `is_fresh` what `grad` holds is taken
  // for garbage and overwritten, but stays if no gradient arrives. When `version` is given, Backward refuses if *version has
  // changed since this call. `name` (may be null) must outlive the tape's epoch; it appears in error messages.
  Variable Leaf(const Tensor& value, const Tensor& grad, const uint64_t* version = nullptr, const char* name = nullptr,
                bool is_fresh = false);

  // --- Backward.
  // Adds d(loss)/d(leaf) into every leaf. REQUIRES: one element; not yet called since Reset; training mode.
  void Backward(Variable loss);
  // The same from an upstream gradient of any shape (that of `output`): the gradient of sum(output * upstream).
  void Backward(Variable output, const Tensor& upstream);
  // The gradient of an Input, a Leaf, or a value passed to Retain before Backward; not defined() when none arrived.
  Tensor Gradient(Variable v) const;
  // Keeps an intermediate value's gradient until Reset.
  void Retain(Variable v);

  // --- For writers of ops and layers.
  // Uninitialised memory until Reset.
  Tensor Allocate(DType dtype, const Shape& shape);
  // A copy of `values` that lives until Reset, so that a backward function may capture it.
  template <class T>
  absl::Span<const T> Copy(absl::Span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (values.empty()) return {};
    T* copy = static_cast<T*>(arena_.Allocate(values.size() * sizeof(T)));
    std::memcpy(copy, values.data(), values.size() * sizeof(T));
    return {copy, values.size()};
  }
  // Says that the next op that gets `v` is the last thing to use it, so that the op may write its result over it: sums and
  // activations do if they can. After such an op any use of v is refused. Returns v.
  Variable LastUse(Variable v);
  // The value for writing. Backward then refuses any op that has read or produced `v` (or a view of it) before this call.
  Tensor Mutable(Variable v);

  int64_t op_count() const { return static_cast<int64_t>(nodes_.size()); }
  // Bytes held for values and for gradients.
  int64_t memory() const { return arena_.capacity() + gradients_.capacity(); }
  // From now on adds what each op costs to `profile`, which must outlive its use here; null (the default) turns it off. Not
  // between an op's two ends, that is never inside an op or a backward function.
  void set_profile(Profile* profile) { profile_ = profile; }

  // From now on looks at what each op writes, forward and backward, and keeps the first NaN or infinity: for finding out why a
  // loss is not finite. About as slow as reading every value once more. Not inside an op.
  void DetectAnomalies(bool on) { detects_anomalies_ = on; }
  // Of this pass, that is since Reset.
  const std::optional<Anomaly>& anomaly() const { return anomaly_; }
  // Names the layer whose ops come next, until the scope ends; scopes nest. `path` must outlive the tape's epoch.
  class Scope {
   public:
    Scope(Tape& tape, absl::string_view path) : tape_(tape), outer_(tape.scope_) { tape.scope_ = path; }
    ~Scope() { tape_.scope_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Tape& tape_;
    const absl::string_view outer_;
  };

 private:
  friend struct Variable;
  friend class Gradients;
  friend class Op;

  struct Slot {
    Tensor value;
    Tensor grad;  // defined once a gradient arrived (leaves with their own: from the start)
    const uint64_t* outside_version = nullptr;
    uint64_t version_seen = 0;
    const char* name = nullptr;  // of a Leaf
    int32_t root = -1;           // the slot that owns the memory: itself unless a view
    uint32_t version = 0;        // of a root: bumped by Mutable
    bool requires_grad = false;
    bool retain = false;    // gradient stays until Reset
    bool received = false;  // a gradient arrived
    bool is_fresh = false;  // of a Leaf: until then, grad holds garbage
    bool is_free = false;   // the backward function of the op that made the value does not read it
    bool is_last = false;   // the next op that uses it is the last one (LastUse)
    bool is_taken = false;  // another value lies in this one's memory now
  };
  struct Use {  // an input of a node and its version at that time
    int32_t slot;
    uint32_t version;
  };
  struct Node {
    const char* name = nullptr;
    absl::string_view scope = {};
    void (*run)(const void* closure, Gradients&) = nullptr;
    const void* closure = nullptr;
    int32_t first_output = -1, outputs = 0;
    int32_t first_use = 0, uses = 0;
    double backward_flops = 0, backward_bytes = -1;  // as declared; bytes < 0: from shapes
  };

  int32_t Check(Variable v, const char* op) const;  // slot of a live handle of this tape
  Variable AddSlot(const Slot& slot);
  void CheckUnchanged(const Node& node) const;
  // Memory for the gradient of `slot`; *holds tells whether it holds a gradient already, or garbage.
  Tensor GradientMemory(int32_t slot, bool* holds);
  Tensor GradientInto(int32_t slot);
  void Release(int32_t slot);
  // For the profile: see ProfilePass.
  int64_t used() const { return arena_.used() + gradients_.used(); }
  int64_t InputBytes(const Node& node, int64_t values, int64_t gradients) const;
  double ForwardBytes(const Node& node) const;
  double BackwardBytes(const Node& node) const;
  void RunProfiled(const Node& node, Gradients& gradients);
  // For anomaly(): looks at an output or, in backward, at the gradient of an input.
  void FindAnomaly(const char* op, absl::string_view scope, bool in_backward, int64_t number, const Tensor& values);

  Mode mode_;
  uint32_t epoch_ = 1;
  bool backward_done_ = false;
  Arena arena_;
  BufferPool gradients_;
  std::vector<Slot> slots_;
  std::vector<Use> uses_;
  std::vector<Node> nodes_;
  std::vector<void*> scratch_;  // of the backward function that is running
  Profile* profile_ = nullptr;
  absl::string_view scope_;
  bool detects_anomalies_ = false;
  std::optional<Anomaly> anomaly_;
};

// What a backward function gets.
class Gradients {
 public:
  // The gradient that arrived at output `y`; not defined() when this output (of several) got none. Read only.
  Tensor Of(Variable y) const;
  // Where to ADD the gradient of input `x` (zero at first use); not defined() when x needs none: then skip the work.
  Tensor Into(Variable x);
  // The same for an op that can write as well as add, and so saves a pass over zeros: with `add` add to what is there, else it
  // is uninitialised: write all of it.
  struct Sink {
    Tensor grad;
    bool add = false;
    bool defined() const { return grad.defined(); }
  };
  Sink Onto(Variable x);
  // For an op whose input's gradient is that of its output: makes the output's memory the input's, without a copy. False, and
  // nothing done, where that cannot be (x has a gradient already, memory of its own, or needs none). After true, Of(y) is gone.
  // REQUIRES: the same shape and dtype.
  bool HandOver(Variable y, Variable x);
  // Uninitialised memory until this backward function returns.
  Tensor Scratch(DType dtype, const Shape& shape);
  // At the end of a backward function: what the op kept by Tape::Allocate, and nothing else has seen, becomes memory for
  // gradients.
  void Recycle(const Tensor& kept);

 private:
  friend class Tape;
  explicit Gradients(Tape* tape) : tape_(tape) {}
  Tape* tape_;
};

// How an op is written: ONE function holds the forward computation and its gradient.
//
//   Variable Square(Variable x) {
//     Op op("square", {x});
//     Variable y = op.Output(x.dtype(), x.shape());
//     ... write y.value() from x.value() ...
//     op.Backward([x, y](Gradients& g) {
//       if (Tensor dx = g.Into(x); dx.defined()) ... add 2 * x * g.Of(y) into dx ...
//     });
//     return y;
//   }
//
// The lambda runs at most once and only if some output got a gradient. It captures by value and only trivially destructible
// things (Variables, Tensors, numbers, spans from Tape::Copy): checked at compile time.
class Op {
 public:
  // REQUIRES: at least one input defined(); all on one tape. Undefined Variables (optional inputs) are skipped. `name` is a
  // literal.
  Op(const char* name, std::initializer_list<Variable> inputs) : Op(name, absl::MakeConstSpan(inputs.begin(), inputs.size())) {}
  Op(const char* name, absl::Span<const Variable> inputs);
  ~Op() {
    if (tape_->profile_ != nullptr) EndProfile();
    if (tape_->detects_anomalies_ && !may_be_infinite_) FindAnomaly();
  }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  Tape& tape() const { return *tape_; }
  const char* name() const { return name_; }
  // Whether Backward will ever be run for this op: if not, keep nothing for it.
  bool needs_backward() const { return needs_backward_; }

  // A new output in fresh memory (uninitialised). Several outputs are allowed, before Backward.
  Variable Output(DType dtype, const Shape& shape);
  // Says that this op's backward function does not read the value of its (only) output, so that Overwrite may reuse its memory.
  void OutputIsFree();
  // A new output of x's shape in the memory of x, an input of this op whose value its backward function does not read; take
  // x.value() before. Fresh memory instead, unless this is x's LastUse, nothing has used it before and it is a free output.
  Variable Overwrite(Variable x);
  // A new output that is `value`, a view of x's memory.
  Variable View(Variable x, const Tensor& value);

  // Says that infinities in the output are meant (a masked score), and no anomaly.
  void OutputMayBeInfinite() { may_be_infinite_ = true; }

  // For the profile (autograd/profile.h), both before Backward: floating-point operations of the two directions (two per
  // multiply-add; of products, what matters), and bytes moved where the sizes of inputs and outputs mislead, as in a look-up.
  void Flops(double forward, double backward) {
    flops_ = forward;
    backward_flops_ = backward;
  }
  void Bytes(double forward, double backward) {
    bytes_ = forward;
    backward_bytes_ = backward;
  }

  template <class F>
  void Backward(F backward) {
    static_assert(std::is_trivially_destructible_v<F>, "capture Variables, Tensors and numbers by value; arrays by Tape::Copy");
    if (!needs_backward_) return;
    void* closure = tape_->arena_.Allocate(sizeof(F));
    new (closure) F(backward);
    Record([](const void* f, Gradients& g) { (*static_cast<const F*>(f))(g); }, closure);
  }

 private:
  void Record(void (*run)(const void*, Gradients&), const void* closure);
  void EndProfile();
  void FindAnomaly();

  const char* name_;
  Tape* tape_ = nullptr;
  bool needs_backward_ = false, may_be_infinite_ = false;
  int32_t first_use_ = 0, uses_ = 0;
  int32_t first_output_ = -1, outputs_ = 0;
  double flops_ = 0, backward_flops_ = 0, bytes_ = -1, backward_bytes_ = -1;
  ProfileMark mark_;
};

}  // namespace weft

#endif  // WEFT_AUTOGRAD_TAPE_H_
