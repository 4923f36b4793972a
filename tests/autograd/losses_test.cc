// CrossEntropy and LinearCrossEntropy: known values, ignored and bad targets, and the two forms against each other.
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "tests/autograd/numbers.h"

namespace weft {
namespace {

// Row losses by the definition: -sum(q ln p), with the maximum taken out.
std::vector<double> PlainRowLosses(const Tensor& logits, absl::Span<const int32_t> targets,
                                   const CrossEntropyOptions& options) {
  const int64_t classes = logits.shape()[1];
  std::vector<double> losses(logits.shape()[0]);
  for (size_t row = 0; row < losses.size(); ++row) {
    if (targets[row] == options.ignore) continue;
    double maximum = -INFINITY, sum = 0;
    for (int64_t j = 0; j < classes; ++j) maximum = std::max(maximum, logits.At(row * classes + j));
    for (int64_t j = 0; j < classes; ++j) sum += std::exp(logits.At(row * classes + j) - maximum);
    for (int64_t j = 0; j < classes; ++j) {
      const double q = options.smoothing / classes + (j == targets[row] ? 1 - options.smoothing : 0);
      losses[row] -= q * (logits.At(row * classes + j) - maximum - std::log(sum));
    }
  }
  return losses;
}

std::vector<int32_t> RandomTargets(int64_t rows, int64_t classes, uint64_t seed) {
  std::vector<int32_t> targets(rows);
  for (int64_t i = 0; i < rows; ++i) targets[i] = static_cast<int32_t>(RandomKey{seed}.Below(i, classes));
  return targets;
}

TEST(CrossEntropyTest, MatchesTheDefinition) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    for (double smoothing : {0.0, 0.1}) {
      for (int64_t classes : {1, 3, 37}) {
        const Numbers logits(dtype, {9, classes}, 1, 3);
        std::vector<int32_t> targets = RandomTargets(9, classes, 2);
        targets[4] = kIgnoreTarget;
        CrossEntropyOptions options;
        options.smoothing = smoothing;
        Tape tape;
        const CrossEntropyResult result = CrossEntropy(tape.Constant(logits), targets, options);
        const auto expected = PlainRowLosses(logits, targets, options);
        // Float exponentials: relative 2^-22 of a sum, so as much absolute in its logarithm, of losses below 20.
        const double tolerance = dtype == DType::kF32 ? 20 * 0x1p-22 : 1e-13;
        EXPECT_LE(LargestDifference({result.row_losses.begin(), result.row_losses.end()}, expected), tolerance);
        double sum = 0;
        for (double loss : result.row_losses) sum += loss;
        EXPECT_EQ(result.loss.value().At(0), sum);
        EXPECT_EQ(result.loss.dtype(), DType::kF64);
        EXPECT_EQ(result.targets, 8);
      }
    }
  }
}

TEST(CrossEntropyTest, GradientsMatchDifferences) { ExpectGradientsOf("cross_entropy"); }

TEST(CrossEntropyTest, ExtremeLogitsStayFinite) {  // B025
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const Numbers logits(dtype, {3, 3}, {1e4, 0, -1e4, 1e4, 0, -1e4, 1e4, 0, -1e4});
    const int32_t targets[] = {0, 1, 2};
    Tape tape;
    const Variable x = tape.Input(logits);
    const CrossEntropyResult result = CrossEntropy(x, targets);
    EXPECT_EQ(std::vector<double>(result.row_losses.begin(), result.row_losses.end()), (std::vector<double>{0, 10000, 20000}));
    tape.Backward(result.loss);
    EXPECT_EQ(ToDoubles(tape.Gradient(x)), (std::vector<double>{0, 0, 0, 1, -1, 0, 1, 0, -1}));
  }
}

