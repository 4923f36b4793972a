// The catalogue of gradient checks: one or more entries for every op of autograd/ops.h, with small odd shapes and each variant
// that has a gradient of its own (broadcasts, transposes, masks, ignored targets ...). `weft gradcheck` runs it; a test pins
// the names. The entries own what they need and are independent of each other.
#ifndef WEFT_AUTOGRAD_OP_CHECKS_H_
#define WEFT_AUTOGRAD_OP_CHECKS_H_

#include <functional>
#include <string>
#include <vector>

#include "autograd/grad_check.h"

namespace weft {

struct OpCheck {
  std::string name;  // the op's, in snake_case; variants append a word: "matmul_transpose_a"
  std::function<GradCheckReport(const GradCheckOptions&)> run;
};

// In the order of ops.h. A new op gets its line here.
std::vector<OpCheck> OpChecks();

}  // namespace weft

#endif  // WEFT_AUTOGRAD_OP_CHECKS_H_
