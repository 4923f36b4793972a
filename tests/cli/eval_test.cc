// `weft eval` of pairs as text: files of sources and references, metrics, signatures, and the file of answers.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// With a run on pairs of two files in the folder "run"; validation has two references.
class EvalTest : public CliTest {
 protected:
  EvalTest() {
    Write("job.toml",
          absl::StrCat(kPairs, "[valid]\nmetrics = [\"loss\", \"bleu\", \"cer\"]\nbest = \"cer\"\nlowercase = true\n",
                       "bleu = { tokenize = \"char\" }\n"));
    Write("t.en", "ab\nba\nabab\nb\n");
    Write("t.de", "x y\ny x\nX Y x y\ny\n");
    Write("v.en", "ab\n\nba\nabb\nbb\n");
    Write("v.de", "x y\nx\ny x\n\ny y\n");
    Write("v.de2", "X Y\ny\nx\ny\n\n");
    EXPECT_THAT(
        Train("run", {"--set", "data.train=[\"t.en\", \"t.de\"]", "--set", "data.valid=[\"v.en\", \"v.de\", \"v.de2\"]"}),
        Succeeds());
  }

  Json Eval(const Args& args) {
    const Outcome outcome = Weft(Join({"eval", "run", "--json"}, args));
    EXPECT_THAT(outcome, Succeeds());
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }
};

TEST_F(EvalTest, OwnDataAndTheSameFilesGiveTheScoresOfTheTraining) {
  const Json own = Eval({}), files = Eval({"--data", "v.en", "v.de", "v.de2"});
  EXPECT_EQ(own, files);
  const std::vector<std::string> lines = absl::StrSplit(Read("run/metrics.jsonl"), '\n', absl::SkipEmpty());
  const Json trained = Json::parse(lines.back());
  EXPECT_EQ(own["examples"], 3);
  for (const char* metric : {"loss", "bleu", "cer"}) EXPECT_EQ(own[metric], trained[absl::StrCat("eval_", metric)]) << metric;
  EXPECT_THAT(own["bleu_signature"].get<std::string>(),
              HasSubstr("nrefs:var|case:lc|eff:no|tok:char|smooth:exp|version:weft-"));
  EXPECT_THAT(Weft({"eval", "run"}).out, HasSubstr("nrefs:var|case:lc|eff:no|tok:char"));
  EXPECT_THAT(Weft({"eval", "--data", "v.en", "v.de", "--json", "run"}), Succeeds());
}

TEST_F(EvalTest, LineIOfTheOutputAnswersLineI) {
  const Json eval = Eval({"--metrics", "bleu,chrf", "--tokenize", "none", "--output", "answers.txt"});
  EXPECT_EQ(eval.count("exact_match"), 0u);
  EXPECT_EQ(eval.count("chrf"), 1u);
  const std::vector<std::string> lines = absl::StrSplit(Read("answers.txt"), '\n');
  ASSERT_EQ(lines.size(), 6);  // and the end of the last line
  EXPECT_EQ(lines[1], "");     // without a source
  EXPECT_EQ(lines[3], "");     // without a target
  for (const int i : {0, 2, 4}) {
    const std::string source = std::vector<std::string>{"ab", "", "ba", "", "bb"}[i];
    EXPECT_EQ(Weft({"generate", "run", "--prompt", source, "--max-new-tokens", "14"}).out, lines[i] + "\n");
  }
  // What `weft score` says of that file, whose lines without an example are left out here.
  std::string output;
  for (const int i : {0, 2}) absl::StrAppend(&output, lines[i], "\n");
  Write("out.txt", output);
  Write("ref.txt", "x y\ny x\n");
  Write("ref2.txt", "X Y\nx\n");
  Write("s.en", "ab\nba\n");
  const Json two = Eval({"--metrics", "chrf", "--data", "s.en", "ref.txt", "ref2.txt"});
  const Json score = Json::parse(Weft({"score", "--metric", "chrf", "--lowercase", "--json", "--hypothesis", "out.txt",
                                       "--reference", "ref.txt", "--reference", "ref2.txt"})
                                     .out);
  EXPECT_EQ(two["chrf"], score["score"]);
  EXPECT_EQ(two["chrf_signature"], score["signature"]);
}

TEST_F(EvalTest, AnOutputThatCannotBeWrittenDoesNotTakeTheScoresAlong) {
  std::filesystem::create_symlink("/dev/full", Path("full"));
  const Outcome full = Weft({"eval", "run", "--json", "--output", "full"});
  EXPECT_THAT(full, Fails(1, "full: cannot write: No space left on device"));
  EXPECT_EQ(Json::parse(full.out), Eval({}));
  // What can be seen beforehand is: nothing is decoded.
  const Outcome missing = Weft({"eval", "run", "--output", "none/answers.txt"});
  EXPECT_THAT(missing, Fails(1, "none/answers.txt: cannot create: No such file or directory"));
  EXPECT_EQ(missing.out, "");
  std::filesystem::create_directory(Path("closed"));
  std::filesystem::permissions(Path("closed"), std::filesystem::perms(0500));
  EXPECT_THAT(Weft({"eval", "run", "--output", "closed/a.txt"}, {.obey_modes = true}), Fails(1, "closed/a.txt: cannot create"));
}

