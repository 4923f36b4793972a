// `weft tokenizer`: train, encode, decode, inspect.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr char kLines[] = "the cat sat on the mat\nthe rat sat on the hat\na cat and a rat and a hat\n";

class TokenizerTest : public CliTest {
 protected:
  TokenizerTest() { Write("a.txt", kLines); }
  Outcome Learn(const std::string& file, const Args& more) {
    return Weft(Join({"tokenizer", "train", "-o", file, "a.txt"}, more));
  }
};

TEST_F(TokenizerTest, EveryKindIsTrainedAndGivesTextBackLineForLine) {
  const std::vector<std::pair<std::string, Args>> kinds = {{"char", {}},
                                                           {"byte", {}},
                                                           {"word", {}},
                                                           {"bpe", {"--vocab-size", "280"}},
                                                           {"unigram", {"--vocab-size", "14", "--no-byte-fallback"}}};
  for (const auto& [kind, more] : kinds) {
    const Outcome trained = Learn(kind + ".tok", Join({"--kind", kind}, more));
    ASSERT_THAT(trained, Succeeds());
    EXPECT_THAT(trained.out, MatchesRegex(absl::StrCat(kind, "\\.tok: ", kind, ", [0-9]+ ids, hash [0-9a-f]+\n")));
    const Outcome ids = Weft({"tokenizer", "encode", kind + ".tok"}, {.input = kLines});
    ASSERT_THAT(ids, Succeeds());
    EXPECT_THAT(ids.out, MatchesRegex("([0-9]+ ?)+\n([0-9]+ ?)+\n([0-9]+ ?)+\n"));
    const Outcome text = Weft({"tokenizer", "decode", kind + ".tok"}, {.input = ids.out});
    ASSERT_THAT(text, Succeeds());
    EXPECT_EQ(text.out, kLines);
  }
}

TEST_F(TokenizerTest, PiecesAreShownAsPrintableWords) {
  ASSERT_THAT(Learn("b.tok", {"--kind", "bpe", "--vocab-size", "285"}), Succeeds());
  const Outcome pieces = Weft({"tokenizer", "encode", "b.tok", "--pieces"}, {.input = "a the\té▁\n\n"});
  ASSERT_THAT(pieces, Succeeds());
  EXPECT_EQ(pieces.out, "a ▁the \\x09 \\xC3 \\xA9 \\xE2 \\x96 \\x81\n\n");
}