TEST(CrossEntropyTest, SmoothingDoesNotCountIgnoredRows) {  // B026
  const Numbers logits(DType::kF32, {3, 3}, {2, 1, 0, 0, 0, 5, 1, 1, 1});
  const int32_t targets[] = {0, kIgnoreTarget, 2};
  CrossEntropyOptions options;
  options.smoothing = 0.1;
  Tape tape;
  const Variable x = tape.Input(logits);
  const CrossEntropyResult result = CrossEntropy(x, targets, options);
  EXPECT_EQ(result.targets, 2);
  EXPECT_NEAR(result.loss.value().At(0) / result.targets, 0.803109, 1e-6);
  EXPECT_EQ(result.row_losses[1], 0);
  tape.Backward(result.loss);
  for (int64_t j = 3; j < 6; ++j) EXPECT_EQ(tape.Gradient(x).At(j), 0);
}

TEST(CrossEntropyTest, IgnoredTargetsCountNowhere) {  // B028
  const Numbers logits(DType::kF32, {3, 5}, 1);
  for (int32_t ignore : {kIgnoreTarget, 0, 7}) {
    const int32_t some[] = {1, ignore, 3}, none[] = {ignore, ignore, ignore}, two[] = {1, 3};
    CrossEntropyOptions options;
    options.ignore = ignore;
    Tape tape;
    const Variable x = tape.Input(logits);
    const CrossEntropyResult result = CrossEntropy(x, some, options);
    EXPECT_EQ(result.targets, 2);
    const Variable rows = Concat({Slice(x, 0, 0, 1), Slice(x, 0, 2, 1)}, 0);
    EXPECT_EQ(result.loss.value().At(0), CrossEntropy(rows, two, options).loss.value().At(0));
    const CrossEntropyResult nothing = CrossEntropy(x, none, options);
    EXPECT_EQ(nothing.targets, 0);
    EXPECT_EQ(nothing.correct, 0);
    EXPECT_EQ(nothing.loss.value().At(0), 0);
    tape.Backward(nothing.loss);
    EXPECT_EQ(ToDoubles(tape.Gradient(x)), std::vector<double>(15, 0.0));
  }
}

TEST(CrossEntropyTest, CorrectCountsTheFirstLargestLogit) {
  const Numbers logits(DType::kF32, {4, 3}, {1, 3, 2, 5, 5, 1, 5, 5, 1, 0, 0, 9});
  const int32_t targets[] = {1, 0, 1, kIgnoreTarget};
  Tape tape;
  const CrossEntropyResult result = CrossEntropy(tape.Constant(logits), targets);
  EXPECT_EQ(result.correct, 2);
  EXPECT_EQ(result.targets, 3);
}

TEST(CrossEntropyTest, NoRows) {
  const Numbers logits(DType::kF32, {0, 5}, 1);
  Tape tape;
  const Variable x = tape.Input(logits);
  const CrossEntropyResult result = CrossEntropy(x, {});
  EXPECT_EQ(result.loss.value().At(0), 0);
  tape.Backward(result.loss);
}

TEST(CrossEntropyTest, LogitsKeepTheirValues) {
  const Numbers logits(DType::kF32, {3, 5}, 1);
  const std::vector<char> before = ToBytes(logits);
  Tape tape;
  const Variable x = tape.Input(logits);
  tape.Backward(CrossEntropy(x, {1, 2, 3}).loss);
  EXPECT_EQ(ToBytes(logits), before);
}

TEST(CrossEntropyDeathTest, BadTargetsAreRefusedWithTheirRow) {  // B028
  const Numbers logits(DType::kF32, {3, 5}, 1), w(DType::kF32, {5, 5}, 2), wrong(DType::kF32, {5, 4}, 2),
      b(DType::kF32, {4}, 3);
  Tape tape;
  const Variable x = tape.Constant(logits), vw = tape.Constant(w), vwrong = tape.Constant(wrong), vb = tape.Constant(b);
  EXPECT_DEATH(CrossEntropy(x, {0, 1, 5}), "cross_entropy: target 5 of row 2 is not in 0..4, nor the ignored -100");
  EXPECT_DEATH(CrossEntropy(x, {0, -4, 1}), "cross_entropy: target -4 of row 1");
  EXPECT_DEATH(CrossEntropy(x, {0, 1}), "cross_entropy: 2 targets for 3 rows");
  EXPECT_DEATH(LinearCrossEntropy(x, vw, {}, {0, 1, 5}), "linear_cross_entropy: target 5 of row 2");
  EXPECT_DEATH(LinearCrossEntropy(x, vwrong, {}, {0, 1, 2}),
               "linear_cross_entropy: x f32\\[3, 5\\] does not fit weight f32\\[5, 4\\]");
  EXPECT_DEATH(LinearCrossEntropy(x, vw, vb, {0, 1, 2}),
               "linear_cross_entropy: bias f32\\[4\\] does not fit weight f32\\[5, 5\\]");
  CrossEntropyOptions options;
  options.smoothing = 1;
  EXPECT_DEATH(CrossEntropy(x, {0, 1, 2}, options), "cross_entropy: smoothing 1 is not in");
}

