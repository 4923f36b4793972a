// Pool: values by hand, ties, empty sequences and gradients.
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "tests/autograd/numbers.h"

namespace weft {
namespace {

// Rows 0-1, an empty one, rows 3-5; row 2 belongs to none.
constexpr Sequence kRagged[] = {{0, 2, 0, 0}, {2, 0, 0, 1}, {3, 3, 0, 2}};

std::vector<double> PoolOf(DType dtype, Pooling pooling) {
  const Numbers x(dtype, {6, 2}, {1, 20, 3, 10, 99, 99, 4, -4, 8, -6, 6, -5});
  Tape tape(Tape::Mode::kInference);
  const Variable y = Pool(tape.Constant(x), kRagged, pooling);
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  return ToDoubles(y.value());
}

TEST(PoolTest, ValuesByHand) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    EXPECT_EQ(PoolOf(dtype, Pooling::kMean), (std::vector<double>{2, 15, 0, 0, 6, -5}));
    EXPECT_EQ(PoolOf(dtype, Pooling::kMax), (std::vector<double>{3, 20, 0, 0, 8, -4}));
    EXPECT_EQ(PoolOf(dtype, Pooling::kFirst), (std::vector<double>{1, 20, 0, 0, 4, -4}));
    EXPECT_EQ(PoolOf(dtype, Pooling::kLast), (std::vector<double>{3, 10, 0, 0, 6, -5}));
  }
}

TEST(PoolTest, GradientsMatchDifferences) { ExpectGradientsOf("pool"); }

TEST(PoolTest, MaximumTiesGoToTheFirstRow) {
  const Numbers x(DType::kF32, {3, 1}, {2, 5, 5}), up(DType::kF32, {1, 1}, std::vector<double>{7});
  Tape tape;
  const Variable vx = tape.Input(x);
  tape.Backward(Pool(vx, {{0, 3, 0, 0}}, Pooling::kMax), up);
  EXPECT_EQ(ToDoubles(tape.Gradient(vx)), (std::vector<double>{0, 7, 0}));
}

TEST(PoolTest, MeanOfWideRowsMatchesPlainLoop) {
  const int64_t width = 301;  // several blocks of columns
  const Numbers x(DType::kF32, {9, width}, 1);
  std::vector<double> expected(width);
  for (int64_t i = 0; i < 9 * width; ++i) expected[i % width] += x.tensor().At(i) / 9;
  Tape tape;
  // Summed in f64 and rounded once: half an ulp of numbers below 4.
  EXPECT_LE(LargestDifference(ToDoubles(Pool(tape.Constant(x), {{0, 9, 0, 0}}, Pooling::kMean).value()), expected),
            4 * 0x1p-24);
}

TEST(PoolTest, NoSequencesGiveNoRows) {
  const Numbers x(DType::kF32, {2, 3}, 1);
  Tape tape;
  EXPECT_EQ(Pool(tape.Constant(x), {}, Pooling::kMax).shape(), (Shape{0, 3}));
}

TEST(PoolDeathTest, RowsBeyondTheEndAreRefused) {
  const Numbers x(DType::kF32, {2, 3}, 1);
  Tape tape;
  const Variable vx = tape.Constant(x);
  EXPECT_DEATH(Pool(vx, {{1, 2, 0, 0}}, Pooling::kMean), "pool: rows 1 to 3 of x \\[2, 3\\]");
}

}  // namespace
}  // namespace weft
