#include "absl/strings/str_cat.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

// Data that cannot be used: exit 1 with the file and the place, and no run folder.
class BadDataTest : public CliTest {
 protected:
  void ExpectRefused(const std::string& message, const Args& more = {}, int code = 1) {
    EXPECT_THAT(Train("run", more), Fails(code, message));
    EXPECT_FALSE(Exists("run")) << message;
  }
};

TEST_F(BadDataTest, TextThatIsMissingEmptyOrShorterThanAWindow) {
  Write("job.toml", kText);
  ExpectRefused("data.txt: cannot read: No such file");
  Write("data.txt", "");
  ExpectRefused("data.txt: is empty");
  for (const char* text : {"a", "abcdefg", "abcdefgh"}) {  // up to the window of 8
    Write("data.txt", text);
    ExpectRefused(absl::StrCat("data.txt: ", std::string(text).size(), " training tokens are too few for a window of 8"));
  }
  std::filesystem::remove(Path("data.txt"));
  std::filesystem::create_directory(Path("data.txt"));
  ExpectRefused("data.txt: is a folder, expected a file\n");  // as docs/data.md has it
}

TEST_F(BadDataTest, OneWindowIsEnough) {
  Write("job.toml", kText);
  Write("data.txt", "abcdefghi");  // 8 inputs and the successor of the last
  EXPECT_THAT(Train("run"), Succeeds());
}

TEST_F(BadDataTest, InvalidUtf8IsNamedByItsOffset) {
  Write("job.toml", kText);
  Write("data.txt", "abc\ndef\xff ghi");
  ExpectRefused("data.txt:2: invalid UTF-8 at byte offset 7");
}

TEST_F(BadDataTest, ValidationThatLeavesNothing) {
  Write("job.toml", kText);
  Write("data.txt", "abcdefghijklmnopqrstuvwxyz");
  Write("valid.txt", "a");
  Write("strange.txt", "ab!");
  ExpectRefused("valid_fraction 0.001 of 26 tokens", {"--set", "data.valid_fraction=0.001"});
  ExpectRefused("--set data.valid_fraction", {"--set", "data.valid_fraction=1.0"}, 2);
  ExpectRefused("too few for a window", {"--set", "data.valid_fraction=0.9"});
  ExpectRefused("none.txt: cannot read", {"--set", "data.valid=none.txt"});
  ExpectRefused("valid.txt: 1 validation tokens", {"--set", "data.valid=valid.txt"});
  ExpectRefused("strange.txt:1: unknown character \"!\" (U+0021) at character 3", {"--set", "data.valid=strange.txt"});
}

TEST_F(BadDataTest, MalformedPairsAreNamedByLine) {
  Write("job.toml", kPairs);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "pairs.tsv: is empty"},
      {"a\tb\nno tab\n", "pairs.tsv:2: found no tab"},
      {"a\tb\n\na\tb\tc\n", "pairs.tsv:3: found 3 columns"},
      {"a\tb\na\xff\tb\n", "pairs.tsv:2: invalid UTF-8 at byte offset 5"},
      {"\t\n", "pairs.tsv: "},
      {"a\t\n\tb\n", "pairs.tsv: has no pairs"},
  };
  for (const auto& [bytes, message] : cases) {
    Write("pairs.tsv", bytes);
    ExpectRefused(message);
  }
  Write("pairs.tsv", "a\tb\n");
  Write("valid.tsv", "a\tb\na\tz\n");
  ExpectRefused("valid.tsv:2: target: unknown character \"z\"", {"--set", "data.valid=valid.tsv"});
}

TEST_F(BadDataTest, TwoFilesThatDoNotFit) {
  Write("job.toml", kPairs);
  Write("five", "a\nb\nc\nd\ne\n");
  Write("six", "a\nb\nc\nd\ne\nf\n");
  Write("blank", " \n\n \n\n\n");
  Write("empty", "");
  Write("bad", "a\nb\n\xff\nd\ne\n");
  const auto files = [](const std::string& source, const std::string& target) {
    return Args{"--set", absl::StrCat("data.train=[\"", source, "\", \"", target, "\"]")};
  };
  ExpectRefused("five and 6 in ", files("five", "six"));
  ExpectRefused("found 6 lines in ", files("six", "five"));
  ExpectRefused("five: has no pairs (5 lines, 0 kept, skipped 5 with an empty side (first: line 1))", files("five", "blank"));
  ExpectRefused("empty: is empty", files("five", "empty"));
  ExpectRefused("none: cannot read", files("five", "none"));
  ExpectRefused("bad:3: invalid UTF-8 at byte offset 4", files("five", "bad"));
  ExpectRefused("found 5 lines in ", Join(files("five", "five"), {"--set", "data.valid=[\"five\", \"six\"]"}));
  ExpectRefused("six:6: source: unknown character \"f\"",
                Join(files("five", "five"), {"--set", "data.valid=[\"six\", \"six\"]"}));
  ExpectRefused("data.train: found 3 files", {"--set", "data.train=[\"five\", \"five\", \"five\"]"}, 2);
}

