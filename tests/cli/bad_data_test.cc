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
  ExpectRefused("data.txt: is a folder");
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
