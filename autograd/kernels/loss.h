// Softmax and cross entropy in one pass over rows of logits, with label smoothing (Szegedy et al. 2016, section 7). Single-
// threaded; rows are independent of each other, sums are kept in double. The float version uses Highway with run-time dispatch,
// the double version is a plain loop. No allocation, no state.
#ifndef WEFT_AUTOGRAD_KERNELS_LOSS_H_
#define WEFT_AUTOGRAD_KERNELS_LOSS_H_

#include <cstdint>

namespace weft::kernels {

// For each of `rows` rows of `width` logits, `ld` elements apart, with p = softmax(row) and the target distribution q =
// (1 - smoothing) [class = target] + smoothing / width:
//   losses[row] = -sum(q ln p), in nats; 0 where the target is `ignore`;
//   argmax[row], unless argmax is null, = the class of the largest logit (first of equals, first NaN), ignored rows included;
//   when `gradient`: the logits of the row become p - q, the gradient of its loss (zeros where ignored); else they are
//   untouched.
// A NaN or +inf logit makes its row's loss NaN; a row of only -inf has p = 0 and an infinite loss.
// REQUIRES: width > 0, ld >= width, each target equal to `ignore` or in [0, width), 0 <= smoothing <= 1.
void CrossEntropyRows(float* logits, int64_t ld, const int32_t* targets, int32_t ignore, int64_t rows, int64_t width,
                      double smoothing, bool gradient, double* losses, int32_t* argmax);
void CrossEntropyRows(double* logits, int64_t ld, const int32_t* targets, int32_t ignore, int64_t rows, int64_t width,
                      double smoothing, bool gradient, double* losses, int32_t* argmax);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_LOSS_H_
