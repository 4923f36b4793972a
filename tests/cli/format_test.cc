#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;

// Checkpoints that the program wrote when their format version was current, one a version, in WEFT_OLD_FORMATS: v1.weft is
// step 1500 of v1.toml, which learned to reverse up to three letters (v1.tsv). They are never made anew.
class FormatTest : public CliTest {
 protected:
  FormatTest() {
    for (const char* name : {"v1.weft", "v1.toml", "v1.tsv"}) Write(name, BytesOf(absl::StrCat(WEFT_OLD_FORMATS, "/", name)));
  }
};

TEST_F(FormatTest, Version1IsInspectedExactly) {
  ASSERT_EQ(Read("v1.weft").substr(8, 8), std::string("\1\0\0\0\0\0\0\0", 8));
  const Outcome outcome = Weft({"inspect", "v1.weft", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  const Json json = Json::parse(outcome.out);
  const Json expected = {{"bytes", 14544},   {"step", 1500}, {"epoch", 750}, {"sequence", 0},
                         {"tokens", 105750}, {"seed", 6},    {"shards", 2},  {"parameters", 400}};
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(json[key], value) << key;
  const Json source = {{"kind", "char"}, {"symbols", 3}, {"specials", false}, {"unknown", false}};
  EXPECT_EQ(json["source_tokenizer"], source);
  EXPECT_EQ(json["target_tokenizer"]["specials"], true);
  EXPECT_EQ(json["classes"], Json::array());
  EXPECT_THAT(json["config"].get<std::string>(), testing::HasSubstr("\n[schedule]\nkind = \"cosine\"\nwarmup_steps = 10\n"));
  ASSERT_EQ(json["tensors"].size(), 78u);  // 26 parameters, and two moments of each
  const Json first = {{"name", "source_embedding.weight"}, {"dtype", "f32"}, {"shape", {3, 4}}, {"bytes", 48}};
  const Json last = {{"name", "optimizer.v/output.weight"}, {"dtype", "f32"}, {"shape", {5, 4}}, {"bytes", 80}};
  EXPECT_EQ(json["tensors"].front(), first);
  EXPECT_EQ(json["tensors"].back(), last);
  EXPECT_THAT(Weft({"inspect", "v1.weft"}).out, testing::HasSubstr("\nbest        0.00762678 at step 1500\n"));
}

TEST_F(FormatTest, Version1GeneratesAndEvaluatesAsWhenItWasWritten) {
  const Outcome answers =
      Weft({"generate", "v1.weft", "--prompt", "abc", "--prompt", "b", "--prompt", "cb", "--prompt", "aab"});
  ASSERT_THAT(answers, Succeeds());
  EXPECT_EQ(answers.out, "cba\nb\nbc\nbaa\n");
  const Outcome scores = Weft({"eval", "v1.weft", "--data", "v1.tsv", "--json"});
  ASSERT_THAT(scores, Succeeds());
  const Json json = Json::parse(scores.out);
  EXPECT_EQ(json["exact_match"], 1);
  // Kernels of other instruction sets round f32 differently.
  EXPECT_NEAR(json["loss"].get<double>(), 0.00762678, 1e-5);
}

// Moments, position and history are those of the file: the run goes on and stays as good.
TEST_F(FormatTest, Version1Resumes) {
  std::filesystem::create_directories(Path("run/checkpoints"));
  Write("run/checkpoints/step-1500.weft", Read("v1.weft"));
  Write("run/last", "checkpoints/step-1500.weft\n");
  const Outcome outcome =
      Weft({"train", "v1.toml", "--quiet", "--resume", "--set", "run.dir=run", "--set", "train.steps=1510"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, testing::HasSubstr("done at step 1510 after 10 updates"));
  EXPECT_THAT(outcome.out, testing::HasSubstr("exact_match 1\n"));
  EXPECT_EQ(Read("run/best"), "checkpoints/step-1500.weft\n");
  const Outcome inspected = Weft({"inspect", "run/checkpoints/step-1510.weft", "--json"});
  ASSERT_THAT(inspected, Succeeds());
  EXPECT_EQ(Json::parse(inspected.out)["step"], 1510);
}

}  // namespace
}  // namespace weft
