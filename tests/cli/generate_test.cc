// `weft generate`: what it reads, what it prints for a line, and flags that contradict the model.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// With a run "run" on pairs of bytes, whose model takes 10 positions and has learned nothing.
class GenerateTest : public CliTest {
 protected:
  GenerateTest() {
    Write("job.toml", absl::StrReplaceAll(kPairs, {{"[data]", "[data]\ntokenizer = { kind = \"byte\" }"},
                                                   {"[train]", "positions = \"learned\"\nmax_positions = 10\n[train]"}}));
    Write("pairs.tsv", "ab\tx\nba\ty\n");
    EXPECT_THAT(Train("run"), Succeeds());
  }
  void TrainText() {
    Write("job.toml", kText);
    Write("data.txt", "abcdefghijklmnopqrstuvwxyz\n");
    ASSERT_THAT(Train("text"), Succeeds());
  }
};

TEST_F(GenerateTest, StdinAndPromptsAreReadAsFilesAre) {
  TrainText();
  const Args generate = {"generate", "text", "--max-new-tokens", "3"};
  const std::string plain = Weft(generate, {.input = "abc\n"}).out;
  ASSERT_EQ(plain.size(), 3 + 3 + 1u);
  EXPECT_EQ(Weft(generate, {.input = "\xEF\xBB\xBF"
                                     "abc\r\n"})
                .out,
            plain);
  EXPECT_EQ(Weft(Join(generate, {"--prompt",
                                 "\xEF\xBB\xBF"
                                 "abc"}))
                .out,
            plain);
  const std::string utf16(
      "\xFF\xFE"
      "a\0\n\0",
      6);
  EXPECT_THAT(Weft(generate, {.input = utf16}), Fails(1, "stdin:1: found a UTF-16 byte-order mark"));
  EXPECT_THAT(Weft({"tokenizer", "encode", "text"}, {.input = utf16}), Fails(1, "iconv -f UTF-16"));
  EXPECT_EQ(Weft({"tokenizer", "encode", "text"}, {.input = "\xEF\xBB\xBF"
                                                            "abc\n"})
                .out,
            Weft({"tokenizer", "encode", "text"}, {.input = "abc\n"}).out);
  // A folder can be opened but not read.
  EXPECT_THAT(Wait(Start(generate, {.stdin_path = "."})), Fails(1, "stdin: cannot read: Is a directory"));
}

TEST_F(GenerateTest, InvalidPromptsAreNamedOnce) {
  EXPECT_EQ(Weft({"generate", "run", "--prompt", "a", "--prompt", "b\xff"}).err,
            "--prompt 2:1: invalid UTF-8 at byte offset 1: found the bytes FF\n");
  EXPECT_EQ(Weft({"attention", "run", "--input", "b\xff"}).err,
            "--input:1: invalid UTF-8 at byte offset 1: found the bytes FF\n");
}

// Bytes at random, 9 a line: of 300 lines some have a line break, and all have bytes that are no UTF-8.
TEST_F(GenerateTest, LineIAnswersLineIWhateverTheModelSays) {
  std::string sources;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&sources, i % 2 == 0 ? "ab" : "ba", "\n");
  const Args sample = {"generate", "run", "--temperature", "1000"};
  const std::string lines = Weft(sample, {.input = sources}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 300);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\r'), 0);
  Write("answers.txt", lines);
  EXPECT_THAT(Weft({"score", "--metric", "cer", "--hypothesis", "answers.txt", "--reference", "answers.txt"}), Succeeds());
  // In JSON a line break is no end of a line, and stays.
  const std::string json = Weft(Join(sample, {"--json"}), {.input = sources}).out;
  EXPECT_THAT(json, HasSubstr("\\n"));
  EXPECT_THAT(json, HasSubstr("\\r"));
}

// <bos> and 9 bytes: all that the model can look at, and what a beam of 1 says.
TEST_F(GenerateTest, AnAnswerOfTheModelsLimitCanBeLookedAt) {
  const Outcome attention = Weft({"attention", "run", "--input", "ab"});
  ASSERT_THAT(attention, Succeeds());
  const Json json = Json::parse(attention.out);
  EXPECT_EQ(json["target_tokens"].size(), 10);
  const Args generate = {"generate", "run", "--prompt", "ab", "--json"};
  EXPECT_EQ(Json::parse(Weft(generate).out)["text"], json["answer"]);
  EXPECT_EQ(Json::parse(Weft(Join(generate, {"--beam", "1", "--n-best", "2"})).out)["text"], json["answer"]);
}

TEST_F(GenerateTest, FlagsThatWouldDoNothingAreRefused) {
  const Args generate = {"generate", "run", "--prompt", "ab"};
  EXPECT_THAT(Weft(Join(generate, {"--beam", "1", "--length-penalty", "2"})), Fails(2, "give --beam above 1 as well"));
  for (const char* filter : {"--top-k", "--top-p", "--min-p"}) {
    EXPECT_THAT(Weft(Join(generate, {filter, "1", "--temperature", "0"})),
                Fails(2, "has no meaning with --temperature 0, which is greedy"));
    EXPECT_THAT(Weft(Join(generate, {filter, "1", "--temperature", "0.5"})), Succeeds());
  }
  EXPECT_THAT(Weft(Join(generate, {"--beam", "1", "--n-best", "2", "--json", "--length-penalty", "2"})), Succeeds());
  EXPECT_THAT(Weft(Join(generate, {"--min-length", "10"})),
              Fails(2, "--min-length: found 10, allowed at most 9: the model takes 10 positions"));
  EXPECT_EQ(Json::parse(Weft(Join(generate, {"--min-length", "9", "--json"})).out)["prompt"], "ab");

  Write("job.toml", kLabels);
  Write("labels.tsv", "aa\tleft\nbb\tright\n");
  ASSERT_THAT(Train("labels"), Succeeds());
  const Args classify = {"generate", "labels", "--prompt", "ab"};
  const std::vector<Args> all = {{"--max-new-tokens", "5"}, {"--temperature", "1"}, {"--repetition-penalty", "2"},
                                 {"--min-length", "1"},     {"--beam", "2"},        {"--beam", "1", "--length-penalty", "2"}};
  for (const Args& flags : all) EXPECT_THAT(Weft(Join(classify, flags)), Fails(2, flags[0] + ": a classifier names one class"));
  EXPECT_THAT(Weft(Join(classify, {"--seed", "3"})), Succeeds());
}

}  // namespace
}  // namespace weft
