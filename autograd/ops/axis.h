// A tensor seen along one axis: [outer, size, inner], the way most ops over an axis walk it. Internal to autograd/ops.
#ifndef WEFT_AUTOGRAD_OPS_AXIS_H_
#define WEFT_AUTOGRAD_OPS_AXIS_H_

#include <cstdint>

#include "autograd/tensor.h"

namespace weft {

struct AlongAxis {
  // REQUIRES: -rank <= axis < rank; the message of a failure names `op`.
  AlongAxis(const char* op, const Shape& shape, int axis_or_negative) {
    WEFT_CHECK(-shape.rank() <= axis_or_negative && axis_or_negative < shape.rank())
        << op << ": axis " << axis_or_negative << " of shape " << shape;
    axis = axis_or_negative < 0 ? axis_or_negative + shape.rank() : axis_or_negative;
    size = shape[axis];
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }

  int axis = 0;  // 0 .. rank - 1
  int64_t outer = 1, size = 1, inner = 1;
};

}  // namespace weft

#endif  // WEFT_AUTOGRAD_OPS_AXIS_H_
