// MatMul and Linear against plain loops, in both dtypes, with their edges.
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "tests/autograd/numbers.h"

namespace weft {
namespace {

// One product by the definition; element (i, j) of a stored transposed matrix is at (j, i).
std::vector<double> PlainProduct(const double* a, const double* b, bool ta, bool tb, int64_t m, int64_t k, int64_t n) {
  std::vector<double> y(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) y[i * n + j] += (ta ? a[l * m + i] : a[i * k + l]) * (tb ? b[j * k + l] : b[l * n + j]);
    }
  }
  return y;
}

// f32 against f64 over sums of k products of normal numbers: each rounding is below 2^-24 of a partial sum, and |sums| stay
// below 6 sqrt(k), so k * 2^-24 * 6 sqrt(k) bounds it.
double Tolerance(DType dtype, int64_t k) {
  return (dtype == DType::kF32 ? 0x1p-24 : 0x1p-53) * 6 * (k + 1) * std::sqrt(k + 1.0);
}

TEST(MatMulTest, MatchesPlainLoops) {
  const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {1, 9, 17}, {33, 20, 1}, {16, 64, 16}, {50, 70, 90}};
  for (DType dtype : {DType::kF32, DType::kF64}) {
    for (const auto& [m, k, n] : sizes) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        const bool ta = transposes & 1, tb = transposes & 2;
        const Numbers a(dtype, ta ? Shape{k, m} : Shape{m, k}, 1), b(dtype, tb ? Shape{n, k} : Shape{k, n}, 2);
        Tape tape;
        const Variable y = MatMul(tape.Constant(a), tape.Constant(b), ta, tb);
        EXPECT_EQ(y.shape(), (Shape{m, n}));
        const auto expected = PlainProduct(ToDoubles(a).data(), ToDoubles(b).data(), ta, tb, m, k, n);
        EXPECT_LE(LargestDifference(ToDoubles(y.value()), expected), Tolerance(dtype, k)) << m << " " << k << " " << n;
      }
    }
  }
}

