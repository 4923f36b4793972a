// `weft bench`: each suite in a reduced form, the keys that scripts may rely on, and a profile that adds up.
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class BenchTest : public CliTest {
 protected:
  // The lines of `weft bench --json` with these arguments.
  std::vector<Json> Bench(const Args& args) {
    const Outcome outcome = Weft(Join({"bench", "--json", "--threads", "2"}, args));
    EXPECT_THAT(outcome, Succeeds());
    std::vector<Json> lines;
    for (const auto line : absl::StrSplit(outcome.out, '\n', absl::SkipEmpty())) {
      lines.push_back(Json::parse(std::string(line), nullptr, /*allow_exceptions=*/false));
      EXPECT_TRUE(lines.back().is_object()) << line;
    }
    return lines;
  }

  static void ExpectPositive(const Json& line, const std::vector<const char*>& keys) {
    for (const char* key : keys) {
      ASSERT_TRUE(line.contains(key)) << key << " in " << line;
      EXPECT_GT(line[key].get<double>(), 0) << key << " in " << line;
    }
  }

  static void ExpectStatistics(const Json& line) {
    ExpectPositive(line, {"median_ms", "min_ms", "repetitions"});
    EXPECT_LE(line["min_ms"], line["median_ms"]);
    EXPECT_GE(line["spread"], 0);
  }
};

TEST_F(BenchTest, TrainingSuitesReportTheDocumentedKeys) {
  const std::vector<Json> lines = Bench({"--suite", "tiny", "--steps", "2"});
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0]["suite"], "tiny");
  EXPECT_EQ(lines[0]["threads"], 2);
  EXPECT_EQ(lines[0]["tokens"], 8 * 32);
  EXPECT_EQ(lines[0]["steps"], 2);
  ExpectPositive(lines[0], {"median_ms", "min_ms", "tokens_per_s", "parameters", "flops", "gflops", "peak_gflops",
                            "peak_rss_mb", "spread", "share", "shards", "peak_bytes_per_token"});
}

TEST_F(BenchTest, GemmReportsTheThreeProductsOfALayer) {
  const std::vector<Json> lines = Bench({"--suite", "gemm", "--case", "nano/768x128x128", "--steps", "2"});
  ASSERT_EQ(lines.size(), 3);
  const char* kinds[] = {"NT", "NN", "TN"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i]["suite"], "gemm");
    EXPECT_EQ(lines[i]["kind"], kinds[i]);
    EXPECT_EQ(lines[i]["threads"], 2);
    ExpectStatistics(lines[i]);
    ExpectPositive(lines[i], {"m", "n", "k", "gflops", "best_gflops", "peak_gflops", "share"});
    EXPECT_NEAR(lines[i]["gflops"].get<double>() * lines[i]["median_ms"].get<double>(), 2 * 768 * 128 * 128 * 1e-6, 1e-6);
  }
}

TEST_F(BenchTest, GemmRunsTinyShapesOnOneThread) {
  const std::vector<Json> lines = Bench({"--suite", "gemm", "--case", "tiny/256x192x64/NT", "--steps", "1"});
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0]["threads"], 1);
}

TEST_F(BenchTest, AttentionHoldsAsMuchForLongSequencesAsForShortOnes) {
  std::map<int64_t, double> bytes;
  for (const char* name : {"T64", "T1024"}) {
    const std::vector<Json> lines = Bench({"--suite", "attention", "--case", name, "--steps", "1"});
    ASSERT_EQ(lines.size(), 1);
    const Json& line = lines[0];
    EXPECT_EQ(line["suite"], "attention");
    EXPECT_EQ(line["case"], name);
    EXPECT_EQ(line["length"].get<int64_t>() * line["sequences"].get<int64_t>(), line["tokens"]);
    ExpectStatistics(line);
    ExpectPositive(line, {"forward_ms", "forward_gflops", "backward_ms", "backward_gflops", "peak_gflops", "peak_bytes"});
    bytes[line["length"]] = line["peak_bytes_per_token"];
  }
  // Linear in T: the same a token. Output and gradients of q, k, v: 4 * 512 floats; a number a head; 1 % for the rest.
  EXPECT_NEAR(bytes[64], 4 * (4 * 512 + 8), 0.01 * bytes[64]);
  EXPECT_NEAR(bytes[1024], bytes[64], 0.01 * bytes[64]);
}

TEST_F(BenchTest, GenerateCountsATokenOfEachSequence) {
  const std::vector<Json> lines = Bench({"--suite", "generate", "--case", "nano", "--steps", "1"});
  ASSERT_EQ(lines.size(), 2);
  const int64_t batches[] = {1, 16};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(lines[i]["suite"], "generate");
    EXPECT_EQ(lines[i]["batch"], batches[i]);
    EXPECT_EQ(lines[i]["repetitions"], lines[i]["new_tokens"]);
    ExpectStatistics(lines[i]);
    ExpectPositive(lines[i], {"tokens_per_s", "prefill_ms", "prefill_tokens_per_s", "parameters", "weights_gb_per_s"});
    EXPECT_NEAR(lines[i]["tokens_per_s"].get<double>() * lines[i]["median_ms"].get<double>(), 1e3 * batches[i], 1e-6);
  }
}

