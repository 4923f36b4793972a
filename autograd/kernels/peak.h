// The limit that benchmarks compare with: how many f32 multiply-adds this machine does a second when nothing waits for memory.
#ifndef WEFT_AUTOGRAD_KERNELS_PEAK_H_
#define WEFT_AUTOGRAD_KERNELS_PEAK_H_

#include <cstdint>

namespace weft::kernels {

// Runs `rounds` of independent fused multiply-adds in registers on the calling thread and returns the floating-point operations
// done (two per multiply-add). The caller measures the time.
int64_t RunMultiplyAdds(int64_t rounds);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_PEAK_H_
