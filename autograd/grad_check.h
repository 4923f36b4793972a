// Gradient checks: the gradients of Backward against central differences of the same forward code, in f64, element by element.
// For ops (CheckGradients) and for whole layers and models whose parameters live outside of the tape (CheckParameterGradients).
// Values are changed in place during a check and restored. Nothing is owned; one thread at a time per set of values.
//
// What counts as an error. With a the gradient by Backward and n the difference, an element's error is
//     |a - n| / (max(|a|, |n|, scale / 1000) + noise / tolerance)
// and must be <= tolerance. `scale` is the largest |a| of its tensor: elements down to a thousandth of it are held to 1e-5 of
// themselves, one a million times smaller to 1 %, which the rounding of the loss allows. `noise` is that rounding, 8 eps (S / h
// + 1), where S is the sum of the absolute values that the loss adds up: it makes tensors with a true gradient of 0 comparable.
//
// Kinks (relu at 0, ties of a maximum). Where the element fails, f is looked at on both sides of it, with two steps: when the
// one-sided slopes differ, differ as much with a ten times smaller step, and by enough to matter, the function has no
// derivative there and the element is counted as a kink, not compared. Slopes of a smooth f differ by h f'', so a wrong
// gradient is not excused that way. An input of which more than half of the looked-at elements are kinks fails.
#ifndef WEFT_AUTOGRAD_GRAD_CHECK_H_
#define WEFT_AUTOGRAD_GRAD_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "autograd/tape.h"
#include "autograd/tensor.h"

namespace weft {

struct GradCheckOptions {
  double step = 1e-6;                   // of the differences: h = step * max(1, |x|)
  double tolerance = 1e-5;              // largest error that passes
  int64_t max_elements_per_input = 64;  // more are sampled, always the same ones for a seed
  uint64_t seed = 1;                    // of the sample and of the upstream gradient
};

// What was found for one input.
struct GradCheckEntry {
  std::string name;
  double max_error = 0;  // largest error (see above) among compared elements
  int64_t index = -1;    // where it was, in row-major order; -1 when nothing was compared
  double analytic = 0;   // gradient by Backward there
  double numeric = 0;    // by differences there
  int64_t elements = 0;  // of the input
  int64_t checked = 0;   // looked at, kinks included
  int64_t kinks = 0;
  bool received_gradient = false;  // false: Backward never reached it. It passes only if the differences are 0 too
  bool passed = false;
};

struct GradCheckReport {
  std::vector<GradCheckEntry> entries;  // in the order of the inputs
  bool passed = false;                  // all entries passed
  // One line an entry: verdict, name, error, and for a failure the worst index with both numbers.
  std::string ToString() const;
};

// Checks f at `inputs` (f64, written to during the check and restored). f gets one Variable an input and builds an f64 output
// of any shape on the tape; the loss is sum(output
// * u) with random u, so that errors of opposite sign do not cancel. Gradients are added onto non-zero memory, which finds an
// op that assigns. f must be a pure function of the values (freeze its dropout key). REQUIRES: inputs are f64.
GradCheckReport CheckGradients(absl::Span<const NamedTensor> inputs,
                               absl::FunctionRef<Variable(Tape& tape, absl::Span<const Variable> inputs)> f,
                               const GradCheckOptions& options = {});

struct GradCheckParameter {
  std::string name;
  Tensor value;     // f64, writable: what the loss is computed from
  Tensor gradient;  // f64, same shape: where Backward adds
};

// Checks a loss of parameters held by the caller. loss(true) computes it and adds its gradients into the `gradient` tensors
// (the check clears them first and leaves the gradients of the unchanged values there); loss(false) may skip Backward. An
// all-zero gradient counts as not received. REQUIRES: f64; loss is a pure function of the values, and no sum of large terms
// that cancel.
GradCheckReport CheckParameterGradients(absl::Span<const GradCheckParameter> parameters,
                                        absl::FunctionRef<double(bool backward)> loss, const GradCheckOptions& options = {});

}  // namespace weft

#endif  // WEFT_AUTOGRAD_GRAD_CHECK_H_
