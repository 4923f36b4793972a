// Column sums in a fixed order, for the gradients of biases and of norm gains. Internal to autograd/ops.
#ifndef WEFT_AUTOGRAD_OPS_COLUMN_SUMS_H_
#define WEFT_AUTOGRAD_OPS_COLUMN_SUMS_H_

#include <algorithm>
#include <cstdint>

#include "autograd/base/parallel.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/ops/tiles.h"

namespace weft {

// sums[j] += the sum of column j of x [rows, columns], in a fixed order: blocks of 64 rows from the first on, each block summed
// from its first row on, the block sums added one after another. (Two levels keep the rounding of thousands of rows near that
// of 64.) Blocks of columns run in parallel when there is enough to do.
template <class T>
void AddColumnSums(const T* x, int64_t rows, int64_t columns, T* sums) {
  constexpr int64_t kColumns = 256, kRows = 64;
  const int64_t blocks = (columns + kColumns - 1) / kColumns;
  const auto block = [&](int64_t b) {
    const int64_t first = b * kColumns, width = std::min(kColumns, columns - first);
    T partial[kColumns];
    for (int64_t row = 0; row < rows; row += kRows) {
      kernels::Fill(T(0), partial, width);
      for (int64_t r = row; r < std::min(row + kRows, rows); ++r)
        kernels::AddScaled(T(1), x + r * columns + first, partial, width);
      kernels::AddScaled(T(1), partial, sums + first, width);
    }
  };
  if (rows * columns <= kTileElements) {
    for (int64_t b = 0; b < blocks; ++b) block(b);
  } else {
    ParallelFor(blocks, block);
  }
}

}  // namespace weft

#endif  // WEFT_AUTOGRAD_OPS_COLUMN_SUMS_H_
