// Which SIMD instruction set the kernels run with. The choice is made once per process, at the first kernel call: the best of
// the compiled ones that the processor has, at most the one named by the environment variable WEFT_SIMD
// (baseline | sse4 | avx2 | avx512). Later changes of the variable have no effect. Thread-safe.
#ifndef WEFT_AUTOGRAD_KERNELS_SIMD_H_
#define WEFT_AUTOGRAD_KERNELS_SIMD_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weft::kernels {

// The instruction set in use, by Highway's name: "SCALAR" (any x86-64), "SSE4", "AVX2", "AVX3" (AVX-512), "NEON".
absl::string_view SimdTarget();

// InvalidArgument when WEFT_SIMD is set to an unknown value (kernels then ignore it). For a program's start.
absl::Status CheckSimdEnvironment();

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_SIMD_H_