// One pass of either form: values and gradients as bytes.
struct Pass {
  double loss;
  std::vector<double> row_losses, dx, dw, db;
  int64_t correct;
};
Pass RunLinear(DType dtype, bool fused, Tape::Mode mode, int64_t rows, int64_t width, int64_t classes, double upstream = 1) {
  const Numbers x(dtype, {rows, width}, 1), w(dtype, {classes, width}, 2, 0.3), b(dtype, {classes}, 3);
  std::vector<int32_t> targets = RandomTargets(rows, classes, 4);
  targets[rows / 2] = kIgnoreTarget;
  CrossEntropyOptions options;
  options.smoothing = 0.1;
  Tape tape(mode);
  const Variable vx = tape.Input(x), vw = tape.Input(w), vb = tape.Input(b);
  const CrossEntropyResult result =
      fused ? LinearCrossEntropy(vx, vw, vb, targets, options) : CrossEntropy(Linear(vx, vw, vb), targets, options);
  Pass pass{result.loss.value().At(0), {result.row_losses.begin(), result.row_losses.end()}, {}, {}, {}, result.correct};
  if (mode == Tape::Mode::kTraining) {
    tape.Backward(result.loss, Numbers(DType::kF64, {}, std::vector<double>{upstream}));
    pass.dx = ToDoubles(tape.Gradient(vx));
    pass.dw = ToDoubles(tape.Gradient(vw));
    pass.db = ToDoubles(tape.Gradient(vb));
  }
  return pass;
}

TEST(LinearCrossEntropyTest, EqualsLinearThenCrossEntropy) {
  for (double upstream : {1.0, 0.5}) {
    const Pass fused = RunLinear(DType::kF64, true, Tape::Mode::kTraining, 11, 5, 23, upstream);
    const Pass apart = RunLinear(DType::kF64, false, Tape::Mode::kTraining, 11, 5, 23, upstream);
    EXPECT_EQ(fused.loss, apart.loss);
    EXPECT_EQ(fused.correct, apart.correct);
    EXPECT_LE(LargestDifference(fused.dx, apart.dx), 1e-14);
    EXPECT_LE(LargestDifference(fused.dw, apart.dw), 1e-14);
    EXPECT_LE(LargestDifference(fused.db, apart.db), 1e-14);
  }
}

TEST(LinearCrossEntropyTest, GradientsMatchDifferences) { ExpectGradientsOf("linear_cross_entropy"); }

TEST(LinearCrossEntropyTest, InferenceInChunksHasTheSameBits) {
  const Pass training = RunLinear(DType::kF32, true, Tape::Mode::kTraining, 600, 20, 300);  // 3 chunks of 256 rows
  const Pass inference = RunLinear(DType::kF32, true, Tape::Mode::kInference, 600, 20, 300);
  EXPECT_EQ(training.row_losses, inference.row_losses);
  EXPECT_EQ(training.loss, inference.loss);
  EXPECT_EQ(training.correct, inference.correct);
}

TEST(LinearCrossEntropyTest, InferenceDoesNotHoldTheLogits) {
  const int64_t rows = 2000, classes = 500;
  const Numbers x(DType::kF32, {rows, 2}, 1), w(DType::kF32, {classes, 2}, 2);
  Tape tape(Tape::Mode::kInference);
  LinearCrossEntropy(tape.Constant(x), tape.Constant(w), {}, RandomTargets(rows, classes, 3));
  EXPECT_LT(tape.memory(), rows * classes * 4 / 2);
}