// Both are then in one file, the scores first.
TEST_F(EvalTest, TheOutputCanBeStdout) {
  ASSERT_THAT(Weft({"eval", "run", "--output", "answers.txt"}), Succeeds());
  const std::string scores = Weft({"eval", "run"}).out, both = scores + Read("answers.txt");
  std::filesystem::create_symlink("/dev/stdout", Path("out"));
  EXPECT_EQ(Weft({"eval", "run", "--output", "out"}).out, both);
  EXPECT_EQ(Weft({"eval", "run", "--output", "answers.txt"}, {.stdout_path = Path("answers.txt")}).code, 0);
  EXPECT_EQ(Read("answers.txt"), both);
}

TEST_F(EvalTest, ATargetTokenizerThatNormalizesIsWarnedOfWhereTextIsCompared) {
  const Args job = {"--set", "data.train=[\"t.en\", \"t.de\"]", "--set",
                    "data.tokenizer={ kind = \"bpe\", vocab_size = 261, normalization = \"nfkc_cf\", shared = true }"};
  const std::string warning = "warning: the target tokenizer writes text normalized (nfkc_cf), and bleu compares it";
  ASSERT_THAT(Train("folded", Join(job, {"--set", "data.valid=[\"v.en\", \"v.de\"]"})), Succeeds());
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(Read("folded/log.txt"), warning)).size(), 2) << Read("folded/log.txt");
  EXPECT_THAT(Weft({"eval", "folded"}).err, HasSubstr(warning));
  EXPECT_EQ(Weft({"eval", "folded", "--metrics", "exact_match"}).err, "");
  EXPECT_THAT(Read("run/log.txt"), testing::Not(HasSubstr("normalized")));
}

// Half of the bytes of the targets are the first one of two-byte characters: after a few updates answers are nothing else.
TEST_F(EvalTest, WhatIsWrittenIsWhatWasScoredThoughItBeNoUtf8) {
  Write("b.en", "ab\nba\nabb\nbab\n");
  Write("b.de", "\u00e9\u00e8\u00ea\n\u00e4\u00eb\u00e0\n\u00ec\u00ed\u00ee\u00ef\n\u00f9\u00fa\u00fb\n");
  ASSERT_THAT(Train("bytes", {"--set", "data.train=[\"b.en\", \"b.de\"]", "--set", "data.valid=[\"b.en\", \"b.de\"]", "--set",
                              "data.tokenizer={ kind = \"byte\" }", "--set", "optimizer.lr=0.05", "--set", "train.steps=6"}),
              Succeeds());
  const Outcome eval = Weft({"eval", "bytes", "--json", "--metrics", "cer", "--output", "a.txt"});
  ASSERT_THAT(eval, Succeeds());
  ASSERT_THAT(Read("a.txt"), HasSubstr("\uFFFD"));
  const Outcome score =
      Weft({"score", "--metric", "cer", "--json", "--lowercase", "--hypothesis", "a.txt", "--reference", "b.de"});
  ASSERT_THAT(score, Succeeds());
  EXPECT_EQ(Json::parse(eval.out)["cer"], Json::parse(score.out)["score"]);
}

TEST_F(EvalTest, FlagsThatMeanNothingAreRefused) {
  EXPECT_THAT(Weft({"eval", "run", "--metrics", "bleurt"}), Fails(2, "bleurt"));
  EXPECT_THAT(Weft({"eval", "run", "--metrics", "cer", "--tokenize", "13a"}), Fails(2, "they are BLEU's"));
  EXPECT_THAT(Weft({"eval", "run", "--tokenize", "14a"}), Fails(2, "--tokenize: found 14a, allowed: 13a"));
  EXPECT_THAT(Weft({"eval", "run", "--metrics", "loss", "--beam", "3"}),
              Fails(2, "--beam: no answers are made; give --output"));
  EXPECT_THAT(Weft({"eval", "run", "--metrics", "loss", "--beam", "3", "--output", "a.txt"}), Succeeds());
  EXPECT_THAT(Weft({"eval", "run", "--metrics", "loss", "--length-penalty", "1"}), Fails(2, "--length-penalty: no answers"));
  EXPECT_THAT(Weft({"eval", "run", "--metrics", "per", "--lowercase"}), Fails(2, "no metric compares text"));
  EXPECT_THAT(Weft({"eval", "run", "--metrics", "bits_per_byte"}), Fails(2, "bits_per_byte needs a text, found pairs"));
  EXPECT_THAT(Weft({"eval", "run", "--data", "v.en", "t.de"}), Fails(1, "found 5 lines in "));
}

TEST_F(EvalTest, TextHasBitsPerByteAndNoAnswers) {
  Write("job.toml", kText);
  Write("data.txt", "abcdefghijklmnopqrstuvwxyz");
  ASSERT_THAT(Train("text"), Succeeds());
  const Outcome outcome = Weft({"eval", "text", "--data", "data.txt", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  const Json json = Json::parse(outcome.out);
  EXPECT_NEAR(json["bits_per_byte"].get<double>(), json["loss"].get<double>() / 0.693147180559945309, 1e-12);
  EXPECT_THAT(Weft({"eval", "text", "--data", "data.txt", "--output", "x"}), Fails(2, "generates no answers"));
  EXPECT_THAT(Weft({"eval", "text", "--data", "data.txt", "--metrics", "bleu"}), Fails(2, "it needs pairs, found text"));
  EXPECT_THAT(Weft({"eval", "text", "--data", "data.txt", "data.txt"}),
              Fails(2, "found 2 files of data, allowed one for text"));
}

}  // namespace
}  // namespace weft
