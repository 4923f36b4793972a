#include "autograd/grad_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/check.h"
#include "autograd/base/random.h"

namespace weft {
namespace {

// The loss with *x = plus, less the loss with *x = minus; *x is restored.
using Difference = absl::FunctionRef<double(double* x, double plus, double minus)>;

// Compares one element after another of one input.
class Comparison {
 public:
  // magnitude: the sum of the absolute values of what the loss adds up.
  Comparison(const GradCheckOptions& options, double scale, double magnitude, Difference difference)
      : options_(options), scale_(scale), magnitude_(magnitude), difference_(difference) {}

  void Compare(double* x, double analytic, int64_t index, GradCheckEntry& entry) const {
    const double h = options_.step * std::max(1.0, std::abs(*x));
    double numeric = Slope(x, h, h);
    double error = Error(analytic, numeric, h);
    ++entry.checked;
    if (error > options_.tolerance) {
      // A kink inside of (x - h, x + h) but not at x is passed by with a smaller step; no step makes a wrong gradient right.
      const double closer = Slope(x, h / 10, h / 10), closer_error = Error(analytic, closer, h);
      if (closer_error <= options_.tolerance) {
        numeric = closer;
        error = closer_error;
      } else if (IsKink(x, h, std::abs(analytic - numeric))) {
        ++entry.kinks;
        return;
      }
    }
    // NaN counts as the largest error of all.
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (entry.index < 0 || error > entry.max_error) {
      entry.max_error = error;
      entry.index = index;
      entry.analytic = analytic;
      entry.numeric = numeric;
    }
  }

 private:
  // (L(x + up) - L(x - down)) / the distance really taken.
  double Slope(double* x, double up, double down) const {
    const double plus = *x + up, minus = *x - down;
    return difference_(x, plus, minus) / (plus - minus);
  }

  double Error(double analytic, double numeric, double h) const {
    const double difference = std::abs(analytic - numeric);
    if (difference == 0) return 0;
    const double noise = 8 * std::numeric_limits<double>::epsilon() * (magnitude_ / h + 1);
    const double size = std::max({std::abs(analytic), std::abs(numeric), scale_ / 1000});
    return difference / (size + noise / options_.tolerance);
  }

  // Whether the slopes left and right of x differ by at least a tenth of `gap` (a one-sided derivative is off by half of their
  // difference), and differ by as much for a tenth of the step.
  bool IsKink(double* x, double h, double gap) const {
    const double bend = std::abs(Slope(x, h, 0) - Slope(x, 0, h));
    const double closer = std::abs(Slope(x, h / 10, 0) - Slope(x, 0, h / 10));
    return std::isfinite(bend) && std::isfinite(closer) && bend > 0.1 * gap && closer > 0.5 * bend;
  }

  const GradCheckOptions& options_;
  double scale_, magnitude_;
  Difference difference_;
};

void CheckIsF64(const char* function, const std::string& name, const Tensor& tensor) {
  WEFT_CHECK(tensor.dtype() == DType::kF64) << function << ": " << name << " is " << tensor.dtype() << ", not f64";
}

GradCheckEntry CheckOne(const std::string& name, const Tensor& value, absl::Span<const double> analytic, bool received,
                        double magnitude, int64_t place, const GradCheckOptions& options, Difference difference) {
  GradCheckEntry entry;
  entry.name = name;
  entry.elements = value.elements();
  entry.received_gradient = received;
  double scale = 0;
  for (double a : analytic) scale = std::max(scale, std::abs(a));
  const Comparison comparison(options, scale, magnitude, difference);
  const int64_t count = std::min(entry.elements, options.max_elements_per_input);
  const Permutation sample(RandomKey{options.seed}.Fold("sample").Fold(static_cast<uint64_t>(place)), entry.elements);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = count == entry.elements ? i : sample[i];
    comparison.Compare(value.data<double>() + index, analytic[index], index, entry);
  }
  entry.passed = entry.max_error <= options.tolerance && 2 * entry.kinks <= entry.checked;
  return entry;
}

GradCheckReport Finish(std::vector<GradCheckEntry> entries) {
  GradCheckReport report{std::move(entries), true};
  for (const GradCheckEntry& entry : report.entries) report.passed &= entry.passed;
  return report;
}

// Runs f on a fresh tape and copies its output.
class OutputOf {
 public:
  OutputOf(absl::Span<const NamedTensor> inputs, absl::FunctionRef<Variable(Tape&, absl::Span<const Variable>)> f)
      : inputs_(inputs), f_(f) {}

  // Leaves without gradients: the same forward code, in training mode, as the checked pass.
  void Run(std::vector<double>& output) {
    tape_.Reset();
    variables_.clear();
    for (const NamedTensor& input : inputs_) variables_.push_back(tape_.Constant(input.value));
    const Variable y = f_(tape_, variables_);
    output.assign(y.value().span<double>().begin(), y.value().span<double>().end());
  }

 private:
  absl::Span<const NamedTensor> inputs_;
  absl::FunctionRef<Variable(Tape&, absl::Span<const Variable>)> f_;
  Tape tape_;
  std::vector<Variable> variables_;
};

}  // namespace