TEST(LinearCrossEntropyTest, TooManyLogitsToHoldAreComputedTwice) {
  const int64_t rows = 340, classes = 100'000, width = 2;  // 136 MB of logits
  const Numbers x(DType::kF32, {rows, width}, 1), w(DType::kF32, {classes, width}, 2), b(DType::kF32, {classes}, 3);
  const std::vector<int32_t> targets = RandomTargets(rows, classes, 4);
  Tape tape;
  const Variable vx = tape.Input(x), vw = tape.Input(w), vb = tape.Input(b);
  const CrossEntropyResult result = LinearCrossEntropy(vx, vw, vb, targets);
  tape.Backward(result.loss, Numbers(DType::kF64, {}, std::vector<double>{0.5}));
  EXPECT_LT(tape.memory(), rows * classes * 4 / 2);
  Tape forward(Tape::Mode::kInference);
  const auto inference = LinearCrossEntropy(forward.Constant(x), forward.Constant(w), forward.Constant(b), targets);
  EXPECT_EQ(result.loss.value().At(0), inference.loss.value().At(0));
  // Against the rows in two halves, whose logits are held. A row of dx is the same sum; dw and db add two sums of 170 terms
  // p - q, at most 1 each, times |x| < 5: rounding of some 340 * 5 * 2^-24.
  std::vector<double> dx, dw(classes * width), db(classes);
  for (int64_t first : {int64_t{0}, rows / 2}) {
    Tape half;
    const Variable hx = half.Input(x.tensor().Rows(first, rows / 2)), hw = half.Input(w), hb = half.Input(b);
    const auto part = LinearCrossEntropy(hx, hw, hb, absl::MakeConstSpan(targets).subspan(first, rows / 2));
    half.Backward(part.loss, Numbers(DType::kF64, {}, std::vector<double>{0.5}));
    const std::vector<double> rows_dx = ToDoubles(half.Gradient(hx)), part_dw = ToDoubles(half.Gradient(hw));
    dx.insert(dx.end(), rows_dx.begin(), rows_dx.end());
    for (int64_t i = 0; i < classes * width; ++i) dw[i] += part_dw[i];
    for (int64_t i = 0; i < classes; ++i) db[i] += half.Gradient(hb).At(i);
  }
  EXPECT_EQ(ToDoubles(tape.Gradient(vx)), dx);
  EXPECT_LE(LargestDifference(ToDoubles(tape.Gradient(vw)), dw), 1e-4);
  EXPECT_LE(LargestDifference(ToDoubles(tape.Gradient(vb)), db), 1e-4);
}

TEST(LinearCrossEntropyTest, SinglePrecisionMatchesDouble) {
  const Pass f32 = RunLinear(DType::kF32, true, Tape::Mode::kTraining, 200, 40, 65);
  const Pass f64 = RunLinear(DType::kF64, true, Tape::Mode::kTraining, 200, 40, 65);
  // Logits are sums of 40 products of rounded numbers, |sum| < 12: off by at most some 80 * 12 * 2^-24 = 6e-5, typically a
  // tenth; a row's loss and p as much. dx adds 65 terms of p - q (together at most 2) times |w| < 1.5, dw 200 terms times |x|
  // < 4.5.
  EXPECT_LE(LargestDifference(f32.row_losses, f64.row_losses), 6e-5);
  EXPECT_LE(LargestDifference(f32.dx, f64.dx), 2 * 1.5 * 6e-5);
  EXPECT_LE(LargestDifference(f32.dw, f64.dw), 200 * 4.5 * 6e-5 / 65);  // p is 1 / 65 in the mean
}

TEST(LinearCrossEntropyTest, SameBitsForAnyNumberOfThreads) {
  std::vector<Pass> passes;
  for (int threads : {1, 2, 4}) {
    Workers(threads).Run([&] { passes.push_back(RunLinear(DType::kF32, true, Tape::Mode::kTraining, 700, 64, 400, 0.7)); });
  }
  for (int i : {1, 2}) {
    EXPECT_EQ(passes[0].loss, passes[i].loss);
    EXPECT_TRUE(passes[0].dx == passes[i].dx && passes[0].dw == passes[i].dw && passes[0].db == passes[i].db);
  }
}

}  // namespace
}  // namespace weft
