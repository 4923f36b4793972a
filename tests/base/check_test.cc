#include "autograd/base/check.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(CheckDeathTest, FailureNamesPlaceConditionBothValuesAndMessage) {
  const int rows = 3, columns = 5;
  EXPECT_DEATH(WEFT_CHECK_EQ(rows, columns) << "matmul: inner sizes",
               "check_test.cc:[0-9]+: check failed: .*rows.*==.*columns.* \\(3 against 5\\) matmul: inner sizes");
  EXPECT_DEATH(WEFT_CHECK_LT(columns, rows), "\\(5 against 3\\)");
  EXPECT_DEATH(WEFT_CHECK(rows > columns) << "shape " << 7, "check failed: rows > columns shape 7");
}

TEST(CheckTest, PassingCheckEvaluatesOnceAndPrintsNothing) {
  int calls = 0, messages = 0;
  const auto next = [&] { return ++calls; };
  const auto message = [&] { return ++messages; };
  testing::internal::CaptureStderr();
  WEFT_CHECK_GE(next(), 1) << message();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(messages, 0);
}

TEST(CheckTest, BindsToItsOwnIfInAnElseBranch) {
  bool reached_else = false;
  if (false)
    WEFT_CHECK(true);
  else
    reached_else = true;
  EXPECT_TRUE(reached_else);
}

}  // namespace
}  // namespace weft
