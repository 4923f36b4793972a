#include "layers/builder.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"

namespace weft {

absl::Span<const absl::string_view> InitScheme::Names() {
  static constexpr absl::string_view kNames[] = {"xavier",         "xavier_normal", "kaiming_uniform",
                                                 "kaiming_normal", "normal",        "gpt2"};
  return kNames;
}

InitScheme::Kind InitScheme::Named(absl::string_view name) {
  const auto names = Names();
  const auto at = std::find(names.begin(), names.end(), name);
  WEFT_CHECK(at != names.end()) << "no initialisation is called " << name;
  return static_cast<Kind>(at - names.begin());
}

std::string Builder::Path(absl::string_view name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

Builder Builder::Sub(absl::string_view name) const {
  Builder sub = *this;
  sub.path_ = Path(name);
  return sub;
}

Init Builder::WeightInit(int64_t out, int64_t in, bool residual) const {
  const auto fan_in = static_cast<double>(in), fans = static_cast<double>(in + out);
  switch (scheme_.kind) {
    case InitScheme::Kind::kXavier:
      return Init::Xavier(in, out);
    case InitScheme::Kind::kXavierNormal:
      return Init::Normal(std::sqrt(2 / fans));
    case InitScheme::Kind::kKaimingUniform:
      return Init::Uniform(std::sqrt(6 / fan_in));
    case InitScheme::Kind::kKaimingNormal:
      return Init::Normal(std::sqrt(2 / fan_in));
    case InitScheme::Kind::kNormal:
      return Init::Normal(scheme_.std);
    case InitScheme::Kind::kGpt2:
      break;
  }
  return Init::Normal(residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(scheme_.layers)) : 0.02);
}

ParameterRef Builder::Parameter(absl::string_view name, const Shape& shape, Init init) {
  return parameters_->Declare({{Path(name), shape, 0, init}}, Path(name));
}

ParameterRef Builder::Weight(absl::string_view name, int64_t out, int64_t in, bool residual) {
  return parameters_->Declare({{Path(name), {out, in}, 0, WeightInit(out, in, residual), /*hidden=*/true}}, Path(name));
}

ParameterRef Builder::HeadWeight(absl::string_view name, int64_t out, int64_t in) {
  return Parameter(name, {out, in}, WeightInit(out, in, false));
}

ParameterRef Builder::StackedWeights(absl::Span<const std::pair<std::string, int64_t>> names_and_rows, int64_t in) {
  std::vector<ParameterInfo> members;
  for (const auto& [name, rows] : names_and_rows) {
    members.push_back({Path(name), {rows, in}, 0, WeightInit(rows, in, false), /*hidden=*/true});
  }
  return parameters_->Declare(std::move(members), Path("stacked weights"));
}

ParameterRef Builder::StackedBiases(absl::Span<const std::pair<std::string, int64_t>> names_and_rows) {
  std::vector<ParameterInfo> members;
  for (const auto& [name, rows] : names_and_rows) members.push_back({Path(name), {rows}, 0, Init::Zeros()});
  return parameters_->Declare(std::move(members), Path("stacked biases"));
}

}  // namespace weft
