// Inverted dropout (Srivastava et al. 2014, section 10) from counter-based random numbers: whether an element is kept is a pure
// function of (key, element number), so forward and backward agree without a stored mask, and no split into ranges or threads
// changes it. Single-threaded, no allocation, no state. The float versions use Highway with run-time dispatch, the double
// versions are plain loops over RandomKey::Word.
#ifndef WEFT_AUTOGRAD_KERNELS_DROPOUT_H_
#define WEFT_AUTOGRAD_KERNELS_DROPOUT_H_

#include <cstdint>

namespace weft::kernels {

// n words of the Philox4x32-10 blocks first_block, first_block + 1, ... (the last may be cut): bit for bit the words of
// RandomKey{key}.Block(counter), autograd/base/random.h.
void DropoutWords(uint64_t key, uint64_t first_block, int64_t n, uint32_t* words);

// y[i] = x[i] / (1 - p) where word first_element + i of the key's list is at least floor(p 2^32), else 0. p >= 1: zeros; p <=
// 0: a copy. first_element is any number. y may be x.
void DropoutForward(uint64_t key, uint64_t first_element, double p, const float* x, float* y, int64_t n);
void DropoutForward(uint64_t key, uint64_t first_element, double p, const double* x, double* y, int64_t n);

// dx[i] += dy[i] / (1 - p) where the element was kept.
void DropoutBackward(uint64_t key, uint64_t first_element, double p, const float* dy, float* dx, int64_t n);
void DropoutBackward(uint64_t key, uint64_t first_element, double p, const double* dy, double* dx, int64_t n);

}  // namespace weft::kernels

#endif  // WEFT_AUTOGRAD_KERNELS_DROPOUT_H_
