// Checks the gradient of SiluGate alone: Backward against central differences, in f64.
#include <cstdio>
#include <vector>

#include "autograd/base/random.h"
#include "autograd/grad_check.h"
#include "silu_gate.h"

int main() {
  std::vector<double> a(15), b(15);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = weft::RandomKey{1}.Normal(i);
    b[i] = weft::RandomKey{2}.Normal(i);
  }
  const weft::NamedTensor inputs[] = {{"a", weft::Tensor::Of<double>(absl::MakeSpan(a), {3, 5})},
                                      {"b", weft::Tensor::Of<double>(absl::MakeSpan(b), {3, 5})}};
  const weft::GradCheckReport report = weft::CheckGradients(
      inputs, [](weft::Tape&, absl::Span<const weft::Variable> x) { return consumer::SiluGate(x[0], x[1]); });
  std::printf("%s", report.ToString().c_str());
  return report.passed ? 0 : 1;
}
