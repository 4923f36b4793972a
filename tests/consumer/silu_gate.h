// SiluGate: an op of one's own, silu(a) * b in one pass: the gate of a gated feed-forward layer.
#ifndef CONSUMER_SILU_GATE_H_
#define CONSUMER_SILU_GATE_H_

#include "autograd/tape.h"

namespace consumer {

// y = silu(a) * b with silu(z) = z * sigmoid(z) (Shazeer 2020, "GLU Variants Improve Transformer", eq. 6), element by element.
// a and b have one shape and one dtype, f32 or f64; so has y. Keeps nothing beyond a and b.
weft::Variable SiluGate(weft::Variable a, weft::Variable b);

}  // namespace consumer

#endif  // CONSUMER_SILU_GATE_H_
