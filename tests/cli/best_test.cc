// Which validation is the best, and which checkpoints stay for it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class BestTest : public CliTest {
 protected:
  BestTest() { Write("job.toml", kReverse); }

  // The steps of all validations, the smallest `metric` first.
  std::vector<int64_t> Ranking(const std::string& run, const std::string& metric) {
    const std::string text = Read(run + "/metrics.jsonl");
    std::vector<std::pair<double, int64_t>> scores;
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const Json json = Json::parse(line.begin(), line.end());
      scores.emplace_back(json["eval_" + metric].get<double>(), json["step"].get<int64_t>());
    }
    std::sort(scores.begin(), scores.end());
    std::vector<int64_t> steps;
    for (const auto& [score, step] : scores) steps.push_back(step);
    return steps;
  }

  // `weft train` at a rate at which the loss goes up and down, so that validations are good and bad in turns.
  Outcome TrainRestlessly(const std::string& run, const Args& more) {
    Args args = {"--set", "optimizer.lr=0.3", "--set", "schedule.kind=constant", "--set", "valid.every=1"};
    args.insert(args.end(), more.begin(), more.end());
    return Train(run, args);
  }
};

std::string Name(int64_t step) { return absl::StrCat("step-", step, ".weft"); }

TEST_F(BestTest, AsManyAsAskedForAreKept) {
  ASSERT_THAT(TrainRestlessly("run", {"--set", "checkpoint.keep_best=3", "--set", "checkpoint.keep_last=1", "--set",
                                      "checkpoint.every=0", "--set", "train.steps=37"}),
              Succeeds());
  const std::vector<int64_t> steps = Ranking("run", "loss");
  ASSERT_EQ(steps.size(), 37);
  ASSERT_TRUE(std::find(steps.begin(), steps.begin() + 3, 37) == steps.begin() + 3) << "the last one is among the best";
  EXPECT_THAT(NamesIn(Path("run/checkpoints")), UnorderedElementsAre(Name(steps[0]), Name(steps[1]), Name(steps[2]), Name(37)));
  EXPECT_EQ(Read("run/best"), absl::StrCat("checkpoints/", Name(steps[0]), "\n"));
}

// The validations so far count by the metric that counts now, as if it had been that one from the start.
TEST_F(BestTest, MayBeOfAnotherMetricAfterAResume) {
  const auto train = [&](const std::string& run, Args more) {
    for (const char* set : {"checkpoint.keep_last=50", "checkpoint.every=1"}) more.insert(more.end(), {"--set", set});
    return TrainRestlessly(run, more);
  };
  const Args longer = {"--set", "train.steps=24", "--set", "valid.best=per"};
  const Args resumed = {"--set", "train.steps=24", "--set", "valid.best=per", "--resume"};
  ASSERT_THAT(train("run", {"--set", "train.steps=20"}), Succeeds());
  ASSERT_THAT(train("run", resumed), Succeeds());
  ASSERT_THAT(train("whole", longer), Succeeds());
  EXPECT_NE(Ranking("run", "per")[0], Ranking("run", "loss")[0]);
  EXPECT_EQ(Read("run/best"), Read("whole/best"));
  EXPECT_EQ(Read("run/best"), absl::StrCat("checkpoints/", Name(Ranking("run", "per")[0]), "\n"));
  EXPECT_THAT(train("run", resumed).out, HasSubstr(absl::StrCat(" at step ", Ranking("run", "per")[0], "\n")));
}

TEST_F(BestTest, PatienceNeedsValidationsOnTheWay) {
  EXPECT_THAT(Train("run", {"--set", "valid.patience=2", "--set", "valid.every=0"}),
              Fails(2, "valid.patience: needs valid.every, or train.epochs"));
  EXPECT_THAT(Train("run", {"--set", "valid.patience=2", "--set", "valid.every=0", "--set", "train.epochs=1"}), Succeeds());
}

}  // namespace
}  // namespace weft
