// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/peak.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/peak.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Ten chains cover the latency of the unit (four cycles at two a cycle need eight) and fit in sixteen registers.
int64_t RunMultiplyAddsF32(int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999999f), b = hn::Set(d, 1e-6f);
  auto c0 = hn::Set(d, 1.0f), c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0, c6 = c0, c7 = c0, c8 = c0, c9 = c0;
  for (int64_t i = 0; i < rounds; ++i) {
    c0 = hn::MulAdd(c0, a, b);
    c1 = hn::MulAdd(c1, a, b);
    c2 = hn::MulAdd(c2, a, b);
    c3 = hn::MulAdd(c3, a, b);
    c4 = hn::MulAdd(c4, a, b);
    c5 = hn::MulAdd(c5, a, b);
    c6 = hn::MulAdd(c6, a, b);
    c7 = hn::MulAdd(c7, a, b);
    c8 = hn::MulAdd(c8, a, b);
    c9 = hn::MulAdd(c9, a, b);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)), hn::Add(hn::Add(hn::Add(c4, c5), hn::Add(c6, c7)), hn::Add(c8, c9)));
  // The result is used, so that the compiler keeps the loop: the sum of positive numbers is never negative.
  return hn::GetLane(sum) < 0 ? 0 : 20 * rounds * static_cast<int64_t>(hn::Lanes(d));
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::kernels {

HWY_EXPORT(RunMultiplyAddsF32);

int64_t RunMultiplyAdds(int64_t rounds) { return WEFT_DISPATCH(RunMultiplyAddsF32)(rounds); }

}  // namespace weft::kernels
#endif  // HWY_ONCE
