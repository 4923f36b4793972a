// `weft average`: what it takes, writes and refuses. The arithmetic is tested in tests/train/average_test.cc.
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using testing::HasSubstr;

class AverageTest : public CliTest {
 protected:
  AverageTest() {
    Write("job.toml", kReverse);
    EXPECT_THAT(Train("run", {"--set", "checkpoint.every=5", "--set", "checkpoint.keep_last=4"}), Succeeds());
  }
};

TEST_F(AverageTest, WritesACheckpointToEvaluateAndStartFrom) {
  const Outcome outcome = Weft({"average", "run", "--last", "2", "-o", "mean.weft"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("mean of 2 checkpoints: mean.weft\n  run/checkpoints/step-15.weft\n"));
  EXPECT_THAT(Weft({"eval", "mean.weft"}), Succeeds());
  EXPECT_THAT(Train("tuned", {"--set", "train.init_from=mean.weft"}), Succeeds());
}

TEST_F(AverageTest, TakesThreeUnlessToldOtherwise) {
  EXPECT_THAT(Weft({"average", "run", "-o", "mean.weft"}).out,
              HasSubstr("mean of 3 checkpoints: mean.weft\n  run/checkpoints/step-10.weft\n"));
}

TEST_F(AverageTest, OverwritesOnlyWhenAsked) {
  Write("mean.weft", "mine");
  EXPECT_THAT(Weft({"average", "run", "--last", "2", "-o", "mean.weft"}), Fails(2, "mean.weft exists"));
  EXPECT_EQ(Read("mean.weft"), "mine");
  EXPECT_THAT(Weft({"average", "run", "--last", "2", "-o", "mean.weft", "--overwrite"}), Succeeds());
}

TEST_F(AverageTest, ADeviceIsWrittenAndNotReplaced) {
  std::filesystem::create_symlink("/dev/null", Path("null"));
  std::filesystem::create_symlink("/dev/full", Path("full"));
  EXPECT_THAT(Weft({"average", "run", "--last", "2", "-o", "null"}), Succeeds());
  EXPECT_THAT(Weft({"average", "run", "--last", "2", "-o", "full", "--overwrite"}), Fails(1, "full: cannot write: No space"));
  EXPECT_THAT(Weft({"tokenizer", "train", "job.toml", "--kind", "byte", "-o", "null"}), Succeeds());
  EXPECT_THAT(Weft({"tokenizer", "train", "job.toml", "--kind", "byte", "-o", "full"}),
              Fails(1, "full: cannot write: No space"));
  for (const char* name : {"null", "full"}) EXPECT_TRUE(std::filesystem::is_symlink(Path(name))) << name;
}

TEST_F(AverageTest, RefusesTooFewMissingAndForeignCheckpoints) {
  Write("junk.weft", "junk");
  EXPECT_THAT(Weft({"average", "run", "--last", "9", "-o", "mean.weft"}), Fails(1, "9 are asked for"));
  EXPECT_THAT(Weft({"average", "nowhere", "-o", "mean.weft"}), Fails(1, "nowhere: cannot open"));
  EXPECT_THAT(Weft({"average", "junk.weft", "-o", "mean.weft"}), Fails(1, "junk.weft: not a Weft checkpoint"));
  EXPECT_THAT(Weft({"average", "run", "--last", "2", "-o", "no/folder.weft"}), Fails(1, "no/folder.weft"));
  EXPECT_FALSE(Exists("mean.weft"));
}

}  // namespace
}  // namespace weft