TEST_F(BadDataTest, ColumnsThatALineLacks) {
  Write("job.toml", kPairs);
  Write("pairs.tsv", "a\tb\tc\na\tb\n");
  const Args columns = {"--set", "data.columns={ source = [1, 3], target = 2 }"};
  ExpectRefused("pairs.tsv:1: found 3 columns, expected 2 in a training file (source TAB target); data.columns can name");
  ExpectRefused("pairs.tsv:2: found 2 column(s), data.columns names 3", columns);
  Write("pairs.tsv", "a\tb\tc\n");
  EXPECT_THAT(Train("run", columns), Succeeds());
  EXPECT_THAT(Weft({"generate", "run", "--prompt", "a"}), Fails(1, "--prompt 1: found 1 column(s), expected 2"));
  EXPECT_THAT(Weft({"generate", "run", "--prompt", "a\tc"}), Succeeds());
  const std::string answer = Weft({"generate", "run", "--prompt", "a\tc"}).out;
  const Outcome blank = Weft({"generate", "run"}, {.input = "  \na\tc\n\n \t \na\tc\n"});
  ASSERT_THAT(blank, Succeeds());
  EXPECT_EQ(blank.out, absl::StrCat("\n", answer, "\n\n", answer));
  EXPECT_THAT(Weft({"attention", "run", "--input", "a\tc\tb"}), Succeeds());
}

// Bytes that look odd in a line of pairs, and what becomes of them. None may crash, and none may shift a pair.
TEST_F(BadDataTest, OddBytesInPairsAreReadOrRefusedByOneRule) {
  Write("job.toml", kPairs);
  const std::string megabyte(1 << 20, 'a');
  const std::vector<std::pair<std::string, std::string>> refused = {
      {std::string("\xFF\xFE"
                   "a\0\t\0b\0",
                   8),
       "pairs.tsv:1: found a UTF-16 byte-order mark"},
      {"a\tb\na\tb\xC3\n", "pairs.tsv:2: invalid UTF-8"},
      {"a\tb\n\t\t\n", "pairs.tsv:2: found 3 columns"},
      {"a\tb\nc\xE2\x80\xA8"
       "d\n",
       "pairs.tsv:2: found no tab"},  // U+2028 breaks no line
  };
  for (const auto& [bytes, message] : refused) {
    Write("pairs.tsv", bytes);
    ExpectRefused(message);
  }
  const std::vector<std::pair<std::string, std::string>> read = {
      {"\xEF\xBB\xBF"
       "a\tb\r\nb\ta\r\n",
       "2 lines, 2 kept; 2 pairs, 2 source tokens (longest 1)"},
      {"a\tb\rb\ta\r", "2 lines, 2 kept"},
      {std::string("a\0\tb\nb\ta\n", 9), "2 lines, 2 kept; 2 pairs, 3 source tokens (longest 2)"},
      {"\n\n \na\tb\n\n", "5 lines, 1 kept, skipped 4 empty lines"},
      {"a\tb\n\t\nc\t\n\td\nb\ta\n", "5 lines, 2 kept, skipped 3 with an empty side (first: line 2)"},
      {"a\xE2\x80\xA8\tb\n", "1 line, 1 kept; 1 pairs, 2 source tokens"},
      {absl::StrCat("a\tb\n", megabyte, "\tb\n"), "2 lines, 1 kept, left out 1 longer"},
  };
  for (size_t i = 0; i < read.size(); ++i) {
    Write("pairs.tsv", read[i].first);
    const std::string run = absl::StrCat("run", i);
    EXPECT_THAT(Train(run, {"--set", "train.steps=1", "--set", "data.max_source_length=1000"}), Succeeds()) << i;
    EXPECT_THAT(Read(run + "/log.txt"), testing::HasSubstr(read[i].second));
  }
}

TEST_F(BadDataTest, ALineOfSpacesIsNoSourceToAnswer) {
  Write("pairs.tsv", "a b\tb a\nb a\ta b\n");
  Write("labels.tsv", "a b\tx\nb a\ty\n");
  for (const char* job : {kPairs, kLabels}) {
    Write("job.toml", job);
    const std::string run = job == kPairs ? "pairs" : "labels";
    ASSERT_THAT(Train(run), Succeeds());
    const std::string answer = Weft({"generate", run, "--prompt", "a b"}).out;
    const Outcome blank = Weft({"generate", run}, {.input = "   \na b\n\n"});
    ASSERT_THAT(blank, Succeeds());
    EXPECT_EQ(blank.out, absl::StrCat("\n", answer, "\n"));
  }
}

TEST_F(BadDataTest, AnotherModelsDataIsRefused) {
  Write("job.toml", kPairs);
  Write("pairs.tsv", "ab\txy\n");
  ASSERT_THAT(Train("letters"), Succeeds());
  Write("greek.tsv", "\xCE\xB1\txy\n");
  EXPECT_THAT(Weft({"eval", "letters", "--data", "greek.tsv"}),
              Fails(1, "greek.tsv:1: source: unknown character \"\xCE\xB1\" (U+03B1) at character 1"));
  Write("swapped.tsv", "xy\tab\n");
  EXPECT_THAT(Weft({"eval", "letters", "--data", "swapped.tsv"}), Fails(1, "swapped.tsv:1: source: unknown character \"x\""));
}