std::string GradCheckReport::ToString() const {
  std::string text;
  for (const GradCheckEntry& e : entries) {
    absl::StrAppendFormat(&text, "%s  %s: ", e.passed ? "ok  " : "FAIL", e.name);
    if (!e.received_gradient) absl::StrAppend(&text, "no gradient; ");
    absl::StrAppendFormat(&text, "largest error %.2g", e.max_error);
    if (!e.passed && e.index >= 0) {
      absl::StrAppendFormat(&text, " at index %d: gradient %.9g, by differences %.9g", e.index, e.analytic, e.numeric);
    }
    absl::StrAppendFormat(&text, " (%d of %d elements", e.checked, e.elements);
    if (e.kinks > 0) absl::StrAppendFormat(&text, ", %d kinks", e.kinks);
    absl::StrAppend(&text, ")\n");
  }
  return text;
}

GradCheckReport CheckGradients(absl::Span<const NamedTensor> inputs,
                               absl::FunctionRef<Variable(Tape& tape, absl::Span<const Variable> inputs)> f,
                               const GradCheckOptions& options) {
  const RandomKey key{options.seed};
  // Gradient memory starts at 1 to 2; subtracting that later costs 2e-16, nothing beside the rounding of the differences.
  std::vector<std::vector<double>> gradients;
  for (size_t k = 0; k < inputs.size(); ++k) {
    CheckIsF64("CheckGradients", inputs[k].name, inputs[k].value);
    std::vector<double>& gradient = gradients.emplace_back(inputs[k].value.elements());
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = 1 + key.Fold("start").Fold(k).Uniform(i);
  }
  const std::vector<std::vector<double>> starts = gradients;

  Tape tape;
  std::vector<Variable> variables;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor gradient = Tensor::Of(absl::MakeSpan(gradients[k]), inputs[k].value.shape());
    variables.push_back(tape.Leaf(inputs[k].value, gradient, nullptr, inputs[k].name.c_str()));
  }
  const Variable output = f(tape, variables);
  CheckIsF64("CheckGradients", "the output", output.value());
  const std::vector<double> at_rest(output.value().span<double>().begin(), output.value().span<double>().end());
  // 0.5 to 1.5, either sign: no output may be forgotten, none dominates.
  std::vector<double> upstream(at_rest.size());
  double magnitude = 0;
  for (size_t i = 0; i < upstream.size(); ++i) {
    const double u = 2 * key.Fold("upstream").Uniform(i) - 1;
    upstream[i] = u + (u < 0 ? -0.5 : 0.5);
    magnitude += std::abs(upstream[i] * at_rest[i]);
  }
  if (output.requires_grad()) tape.Backward(output, Tensor::Of(absl::MakeSpan(upstream), output.shape()));

  OutputOf output_of(inputs, f);
  std::vector<double> plus_output, minus_output;
  const auto difference = [&](double* x, double plus, double minus) {
    const double old = *x;
    *x = plus;
    output_of.Run(plus_output);
    *x = minus;
    output_of.Run(minus_output);
    *x = old;
    // Subtracting element by element keeps the rounding of outputs that did not change out of the sum.
    double sum = 0;
    for (size_t i = 0; i < upstream.size(); ++i) {
      if (plus_output[i] != minus_output[i]) sum += upstream[i] * (plus_output[i] - minus_output[i]);
    }
    return sum;
  };

  std::vector<GradCheckEntry> entries;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const bool received = tape.Gradient(variables[k]).defined();
    for (size_t i = 0; i < gradients[k].size(); ++i) gradients[k][i] -= starts[k][i];
    entries.push_back(CheckOne(inputs[k].name, inputs[k].value, gradients[k], received, magnitude, k, options, difference));
  }
  return Finish(std::move(entries));
}

GradCheckReport CheckParameterGradients(absl::Span<const GradCheckParameter> parameters,
                                        absl::FunctionRef<double(bool backward)> loss, const GradCheckOptions& options) {
  for (const GradCheckParameter& p : parameters) {
    CheckIsF64("CheckParameterGradients", p.name, p.value);
    CheckIsF64("CheckParameterGradients", p.name + " (gradient)", p.gradient);
    WEFT_CHECK(p.gradient.shape() == p.value.shape())
        << "CheckParameterGradients: " << p.name << " " << p.value.shape() << " has a gradient " << p.gradient.shape();
    p.gradient.Zero();
  }
  const double magnitude = std::abs(loss(true));
  // A copy: loss(false) may run Backward all the same.
  std::vector<std::vector<double>> gradients;
  for (const GradCheckParameter& p : parameters) {
    gradients.emplace_back(p.gradient.span<double>().begin(), p.gradient.span<double>().end());
  }

  const auto difference = [&](double* x, double plus, double minus) {
    const double old = *x;
    *x = plus;
    const double plus_loss = loss(false);
    *x = minus;
    const double minus_loss = loss(false);
    *x = old;
    return plus_loss - minus_loss;
  };

  std::vector<GradCheckEntry> entries;
  for (size_t k = 0; k < parameters.size(); ++k) {
    const bool received = std::any_of(gradients[k].begin(), gradients[k].end(), [](double a) { return a != 0; });
    entries.push_back(
        CheckOne(parameters[k].name, parameters[k].value, gradients[k], received, magnitude, k, options, difference));
  }
  for (size_t k = 0; k < parameters.size(); ++k) {
    std::copy(gradients[k].begin(), gradients[k].end(), parameters[k].gradient.data<double>());
  }
  return Finish(std::move(entries));
}

}  // namespace weft
