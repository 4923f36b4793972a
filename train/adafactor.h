// Adafactor (Shazeer and Stern 2018, algorithm 4): Adam's division by the root of the second moment, which is kept as two
// vectors for a matrix, of its rows and of its columns, so that the state of [n, m] is n + m numbers. Here without momentum,
// without the paper's relative step and parameter scale: the rate comes from the schedule. At update t = 1, 2, ... of a
// parameter [n, m] (of more dimensions: all but the last are rows), with g the gradient, beta = 1 - t^-0.8, epsilon = 1e-30, d
// = 1:
//   row_i    = beta row_i + (1 - beta) (mean over j of g_ij^2 + epsilon),   column_j likewise over i
//   u_ij     = g_ij / sqrt(row_i column_j / mean of row)
//   p_ij     = (1 - lr weight_decay) p_ij - lr u_ij / max(1, RMS(u) / d)
// A vector keeps its whole second moment, which is `column` of a matrix with one row, and no `row`. Owns that state. The bits
// depend on its inputs only: sums run over fixed ranges, joined in their order. Step allocates nothing. Not thread-safe; Step
// runs on the enclosing Workers.
#ifndef WEFT_TRAIN_ADAFACTOR_H_
#define WEFT_TRAIN_ADAFACTOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "autograd/tensor.h"
#include "layers/parameters.h"
#include "train/parameter_groups.h"

namespace weft {

class Adafactor {
 public:
  // Zeroed state for `parameters`, frozen ones included. REQUIRES: parameters are allocated; a rule for each.
  Adafactor(const Parameters& parameters, const std::vector<ParameterRule>& rules);

  // One update of all that is not frozen, with the gradient grad_scale * gradients at rate lr * lr_scale. updates[i] = t of
  // parameter i, counted from 1. REQUIRES: slabs of the layout of the constructor's parameters. False if a parameter became NaN
  // or infinite.
  bool Step(const Tensor& values, const Tensor& gradients, double grad_scale, double lr, absl::Span<const double> updates);

  // The state of the parameters, in order: "row/NAME" and "column/NAME", or "v/NAME" for a vector. Writing restores it.
  std::vector<NamedTensor> state() const;

 private:
  struct Matrix {  // a parameter that is not frozen
    int parameter;
    int64_t rows, columns, offset;  // offset of its elements in the parameters' slab
    bool factored;                  // has `row`
    int64_t row, column;            // where its vectors start in state_
    int64_t factor;                 // where its column factors start in factors_
    int64_t first_tile, tiles;
    int64_t sums;               // where the column sums of its first tile start in sums_
    double row_mean, step = 0;  // of this update: mean of `row`; lr / max(1, RMS(u) / d)
  };
  struct Tile {
    int matrix;
    int64_t first_row, rows;
  };

  template <class T>
  bool Run(const Tensor& values, const Tensor& gradients, double grad_scale, double lr, absl::Span<const double> updates);
  template <class T>
  void AddUp(const Matrix& matrix, const Tile& tile, const T* gradients, double grad_scale, double beta, double* sums);
  template <class T>
  void JoinColumns(double grad_scale, double beta, Matrix* matrix);
  template <class T>
  double RowFactor(const Matrix& matrix, int64_t row) const;

  std::vector<ParameterRule> rules_;
  std::vector<Matrix> matrices_;
  std::vector<Tile> tiles_;
  std::vector<NamedTensor> names_;  // views of state_
  Slab state_, factors_;
  std::vector<double> sums_;       // squares by column, for each tile
  std::vector<double> tile_sums_;  // of u^2, for each tile
  std::vector<char> tile_finite_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_ADAFACTOR_H_