TEST(MatMulTest, StacksAndSharedOperandsMatchPlainLoops) {
  const int64_t batch = 6, m = 3, k = 5, n = 4;
  for (int transposes = 0; transposes < 4; ++transposes) {
    const bool ta = transposes & 1, tb = transposes & 2;
    for (const auto& [shared_a, shared_b] : {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
      const int64_t a0 = ta ? k : m, a1 = ta ? m : k, b0 = tb ? n : k, b1 = tb ? k : n;
      const Numbers a(DType::kF64, shared_a ? Shape{a0, a1} : Shape{2, 3, a0, a1}, 1);
      const Numbers b(DType::kF64, shared_b ? Shape{b0, b1} : Shape{2, 3, b0, b1}, 2);
      Tape tape;
      const Variable y = MatMul(tape.Constant(a), tape.Constant(b), ta, tb);
      ASSERT_EQ(y.shape(), (Shape{2, 3, m, n}));
      std::vector<double> expected;
      for (int64_t i = 0; i < batch; ++i) {
        const auto one = PlainProduct(a.tensor().data<double>() + (shared_a ? 0 : i * m * k),
                                      b.tensor().data<double>() + (shared_b ? 0 : i * k * n), ta, tb, m, k, n);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      EXPECT_LE(LargestDifference(ToDoubles(y.value()), expected), Tolerance(DType::kF64, k));
    }
  }
}

TEST(MatMulTest, GradientsMatchDifferences) { ExpectGradientsOf("matmul"); }

// Both dtypes, over a stack large enough to be cut into tiles.
TEST(MatMulTest, SinglePrecisionGradientsMatchDouble) {
  std::vector<std::vector<double>> da, db;
  for (DType dtype : {DType::kF64, DType::kF32}) {
    const Numbers a(dtype, {40, 16, 24}, 1), b(dtype, {40, 24, 8}, 2), up(dtype, {40, 16, 8}, 3);
    Tape tape;
    const Variable va = tape.Input(a), vb = tape.Input(b);
    tape.Backward(MatMul(va, vb), up);
    da.push_back(ToDoubles(tape.Gradient(va)));
    db.push_back(ToDoubles(tape.Gradient(vb)));
  }
  // The rounded inputs add a relative 2^-23 a product, the same size as the bound of the sums.
  EXPECT_LE(LargestDifference(da[0], da[1]), 4 * Tolerance(DType::kF32, 8));
  EXPECT_LE(LargestDifference(db[0], db[1]), 4 * Tolerance(DType::kF32, 16));
}

TEST(MatMulTest, EmptyDimensions) {
  const Numbers a(DType::kF32, {0, 3}, 1), b(DType::kF32, {3, 2}, 2), c(DType::kF32, {2, 0}, 3), d(DType::kF32, {0, 4}, 4);
  Tape tape;
  const Variable va = tape.Input(a), vb = tape.Input(b);
  const Variable y = MatMul(va, vb);
  EXPECT_EQ(y.shape(), (Shape{0, 2}));
  tape.Backward(y, Numbers(DType::kF32, {0, 2}, 5));
  EXPECT_EQ(ToDoubles(tape.Gradient(vb)), std::vector<double>(6, 0.0));
  tape.Reset();
  EXPECT_EQ(ToDoubles(MatMul(tape.Constant(c), tape.Constant(d)).value()), std::vector<double>(8, 0.0));  // a sum over nothing
}

TEST(MatMulDeathTest, ShapesThatDoNotFitAreNamed) {
  const Numbers a(DType::kF32, {2, 3}, 1), b(DType::kF32, {2, 3}, 2), c(DType::kF32, {2, 2, 3}, 3),
      d(DType::kF32, {3, 3, 4}, 4), e(DType::kF32, {3}, 5), f(DType::kF64, {3, 3}, 5);
  Tape tape;
  const Variable va = tape.Constant(a), vb = tape.Constant(b), vc = tape.Constant(c), vd = tape.Constant(d),
                 ve = tape.Constant(e), vf = tape.Constant(f);
  EXPECT_DEATH(MatMul(va, vb), "matmul: \\[2, 3\\] x \\[2, 3\\]: inner dimensions differ");
  EXPECT_DEATH(MatMul(vc, vd), "matmul: \\[2, 2, 3\\] x \\[3, 3, 4\\]: leading dimensions differ");
  EXPECT_DEATH(MatMul(va, ve), "matmul: \\[2, 3\\] x \\[3\\]: needs rank 2");
  EXPECT_DEATH(MatMul(va, vf), "matmul: f32\\[2, 3\\] x f64\\[3, 3\\]");
}

TEST(LinearTest, MatchesPlainLoops) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const Numbers x(dtype, {2, 3, 5}, 1), w(dtype, {7, 5}, 2), b(dtype, {7}, 3);
    auto expected = PlainProduct(ToDoubles(x).data(), ToDoubles(w).data(), false, true, 6, 5, 7);
    Tape tape;
    const Variable vx = tape.Constant(x), vw = tape.Constant(w);
    const Variable without = Linear(vx, vw), with = Linear(vx, vw, tape.Constant(b));
    EXPECT_EQ(with.shape(), (Shape{2, 3, 7}));
    EXPECT_LE(LargestDifference(ToDoubles(without.value()), expected), Tolerance(dtype, 5));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += b.tensor().At(i % 7);
    EXPECT_LE(LargestDifference(ToDoubles(with.value()), expected), Tolerance(dtype, 6));
  }
}

TEST(LinearTest, GradientsMatchDifferences) { ExpectGradientsOf("linear"); }

