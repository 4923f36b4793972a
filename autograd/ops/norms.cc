#include <algorithm>

#include "autograd/kernels/norm.h"
#include "autograd/ops.h"
#include "autograd/ops/column_sums.h"
#include "autograd/ops/tiles.h"

namespace weft {
namespace {

void CheckWidths(const char* op, Variable x, Variable gamma, Variable beta) {
  WEFT_CHECK(x.shape().rank() >= 1) << op << ": x is a scalar";
  const Shape width = {x.shape().width()};
  WEFT_CHECK(gamma.shape() == width && gamma.dtype() == x.dtype())
      << op << ": gamma " << gamma.dtype() << gamma.shape() << " does not fit x " << x.dtype() << x.shape();
  WEFT_CHECK(!beta.defined() || (beta.shape() == width && beta.dtype() == x.dtype()))
      << op << ": beta " << beta.dtype() << beta.shape() << " does not fit x " << x.dtype() << x.shape();
}

template <class T>
T* DataOrNull(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

int64_t RowsPerTile(int64_t width) { return std::max<int64_t>(1, kTileElements / std::max<int64_t>(1, width)); }

// Sums over rows by tiles: body(first, count, sums) adds into sums[0 .. width - 1], which is `total` itself when there is one
// tile, else the tile's own zeroed row of scratch; the rows are then added in the order of the tiles. total may be null.
template <class T, class F>
void ForTilesWithSums(Gradients& g, int64_t rows, int64_t rows_per_tile, int64_t width, T* total, F&& body) {
  const int64_t tiles = (rows + rows_per_tile - 1) / rows_per_tile;
  if (total == nullptr || tiles <= 1) {
    ForTiles(rows, rows_per_tile, [&](int64_t first, int64_t count) { body(first, count, total); });
    return;
  }
  const Tensor partial = g.Scratch(DTypeOf<T>::value, {tiles, width});
  ForTiles(rows, rows_per_tile, [&](int64_t first, int64_t count) {
    T* const sums = partial.data<T>() + first / rows_per_tile * width;
    kernels::Fill(T(0), sums, width);
    body(first, count, sums);
  });
  AddColumnSums(partial.data<T>(), tiles, width, total);
}

}  // namespace

Variable LayerNorm(Variable x, Variable gamma, Variable beta, double eps) {
  Op op("layer_norm", {x, gamma, beta});
  CheckWidths("layer_norm", x, gamma, beta);
  const int64_t rows = x.shape().rows(), width = x.shape().width();
  Variable y = op.Output(x.dtype(), x.shape());
  const Tensor mean = op.tape().Allocate(DType::kF64, {rows}), rstd = op.tape().Allocate(DType::kF64, {rows});
  DispatchFloat("layer_norm", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* xs = x.value().data<T>();
    const T* gammas = gamma.value().data<T>();
    const T* betas = beta.defined() ? beta.value().data<T>() : nullptr;
    T* ys = y.value().data<T>();
    ForRows(rows, width, [&](int64_t first, int64_t count) {
      kernels::LayerNormForward(xs + first * width, gammas, betas, ys + first * width, mean.data<double>() + first,
                                rstd.data<double>() + first, count, width, eps);
    });
  });
  op.Backward([=](Gradients& g) {
    DispatchFloat("layer_norm", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* xs = x.value().data<T>();
      const T* gammas = gamma.value().data<T>();
      const T* dys = g.Of(y).data<T>();
      T* const dx = DataOrNull<T>(g.Into(x));
      T* const dgamma = DataOrNull<T>(g.Into(gamma));
      T* const dbeta = DataOrNull<T>(g.Into(beta));
      // The kernel's sums go side by side: those of gamma, then those of beta.
      const bool any = dgamma != nullptr || dbeta != nullptr;
      const Tensor both = any ? g.Scratch(DTypeOf<T>::value, {2, width}) : Tensor();
      if (any) both.Zero();
      ForTilesWithSums(g, rows, RowsPerTile(width), 2 * width, DataOrNull<T>(both), [&](int64_t first, int64_t count, T* sums) {
        kernels::LayerNormBackward(xs + first * width, gammas, mean.data<double>() + first, rstd.data<double>() + first,
                                   dys + first * width, dx ? dx + first * width : nullptr, dgamma ? sums : nullptr,
                                   dbeta ? sums + width : nullptr, count, width);
      });
      if (dgamma) kernels::AddScaled(T(1), both.data<T>(), dgamma, width);
      if (dbeta) kernels::AddScaled(T(1), both.data<T>() + width, dbeta, width);
    });
  });
  return y;
}

Variable RmsNorm(Variable x, Variable gamma, double eps) {
  Op op("rms_norm", {x, gamma});
  CheckWidths("rms_norm", x, gamma, Variable());
  const int64_t rows = x.shape().rows(), width = x.shape().width();
  Variable y = op.Output(x.dtype(), x.shape());
  const Tensor rstd = op.tape().Allocate(DType::kF64, {rows});
  DispatchFloat("rms_norm", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* xs = x.value().data<T>();
    const T* gammas = gamma.value().data<T>();
    T* ys = y.value().data<T>();
    ForRows(rows, width, [&](int64_t first, int64_t count) {
      kernels::RmsNormForward(xs + first * width, gammas, ys + first * width, rstd.data<double>() + first, count, width, eps);
    });
  });
  op.Backward([=](Gradients& g) {
    DispatchFloat("rms_norm", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* xs = x.value().data<T>();
      const T* gammas = gamma.value().data<T>();
      const T* dys = g.Of(y).data<T>();
      T* const dx = DataOrNull<T>(g.Into(x));
      T* const dgamma = DataOrNull<T>(g.Into(gamma));
      ForTilesWithSums(g, rows, RowsPerTile(width), width, dgamma, [&](int64_t first, int64_t count, T* sums) {
        kernels::RmsNormBackward(xs + first * width, gammas, rstd.data<double>() + first, dys + first * width,
                                 dx ? dx + first * width : nullptr, sums, count, width);
      });
    });
  });
  return y;
}

}  // namespace weft
