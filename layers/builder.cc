#include "layers/builder.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace weft {

std::string Builder::Path(absl::string_view name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

Builder Builder::Sub(absl::string_view name) const {
  Builder sub = *this;
  sub.path_ = Path(name);
  return sub;
}

Init Builder::WeightInit(int64_t out, int64_t in, bool residual) const {
  if (scheme_.kind == InitScheme::Kind::kXavier) return Init::Xavier(in, out);
  return Init::Normal(residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(scheme_.layers)) : 0.02);
}

ParameterRef Builder::Parameter(absl::string_view name, const Shape& shape, Init init) {
  return parameters_->Declare({{Path(name), shape, 0, init}}, Path(name));
}

ParameterRef Builder::Weight(absl::string_view name, int64_t out, int64_t in, bool residual) {
  return Parameter(name, {out, in}, WeightInit(out, in, residual));
}

ParameterRef Builder::StackedWeights(absl::Span<const std::pair<std::string, int64_t>> names_and_rows, int64_t in) {
  std::vector<ParameterInfo> members;
  for (const auto& [name, rows] : names_and_rows) members.push_back({Path(name), {rows, in}, 0, WeightInit(rows, in, false)});
  return parameters_->Declare(std::move(members), Path("stacked weights"));
}

ParameterRef Builder::StackedBiases(absl::Span<const std::pair<std::string, int64_t>> names_and_rows) {
  std::vector<ParameterInfo> members;
  for (const auto& [name, rows] : names_and_rows) members.push_back({Path(name), {rows}, 0, Init::Zeros()});
  return parameters_->Declare(std::move(members), Path("stacked biases"));
}

}  // namespace weft
