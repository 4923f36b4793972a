// Internal to kernels/: include this before any Highway header. Sets the list of compiled instruction sets in one place, and
// holds the dispatch macro that honours WEFT_SIMD:
//   HWY_EXPORT(AddImpl);
//   void Add(...) { WEFT_DISPATCH(AddImpl)(...); }
// A file that says `#define HWY_TARGET_INCLUDE "autograd/kernels/add.cc"` is compiled once a set. SCALAR (one lane, runs on any
// x86-64) lacks the shuffles: wrap code that needs them in `#if HWY_TARGET != HWY_SCALAR`.
#ifndef WEFT_AUTOGRAD_KERNELS_TARGETS_H_
#define WEFT_AUTOGRAD_KERNELS_TARGETS_H_

#ifdef HIGHWAY_HWY_DETECT_TARGETS_H_
#error "include autograd/kernels/targets.h before Highway's headers"
#endif

// Leaves SCALAR, SSE4, AVX2 and AVX3 on x86, NEON on Arm: enough for speed, and few enough to keep the compile time down.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

namespace weft::kernels {

// Applies the cap of WEFT_SIMD to Highway's dispatch; does something the first time only.
void ApplySimdCap();

}  // namespace weft::kernels

// HWY_DYNAMIC_DISPATCH under the cap. The check of an initialised static costs about a nanosecond.
#define WEFT_DISPATCH(FUNCTION) (::weft::kernels::ApplySimdCap(), HWY_DYNAMIC_DISPATCH(FUNCTION))

#endif  // WEFT_AUTOGRAD_KERNELS_TARGETS_H_
