#include "autograd/base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace weft {
namespace {

TEST(StatusTest, ExitCodeFollowsTheKindOfFailure) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(absl::InvalidArgumentError("config")), 2);
  EXPECT_EQ(ExitCode(absl::Status(kDivergedCode, "loss is nan")), 3);
  for (const absl::Status& status : {absl::NotFoundError(""), absl::DataLossError(""), absl::FailedPreconditionError(""),
                                     absl::InternalError(""), absl::UnknownError("")}) {
    EXPECT_EQ(ExitCode(status), 1) << status;
  }
}

absl::StatusOr<std::unique_ptr<int>> Make(bool ok) {
  if (!ok) return absl::NotFoundError("nothing here");
  return std::make_unique<int>(7);
}

absl::Status Use(bool first, bool second, int* sum) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<int> a, Make(first));
  *sum += *a;
  WEFT_ASSIGN_OR_RETURN(a, Make(second));
  *sum += *a;
  WEFT_RETURN_IF_ERROR(absl::OkStatus());
  return absl::OkStatus();
}

TEST(StatusTest, MacrosMoveValuesAndReturnTheFirstError) {
  int sum = 0;
  EXPECT_TRUE(Use(true, true, &sum).ok());
  EXPECT_EQ(sum, 14);
  sum = 0;
  EXPECT_EQ(Use(true, false, &sum), absl::NotFoundError("nothing here"));
  EXPECT_EQ(sum, 7);
}

}  // namespace
}  // namespace weft
