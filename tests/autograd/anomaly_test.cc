#include <gtest/gtest.h>

#include <limits>

#include "autograd/ops.h"
#include "tests/autograd/numbers.h"

namespace weft {
namespace {

TEST(Anomaly, NamesOpScopeAndElementOfTheFirstOutput) {
  const Numbers x(DType::kF32, {2, 3}, {1, 1, 1, 1, -1, 1});
  Tape tape;
  tape.DetectAnomalies(true);
  const Variable vx = tape.Input(x);
  Variable y;
  {
    const Tape::Scope outer(tape, "decoder.0");
    {
      const Tape::Scope inner(tape, "decoder.0.norm");
      y = Log(Square(vx));  // fine
    }
    y = Log(vx);
    Exp(y);  // not finite either, but later
  }
  ASSERT_TRUE(tape.anomaly().has_value());
  EXPECT_EQ(tape.anomaly()->op, "log");
  EXPECT_EQ(tape.anomaly()->scope, "decoder.0");
  EXPECT_EQ(tape.anomaly()->element, 4);
  EXPECT_FALSE(tape.anomaly()->in_backward);
  EXPECT_EQ(tape.anomaly()->ToString().substr(0, 55), "op log in decoder.0: element 4 of its output [2, 3] is ");
  tape.Reset();
  EXPECT_FALSE(tape.anomaly().has_value());
}

TEST(Anomaly, NamesTheOpWhoseBackwardGaveTheGradient) {
  const Numbers x(DType::kF64, {3}, {1, 0, 4});  // the root's slope at 0 is infinite
  Tape tape;
  tape.DetectAnomalies(true);
  const Variable vx = tape.Input(x);
  Variable y;
  {
    const Tape::Scope scope(tape, "head");
    y = Sqrt(Scale(vx, 1));
  }
  tape.Backward(SumAll(y));
  ASSERT_TRUE(tape.anomaly().has_value());
  EXPECT_EQ(tape.anomaly()->ToString(), "op sqrt in head: element 1 of the gradient it gave its input [3] is inf");
}

TEST(Anomaly, OffByDefaultAndMaskedScoresAreNone) {
  const Numbers x(DType::kF32, {1, 2}, {-1, 1}), mask(DType::kI32, {1, 2}, {1, 0});
  Tape tape;
  Log(tape.Input(x));
  EXPECT_FALSE(tape.anomaly().has_value());
  tape.Reset();
  tape.DetectAnomalies(true);
  const Variable vx = tape.Input(x);
  const Variable y = Softmax(MaskedFill(vx, mask, -std::numeric_limits<double>::infinity()));
  tape.Backward(SumAll(y));
  EXPECT_FALSE(tape.anomaly().has_value()) << tape.anomaly()->ToString();
}

}  // namespace
}  // namespace weft