TEST_F(BenchTest, SeveralSuitesRunInTheirOrder) {
  const std::vector<Json> lines = Bench({"--suite", "generate", "--suite", "tiny", "--case", "nano/16", "--steps", "1"});
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0]["suite"], "tiny");
  EXPECT_EQ(lines[1]["suite"], "generate");
}

TEST_F(BenchTest, TheProfileAddsUpToLessThanAStepAndHasTheFormulasFlops) {
  const std::vector<Json> lines = Bench({"--suite", "tiny", "--steps", "5", "--profile"});
  std::map<std::string, Json> rows;
  for (const Json& line : lines) {
    if (line.contains("profile")) rows[line["profile"]] = line;
  }
  ASSERT_EQ(rows.size(), lines.size() - 1);
  EXPECT_GT(rows["sum"]["share_of_step"], 0);
  EXPECT_LT(rows["sum"]["share_of_step"], 1);
  for (const char* name : {"attention", "layer_norm", "gelu", "add", "gather_rows", "optimizer"}) {
    ASSERT_TRUE(rows.count(name)) << name;
    ExpectPositive(rows[name], {"calls", "backward_ms", "backward_bytes", "backward_gb_per_s"});
  }
  ExpectPositive(rows["linear"], {"forward_ms", "forward_gflops", "forward_share", "forward_bytes", "forward_held_per_token"});

  // tokens * layers * (q, k, v, output: 4 D^2; two of the feed-forward: 8 D^2), two operations each; the head D V.
  const int64_t tokens = 256, layers = 2, d = 64, vocabulary = 65, heads_d = 64, length = 32;
  const double linear = 2.0 * tokens * layers * 12 * d * d, head = 2.0 * tokens * d * vocabulary;
  const double attention = 4.0 * layers * heads_d * (tokens / length) * length * (length + 1) / 2;
  EXPECT_EQ(rows["linear"]["forward_flops"], linear);
  EXPECT_EQ(rows["linear"]["backward_flops"], 2 * linear);
  EXPECT_EQ(rows["linear_cross_entropy"]["forward_flops"], head);
  EXPECT_EQ(rows["linear_cross_entropy"]["backward_flops"], 2 * head);
  EXPECT_EQ(rows["attention"]["forward_flops"], attention);
  EXPECT_EQ(lines[0]["flops"], 3 * (linear + head + attention));
}

TEST_F(BenchTest, AConfigIsTimedOnItsDataWithTheWaitForItsBatches) {
  Write("job.toml", kReverse);
  const std::vector<Json> lines = Bench({"--config", "job.toml", "--set", "train.batch_size=6", "--steps", "5", "--profile"});
  ASSERT_GE(lines.size(), 5);
  EXPECT_EQ(lines[0]["suite"], "job");
  EXPECT_EQ(lines[0]["steps"], 5);
  ExpectPositive(lines[0], {"tokens", "median_ms", "min_ms", "mean_ms", "tokens_per_s", "parameters", "wait_ms", "wait_share"});
  EXPECT_LT(lines[0]["wait_share"], 1);
  EXPECT_NEAR(lines[0]["wait_share"].get<double>() * lines[0]["mean_ms"].get<double>(), lines[0]["wait_ms"], 1e-9);
  std::map<std::string, Json> rows;
  for (const Json& line : lines) rows[line.value("profile", "")] = line;
  ExpectPositive(rows["wait_for_batch"], {"backward_ms", "share_of_step", "calls"});
  ExpectPositive(rows["optimizer"], {"backward_ms"});
  ExpectPositive(rows["attention"], {"forward_ms", "backward_ms"});
  EXPECT_FALSE(Exists("runs"));  // nothing is trained that anybody kept
}

TEST_F(BenchTest, WithoutJsonEachResultIsALine) {
  const Outcome profile = Weft({"bench", "--suite", "tiny", "--steps", "1", "--profile"});
  EXPECT_THAT(profile, Succeeds());
  EXPECT_THAT(profile.out, AllOf(HasSubstr("median"), HasSubstr("spread"), HasSubstr("layer_norm"), HasSubstr("sum")));
  EXPECT_THAT(Weft({"bench", "--suite", "gemm", "--case", "tiny/256x64x256/TN", "--steps", "1"}).out,
              AllOf(HasSubstr("tiny/256x64x256/TN"), HasSubstr("GF/s")));
}

TEST_F(BenchTest, WrongChoicesExitTwoAndSayWhatIsAllowed) {
  EXPECT_THAT(Weft({"bench", "--suite", "tny"}),
              Fails(2, "tiny,nano,baby,gpt2,seq2seq,seq2seq_ragged,gemm,attention,generate,all"));
  EXPECT_THAT(Weft({"bench", "--suite", "gemm", "--case", "huge"}), Fails(2, "--case: found huge"));
  EXPECT_THAT(Weft({"bench", "--suite", "tiny", "--case", "NT"}), Fails(2, "--case"));
  EXPECT_THAT(Weft({"bench", "--suite", "tiny", "--config", "job.toml"}), Fails(2, "--config"));
  EXPECT_THAT(Weft({"bench", "--set", "train.steps=1"}), Fails(2, "--config"));
  EXPECT_THAT(Weft({"bench", "--config", "none.toml"}), Fails(2, "none.toml"));
  EXPECT_THAT(Weft({"bench", "--suite", "gemm", "--profile"}), Fails(2, "--profile needs a suite that trains"));
}

}  // namespace
}  // namespace weft