TEST(LinearTest, BiasGradientSumsThousandsOfRows) {
  const int64_t rows = 3000, out = 300;  // several blocks of rows and of columns, the last ones short
  const Numbers x(DType::kF32, {rows, 2}, 1), w(DType::kF32, {out, 2}, 2), b(DType::kF32, {out}, 3),
      up(DType::kF32, {rows, out}, 4);
  Tape tape;
  const Variable vb = tape.Input(b);
  tape.Backward(Linear(tape.Constant(x), tape.Constant(w), vb), up);
  std::vector<double> expected(out);
  for (int64_t i = 0; i < rows * out; ++i) expected[i % out] += up.tensor().At(i);
  // 64 roundings in a block, 47 between blocks, of partial sums below 6 sqrt(3000).
  EXPECT_LE(LargestDifference(ToDoubles(tape.Gradient(vb)), expected), (64 + 47) * 0x1p-24 * 6 * std::sqrt(3000.0));
}

TEST(LinearTest, NoRows) {
  const Numbers x(DType::kF32, {0, 3}, 1), w(DType::kF32, {2, 3}, 2), b(DType::kF32, {2}, 3);
  Tape tape;
  const Variable vx = tape.Input(x), vw = tape.Input(w), vb = tape.Input(b);
  const Variable y = Linear(vx, vw, vb);
  EXPECT_EQ(y.shape(), (Shape{0, 2}));
  tape.Backward(y, Numbers(DType::kF32, {0, 2}, 4));
  EXPECT_EQ(ToDoubles(tape.Gradient(vw)), std::vector<double>(6, 0.0));
  EXPECT_EQ(ToDoubles(tape.Gradient(vb)), std::vector<double>(2, 0.0));
}

TEST(LinearTest, ARowDoesNotDependOnItsNeighbours) {
  const Numbers x(DType::kF32, {37, 65}, 1), w(DType::kF32, {50, 65}, 2), b(DType::kF32, {50}, 3);
  Tape tape;
  const Variable vw = tape.Constant(w), vb = tape.Constant(b);
  const Variable all = Linear(tape.Constant(x), vw, vb);
  for (int64_t row : {0, 5, 36}) {
    const Variable one = Linear(tape.Constant(x.tensor().Rows(row, 1)), vw, vb);
    EXPECT_EQ(ToBytes(one.value()), ToBytes(all.value().Rows(row, 1))) << row;
  }
}

TEST(LinearTest, SameBitsForAnyNumberOfThreads) {
  const Numbers x(DType::kF32, {700, 200}, 1), w(DType::kF32, {300, 200}, 2), b(DType::kF32, {300}, 3),
      up(DType::kF32, {700, 300}, 4);
  std::vector<std::vector<char>> results;
  for (int threads : {1, 2, 4}) {
    Workers(threads).Run([&] {
      Tape tape;
      const Variable vx = tape.Input(x), vw = tape.Input(w), vb = tape.Input(b);
      const Variable y = Linear(vx, vw, vb);
      tape.Backward(y, up);
      std::vector<char> bytes;
      for (const Tensor& t : {y.value(), tape.Gradient(vx), tape.Gradient(vw), tape.Gradient(vb)}) {
        const std::vector<char> more = ToBytes(t);
        bytes.insert(bytes.end(), more.begin(), more.end());
      }
      results.push_back(bytes);
    });
  }
  EXPECT_TRUE(results[0] == results[1]);
  EXPECT_TRUE(results[0] == results[2]);
}

TEST(LinearDeathTest, ShapesThatDoNotFitAreNamed) {
  const Numbers x(DType::kF32, {2, 3}, 1), w(DType::kF32, {5, 4}, 2), w3(DType::kF32, {5, 3}, 2), b(DType::kF32, {4}, 3);
  Tape tape;
  const Variable vx = tape.Constant(x), vw = tape.Constant(w), vw3 = tape.Constant(w3), vb = tape.Constant(b);
  EXPECT_DEATH(Linear(vx, vw), "linear: x f32\\[2, 3\\] does not fit weight f32\\[5, 4\\]");
  EXPECT_DEATH(Linear(vx, vw3, vb), "linear: bias f32\\[4\\] does not fit weight f32\\[5, 3\\]");
}

}  // namespace
}  // namespace weft
