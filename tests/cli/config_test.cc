// `weft config` in its forms, and what a wrong config looks like from outside.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ConfigVerbTest : public CliTest {};

TEST_F(ConfigVerbTest, FullAndMinimalLoadToTheSameForEveryShippedConfig) {
  int count = 0;
  for (const std::string& name : NamesIn(WEFT_CONFIGS)) {
    ++count;
    const std::string path = absl::StrCat(WEFT_CONFIGS, "/", name);
    const std::string resolved = Weft({"config", path}).out;
    ASSERT_NE(resolved, "");
    const Outcome full = Weft({"config", "--full", path}), minimal = Weft({"config", path, "--minimal"});
    ASSERT_THAT(full, Succeeds());
    ASSERT_THAT(minimal, Succeeds());
    Write("full.toml", full.out);
    Write("minimal.toml", minimal.out);
    EXPECT_EQ(Weft({"config", "full.toml"}).out, resolved) << name;
    EXPECT_EQ(Weft({"config", "minimal.toml"}).out, resolved) << name;
    EXPECT_LT(minimal.out.size(), resolved.size());
    // It is minimal already, and --full of it is that of the original.
    EXPECT_EQ(Weft({"config", "--minimal", "minimal.toml"}).out, minimal.out);
    EXPECT_EQ(Weft({"config", "--full", "minimal.toml"}).out, full.out);
  }
  EXPECT_GE(count, 3);
}

TEST_F(ConfigVerbTest, FullAndMinimalTakeOverrides) {
  Write("job.toml", kReverse);
  EXPECT_THAT(Weft({"config", "job.toml", "--minimal", "--set", "train.clip_norm=2"}).out, HasSubstr("\nclip_norm = 2.0\n"));
  EXPECT_THAT(Weft({"config", "job.toml", "--minimal", "--set", "train.clip_norm=1"}).out, Not(HasSubstr("clip_norm")));
  EXPECT_THAT(Weft({"config", "job.toml", "--full", "--set", "train.clip_norm=1"}).out,
              HasSubstr("\n# largest global norm of the gradient, 0 = no clipping; a number >= 0\nclip_norm = 1.0\n"));
}

TEST_F(ConfigVerbTest, TheSchemaNeedsNoConfigAndIsJson) {
  const Outcome outcome = Weft({"config", "--schema"});
  ASSERT_THAT(outcome, Succeeds());
  const Json schema = Json::parse(outcome.out);
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_TRUE(schema["properties"]["model"]["properties"].contains("family"));
}

TEST_F(ConfigVerbTest, OneFormAtATimeAndAConfig) {
  Write("job.toml", kReverse);
  EXPECT_THAT(Weft({"config"}), Fails(2, "CONFIG is required"));
  EXPECT_THAT(Weft({"config", "--full"}), Fails(2, "CONFIG is required"));
  EXPECT_THAT(Weft({"config", "job.toml", "--full", "--minimal"}), Fails(2, "excludes"));
  EXPECT_THAT(Weft({"config", "--schema", "--full"}), Fails(2, "excludes"));
}

// Five mistakes of five kinds: a slip in a key, a wrong type, a value out of range, an unknown word, a key in the wrong
// section.
TEST_F(ConfigVerbTest, FiveMistakesGiveFiveLocatedErrorsWithSuggestions) {
  Write("job.toml", R"([data]
kind = "task"
task = "reverse"

[model]
family = "encoder_decoder"
d_modl = 64

[train]
steps = "1000"
batch_size = 0
dropout = 0.1

[optimizer]
kind = "adamx"
)");
  const std::vector<std::string> expected = {
      "job.toml:7:1: model.d_modl: unknown key; did you mean model.d_model?",
      "job.toml:10:9: train.steps: found \"1000\" (a string), allowed an integer in [1, 1000000000000]",
      "job.toml:11:14: train.batch_size: found 0 (an integer), allowed an integer in [1, 2147483647]",
      "job.toml:12:1: train.dropout: unknown key; dropout is a key of [model]",
      "job.toml:15:8: optimizer.kind: found \"adamx\" (a string), allowed \"adamw\", \"adam\", \"sgd\", "
      "\"lion\", \"adafactor\", \"muon\"; did you mean \"adamw\"?"};
  for (const char* verb : {"train", "config"}) {
    const Outcome outcome = Weft({verb, "job.toml"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(absl::StrSplit(outcome.err, '\n', absl::SkipEmpty()), testing::ElementsAreArray(expected));
  }
  EXPECT_FALSE(Exists("runs"));
}

// B091: beyond 2^53 a double would make two seeds one.
TEST_F(ConfigVerbTest, SeedsAreExactTo63Bits) {
  Write("job.toml", kReverse);
  ASSERT_THAT(Train("a", {"--set", "run.seed=9007199254740992"}), Succeeds());
  ASSERT_THAT(Train("b", {"--set", "run.seed=9007199254740993"}), Succeeds());
  EXPECT_THAT(Read("a/config.toml"), HasSubstr("\nseed = 9007199254740992\n"));
  EXPECT_THAT(Read("b/config.toml"), HasSubstr("\nseed = 9007199254740993\n"));
  const auto inspect = [&](const std::string& run) { return Json::parse(Weft({"inspect", run, "--json"}).out)["seed"]; };
  EXPECT_EQ(inspect("a"), 9007199254740992);
  EXPECT_EQ(inspect("b"), 9007199254740993);
  const auto loss = [&](const std::string& run) { return Read(run + "/metrics.jsonl").substr(0, 40); };
  EXPECT_NE(loss("a"), loss("b"));
}

// B092: where a path is looked for, and what is said when it does not lead to a file.
TEST_F(ConfigVerbTest, DataPathsInAFileAreRelativeToItAndOnTheCommandLineToTheWorkingFolder) {
  const std::string odd = "run \xc3\xbc 1#%20'x";
  for (const std::string& name : {odd, odd + "/data", std::string("here")}) std::filesystem::create_directory(Path(name));
  Write(odd + "/job.toml", absl::StrCat(kText).replace(absl::string_view(kText).find("data.txt"), 8, "data/in.txt"));
  Write(odd + "/data/in.txt", "abcdefghijklmnop");
  Write("here/other.txt", "ponmlkjihgfedcba");
  std::filesystem::create_symlink(Path(odd + "/data/in.txt"), Path("link.txt"));
  std::filesystem::create_symlink("nothing", Path("dangling.txt"));
  const auto train = [&](const std::string& run, const Args& more) {
    return Weft(Join({"train", odd + "/job.toml", "--quiet", "--set", "run.dir=" + run}, more));
  };
  EXPECT_THAT(train("not/there/yet", {}), Succeeds());
  EXPECT_TRUE(Exists("not/there/yet/last"));
  EXPECT_THAT(train("by_cwd", {"--set", "data.train=here/other.txt"}), Succeeds());
  EXPECT_THAT(train("by_link", {"--set", "data.train=link.txt"}), Succeeds());
  EXPECT_EQ(Read("by_link/checkpoints/step-4.weft"), Read("not/there/yet/checkpoints/step-4.weft"));
  EXPECT_THAT(train("bad", {"--set", "data.train=data/in.txt"}), Fails(1, "/data/in.txt: "));  // not in this folder
  EXPECT_THAT(train("bad", {"--set", "data.train=here"}), Fails(1, "/here: is a folder"));
  EXPECT_THAT(train("bad", {"--set", "data.train=dangling.txt"}), Fails(1, "/dangling.txt: "));
  EXPECT_FALSE(Exists("bad"));
}

}  // namespace
}  // namespace weft
