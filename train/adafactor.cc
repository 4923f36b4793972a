#include "train/adafactor.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "autograd/base/parallel.h"
#include "autograd/kernels/optimizer.h"
#include "autograd/kernels/reduce.h"

namespace weft {
namespace {

constexpr double kEpsilon = 1e-30, kClip = 1.0, kDecayExponent = -0.8;
// Both fix the rounding: a matrix is cut into at most so many tiles, each of at least so many elements.
constexpr int64_t kMaxTiles = 16, kTileElements = 16384;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Adafactor::Adafactor(const Parameters& parameters, const std::vector<ParameterRule>& rules) : rules_(rules) {
  int64_t state = 0, factors = 0, sums = 0;
  for (size_t i = 0; i < rules.size(); ++i) {
    const ParameterInfo& info = parameters.list()[i];
    Matrix m{};
    m.parameter = static_cast<int>(i);
    m.factored = info.shape.rank() >= 2;
    m.columns = info.shape[info.shape.rank() - 1];
    m.rows = m.columns == 0 ? 0 : info.shape.elements() / m.columns;
    m.offset = info.offset;
    m.row = state;
    m.column = state + (m.factored ? m.rows : 0);
    state = m.column + m.columns;
    // A shape only, until the state is allocated.
    if (m.factored) names_.push_back({absl::StrCat("row/", info.name), Tensor(nullptr, parameters.dtype(), {m.rows})});
    names_.push_back(
        {absl::StrCat(m.factored ? "column/" : "v/", info.name), Tensor(nullptr, parameters.dtype(), {m.columns})});
    if (rules[i].frozen || info.shape.elements() == 0) continue;
    m.factor = factors;
    factors += m.columns;
    m.first_tile = static_cast<int64_t>(tiles_.size());
    m.sums = sums;
    const int64_t rows = std::max(CeilDiv(m.rows, kMaxTiles), CeilDiv(kTileElements, m.columns));
    for (int64_t first = 0; first < m.rows; first += rows) {
      tiles_.push_back({static_cast<int>(matrices_.size()), first, std::min(rows, m.rows - first)});
    }
    m.tiles = static_cast<int64_t>(tiles_.size()) - m.first_tile;
    sums += m.tiles * m.columns;
    matrices_.push_back(m);
  }
  state_ = Slab(parameters.dtype(), state);
  factors_ = Slab(parameters.dtype(), factors);
  sums_.resize(static_cast<size_t>(sums));
  tile_sums_.resize(tiles_.size());
  tile_finite_.resize(tiles_.size());
  int64_t at = 0;
  for (NamedTensor& named : names_) {
    const int64_t elements = named.value.elements();
    named.value = state_.tensor().Rows(at, elements);
    at += elements;
  }
}

std::vector<NamedTensor> Adafactor::state() const { return names_; }

bool Adafactor::Step(const Tensor& values, const Tensor& gradients, double grad_scale, double lr,
                     absl::Span<const double> updates) {
  return DispatchFloat("Adafactor", values.dtype(),
                       [&](auto type) { return Run<decltype(type)>(values, gradients, grad_scale, lr, updates); });
}

// The rows of a tile: their part of `row`, and the sums of squares by column.
template <class T>
void Adafactor::AddUp(const Matrix& matrix, const Tile& tile, const T* gradients, double grad_scale, double beta,
                      double* sums) {
  T* row = state_.tensor().data<T>() + matrix.row;
  std::fill_n(sums, matrix.columns, 0.0);
  for (int64_t i = tile.first_row; i < tile.first_row + tile.rows; ++i) {
    const T* g = gradients + matrix.offset + i * matrix.columns;
    kernels::AddSquares(g, sums, matrix.columns);
    if (!matrix.factored) continue;
    const double mean = grad_scale * grad_scale * kernels::SumSquares(g, matrix.columns) / static_cast<double>(matrix.columns);
    row[i] = static_cast<T>(beta * row[i] + (1 - beta) * (mean + kEpsilon));
  }
}

// `column` and its factors 1 / sqrt(column), and the mean of `row`.
template <class T>
void Adafactor::JoinColumns(double grad_scale, double beta, Matrix* matrix) {
  T* column = state_.tensor().data<T>() + matrix->column;
  T* factor = factors_.tensor().data<T>() + matrix->factor;
  const double scale = grad_scale * grad_scale / static_cast<double>(matrix->rows);
  for (int64_t j = 0; j < matrix->columns; ++j) {
    double sum = 0;
    for (int64_t tile = 0; tile < matrix->tiles; ++tile) sum += sums_[matrix->sums + tile * matrix->columns + j];
    column[j] = static_cast<T>(beta * column[j] + (1 - beta) * (scale * sum + kEpsilon));
    factor[j] = static_cast<T>(1 / std::sqrt(static_cast<double>(column[j])));
  }
  matrix->row_mean =
      matrix->factored ? kernels::Sum(state_.tensor().data<T>() + matrix->row, matrix->rows) / static_cast<double>(matrix->rows)
                       : 1;
}

template <class T>
double Adafactor::RowFactor(const Matrix& matrix, int64_t row) const {
  return matrix.factored ? std::sqrt(matrix.row_mean / state_.tensor().data<T>()[matrix.row + row]) : 1;
}

template <class T>
bool Adafactor::Run(const Tensor& values, const Tensor& gradients, double grad_scale, double lr,
                    absl::Span<const double> updates) {
  const T* g = gradients.data<T>();
  T* p = values.data<T>();
  const auto tiles = static_cast<int64_t>(tiles_.size());
  const auto beta = [&](const Matrix& m) { return 1 - std::pow(updates[m.parameter], kDecayExponent); };
  ParallelFor(tiles, [&](int64_t i) {
    const Matrix& m = matrices_[tiles_[i].matrix];
    AddUp(m, tiles_[i], g, grad_scale, beta(m), &sums_[m.sums + (i - m.first_tile) * m.columns]);
  });
  ParallelFor(static_cast<int64_t>(matrices_.size()),
              [&](int64_t i) { JoinColumns<T>(grad_scale, beta(matrices_[i]), &matrices_[i]); });
  ParallelFor(tiles, [&](int64_t i) {
    const Tile& tile = tiles_[i];
    const Matrix& m = matrices_[tile.matrix];
    const T* factors = factors_.tensor().data<T>() + m.factor;
    tile_sums_[i] = 0;
    for (int64_t row = tile.first_row; row < tile.first_row + tile.rows; ++row) {
      const double factor = grad_scale * RowFactor<T>(m, row);
      tile_sums_[i] += factor * factor * kernels::SumSquaredProducts(factors, g + m.offset + row * m.columns, m.columns);
    }
  });
  for (Matrix& m : matrices_) {
    double sum = 0;
    for (int64_t tile = 0; tile < m.tiles; ++tile) sum += tile_sums_[m.first_tile + tile];
    const double rms = std::sqrt(sum / static_cast<double>(m.rows * m.columns));
    m.step = lr * rules_[m.parameter].lr_scale / std::max(1.0, rms / kClip);
  }
  ParallelFor(tiles, [&](int64_t i) {
    const Tile& tile = tiles_[i];
    const Matrix& m = matrices_[tile.matrix];
    const ParameterRule& rule = rules_[m.parameter];
    const double keep = 1 - lr * rule.lr_scale * rule.weight_decay;
    const T* factors = factors_.tensor().data<T>() + m.factor;
    tile_finite_[i] = 1;
    for (int64_t row = tile.first_row; row < tile.first_row + tile.rows; ++row) {
      const int64_t at = m.offset + row * m.columns;
      kernels::ScaledStep(keep, m.step * grad_scale * RowFactor<T>(m, row), factors, g + at, p + at, m.columns);
      if (!kernels::AllFinite(p + at, m.columns)) tile_finite_[i] = 0;
    }
  });
  return std::find(tile_finite_.begin(), tile_finite_.end(), 0) == tile_finite_.end();
}

}  // namespace weft
