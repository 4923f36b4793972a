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

// Twelve chains cover the latency of the unit (four cycles at two a cycle need eight) and fit in sixteen registers. Each starts
// at a value of its own: a compiler would merge equal chains into one.
int64_t RunMultiplyAddsF32(int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999999f), b = hn::Set(d, 1e-6f);
  auto c0 = hn::Set(d, 1.0f), c1 = hn::Set(d, 2.0f), c2 = hn::Set(d, 3.0f), c3 = hn::Set(d, 4.0f), c4 = hn::Set(d, 5.0f),
       c5 = hn::Set(d, 6.0f), c6 = hn::Set(d, 7.0f), c7 = hn::Set(d, 8.0f), c8 = hn::Set(d, 9.0f), c9 = hn::Set(d, 10.0f),
       c10 = hn::Set(d, 11.0f), c11 = hn::Set(d, 12.0f);
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
    c10 = hn::MulAdd(c10, a, b);
    c11 = hn::MulAdd(c11, a, b);
  }
  const auto low = hn::Add(hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)), hn::Add(c4, c5));
  const auto sum = hn::Add(low, hn::Add(hn::Add(hn::Add(c6, c7), hn::Add(c8, c9)), hn::Add(c10, c11)));
  // The result is used, so that the compiler keeps the loop: the sum of positive numbers is never negative.
  return hn::GetLane(sum) < 0 ? 0 : 24 * rounds * static_cast<int64_t>(hn::Lanes(d));
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
