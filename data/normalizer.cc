#include "data/normalizer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "data/sentencepiece_library.h"
#include "data/utf8.h"

namespace weft {
namespace {

constexpr absl::string_view kReplacedSpace = "\xE2\x96\x81";  // U+2581, which nmt_* would make a space
constexpr size_t kUnitBytes = 4;

// Fields of a unit.
uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
bool HasValue(uint32_t unit) { return (unit & 0x100) != 0; }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFF; }

uint32_t NumberAt(absl::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < kUnitBytes; ++i) number |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return number;
}

}  // namespace

std::unique_ptr<Normalizer> Normalizer::Make(const std::string& name) {
  const std::string rules = library::NormalizationRules(name);
  if (rules.empty()) return nullptr;
  // Little-endian: the size of the double array in bytes, its units, the replacements.
  WEFT_CHECK_GT(rules.size(), 2 * kUnitBytes) << "SentencePiece's rules of " << name;
  const size_t end = kUnitBytes + NumberAt(rules, 0);
  WEFT_CHECK(end % kUnitBytes == 0 && kUnitBytes < end && end < rules.size() && rules.back() == '\0')
      << "SentencePiece's rules of " << name << ": " << rules.size() << " bytes, " << end << " up to the replacements";
  std::unique_ptr<Normalizer> normalizer(new Normalizer);
  for (size_t at = kUnitBytes; at < end; at += kUnitBytes) normalizer->units_.push_back(NumberAt(rules, at));
  normalizer->replacements_ = rules.substr(end);
  return normalizer;
}

size_t Normalizer::LongestRule(absl::string_view text, absl::string_view* replacement) const {
  size_t longest = 0;
  uint32_t node = Offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size() || Label(units_[node]) != byte) break;
    const bool has_value = HasValue(units_[node]);
    node ^= Offset(units_[node]);
    if (!has_value) continue;
    WEFT_CHECK(node < units_.size() && Value(units_[node]) < replacements_.size()) << "rule at unit " << node;
    longest = i + 1;
    *replacement = replacements_.c_str() + Value(units_[node]);
  }
  return longest;
}

void Normalizer::Append(absl::string_view text, std::string* out) const {
  while (!text.empty()) {
    absl::string_view replacement;
    size_t bytes = LongestRule(text, &replacement);
    if (bytes == 0) {
      char32_t code_point;
      bytes = static_cast<size_t>(std::max<int64_t>(1, DecodeUtf8(text, 0, &code_point)));
      replacement = text.substr(0, bytes);
    }
    absl::StrAppend(out, replacement);
    text.remove_prefix(bytes);
  }
}

std::string Normalizer::operator()(absl::string_view text) const {
  std::string out;
  while (true) {
    const size_t at = text.find(kReplacedSpace);
    Append(text.substr(0, at), &out);
    if (at == absl::string_view::npos) return out;
    absl::StrAppend(&out, kReplacedSpace);
    text.remove_prefix(at + kReplacedSpace.size());
  }
}

}  // namespace weft
