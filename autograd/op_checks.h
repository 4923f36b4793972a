// The catalogue of gradient checks: one or more entries for every op of autograd/ops.h, with small odd shapes and each variant
// that has a gradient of its own (broadcasts, transposes, masks, ignored targets ...). `weft gradcheck` runs it; a test pins
// the names. The entries own what they need and are independent of each other.
#ifndef WEFT_AUTOGRAD_OP_CHECKS_H_
#define WEFT_AUTOGRAD_OP_CHECKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/grad_check.h"

namespace weft {

struct OpCheck {
  std::string name;  // the op's, in snake_case; variants append a word: "matmul_transpose_a"
  std::function<GradCheckReport(const GradCheckOptions&)> run;
};

// One f64 input of a check: its values are uniform in [low, high).
struct OpCheckInput {
  const char* name;
  Shape shape;
  double low = -2, high = 2;
};

// The check of `op`, a pure function of one Variable an input, at random values.
OpCheck MakeOpCheck(std::string name, std::vector<OpCheckInput> inputs,
                    std::function<Variable(absl::Span<const Variable> inputs)> op);

// Weft's own ops in the order of ops.h (a new op gets its line in op_checks.cc), then those that were registered.
std::vector<OpCheck> OpChecks();

// Adds the check of a user's op before main runs; one object at namespace scope in the op's file:
//   const weft::OpCheckRegistration kCheck(weft::MakeOpCheck("my_op", {{"x", {3, 5}}}, [](auto x) { return MyOp(x[0]); }));
// A name that is taken stops the program.
struct OpCheckRegistration {
  explicit OpCheckRegistration(OpCheck check);
};

}  // namespace weft

#endif  // WEFT_AUTOGRAD_OP_CHECKS_H_
