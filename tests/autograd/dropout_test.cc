// Dropout: its statistics, and what the mask does and does not depend on.
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "tests/autograd/numbers.h"

namespace weft {
namespace {

Numbers Ones(DType dtype, const Shape& shape) { return Numbers(dtype, shape, std::vector<double>(shape.elements(), 1.0)); }

std::vector<double> DropoutOfOnes(DType dtype, const Shape& shape, Sequences sequences, double p, RandomKey key) {
  const Numbers x = Ones(dtype, shape);
  Tape tape;
  return ToDoubles(Dropout(tape.Constant(x), sequences, p, key).value());
}

TEST(DropoutTest, ZeroProbabilityIsTheIdentity) {  // B020
  const Numbers x(DType::kF32, {4, 3}, 1);
  Tape tape;
  const Variable vx = tape.Constant(x);
  const Variable y = Dropout(vx, {{0, 4, 0, 0}}, 0, RandomKey{1});
  EXPECT_EQ(y.slot, vx.slot);
}

TEST(DropoutTest, ProbabilityOneGivesZeros) {  // B020
  for (DType dtype : {DType::kF32, DType::kF64}) {
    EXPECT_EQ(DropoutOfOnes(dtype, {4, 3}, {{0, 4, 0, 0}}, 1, RandomKey{1}), std::vector<double>(12, 0.0));
  }
}

TEST(DropoutTest, KeptValuesAreScaledAndTheMeanStays) {  // B020
  const std::vector<double> y = DropoutOfOnes(DType::kF32, {1000, 100}, {{0, 1000, 0, 0}}, 0.25, RandomKey{1});
  double sum = 0;
  for (double v : y) {
    EXPECT_TRUE(v == 0 || std::abs(v - 4.0 / 3) < 1e-6) << v;
    sum += v;
  }
  // Standard deviation of the mean: 4/3 * sqrt(0.25 * 0.75 / 100000) = 0.0018.
  EXPECT_NEAR(sum / y.size(), 1, 0.01);
}

TEST(DropoutTest, KeysAndSequencesHaveTheirOwnMasks) {  // B020
  const auto mask = [](RandomKey key, uint64_t id) { return DropoutOfOnes(DType::kF32, {10, 10}, {{0, 10, 0, id}}, 0.5, key); };
  EXPECT_EQ(mask(RandomKey{1}, 0), mask(RandomKey{1}, 0));
  EXPECT_NE(mask(RandomKey{1}, 0), mask(RandomKey{2}, 0));
  EXPECT_NE(mask(RandomKey{1}, 0), mask(RandomKey{1}, 1));
}

TEST(DropoutTest, BothDtypesHaveTheSameMask) {
  const auto f32 = DropoutOfOnes(DType::kF32, {10, 7}, {{0, 10, 0, 3}}, 0.5, RandomKey{1});
  EXPECT_EQ(f32, DropoutOfOnes(DType::kF64, {10, 7}, {{0, 10, 0, 3}}, 0.5, RandomKey{1}));  // 1 / (1 - 0.5) is exact
}

// The same sequences in one batch, alone, in another order of rows, and with the first tokens gone.
TEST(DropoutTest, MaskDependsOnTheSequenceAndThePlaceInItOnly) {
  const int64_t width = 5;
  const auto all = DropoutOfOnes(DType::kF32, {7, width}, {{0, 3, 0, 8}, {3, 4, 0, 9}}, 0.5, RandomKey{1});
  const auto alone = DropoutOfOnes(DType::kF32, {4, width}, {{0, 4, 0, 9}}, 0.5, RandomKey{1});
  EXPECT_EQ(std::vector<double>(all.begin() + 3 * width, all.end()), alone);
  const auto tail = DropoutOfOnes(DType::kF32, {2, width}, {{0, 2, 2, 9}}, 0.5, RandomKey{1});
  EXPECT_EQ(std::vector<double>(alone.begin() + 2 * width, alone.end()), tail);
}

TEST(DropoutTest, RowsOutsideOfSequencesAreCopied) {
  const Numbers x(DType::kF32, {6, 4}, 1), up(DType::kF32, {6, 4}, 2);
  Tape tape;
  const Variable vx = tape.Input(x);
  const Variable y = Dropout(vx, {{1, 2, 0, 0}, {4, 1, 0, 1}}, 1, RandomKey{1});
  tape.Backward(y, up);
  for (int64_t row = 0; row < 6; ++row) {
    const bool inside = row == 1 || row == 2 || row == 4;
    for (int64_t j = row * 4; j < row * 4 + 4; ++j) {
      EXPECT_EQ(y.value().At(j), inside ? 0 : x.tensor().At(j)) << row;
      EXPECT_EQ(tape.Gradient(vx).At(j), inside ? 0 : up.tensor().At(j)) << row;
    }
  }
}

// Inside a chain the gradient takes the place of the one above it; the same as where it is added to zeros.
TEST(DropoutTest, GradientInPlaceEqualsTheAddedOne) {
  for (double p : {0.0, 0.4, 1.0}) {
    const Numbers x(DType::kF32, {6, 37}, 1), up(DType::kF32, {6, 37}, 2);
    Tape tape;
    const Variable direct = tape.Input(x), chained = tape.Input(x);
    const Sequence sequences[] = {{1, 2, 0, 0}, {4, 1, 0, 1}};
    const Variable y = Dropout(direct, sequences, p, RandomKey{1});
    const Variable z = Scale(Dropout(Scale(chained, 1), sequences, p, RandomKey{1}), 1);
    tape.Backward(Add(y, z), up);
    EXPECT_EQ(ToBytes(tape.Gradient(direct)), ToBytes(tape.Gradient(chained))) << p;
  }
}

TEST(DropoutTest, BackwardUsesTheForwardMaskOverManyTiles) {  // B020
  const Numbers x = Ones(DType::kF32, {3000, 37}), up = Ones(DType::kF32, {3000, 37});
  const Sequence sequences[] = {{0, 1700, 0, 4}, {1700, 1300, 0, 5}};
  std::vector<std::vector<char>> results;
  for (int threads : {1, 2, 4}) {
    Workers(threads).Run([&] {
      Tape tape;
      const Variable vx = tape.Input(x);
      const Variable y = Dropout(vx, sequences, 0.3, RandomKey{1});
      tape.Backward(y, up);
      EXPECT_EQ(ToBytes(y.value()), ToBytes(tape.Gradient(vx)));
      results.push_back(ToBytes(y.value()));
    });
  }
  EXPECT_TRUE(results[0] == results[1] && results[0] == results[2]);
}

TEST(DropoutTest, GradientsMatchDifferences) { ExpectGradientsOf("dropout"); }

TEST(DropoutTest, NoRows) {
  const Numbers x(DType::kF32, {0, 3}, 1);
  Tape tape;
  EXPECT_EQ(Dropout(tape.Constant(x), {}, 0.5, RandomKey{1}).shape(), (Shape{0, 3}));
}

TEST(DropoutDeathTest, BadProbabilitiesAndSequencesAreRefused) {  // B020
  const Numbers x(DType::kF32, {2, 3}, 1);
  Tape tape;
  const Variable vx = tape.Constant(x);
  EXPECT_DEATH(Dropout(vx, {}, -0.1, RandomKey{1}), "dropout: probability -0.1 is not in");
  EXPECT_DEATH(Dropout(vx, {}, 1.5, RandomKey{1}), "dropout: probability 1.5 is not in");
  EXPECT_DEATH(Dropout(vx, {}, NAN, RandomKey{1}), "dropout: probability -?nan is not in");
  EXPECT_DEATH(Dropout(vx, {{1, 2, 0, 0}}, 0.5, RandomKey{1}), "dropout: sequences reach beyond x \\[2, 3\\]");
  EXPECT_DEATH(Dropout(vx, {{0, 2, 0, 0}, {1, 1, 0, 1}}, 0.5, RandomKey{1}), "dropout: sequences must be disjoint");
}

}  // namespace
}  // namespace weft
