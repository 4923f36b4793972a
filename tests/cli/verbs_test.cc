// The verbs that use a trained model, and those that list, check and measure.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/cli/cli_test.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::vector<Json> JsonLines(const std::string& text) {
  std::vector<Json> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty()))
    lines.push_back(Json::parse(line.begin(), line.end()));
  return lines;
}

// With a run of the task `reverse` in the folder "run".
class VerbsTest : public CliTest {
 protected:
  VerbsTest() {
    Write("job.toml", kReverse);
    EXPECT_THAT(Train("run"), Succeeds());
  }
};

TEST_F(VerbsTest, EvalRepeatsTheTrainingsLastValidation) {
  const Json trained = JsonLines(Read("run/metrics.jsonl")).back();
  const Outcome outcome = Weft({"eval", "run/checkpoints/step-20.weft", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  const Json eval = Json::parse(outcome.out);
  EXPECT_EQ(eval["step"], 20);
  EXPECT_EQ(eval["examples"], 20);
  for (const char* metric : {"loss", "perplexity", "accuracy", "exact_match", "per"}) {
    EXPECT_EQ(eval[metric], trained[absl::StrCat("eval_", metric)]) << metric;
  }
  // A run means its best checkpoint.
  EXPECT_EQ(absl::StrCat("run/", Read("run/best")),
            absl::StrCat(Json::parse(Weft({"eval", "run", "--json"}).out)["checkpoint"].get<std::string>(), "\n"));
}

TEST_F(VerbsTest, AFolderWhoseNameIsNotUtf8CanBeUsed) {
  const std::string odd = "r\xff";
  std::filesystem::rename(Path("run"), Path(odd));
  for (const char* verb : {"eval", "inspect"}) {
    const Outcome outcome = Weft({verb, odd, "--json"});
    ASSERT_THAT(outcome, Succeeds());
    EXPECT_EQ(Json::parse(outcome.out)["step"].is_number(), true);
  }
  EXPECT_THAT(Weft({"train", "job.toml", "--set", "run.dir=" + odd}), Fails(2, "run.dir: the value is not valid UTF-8"));
}

TEST_F(VerbsTest, EvalReadsAFileWithReferences) {
  Write("test.tsv", "abc\tcba\tcbb\nab\tba\n");
  const Outcome outcome = Weft({"eval", "run", "--data", "test.tsv"});
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("exact_match"));
  Write("bad.tsv", "abc\tcba\nab?\tba\n");
  EXPECT_THAT(Weft({"eval", "run", "--data", "bad.tsv"}), Fails(1, "bad.tsv:2: source: unknown character \"?\" (U+003F)"));
}

TEST_F(VerbsTest, EvalOfALoneCheckpointAsksForItsData) {
  Write("job.toml", kPairs);
  Write("pairs.tsv", "a\tb\nb\ta\n");
  ASSERT_THAT(Train("pairs"), Succeeds());
  EXPECT_THAT(Weft({"eval", "pairs"}), Fails(1, "--data"));  // it had no validation data
  Write("lone.weft", Read("pairs/checkpoints/step-4.weft"));
  EXPECT_THAT(Weft({"eval", "lone.weft"}), Fails(1, "pass --data FILE"));
  EXPECT_THAT(Weft({"eval", "lone.weft", "--data", "pairs.tsv"}), Succeeds());
}

// As many symbols as before, but others: the ids would mean something else.
TEST_F(VerbsTest, EvalRefusesDataThatGivesAnotherVocabulary) {
  Write("job.toml", kPairs);
  Write("pairs.tsv", "a\tb\nb\ta\n");
  Write("valid.tsv", "a\tb\n");
  ASSERT_THAT(Train("pairs", {"--set", "data.valid=valid.tsv"}), Succeeds());
  ASSERT_THAT(Weft({"eval", "pairs"}), Succeeds());
  Write("pairs.tsv", "a\tb\nc\ta\n");
  EXPECT_THAT(Weft({"eval", "pairs"}), Fails(1, "gives another vocabulary"));
}

TEST_F(VerbsTest, LineIAnswersLineIAloneAsInABatch) {
  const Args sample = {"generate", "run", "--temperature", "1", "--max-new-tokens", "12"};
  std::string input;
  std::vector<std::string> lines;
  for (int i = 0; i < 70; ++i) lines.push_back(i % 9 == 4 ? "" : std::string(1 + i % 5, static_cast<char>('a' + i % 26)));
  for (const std::string& line : lines) input += line + "\n";
  const Outcome batch = Weft(sample, {.input = input});
  ASSERT_THAT(batch, Succeeds());
  const std::vector<std::string> answers = absl::StrSplit(batch.out, '\n');
  ASSERT_EQ(answers.size(), 71);  // and the end of the last line
  EXPECT_EQ(answers[4], "");

  EXPECT_EQ(Weft(Join(sample, {"--threads", "1"}), {.input = input}).out, batch.out);
  EXPECT_NE(Weft(Join(sample, {"--seed", "2"}), {.input = input}).out, batch.out);
  // Greedy answers do not depend on the place in the input either.
  const Args greedy = {"generate", "run", "--max-new-tokens", "12"};
  const std::vector<std::string> all = absl::StrSplit(Weft(greedy, {.input = input}).out, '\n');
  for (int i : {0, 7, 65}) EXPECT_EQ(Weft(Join(greedy, {"--prompt", lines[i]})).out, all[i] + "\n");
  // The first line's sampled answer is that of the line alone.
  EXPECT_EQ(Weft(Join(sample, {"--prompt", lines[0]})).out, answers[0] + "\n");
}

TEST_F(VerbsTest, BeamsAnswerLineByLineForAnyThreadsAndListTheNBest) {
  const Args beams = {"generate", "run", "--beam", "3", "--max-new-tokens", "6"};
  std::string input;
  for (int i = 0; i < 90; ++i) input += (i % 9 == 4 ? "" : std::string(1 + i % 5, static_cast<char>('a' + i % 26))) + "\n";
  const Outcome plain = Weft(beams, {.input = input});
  ASSERT_THAT(plain, Succeeds());
  EXPECT_EQ(Weft(Join(beams, {"--threads", "1"}), {.input = input}).out, plain.out);
  const std::vector<std::string> lines = absl::StrSplit(plain.out, '\n');
  ASSERT_EQ(lines.size(), 91);

  const Outcome listed =
      Weft(Join(beams, {"--n-best", "3", "--min-length", "2", "--length-penalty", "0.5", "--json"}), {.input = input});
  ASSERT_THAT(listed, Succeeds());
  const std::vector<Json> json = JsonLines(listed.out);
  ASSERT_EQ(json.size(), 90);
  EXPECT_EQ(json[4], Json({{"prompt", ""}, {"text", ""}, {"n_best", Json::array()}}));
  for (size_t i = 0; i < json.size(); ++i) {
    if (i % 9 == 4) continue;
    const Json& n_best = json[i]["n_best"];
    ASSERT_EQ(n_best.size(), 3) << json[i];
    EXPECT_EQ(n_best[0]["text"], json[i]["text"]);
    for (size_t h = 0; h < 3; ++h) {
      EXPECT_GE(n_best[h]["text"].get<std::string>().size(), 2);
      EXPECT_LE(n_best[h]["score"], h == 0 ? Json(0.0) : n_best[h - 1]["score"]);
    }
  }
  // A line alone has the text and the scores of the line among others.
  const Outcome alone = Weft(Join(beams, {"--n-best", "3", "--min-length", "2", "--length-penalty", "0.5", "--json", "--prompt",
                                          json[7]["prompt"].get<std::string>()}));
  EXPECT_EQ(Json::parse(alone.out), json[7]);
  EXPECT_THAT(Weft(Join(beams, {"--min-length", "7"})),
              Fails(2, "--min-length: found 7, allowed at most --max-new-tokens = 6"));
}

TEST_F(VerbsTest, EvalAndValidationsCanUseABeam) {
  ASSERT_THAT(Train("beam", {"--set", "valid.beam=8", "--set", "valid.length_penalty=4"}), Succeeds());
  const auto scores = [&](const Args& args) {
    const Outcome outcome = Weft(Join({"eval", "--json"}, args));
    EXPECT_THAT(outcome, Succeeds());
    return Json::parse(outcome.out);
  };
  const Json own = scores({"beam/checkpoints/step-20.weft"});
  EXPECT_EQ(own["per"], JsonLines(Read("beam/metrics.jsonl")).back()["eval_per"]);
  const Json greedy = scores({"run/checkpoints/step-20.weft"});
  const Json asked = scores({"run/checkpoints/step-20.weft", "--beam", "8", "--length-penalty", "4"});
  EXPECT_EQ(asked["per"], own["per"]);  // the same weights
  EXPECT_EQ(asked["loss"], greedy["loss"]);
  EXPECT_NE(asked["per"], greedy["per"]);
  EXPECT_EQ(scores({"beam/checkpoints/step-20.weft", "--beam", "1"})["per"], greedy["per"]);
  EXPECT_THAT(Weft({"eval", "run", "--length-penalty", "0.5"}), Fails(2, "give --beam above 1"));
}

TEST_F(VerbsTest, GenerateKeepsTheNumberOfLines) {
  EXPECT_EQ(Weft({"generate", "run"}, {.input = ""}).out, "");
  EXPECT_EQ(Weft({"generate", "run"}, {.input = "\n\n"}).out, "\n\n");
  const std::vector<Json> json = JsonLines(Weft({"generate", "run", "--json"}, {.input = "abc\r\n\r\nde"}).out);
  ASSERT_EQ(json.size(), 3);
  EXPECT_EQ(json[0]["prompt"], "abc");
  EXPECT_EQ(json[1]["text"], "");
  EXPECT_EQ(json[2]["prompt"], "de");
}

TEST_F(VerbsTest, UnknownCharactersAtInferenceAreNamedWithTheirPlace) {
  const Outcome prompt = Weft({"generate", "run", "--prompt", "abc", "--prompt", "a?c"});
  EXPECT_THAT(prompt, Fails(1, "--prompt 2: unknown character \"?\" (U+003F) at character 2"));
  EXPECT_EQ(prompt.out, "");
  EXPECT_THAT(Weft({"generate", "run"}, {.input = "abc\nab\xc3\xa9\n"}), Fails(1, "stdin:2: unknown character"));
  EXPECT_THAT(Weft({"generate", "run"}, {.input = "abc\nab\xff\n"}), Fails(1, "stdin:2: invalid UTF-8 at byte offset 6"));
  EXPECT_THAT(Weft({"attention", "run", "--input", "a?c"}), Fails(1, "--input source: unknown character \"?\""));
  EXPECT_THAT(Weft({"attention", "run", "--input", ""}), Fails(1, "--input source is empty"));
}

// The cache grows with the answers: a huge limit costs nothing by itself.
TEST_F(VerbsTest, AHugeLimitOfTokensCostsNothing) {
  EXPECT_THAT(Weft({"generate", "run", "--prompt", "abc", "--max-new-tokens", "1048576"}), Succeeds());
}

TEST_F(VerbsTest, LanguageModelsContinueLongPrompts) {
  Write("job.toml", kText);
  Write("data.txt", "abcdefghijklmnopqrstuvwxyz");
  ASSERT_THAT(Train("text"), Succeeds());
  const Args generate = {"generate", "text", "--max-new-tokens", "5", "--prompt"};
  const Outcome outcome = Weft(Join(generate, {"abc"}));
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_EQ(outcome.out.size(), 3 + 5 + 1);
  EXPECT_EQ(outcome.out.substr(0, 3), "abc");
  EXPECT_EQ(Weft(Join(generate, {std::string(3000, 'a')})).out.size(), 3000 + 5 + 1);  // the window is 8
  EXPECT_THAT(Weft(Join(generate, {""})), Fails(1, "empty prompt"));
  EXPECT_THAT(Weft({"attention", "text", "--input", "abcdefghi"}), Fails(1, "--input text has 9 tokens"));
}

TEST_F(VerbsTest, ClassifiersNameAClass) {
  Write("job.toml", kLabels);
  Write("labels.tsv", "aa\tleft\nbb\tright\n");
  ASSERT_THAT(Train("labels"), Succeeds());
  EXPECT_THAT(Weft({"generate", "labels", "--prompt", "ab"}).out, testing::AnyOf("left\n", "right\n"));
}

// Case B079 on the command line: what is streamed is what JSON holds, in the order of the prompts.
TEST_F(VerbsTest, StreamedTextsAreThoseOfJson) {
  Write("job.toml", absl::StrReplaceAll(kText, {{"[data]", "[data]\ntokenizer = { kind = \"byte\" }"}}));
  Write("data.txt", "地球の人 地球の人 地球の人 地球の人 😀");
  ASSERT_THAT(Train("text"), Succeeds());
  const Args sample = {"generate", "text", "--temperature",        "0.1", "--max-new-tokens", "40",
                       "--min-p",  "0.01", "--repetition-penalty", "1.1"};
  const Args prompts = {"--prompt", "地", "--prompt", "人 ", "--prompt", "a"};
  const Outcome streamed = Weft(Join(sample, prompts));
  ASSERT_THAT(streamed, Succeeds());
  EXPECT_EQ(Weft(Join(Join(sample, prompts), {"--threads", "1"})).out, streamed.out);
  const std::vector<Json> json = JsonLines(Weft(Join(Join(sample, prompts), {"--json"})).out);
  ASSERT_EQ(json.size(), 3);
  std::string printed;  // as JSON writes it: what is no UTF-8 as U+FFFD
  for (const Json& line : json) absl::StrAppend(&printed, line["text"].get<std::string>(), "\n");
  EXPECT_EQ(Json(streamed.out).dump(-1, ' ', false, Json::error_handler_t::replace), Json(printed).dump());
  const Outcome beams = Weft({"generate", "text", "--beam", "2", "--max-new-tokens", "5", "--prompt", "地"});
  ASSERT_THAT(beams, Succeeds());
  EXPECT_EQ(beams.out.size(), 3 + 5 + 1);
  EXPECT_THAT(Weft(Join(sample, {"--prompt", "a", "--min-length", "2"})), Fails(2, "--min-length"));
  EXPECT_THAT(Weft({"eval", "text", "--beam", "2", "--data", "data.txt"}), Fails(2, "generates no answers"));
}

// Each row of weights is a distribution over the keys; shapes are those of the tokens; the decoder looks back only.
TEST_F(VerbsTest, AttentionRowsSumToOneAndFitTheTokens) {
  const Outcome outcome = Weft({"attention", "run", "--input", "abcde\tedc"});
  ASSERT_THAT(outcome, Succeeds());
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["source_tokens"], Json({"a", "b", "c", "d", "e"}));
  EXPECT_EQ(json["target_tokens"], Json({"<bos>", "e", "d", "c"}));
  EXPECT_EQ(json["answer"], "edc");
  const std::vector<std::tuple<std::string, size_t, size_t>> expected = {
      {"encoder.0.self_attention", 5, 5}, {"decoder.0.self_attention", 4, 4}, {"decoder.0.cross_attention", 4, 5}};
  ASSERT_EQ(json["layers"].size(), expected.size());
  for (size_t l = 0; l < expected.size(); ++l) {
    const auto& [path, queries, keys] = expected[l];
    const Json& layer = json["layers"][l];
    EXPECT_EQ(layer["layer"], path);
    ASSERT_EQ(layer["heads"].size(), 2);
    for (const Json& head : layer["heads"]) {
      ASSERT_EQ(head.size(), queries);
      for (size_t q = 0; q < queries; ++q) {
        ASSERT_EQ(head[q].size(), keys);
        double sum = 0;
        for (size_t k = 0; k < keys; ++k) {
          sum += head[q][k].get<double>();
          if (path == "decoder.0.self_attention" && k > q) {
            EXPECT_EQ(head[q][k], 0.0);
          }
        }
        EXPECT_NEAR(sum, 1.0, 1e-5);  // f32 weights
      }
    }
  }
  // Without a target it is the model's own answer.
  const std::string answer = Json::parse(Weft({"attention", "run", "--input", "abcde"}).out)["answer"];
  EXPECT_EQ(answer + "\n", Weft({"generate", "run", "--prompt", "abcde"}).out);
}

