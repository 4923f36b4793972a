#include "autograd/kernels/simd.h"

#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "autograd/kernels/targets.h"
// Highway's headers need targets.h first.
#include "hwy/targets.h"

namespace weft::kernels {
namespace {

struct Cap {
  absl::string_view name;
  int64_t disabled;  // Highway's target bits
};

constexpr std::array<Cap, 4> kCaps = {{
    {"baseline", HWY_SSE4 | HWY_AVX2 | HWY_AVX3},
    {"sse4", HWY_AVX2 | HWY_AVX3},
    {"avx2", HWY_AVX3},
    {"avx512", 0},
}};

// The entry named by WEFT_SIMD; null when the variable is unset, empty or unknown.
const Cap* FindCap(absl::string_view value) {
  for (const Cap& cap : kCaps) {
    if (cap.name == value) return &cap;
  }
  return nullptr;
}

absl::string_view Environment() {
  const char* value = std::getenv("WEFT_SIMD");
  return value == nullptr ? "" : value;
}

}  // namespace

void ApplySimdCap() {
  static const bool applied = [] {
    const Cap* cap = FindCap(Environment());
    if (cap != nullptr && cap->disabled != 0) {
      // In Highway 1.0.3 a call of SupportedTargets() undoes DisableTargets(), so the set is replaced as a whole. The static
      // target keeps it from being empty, which would mean "as detected".
      const int64_t allowed = (hwy::SupportedTargets() & HWY_TARGETS & ~cap->disabled) | HWY_STATIC_TARGET;
      hwy::SetSupportedTargetsForTest(allowed);
      hwy::GetChosenTarget().Update(allowed);
    }
    return true;
  }();
  (void)applied;
}

absl::string_view SimdTarget() {
  ApplySimdCap();
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  // Better targets have lower bits; the static target is the fallback when none matches.
  return hwy::TargetName(usable == 0 ? HWY_STATIC_TARGET : usable & -usable);
}

absl::Status CheckSimdEnvironment() {
  const absl::string_view value = Environment();
  if (value.empty() || FindCap(value) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("environment variable WEFT_SIMD: found \"", value, "\", allowed: baseline, sse4, avx2, avx512"));
}

}  // namespace weft::kernels
