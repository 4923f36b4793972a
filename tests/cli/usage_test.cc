#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class UsageTest : public CliTest {};

TEST_F(UsageTest, HelpOfEachVerbGoesToStdoutAndExitsZero) {
  for (const char* verb :
       {"train", "eval", "generate", "gradcheck", "layers", "config", "status", "inspect", "attention", "bench", "score"}) {
    const Outcome help = Weft({verb, "--help"});
    EXPECT_THAT(help, Succeeds()) << verb;
    EXPECT_THAT(help.out, HasSubstr("Usage: weft"));
    EXPECT_THAT(help.err, IsEmpty());
  }
  EXPECT_THAT(Weft({"--help"}).out, HasSubstr("Exit codes"));
  EXPECT_THAT(Weft({"--version"}).out, HasSubstr("weft "));
}

TEST_F(UsageTest, WrongCommandLinesExitTwoNamingTheWord) {
  Write("job.toml", kReverse);
  const std::vector<std::pair<Args, std::string>> cases = {
      {{}, "required"},
      {{"trian", "job.toml"}, "unknown verb trian, did you mean train?"},
      {{"--no-such"}, "--no-such"},
      {{"train"}, "CONFIG"},
      {{"train", "--no-such", "job.toml"}, "--no-such"},
      {{"train", "job.toml", "extra"}, "extra"},
      {{"train", "job.toml", "--threads", "abc"}, "abc"},
      {{"train", "job.toml", "--threads", "0"}, "--threads"},
      {{"train", "job.toml", "--threads", "2x"}, "2x"},
      {{"train", "job.toml", "--resume", "--overwrite"}, "--overwrite"},
      {{"train", "job.toml", "--set"}, "--set"},
      {{"generate", "run", "--temperature", "nan"}, "--temperature: found nan"},
      {{"generate", "run", "--temperature", "-1"}, "--temperature: found -1"},
      {{"generate", "run", "--top-p", "-nan"}, "--top-p: found -nan"},
      {{"generate", "run", "--top-p", "0"}, "--top-p: found 0"},
      {{"generate", "run", "--top-k", "-1"}, "--top-k"},
      {{"generate", "run", "--top-k", "5"}, "--temperature"},
      {{"generate", "run", "--min-p", "0.1"}, "--temperature"},
      {{"gradcheck", "softmax", "--set", "model.layers=1"}, "--config"},
      {{"generate", "run", "--max-new-tokens", "0"}, "--max-new-tokens"},
      {{"generate", "run", "--seed", "9223372036854775808"}, "--seed: found 9223372036854775808"},
      {{"generate", "run", "--seed", "1", "--seed", "2"}, "--seed"},
      {{"generate", "run", "--min-p", "1.1"}, "--min-p: found 1.1"},
      {{"generate", "run", "--repetition-penalty", "0"}, "--repetition-penalty: found 0"},
      {{"generate", "run", "--repetition-penalty", "-1"}, "--repetition-penalty: found -1"},
      {{"generate", "run", "--beam", "0"}, "--beam"},
      {{"generate", "run", "--beam", "4", "--temperature", "1"}, "--temperature"},
      {{"generate", "run", "--length-penalty", "1"}, "--beam"},
      {{"generate", "run", "--beam", "4", "--n-best", "2"}, "--json"},
      {{"eval", "run", "--length-penalty", "nan"}, "--length-penalty: found nan"},
      {{"status"}, "RUN"},
      {{"bench", "--suite", "tny"}, "tny"},
      {{"bench", "--steps", "0"}, "--steps"},
  };
  for (const auto& [args, message] : cases) {
    const Outcome outcome = Weft(args);
    EXPECT_THAT(outcome, Fails(2, message));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

// Each value is refused by its key, before anything is allocated or made.
TEST_F(UsageTest, AbsurdConfigValuesExitTwoAndMakeNothing) {
  Write("job.toml", kReverse);
  for (const char* set : {"train.steps=0",
                          "train.steps=-1",
                          "train.steps=9223372036854775807",
                          "train.steps=9223372036854775808",
                          "train.steps=1.5",
                          "train.steps=10x",
                          "train.batch_size=0",
                          "train.batch_size=-1",
                          "train.batch_size=1099511627776",
                          "train.accumulate=0",
                          "train.clip_norm=-1",
                          "train.clip_norm=nan",
                          "train.label_smoothing=1.0",
                          "model.d_model=0",
                          "model.d_model=-8",
                          "model.d_model=nan",
                          "model.d_model=1099511627776",
                          "model.layers=0",
                          "model.dropout=1.5",
                          "model.dropout=-0.1",
                          "model.dropout=nan",
                          "model.kv_heads=0",
                          "optimizer.lr=0",
                          "optimizer.lr=-1",
                          "optimizer.lr=nan",
                          "optimizer.lr=inf",
                          "optimizer.lr=",
                          "optimizer.lr=1e-3x",
                          "optimizer.betas=[1.0, 0.9]",
                          "optimizer.betas=[0.9]",
                          "optimizer.eps=0",
                          "optimizer.kind=adamx",
                          "run.seed=-1",
                          "run.seed=9223372036854775808",
                          "valid.batch_size=0",
                          "checkpoint.keep_last=0",
                          "data.task=revers",
                          "data.train_size=0",
                          "model.family=decoder"}) {
    const Outcome outcome = Train("run", {"--set", set});
    EXPECT_THAT(outcome, Fails(2, absl::StrCat("--set ", std::string(set).substr(0, std::string(set).find('=')), ": ")));
    EXPECT_FALSE(Exists("run")) << set;
  }
}

TEST_F(UsageTest, AFamilyThatDoesNotFitTheDataIsNamedOnce) {
  Write("job.toml", kText);
  EXPECT_THAT(Weft({"config", "job.toml", "--set", "model.family=encoder"}),
              Fails(2, "--set model.family: found \"encoder\", but data.kind = \"text\" needs \"decoder\"\n"));
}

TEST_F(UsageTest, AFamilyThatIsMissingIsAskedFor) {
  Write("job.toml", absl::StrReplaceAll(kReverse, {{"family = \"encoder_decoder\"\n", ""}}));
  EXPECT_THAT(Weft({"config", "job.toml"}),
              Fails(2, "model.family: missing; data.task = \"reverse\" needs \"encoder_decoder\"\n"));
}

TEST_F(UsageTest, MalformedOverridesExitTwo) {
  Write("job.toml", kReverse);
  for (const char* set : {"optimizer.lr", "=3", ".=3", "train=3", "optimiser.lr=1", "train.dropout=0.1"}) {
    EXPECT_THAT(Train("run", {"--set", set}), Fails(2, absl::StrCat("--set ", std::string(set).substr(0, 5))));
  }
  EXPECT_FALSE(Exists("run"));
}

TEST_F(UsageTest, HeadsThatDoNotDivideAreRefusedNamingBothKeysAndValues) {
  Write("job.toml", kReverse);
  EXPECT_THAT(Train("run", {"--set", "model.heads=3"}), Fails(2, "d_model = 8 is not divisible by heads = 3"));
  EXPECT_THAT(Train("run", {"--set", "model.kv_heads=3"}), Fails(2, "heads = 2 is not divisible by kv_heads = 3"));
  EXPECT_FALSE(Exists("run"));
}

// Within every single range, yet 12e12 parameters: refused by the estimate, not by the allocator.
TEST_F(UsageTest, AJobLargerThanTheMachineIsRefusedBeforeAllocation) {
  Write("job.toml", kReverse);
  EXPECT_THAT(Train("run", {"--set", "model.d_model=1000000"}), Fails(2, "needs at least"));
  EXPECT_FALSE(Exists("run"));
}

TEST_F(UsageTest, UnreadableConfigsExitTwoNamingTheFile) {
  Write("empty.toml", "");
  Write("broken.toml", "[data\n");
  Write("binary.toml", std::string("[data]\nkind = \"\xff\x00\"\n", 18));
  std::filesystem::create_directory(Path("folder"));
  for (const char* name : {"missing.toml", "empty.toml", "broken.toml", "binary.toml", "folder"}) {
    for (const char* verb : {"train", "config"}) EXPECT_THAT(Weft({verb, name}), Fails(2, name));
    EXPECT_THAT(Weft({"gradcheck", "--config", name}), Fails(2, name));
  }
}

TEST_F(UsageTest, AllMistakesOfAConfigComeAtOnceWithTheirPlaces) {
  Write("job.toml",
        "[data]\nkind = \"task\"\ntask = \"reverse\"\n[model]\nfamily = \"encoder_decoder\"\nd_modl = 8\n[train]\nsteps "
        "= \"ten\"\nbatch_size = 4\n");
  const Outcome outcome = Weft({"config", "job.toml"});
  EXPECT_THAT(outcome, Fails(2, "job.toml:6:1: model.d_modl: unknown key; did you mean model.d_model?"));
  EXPECT_THAT(outcome, Fails(2, "job.toml:8:9: train.steps: found \"ten\""));
}

TEST_F(UsageTest, ResultsThatCannotBeWrittenExitOne) {
  EXPECT_THAT(Weft({"layers"}, {.stdout_path = "/dev/full"}), Fails(1, "stdout cannot be written"));
}

}  // namespace
}  // namespace weft