TEST_F(TokenizerTest, InspectShowsKindSizeHashAndATable) {
  const std::string trained = Learn("b.tok", {"--kind", "bpe", "--vocab-size", "280"}).out;
  const Outcome shown = Weft({"tokenizer", "inspect", "b.tok"});
  ASSERT_THAT(shown, Succeeds());
  EXPECT_THAT(shown.out, HasSubstr("kind      bpe\nids       280\nhash      "));
  EXPECT_THAT(shown.out, HasSubstr(trained.substr(trained.rfind(' ') + 1)));
  EXPECT_THAT(shown.out, HasSubstr("specials  none\n"));
  const Outcome table = Weft({"tokenizer", "inspect", "b.tok", "--all"});
  ASSERT_THAT(table, Succeeds());
  const std::vector<std::string> rows = absl::StrSplit(table.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(rows.size(), 280u);
  EXPECT_EQ(rows[10], "10\t\\x0A");
  EXPECT_THAT(rows[256], MatchesRegex("256\t[^\t]+\t-?0"));
}

TEST_F(TokenizerTest, AConfigTakesTheFileAndTheRunHasIt) {
  ASSERT_THAT(Learn("b.tok", {"--kind", "bpe", "--vocab-size", "280"}), Succeeds());
  Write("pairs.tsv", "the cat\tcat the\na rat\trat a\nhat mat\tmat hat\n");
  Write("job.toml", std::string(kPairs));
  const Outcome trained = Train("run", {"--set", "data.tokenizer={ kind = \"bpe\", file = \"b.tok\", shared = true }"});
  ASSERT_THAT(trained, Succeeds());
  EXPECT_THAT(Read("run/config.toml"), HasSubstr("b.tok"));
  const Outcome by_file = Weft({"tokenizer", "encode", "b.tok"}, {.input = kLines});
  const Outcome by_run = Weft({"tokenizer", "encode", "run"}, {.input = kLines});
  EXPECT_EQ(by_run.out, by_file.out);
  EXPECT_THAT(Weft({"tokenizer", "inspect", "run", "--side", "source"}).out, HasSubstr("specials  <bos> 280 <eos> 281\n"));
  // Neither the run nor its evaluation needs the file any more, but another one in its place is refused.
  ASSERT_THAT(Weft({"eval", "run", "--data", "pairs.tsv"}), Succeeds());
  ASSERT_THAT(Learn("b.tok", {"--kind", "bpe", "--vocab-size", "281", "--overwrite"}), Succeeds());
  EXPECT_THAT(Weft({"train", "job.toml", "--resume", "--set", "run.dir=run", "--set", "train.steps=5", "--set",
                    "data.tokenizer={ kind = \"bpe\", file = \"b.tok\", shared = true }"}),
              Fails(1, "is not the tokenizer that the checkpoint was trained with: found the tokenizer bpe of 283 ids, hash "));
}

TEST_F(TokenizerTest, ARunWithTwoTokenizersNeedsASide) {
  Write("pairs.tsv", "the cat\tcat the\na rat\trat a\nhat mat\tmat hat\n");
  Write("job.toml", std::string(kPairs));
  ASSERT_THAT(Train("run"), Succeeds());
  EXPECT_THAT(Weft({"tokenizer", "encode", "run"}), Fails(2, "--side: missing; "));
  EXPECT_THAT(Weft({"tokenizer", "encode", "run", "--side", "target"}, {.input = "cat\n"}), Succeeds());
}

// The hash that `inspect` prints.
std::string HashIn(const Outcome& inspected) { return inspected.out.substr(inspected.out.find("hash      ") + 10, 16); }

TEST_F(TokenizerTest, ARunWithSeveralColumnsHasItsSeparatorInEveryVerb) {
  Write("pairs.tsv", "a\tb\tc\nb\ta\tc\nc\tb\ta\n");
  Write("job.toml", std::string(kPairs));
  const std::vector<std::pair<std::string, bool>> tokenizers = {{"char", false}, {"word", true}};
  for (const auto& [kind, shared] : tokenizers) {
    const std::string run = absl::StrCat(kind, shared);
    const Args how = {"--set", "data.columns={ source = [1, 2], target = 3 }", "--set",
                      absl::StrCat("data.tokenizer={ kind = \"", kind, "\", shared = ", shared ? "true" : "false", " }")};
    ASSERT_THAT(Train(run, how), Succeeds());
    const Outcome inspected = Weft({"tokenizer", "inspect", run, "--side", "source"});
    EXPECT_THAT(inspected.out, HasSubstr(shared ? "ids       6\n" : "ids       4\n"));
    EXPECT_THAT(inspected.out, HasSubstr(shared ? "specials  <bos> 3 <eos> 4 <sep> 5\n" : "specials  <sep> 3\n"));
    EXPECT_THAT(inspected.out, HasSubstr("\n0\t"));
    for (const std::string side : {"source", "target"}) {
      const std::string hash = HashIn(Weft({"tokenizer", "inspect", run, "--side", side}));
      EXPECT_THAT(Read(run + "/log.txt"),
                  testing::ContainsRegex(absl::StrCat(side, " tokenizer: ", kind, "[^\n]*, hash ", hash)));
    }
    const auto encode = [&](const std::string& side, const std::string& text) {
      return Weft({"tokenizer", "encode", run, "--side", side, "--pieces"}, {.input = text});
    };
    EXPECT_EQ(encode("source", "a\tb\n\n  \n\tc\n").out, "a <sep> b\n\n\n<sep> c\n");
    EXPECT_EQ(encode("target", "a\n").out, "a\n");
    EXPECT_THAT(encode("source", "a\tb\nc\n"), Fails(1, "stdin:2: found 1 column(s), expected 2"));
    EXPECT_THAT(encode("source", "a\tz\n"), Fails(1, "stdin:1: column 2: unknown "));
    if (shared) {  // one tokenizer, which reads sources unless it is told
      EXPECT_EQ(Weft({"tokenizer", "encode", run}, {.input = "a\tb\n"}).out, "0 5 1\n");
    }
    EXPECT_THAT(
        Weft(Join({"train", "job.toml", "--quiet", "--resume", "--set", "run.dir=" + run, "--set", "train.steps=6"}, how)),
        Succeeds());
    EXPECT_THAT(Weft({"eval", run, "--data", "pairs.tsv"}), Succeeds());
  }
}

TEST_F(TokenizerTest, AFileServesBothSidesOfSeveralColumnsAndTheRunsThatFollow) {
  ASSERT_THAT(Learn("b.tok", {"--kind", "bpe", "--vocab-size", "280"}), Succeeds());
  Write("pairs.tsv", "the\tcat\tcat the\na\trat\trat a\nhat\tmat\tmat hat\n");
  Write("job.toml", std::string(kPairs));
  const Args how = {"--set", "data.columns={ source = [1, 2], target = 3 }", "--set",
                    "data.tokenizer={ kind = \"bpe\", file = \"b.tok\", shared = true }"};
  ASSERT_THAT(Train("run", how), Succeeds());
  EXPECT_THAT(Train("next", Join(how, {"--set", "train.init_from=run"})), Succeeds());
  EXPECT_THAT(Weft(Join({"train", "job.toml", "--quiet", "--resume", "--set", "run.dir=run", "--set", "train.steps=6"}, how)),
              Succeeds());
  // The same rows with the same scores, and the special tokens behind them.
  const std::string file = Weft({"tokenizer", "inspect", "b.tok", "--all"}).out;
  EXPECT_EQ(Weft({"tokenizer", "inspect", "run", "--all"}).out, file + "280\t<bos>\n281\t<eos>\n282\t<sep>\n");
  const std::string shown = Weft({"tokenizer", "inspect", "b.tok"}).out;
  EXPECT_THAT(Weft({"tokenizer", "inspect", "run"}).out, HasSubstr(shown.substr(shown.find("first pieces"))));
}

// <bos> and <eos> are no part of a file; the side of a run that has them has another hash.
TEST_F(TokenizerTest, TheHashOfAFileIsThatOfASideWithoutSpecialTokens) {
  ASSERT_THAT(Learn("b.tok", {"--kind", "bpe", "--vocab-size", "280"}), Succeeds());
  const std::string hash = HashIn(Weft({"tokenizer", "inspect", "b.tok"}));
  Write("pairs.tsv", "the cat\tcat the\na rat\trat a\nhat mat\tmat hat\n");
  Write("job.toml", std::string(kPairs));
  ASSERT_THAT(Train("run", {"--set", "data.tokenizer={ kind = \"bpe\", file = \"b.tok\" }"}), Succeeds());
  EXPECT_EQ(HashIn(Weft({"tokenizer", "inspect", "run", "--side", "source"})), hash);
  EXPECT_NE(HashIn(Weft({"tokenizer", "inspect", "run", "--side", "target"})), hash);
}

TEST_F(TokenizerTest, AnIdOfANewlineBreaksTheLineThatIsDecoded) {
  ASSERT_THAT(Learn("byte.tok", {"--kind", "byte"}), Succeeds());
  EXPECT_EQ(Weft({"tokenizer", "decode", "byte.tok"}, {.input = "97 10 98\n\n99\n"}).out, "a\nb\n\nc\n");
}

TEST_F(TokenizerTest, InspectShowsBytesWhereThereIsNothingElse) {
  Write("pairs.tsv", "the cat\tcat the\n");
  Write("job.toml", std::string(kPairs));
  ASSERT_THAT(Train("run", {"--set", "data.tokenizer={ kind = \"byte\", shared = true }"}), Succeeds());
  EXPECT_THAT(Weft({"tokenizer", "inspect", "run"}).out, HasSubstr("(--all for every one):\n0\t\\x00\n1\t"));
}

TEST_F(TokenizerTest, UsageAndBadInputAreRefused) {
  EXPECT_THAT(Weft({"tokenizer"}), Fails(2, "subcommand"));
  EXPECT_THAT(Learn("b.tok", {"--kind", "bpe"}), Fails(2, "vocab_size is missing"));
  EXPECT_THAT(Learn("b.tok", {"--kind", "sentence"}), Fails(2, "--kind"));
  EXPECT_THAT(Learn("b.tok", {"--kind", "bpe", "--vocab-size", "99999"}), Fails(2, "the training text allows at most "));
  EXPECT_THAT(Learn("no/folder.tok", {"--kind", "char"}), Fails(1, "no/folder.tok"));
  EXPECT_FALSE(Exists("b.tok"));
  ASSERT_THAT(Learn("c.tok", {"--kind", "char"}), Succeeds());
  EXPECT_THAT(Learn("c.tok", {"--kind", "byte"}), Fails(2, "c.tok exists"));
  EXPECT_THAT(Weft({"tokenizer", "encode", "c.tok"}, {.input = "the\nth?\n"}), Fails(1, "stdin:2: unknown character \"?\""));
  EXPECT_THAT(Weft({"tokenizer", "decode", "c.tok"}, {.input = "1 2\n1 999\n"}),
              Fails(1, "stdin:2: found \"999\", allowed ids from 0 to"));
  EXPECT_THAT(Weft({"tokenizer", "decode", "c.tok"}, {.input = "1 x\n"}), Fails(1, "stdin:1: found \"x\", allowed ids"));
  EXPECT_THAT(Weft({"tokenizer", "decode", "c.tok"}, {.input = "\x1B[2J\n"}), Fails(1, "stdin:1: found \"\\x1B[2J\", allowed"));
  EXPECT_THAT(Weft({"tokenizer", "encode", "c.tok", "--side", "source"}), Fails(2, "--side"));
  EXPECT_THAT(Weft({"tokenizer", "encode", "a.txt"}), Fails(1, "a.txt: not a tokenizer file"));
  EXPECT_THAT(Weft({"tokenizer", "encode", "nowhere.tok"}), Fails(1, "nowhere.tok: cannot read"));
}

TEST_F(TokenizerTest, TextsWithoutAnythingToLearnFromAreNamed) {
  Write("empty.txt", "");
  Write("mark.txt", "\xEF\xBB\xBF");
  Write("blank.txt", " \t ");
  const std::vector<Args> kinds = {
      {"--kind", "char"}, {"--kind", "byte"}, {"--kind", "word"}, {"--kind", "bpe", "--vocab-size", "280"}};
  for (const Args& kind : kinds) {
    for (const char* empty : {"empty.txt", "mark.txt"}) {
      EXPECT_THAT(Weft(Join({"tokenizer", "train", "-o", "e.tok", empty}, kind)),
                  Fails(1, absl::StrCat("/", empty, ": is empty\n")));
      EXPECT_THAT(Learn("e.tok", Join({empty}, kind)), Fails(1, absl::StrCat("/", empty, ": is empty\n")));
    }
  }
  EXPECT_THAT(Weft({"tokenizer", "train", "-o", "e.tok", "--kind", "word", "blank.txt"}), Fails(1, "/blank.txt: "));
  Write("lines.txt", "\n\n");
  EXPECT_THAT(Weft({"tokenizer", "train", "-o", "e.tok", "--kind", "bpe", "--vocab-size", "280", "lines.txt", "lines.txt"}),
              Fails(1, "/lines.txt: the training text has no symbols"));
  EXPECT_FALSE(Exists("e.tok"));
  EXPECT_THAT(Learn("e.tok", {"--kind", "bpe", "--vocab-size", "280", "--character-coverage", "0.979"}),
              Fails(2, "found 0.979, allowed a number in [0.98, 1]"));
  EXPECT_THAT(Learn("e.tok", {"--kind", "bpe", "--vocab-size", "280", "--character-coverage", "0.98"}), Succeeds());
}

}  // namespace
}  // namespace weft