TEST_F(BadDataTest, MalformedLabelsAreNamedByLine) {
  Write("job.toml", kLabels);
  for (const auto& [bytes, message] : std::vector<std::pair<std::string, std::string>>{
           {"a\tx\nb\n", "labels.tsv:2: "}, {"a\tx\nb\ty\tz\n", "labels.tsv:2: "}, {"a\tx\nb\tx\n", "at least 2: x"}}) {
    Write("labels.tsv", bytes);
    ExpectRefused(message);
  }
  Write("labels.tsv", "a\tx\nb\ty\n");
  Write("valid.tsv", "a\tq\n");
  ExpectRefused("valid.tsv:1: unknown class \"q\"", {"--set", "data.valid=valid.tsv"});
}

TEST_F(BadDataTest, QuotedTextCannotCutOrColourAMessage) {
  Write("job.toml", kPairs);
  Write("pairs.tsv", absl::StrCat("a\tb\n\x1B[31m", std::string(1, '\0'), "end\n"));
  ExpectRefused("pairs.tsv:2: found no tab, expected source TAB target: \"\\x1B[31m\\x00end\"\n");
  Write("pairs.tsv", "a\tb\n" + std::string(59, 'x') + "\xE6\x97\xA5 and more\n");  // 60 bytes would cut the last character
  ExpectRefused("target: \"" + std::string(59, 'x') + "\"...\n");
  // Nor can a name that is no part of a text.
  ExpectRefused("data.txt\\x1B[2J: cannot read: No such file", {"--set", "data.train=data.txt\x1B[2J"});
  Write("job.toml", kLabels);
  Write("labels.tsv", "a\tx\x07\nb\ty\n");
  Write("valid.tsv", "a\tq\xC2\x9B\n");
  ExpectRefused("valid.tsv:1: unknown class \"q\\xC2\\x9B\", allowed x\\x07, y", {"--set", "data.valid=valid.tsv"});
}

TEST_F(BadDataTest, SequencesBeyondThePositionTable) {
  Write("job.toml", kPairs);
  const Args learned = {"--set", "model.positions=learned", "--set", "model.max_positions=4"};
  Write("pairs.tsv", "abcde\tb\n");
  ExpectRefused("the longest source of the training data has 5 tokens", learned);
  Write("pairs.tsv", "a\tbcde\n");  // four and <bos>
  ExpectRefused("the longest target of the training data has 5 tokens", learned);
  Write("job.toml", kText);
  Write("data.txt", "abcdefghijklmnopqrstuvwxyz");
  ExpectRefused("model.max_positions: found 8, allowed at least data.window = 9", {"--set", "data.window=9"}, 2);
}

TEST_F(BadDataTest, FoldersThatCannotBeMade) {
  Write("job.toml", kReverse);
  EXPECT_THAT(Train("job.toml"), Fails(2, "job.toml: the run folder is a file"));
  EXPECT_THAT(Train("job.toml/run"), Fails(1, "job.toml/run: "));
  EXPECT_THAT(Train("/proc/weft-run"), Fails(1, "/proc/weft-run: cannot make the folder"));
}

TEST_F(BadDataTest, AFullDiskIsReportedAndLeavesNothingHalfWritten) {
  Write("job.toml", kReverse);
  const Outcome outcome =
      Weft({"train", "job.toml", "--quiet", "--set", "run.dir=run"}, {.file_size_limit = 20000});  // a checkpoint has 40 kB
  EXPECT_THAT(outcome, Fails(1, "run/checkpoints/step-10.weft"));
  EXPECT_THAT(NamesIn(Path("run/checkpoints")), testing::IsEmpty());
  EXPECT_FALSE(Exists("run/last"));
}

TEST_F(BadDataTest, OddPathsWork) {
  const std::string odd = "r\xc3\xbcn 1#%20'x";
  std::filesystem::create_directory(Path(odd));
  Write(odd + "/my job#.toml", kText);
  Write(odd + "/data.txt", "abcdefghijklmnop");
  EXPECT_THAT(Weft({"train", odd + "/my job#.toml", "--quiet", "--set", "run.dir=" + odd + "/out a/b"}), Succeeds());
  EXPECT_TRUE(Exists(odd + "/out a/b/checkpoints/step-4.weft"));
  EXPECT_THAT(Weft({"eval", odd + "/out a/b", "--data", odd + "/data.txt"}), Succeeds());
  EXPECT_THAT(Weft({"eval", odd + "/out a/b", "--data", odd + "/none.txt"}), Fails(1, odd + "/none.txt"));
  EXPECT_THAT(NamesIn(Path("")), testing::ElementsAre(odd));  // nothing made elsewhere
}

}  // namespace
}  // namespace weft
