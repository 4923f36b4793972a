#include "absl/strings/str_cat.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

// Damaged, truncated and foreign checkpoints: exit 1 with the file's name, whatever verb reads them.
class CheckpointFileTest : public CliTest {
 protected:
  CheckpointFileTest() {
    Write("job.toml", kReverse);
    EXPECT_THAT(Train("run", {"--set", "valid.every=0", "--set", "train.steps=3"}), Succeeds());
    good_ = Read("run/checkpoints/step-3.weft");
  }
  void ExpectRefused(const std::string& bytes, const std::string& message) {
    Write("bad.weft", bytes);
    EXPECT_THAT(Weft({"inspect", "bad.weft"}), Fails(1, absl::StrCat("bad.weft: ", message)));
  }
  std::string good_;
};

TEST_F(CheckpointFileTest, DamageIsNamed) {
  ExpectRefused("", "is empty");
  ExpectRefused(kReverse, "not a Weft checkpoint");
  for (size_t size : {size_t{3}, size_t{30}, size_t{64}, good_.size() / 2, good_.size() - 1}) {
    ExpectRefused(good_.substr(0, size), size < 8 ? "not a Weft checkpoint" : "damaged");
  }
  ExpectRefused(good_ + std::string(100, '\0'), "damaged: longer than written");
  std::string flipped = good_;
  flipped[good_.size() - 9] ^= 1;
  ExpectRefused(flipped, "damaged: checksum");
  for (size_t field = 8; field < 64; field += 8) {
    std::string forged = good_;
    forged.replace(field, 8, std::string(8, '\xff'));
    ExpectRefused(forged, "");
  }
}

TEST_F(CheckpointFileTest, EveryVerbRefusesIt) {
  Write("bad.weft", good_.substr(0, 1000));
  const std::string message = "bad.weft: damaged: cut off";
  EXPECT_THAT(Weft({"eval", "bad.weft"}), Fails(1, message));
  EXPECT_THAT(Weft({"generate", "bad.weft", "--prompt", "a"}), Fails(1, message));
  EXPECT_THAT(Weft({"attention", "bad.weft", "--input", "a"}), Fails(1, message));
  for (const char* name : {"none.weft", "."}) EXPECT_THAT(Weft({"eval", name}), Fails(1, absl::StrCat(name, ": ")));
}

TEST_F(CheckpointFileTest, ResumeFromADamagedOneChangesNothing) {
  Write("run/checkpoints/step-3.weft", good_.substr(0, 1000));
  const std::string metrics = Read("run/metrics.jsonl"), config = Read("run/config.toml");
  const Args resume = {"--resume", "--set", "valid.every=0", "--set", "train.steps=9"};
  EXPECT_THAT(Train("run", resume), Fails(1, "step-3.weft: damaged"));
  EXPECT_EQ(Read("run/metrics.jsonl"), metrics);
  EXPECT_EQ(Read("run/config.toml"), config);
  Write("run/last", "rubbish\n");
  EXPECT_THAT(Train("run", resume), Fails(1, "run/last: damaged"));
  Write("run/last", "checkpoints/step-99.weft\n");
  EXPECT_THAT(Train("run", resume), Fails(1, "step-99.weft"));
}

TEST_F(CheckpointFileTest, ACheckpointOfAnotherShapeIsRefusedOnResume) {
  ASSERT_THAT(Train("wide", {"--set", "valid.every=0", "--set", "train.steps=3", "--set", "model.d_model=16"}), Succeeds());
  Write("run/checkpoints/step-3.weft", Read("wide/checkpoints/step-3.weft"));
  EXPECT_THAT(Train("run", {"--resume", "--set", "valid.every=0", "--set", "train.steps=9"}),
              Fails(2, "model.d_model: found 8, but the run was started with 16"));
}

}  // namespace
}  // namespace weft