TEST_F(VerbsTest, InspectListsTensorsStepAndConfig) {
  const Outcome text = Weft({"inspect", "run/checkpoints/step-20.weft"});
  EXPECT_THAT(text, Succeeds());
  for (const char* part : {"step        20", "source_embedding.weight", "optimizer.m/", "d_model = 8"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const Json json = Json::parse(Weft({"inspect", "run/checkpoints/step-20.weft", "--json"}).out);
  EXPECT_EQ(json["step"], 20);
  int64_t elements = 0;
  for (const Json& tensor : json["tensors"]) {
    if (tensor["name"].get<std::string>().rfind("optimizer.", 0) == 0) continue;
    int64_t size = 1;
    for (int64_t dim : tensor["shape"]) size *= dim;
    elements += size;
    EXPECT_EQ(tensor["bytes"], 4 * size);
  }
  EXPECT_EQ(json["parameters"], elements);
}

class ListingVerbsTest : public CliTest {};

TEST_F(ListingVerbsTest, LayersListsTheRegisteredOnesWithTheirOptions) {
  const Outcome text = Weft({"layers"}), json = Weft({"layers", "--json"});
  EXPECT_THAT(text, Succeeds());
  std::vector<std::string> names;
  for (const Json& line : JsonLines(json.out)) {
    names.push_back(line["name"]);
    EXPECT_THAT(text.out, HasSubstr(names.back() + ": "));
    EXPECT_TRUE(line["options"].is_array());
  }
  EXPECT_THAT(names,
              testing::IsSupersetOf({"self_attention", "cross_attention", "feed_forward", "layer_norm", "rms_norm", "linear"}));
}

TEST_F(ListingVerbsTest, GradcheckChecksByNameAndSuggests) {
  const Outcome some = Weft({"gradcheck", "softmax", "feed_forward"});
  EXPECT_THAT(some, Succeeds());
  EXPECT_THAT(some.out, HasSubstr("2 checks, 0 failed"));
  EXPECT_THAT(Weft({"gradcheck", "softmaks"}), Fails(2, "did you mean \"softmax\"?"));
  Write("job.toml", kReverse);
  EXPECT_THAT(Weft({"gradcheck", "softmax", "--config", "job.toml"}), Fails(2, "not both"));
  for (const Json& line : JsonLines(Weft({"gradcheck", "softmax", "--json"}).out)) {
    for (const char* key : {"check", "name", "passed", "max_error", "index", "analytic", "numeric", "received_gradient"}) {
      EXPECT_TRUE(line.contains(key)) << key;
    }
  }
}

TEST_F(ListingVerbsTest, GradcheckListsEveryOpAndLayer) {
  const Outcome all = Weft({"gradcheck"});
  EXPECT_THAT(all, Succeeds());
  EXPECT_THAT(all.out, HasSubstr(", 0 failed"));
  for (const char* name : {"op matmul", "op attention", "op linear_cross_entropy", "op layer_norm", "layer layer_norm",
                           "layer self_attention", "layer add_norm", "layer embedding"}) {
    EXPECT_THAT(all.out, HasSubstr(absl::StrCat("ok     ", name, "\n")));
  }
}

TEST_F(ListingVerbsTest, EveryShippedConfigPassesItsGradientCheckAndReprintsItself) {
  int count = 0;
  for (const std::string& name : NamesIn(WEFT_CONFIGS)) {
    ++count;
    const std::string path = absl::StrCat(WEFT_CONFIGS, "/", name);
    EXPECT_THAT(Weft({"gradcheck", "--config", path}), Succeeds()) << name;
    const Outcome printed = Weft({"config", path});
    ASSERT_THAT(printed, Succeeds());
    Write("printed.toml", printed.out);
    EXPECT_EQ(Weft({"config", "printed.toml"}).out, printed.out) << name;
  }
  EXPECT_GE(count, 3);
}

TEST_F(ListingVerbsTest, TheCommandLineWinsOverTheFileAndTheLastOverTheFirst) {
  Write("job.toml", kReverse);
  const Outcome printed = Weft({"config", "job.toml", "--set", "optimizer.lr=0.5", "--set", "optimizer.lr=0.25"});
  EXPECT_THAT(printed.out, HasSubstr("\nlr = 0.25\n"));
}

}  // namespace
}  // namespace weft
