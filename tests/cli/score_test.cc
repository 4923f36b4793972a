// `weft score`: files in, numbers out.
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class ScoreTest : public CliTest {
 protected:
  ScoreTest() {
    Write("a.txt", "the cat sat on the mat\n\nyes\n");
    Write("b.txt", "a cat sat on a mat\nwhat\nyes\n");
    Write("ref.txt", "the cat sat on a mat\n\nyes\n");
    Write("ref2.txt", "the cat sat on the mat today\n\nno\n");
  }

  // The objects of one call with --json.
  std::vector<Json> Score(const Args& args) {
    const Outcome outcome = Weft(Join({"score", "--json"}, args));
    EXPECT_THAT(outcome, Succeeds());
    std::vector<Json> objects;
    for (absl::string_view line : absl::StrSplit(outcome.out, '\n', absl::SkipEmpty()))
      objects.push_back(Json::parse(line.begin(), line.end()));
    return objects;
  }
};

TEST_F(ScoreTest, EachMetricPrintsItsSignatureAndScore) {
  const Outcome outcome = Weft({"score", "--hypothesis", "ref.txt", "--reference", "ref.txt"});
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, StartsWith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-"));
  EXPECT_THAT(outcome.out, HasSubstr(" = 100.0000  precision_1 100 "));
  const std::vector<Json> scores =
      Score({"--metric", "bleu", "--metric", "chrf++", "--metric", "wer", "--metric", "exact_match", "--hypothesis", "a.txt",
             "--reference", "ref.txt", "ref2.txt", "--lowercase"});
  ASSERT_EQ(scores.size(), 4);
  EXPECT_EQ(scores[0]["metric"], "bleu");
  EXPECT_THAT(scores[0]["signature"].get<std::string>(), StartsWith("nrefs:2|case:lc|eff:no|tok:13a|smooth:exp|version:"));
  EXPECT_THAT(scores[1]["signature"].get<std::string>(), StartsWith("nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:no|version:"));
  EXPECT_DOUBLE_EQ(scores[2]["score"].get<double>(), 1.0 / 7);
  EXPECT_EQ(scores[2]["edits"], 1);
  EXPECT_DOUBLE_EQ(scores[3]["score"].get<double>(), 2.0 / 3);
  EXPECT_EQ(scores[3]["lines"], 3);
}

// As for data: a byte-order mark and other line ends make no other text, and empty lines stay lines.
TEST_F(ScoreTest, LineEndsAndByteOrderMarksMakeNoDifference) {
  Write("a2.txt", "\xEF\xBB\xBFthe cat sat on the mat\r\n\r\nyes");
  const Args both = {"--metric", "chrf", "--metric", "exact_match", "--reference", "ref.txt", "--hypothesis"};
  const std::vector<Json> plain = Score(Join(both, {"a.txt"})), windows = Score(Join(both, {"a2.txt"}));
  for (int i : {0, 1}) EXPECT_EQ(plain[i]["score"], windows[i]["score"]);
}

TEST_F(ScoreTest, PairedComparesTwoOutputsAndRepeats) {
  const Args args = {"--metric",     "chrf",  "--paired",    "--hypothesis", "a.txt",
                     "--hypothesis", "b.txt", "--reference", "ref.txt"};
  const Json pair = Score(args)[0];
  EXPECT_EQ(pair, Score(args)[0]);
  EXPECT_THAT(pair["signature"].get<std::string>(), StartsWith("nrefs:1|bs:1000|seed:12345|case:mixed|eff:yes|"));
  ASSERT_EQ(pair["systems"].size(), 2);
  EXPECT_EQ(pair["systems"][1]["hypothesis"], "b.txt");
  EXPECT_EQ(pair["systems"][0]["score"],
            Score({"--metric", "chrf", "--hypothesis", "a.txt", "--reference", "ref.txt"})[0]["score"]);
  EXPECT_LE(pair["systems"][0]["low"], pair["systems"][0]["mean"]);
  EXPECT_LE(pair["systems"][0]["mean"], pair["systems"][0]["high"]);
  EXPECT_GT(pair["p_value"], 0);
  const Outcome text = Weft(Join({"score"}, args));
  EXPECT_THAT(text.out, HasSubstr("  p = "));
  EXPECT_THAT(text.out, HasSubstr("\n  b.txt = "));
}

TEST_F(ScoreTest, FilesThatDoNotFitAreRefused) {
  Write("short.txt", "one\n");
  Write("empty.txt", "");
  Write("bad.txt", "a\n\xff\nb\n");
  const auto score = [&](const std::string& hypothesis, const std::string& reference) {
    const Outcome outcome = Weft({"score", "--hypothesis", hypothesis, "--reference", "ref.txt", reference});
    EXPECT_EQ(outcome.out, "");
    return outcome;
  };
  const Outcome lengths = score("a.txt", "short.txt");
  EXPECT_THAT(lengths, Fails(1, "found 3 lines in "));
  EXPECT_THAT(lengths, Fails(1, "a.txt and 1 in "));
  EXPECT_THAT(score("a.txt", "none.txt"), Fails(1, "none.txt: cannot read"));
  EXPECT_THAT(score("empty.txt", "ref2.txt"), Fails(1, "empty.txt: has no line to score"));
  EXPECT_THAT(score("a.txt", "bad.txt"), Fails(1, "bad.txt:2: invalid UTF-8"));
}

TEST_F(ScoreTest, WrongCommandLinesExitTwo) {
  const Args files = {"score", "--hypothesis", "a.txt", "--reference", "ref.txt"};
  EXPECT_THAT(Weft({"score", "--hypothesis", "a.txt"}), Fails(2, "--reference"));
  EXPECT_THAT(Weft(Join(files, {"--metric", "rouge"})), Fails(2, "rouge"));
  EXPECT_THAT(Weft(Join(files, {"--tokenize", "zh"})), Fails(2, "--tokenize: found zh, allowed: 13a intl char none"));
  EXPECT_THAT(Weft(Join(files, {"--smooth", "laplace"})), Fails(2, "--smooth: found laplace, allowed: exp floor add-k none"));
  for (const char* flag : {"--tokenize=intl", "--smooth=none"}) {
    EXPECT_THAT(Weft(Join(files, {"--metric", "chrf", "--metric", "wer", flag})), Fails(2, "give --metric bleu as well"));
    EXPECT_THAT(Weft(Join(files, {"--metric", "chrf", "--metric", "bleu", flag})), Succeeds());
  }
  EXPECT_THAT(Weft(Join(files, {"--paired"})), Fails(2, "--hypothesis: found 1, allowed two with --paired"));
  EXPECT_THAT(Weft(Join(files, {"--hypothesis", "b.txt"})), Fails(2, "--hypothesis: found 2, allowed one"));
}

}  // namespace
}  // namespace weft
