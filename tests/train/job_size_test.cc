#include "train/job_size.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "layers/builder.h"
#include "tests/cases/job.h"

namespace weft {
namespace {

TEST(JobSize, ListsParametersByPartAndJoinsEqualBlocks) {
  Parameters parameters;
  Builder root(&parameters);
  root.Sub("embedding").Parameter("weight", {1000, 4}, Init::Zeros());
  for (int block : {0, 1, 2}) {
    root.Sub("decoder").Sub(absl::StrCat(block)).Sub("up").Parameter("weight", {3, block == 2 ? 5 : 4}, Init::Zeros());
    root.Sub("decoder").Sub(absl::StrCat(block)).Sub("up").Parameter("bias", {3}, Init::Zeros());
  }
  root.Sub("decoder").Sub("norm").Parameter("weight", {4}, Init::Zeros());
  EXPECT_EQ(ParametersByPart(parameters),
            "4,052 parameters: embedding 4,000, decoder.0-1 15 each, decoder.2 18, decoder.norm 4");
}

TEST(JobSize, RefusesWhatCannotFitAndNamesTheKeys) {
  const Job job(kPairsJob, UnequalPairs(10));
  Config config = job.Load();
  const Fresh fresh(config);
  MemoryEstimate estimate = EstimateMemory(config, *fresh.session, 8);
  EXPECT_GT(estimate.state, 2 * 4.0 * static_cast<double>(fresh.session->parameters->count()));
  EXPECT_GT(estimate.activations, 0);
  EXPECT_GT(estimate.available, 1e8);
  EXPECT_TRUE(estimate.Check(config).ok());
  const double plain = estimate.state;
  config.train.ema_decay = 0.9;
  EXPECT_GT(EstimateMemory(config, *fresh.session, 8).state, plain);
  estimate.state = 1e15;
  const absl::Status refused = estimate.Check(config);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(refused.message(), "1000000.0 GB") && absl::StrContains(refused.message(), "model.d_model"))
      << refused;
}

}  // namespace
}  // namespace weft
