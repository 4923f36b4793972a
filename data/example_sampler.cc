#include "data/example_sampler.h"

#include "autograd/base/check.h"

namespace weft {

ExampleSampler::ExampleSampler(const Tokenizer* source, const SubwordSampling& source_sampling, const Tokenizer* target,
                               const SubwordSampling& target_sampling) {
  if (source != nullptr) sides_[kSource] = {source, source_sampling, {}};
  if (target != nullptr) sides_[kTarget] = {target, target_sampling, {}};
}

void ExampleSampler::Add(absl::string_view source, absl::string_view target) {
  if (sides_[kSource].sampling.on()) sides_[kSource].texts.emplace_back(source);
  if (sides_[kTarget].sampling.on()) sides_[kTarget].texts.emplace_back(target);
}

absl::Span<const int32_t> ExampleSampler::Ids(Side side, int64_t example, RandomKey key, absl::Span<const int32_t> plain,
                                              std::vector<int32_t>* drawn) const {
  const SideData& data = sides_[side];
  if (!data.sampling.on()) return plain;
  WEFT_CHECK(0 <= example && example < static_cast<int64_t>(data.texts.size())) << "no text of example " << example;
  drawn->clear();
  const RandomKey own = key.Fold(static_cast<uint64_t>(example)).Fold(side == kSource ? "source" : "target");
  const int32_t separator = data.tokenizer->sep();
  absl::string_view text = data.texts[example];
  for (uint64_t column = 0;; ++column) {
    const size_t end = side == kSource && separator >= 0 ? text.find('\t') : absl::string_view::npos;
    const RandomKey column_key = column == 0 ? own : own.Fold(column);
    if (data.tokenizer->TrySample(text.substr(0, end), data.sampling, column_key, drawn) >= 0) return plain;
    if (end == absl::string_view::npos) break;
    drawn->push_back(separator);
    text.remove_prefix(end + 1);
  }
  const int64_t tokens = static_cast<int64_t>(drawn->size()) + (side == kTarget ? 1 : 0);
  return tokens > limit_ ? plain : absl::MakeConstSpan(*drawn);
}

}  // namespace weft
