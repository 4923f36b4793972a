// Cases about data files: what is empty, short, long, unequal or oddly encoded, and how answers to files are scored.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "data/edit_distance.h"
#include "data/scores/metric.h"
#include "data/text_file.h"
#include "tests/cases/job.h"
#include "train/evaluate.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTextJob[] = R"([data]
kind = "text"
train = "train.tsv"
window = 8

[model]
family = "decoder"
d_model = 8
layers = 1
heads = 2
hidden = 16

[train]
steps = 2
batch_size = 2
)";

absl::Status StatusOf(const Job& job, const Job::Set& set = {}) { return LoadData(ToDataOptions(job.Load(set))).status(); }

std::string MessageOf(const Job& job, const Job::Set& set = {}) { return std::string(StatusOf(job, set).message()); }

TEST(DataCase, B070_AnEmptyValidationIsKnownBeforeTheFirstStep) {
  const Job job(kTextJob, std::string(100, 'a'));
  job.Write("empty.txt", "");
  job.Write("short.txt", "a");
  EXPECT_THAT(MessageOf(job, {"data.valid_fraction=0.001"}), HasSubstr("valid_fraction 0.001 of 100 tokens leaves 1"));
  EXPECT_THAT(MessageOf(job, {"data.valid=" + job.Path("empty.txt")}), HasSubstr("empty.txt: is empty"));
  EXPECT_THAT(MessageOf(job, {"data.valid=" + job.Path("short.txt")}), HasSubstr("1 validation tokens, at least 2"));
  EXPECT_FALSE(LoadTrainingConfig(job.Path("job.toml"), {"data.valid_fraction=1.0"}).ok());
  // Fewer tokens than a window are a shorter window; none at all is said, and no score is made up.
  EXPECT_EQ(job.Train({"data.valid_fraction=0.02"}, "few").validation.targets, 1);
  const TrainResult none = job.Train({"data.valid_fraction=0.0"}, "none");
  EXPECT_FALSE(none.has_validation);
  EXPECT_EQ(none.best_metric, "");
  EXPECT_THAT(BytesOf(job.Path("none/log.txt")), HasSubstr("valid: none, so there will be no validation"));
}

TEST(DataCase, B071_AWindowOfEightNeedsNineTokens) {
  const std::string text = "abcdefghij";
  for (const size_t tokens : {0, 1, 7, 8}) {
    const Job job(kTextJob, text.substr(0, tokens));
    const std::string expected =
        tokens == 0 ? "is empty" : absl::StrCat(tokens, " training tokens are too few for a window of 8");
    EXPECT_THAT(MessageOf(job), HasSubstr(expected));
  }
  for (const int64_t tokens : {9, 10}) {
    const Job job(kTextJob, text.substr(0, tokens));
    const auto data = LoadData(ToDataOptions(job.Load()));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ((*data)->train.size(), tokens - 8);
    Batch batch;
    ValidationBatches batches(&(*data)->train, 16);
    ASSERT_TRUE(batches.Next(&batch).value());
    std::vector<int32_t> inputs(8), targets(8);
    std::iota(inputs.begin(), inputs.end(), 0);
    std::iota(targets.begin(), targets.end(), 1);
    EXPECT_EQ(std::vector<int32_t>(batch.target_ids.begin(), batch.target_ids.begin() + 8), inputs);
    EXPECT_EQ(std::vector<int32_t>(batch.target_labels.begin(), batch.target_labels.begin() + 8), targets);
    EXPECT_EQ(batch.target_labels.back(), tokens - 1);  // the last token is a target
  }
}

TEST(DataCase, B073_LineEndsAndByteOrderMarksAreNoTokens) {
  const Job plain(kTextJob, "a\nb\na\nb\na\nb\n");
  const auto expected = LoadData(ToDataOptions(plain.Load()));
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const std::string& bytes : {std::string("\xEF\xBB\xBF"
                                               "a\r\nb\r\na\r\nb\r\na\r\nb\r\n"),
                                   std::string("a\rb\ra\rb\ra\rb\r")}) {
    const Job job(kTextJob, bytes);
    const auto data = LoadData(ToDataOptions(job.Load()));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ((*data)->content_hash, (*expected)->content_hash);
    EXPECT_EQ((*data)->target_tokenizer->size(), 3);
    EXPECT_EQ(NormalizeNewlines(bytes.substr(bytes[0] == 'a' ? 0 : 3)), "a\nb\na\nb\na\nb\n");  // what is typed
  }
}

TEST(DataCase, B074_EmptyLinesShiftNothingInTwoFiles) {
  const Job job(kPairsJob, "unused");
  job.Write("s", "a\nb\nc\nd\n   \n");
  job.Write("t", "A\nB\n\nD\nE\n");
  job.Write("six", "A\nB\nC\nD\nE\nF\n");
  const auto files = [&](const char* target) {
    return absl::StrCat("data.train=[\"", job.Path("s"), "\", \"", job.Path(target), "\"]");
  };
  const auto data = LoadData(ToDataOptions(job.Load({files("t")})));
  ASSERT_TRUE(data.ok()) << data.status();
  const ExampleSet& train = (*data)->train;
  ASSERT_EQ(train.size(), 3);
  std::string pairs;
  for (int64_t i = 0; i < 3; ++i) {
    absl::StrAppend(&pairs, (*data)->source_tokenizer->Decode(train.Source(i)),
                    (*data)->target_tokenizer->Decode(train.Target(i)));
  }
  EXPECT_EQ(pairs, "aAbBdD");
  EXPECT_THAT((*data)->report, HasSubstr("5 lines, 3 kept, skipped 2 with an empty side (first: line 3)"));
  EXPECT_THAT(MessageOf(job, {files("six")}), HasSubstr("found 5 lines in "));
  EXPECT_THAT(MessageOf(job, {files("six")}), HasSubstr(" and 6 in "));
}

TEST(DataCase, B076_LongLinesAreUsedOrCounted) {
  const std::string megabyte(1 << 20, 'a');
  std::string pairs;
  for (int i = 0; i < 999; ++i) absl::StrAppend(&pairs, "ab\tb\n");
  const Job job(kPairsJob, absl::StrCat(pairs, megabyte, "\tb\n"));
  const auto all = LoadData(ToDataOptions(job.Load()));
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ((*all)->train.max_source_length(), 1 << 20);
  const auto most = LoadData(ToDataOptions(job.Load({"data.max_source_length=1000"})));
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ((*most)->train.size(), 999);
  EXPECT_THAT((*most)->report, HasSubstr("999 kept, left out 1 longer"));
  EXPECT_THAT((*most)->report, HasSubstr("(first: line 1000)"));
  // A corpus of one line.
  const Job text(kTextJob, megabyte + "b");
  const auto corpus = LoadData(ToDataOptions(text.Load()));
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_EQ((*corpus)->train.size(), (1 << 20) + 1 - 8);
}

TEST(DataCase, B076_ASequenceBeyondThePositionTableIsNamed) {
  const Job job(kPairsJob, "abcde\tb\nab\tb\n");
  job.Write("valid.tsv", "abcde\tb\n");
  const Job::Set learned = {"model.positions=learned", "model.max_positions=4", "data.max_source_length=4"};
  const Config config = job.Load(learned);
  auto data = LoadData(ToDataOptions(config));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE(Session::Create(config, data->get()).ok());
  // Validation leaves nothing out: what the model cannot hold is refused.
  Job::Set with_valid = learned;
  with_valid.push_back("data.valid=" + job.Path("valid.tsv"));
  const Config refused = job.Load(with_valid);
  data = LoadData(ToDataOptions(refused));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(std::string(Session::Create(refused, data->get()).status().message()),
              HasSubstr("the longest source of the validation data has 5 tokens"));
}

TEST(DataCase, B077_NulAndOtherControlsAreOrdinaryCharacters) {
  const std::string bytes(
      "a\0b\nc\x01\x7F"
      "de\n",
      10);
  for (const char* kind : {"char", "byte"}) {
    const Job job(kTextJob, bytes);
    const Job::Set set = {absl::StrCat("data.tokenizer={ kind = \"", kind, "\" }")};
    job.Train(set, "run");
    const auto session = LoadSession(job.Path("run"));
    const auto ids = session->target_tokenizer->Encode(bytes);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(ids->size(), bytes.size());
    EXPECT_EQ(session->target_tokenizer->Decode(*ids), bytes) << kind;
  }
  const Job pairs(kPairsJob, std::string("a\0b\tx\0\n", 7));
  const auto data = LoadData(ToDataOptions(pairs.Load()));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->train.Source(0).size(), 3u);
  EXPECT_EQ((*data)->train.Target(0).size(), 2u);
}

TEST(MetricCase, B109_BitsPerByteCountsBytesNotLetters) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "\xC3\xA4\xC3\xB6 \xC3\xBC";  // three letters of two bytes and a space
  for (const char* kind : {"char", "byte", "word"}) {
    const Job job(kTextJob, text);
    job.Write("valid.txt", text);
    const Fresh fresh(
        job.Load({"data.valid=" + job.Path("valid.txt"), absl::StrCat("data.tokenizer={ kind = \"", kind, "\" }")}));
    GradientRunner runner(*fresh.session->model, *fresh.session->parameters);
    for (const int64_t batch_size : {1, 64}) {
      const auto scores = Evaluate(*fresh.session->model, *fresh.session->parameters, fresh.data->valid, {"bits_per_byte"},
                                   batch_size, &runner, {.target_tokenizer = fresh.session->target_tokenizer.get()});
      ASSERT_TRUE(scores.ok()) << scores.status();
      // All but what the first token has.
      const std::string name(kind);
      const double bytes = static_cast<double>(text.size()) - (name == "char" ? 2 : name == "byte" ? 1 : 4);
      const double bits = scores->Get("loss") / std::log(2.0) * static_cast<double>(scores->targets) / bytes;
      EXPECT_NEAR(scores->Get("bits_per_byte"), bits, 1e-12 * bits) << kind;
    }
  }
}

// Answers are made in batches of like sources, yet answer i is that of source i, and every score is that of the whole set.
TEST(MetricCase, B105_AnswersKeepTheirPlacesAndScoresDoNotKnowBatches) {
  const Job job(kPairsJob, UnequalPairs(40));
  std::string valid;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&valid, std::string(1 + i * 7 % 5, static_cast<char>('a' + i % 7)), "\t", std::string(1 + i % 3, 'c'),
                    "\tb\n");
  }
  job.Write("valid.tsv", valid);
  const Fresh fresh(job.Load({"data.valid=" + job.Path("valid.tsv")}));
  const Transformer& model = *fresh.session->model;
  const Parameters& parameters = *fresh.session->parameters;
  const Tensor slab = fresh.session->parameters->Mutable();
  for (int64_t i = 0; i < slab.elements(); ++i) slab.Set(i, slab.At(i) + 0.7 * RandomKey{7}.Normal(i));
  const ExampleSet& set = fresh.data->valid;
  GradientRunner runner(model, parameters);
  const std::vector<std::string> metrics = {"exact_match", "per", "bleu", "chrf", "chrf++", "wer", "cer"};
  for (const int64_t beam : {1, 3}) {
    AnswerOptions options{.beam = beam, .target_tokenizer = fresh.session->target_tokenizer.get()};
    options.text.tokenizer = ScoreTokenizer::kChar;
    const auto expected = Evaluate(model, parameters, set, metrics, 64, &runner, options);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_EQ(expected->answers.size(), 30u);
    for (const int64_t batch_size : {1, 3, 7}) {
      const auto scores = Evaluate(model, parameters, set, metrics, batch_size, &runner, options);
      ASSERT_TRUE(scores.ok()) << scores.status();
      EXPECT_EQ(scores->answers, expected->answers);
      for (const std::string& metric : metrics) EXPECT_EQ(scores->Get(metric), expected->Get(metric)) << metric;
    }
    for (int64_t i = 0; i < set.size(); ++i) {
      const auto alone = DecodeAnswers(model, parameters, set, i, 1, 1, options);
      EXPECT_EQ(options.target_tokenizer->Decode(alone[0]), expected->answers[i]) << i;
    }
    // As `weft score` computes them from files.
    const std::vector<absl::string_view> answers(expected->answers.begin(), expected->answers.end());
    std::vector<std::vector<absl::string_view>> references(2);
    for (int64_t i = 0; i < set.size(); ++i) {
      for (int64_t r = 0; r < 2; ++r) references[r].push_back(set.ReferenceText(i, r));
    }
    for (const char* name : {"bleu", "chrf", "chrf++", "wer", "cer"}) {
      const auto metric = MakeTextMetric(name, options.text);
      EXPECT_EQ(expected->Get(name), (*metric)->Score(SumLines(ScoreLines(**metric, answers, references)))) << name;
    }
  }
}

// The word error rate of pronunciation dictionaries is the part of the words of which no accepted pronunciation was given.
TEST(MetricCase, B108_OfSeveralReferencesTheNearestCounts) {
  ExampleSet set = ExampleSet::Pairs(10, 11);
  const std::vector<std::vector<int32_t>> references = {{1, 2, 3, 4}, {1, 2}};
  const std::vector<absl::string_view> texts = {"a b c d", "a b"};
  set.AddPair({0}, references[0], "x", references, texts);
  set.AddPair({0}, references[0], "x", references, texts);
  PairScores scores;
  scores.Add(ScorePair(set, 0, {1, 2}));
  scores.Add(ScorePair(set, 1, {1, 2, 3}));
  EXPECT_EQ(scores.exact_match(), 0.5);  // a word error rate of 0.5
  EXPECT_EQ(scores.per(), 1.0 / 6.0);    // one edit; 2 and 4 phonemes, the first of equally near references
  const auto per = MakeTextMetric("per", {});
  EXPECT_EQ((*per)->Score(SumLines({(*per)->Line("a b", texts), (*per)->Line("a b c", texts)})), 1.0 / 6.0);
  for (const auto& [metric, larger] : std::vector<std::pair<std::string, bool>>{{"bleu", true},
                                                                                {"chrf", true},
                                                                                {"chrf++", true},
                                                                                {"exact_match", true},
                                                                                {"accuracy", true},
                                                                                {"wer", false},
                                                                                {"cer", false},
                                                                                {"per", false},
                                                                                {"loss", false},
                                                                                {"bits_per_byte", false}}) {
    EXPECT_EQ(LargerIsBetter(metric), larger) << metric;
  }
}

TEST(ColumnsCase, ACheckpointKnowsItsSeparatorAndTrainsToTheSameBits) {
  const std::string data = "ab\tx\tb\nba\ty\ta\nbb\tx\tab\na\tyx\tb\n";
  for (const char* shared : {"false", "true"}) {
    const Job job(kPairsJob, data);
    job.Write("valid.tsv", data);
    const Job::Set set = {"data.columns={ source = [1, 3], target = 2 }",
                          "data.valid=" + job.Path("valid.tsv"),
                          absl::StrCat("data.tokenizer={ kind = \"char\", shared = ", shared, " }"),
                          "train.steps=6",
                          "valid.metrics=[\"loss\", \"bleu\", \"cer\"]",
                          "valid.best=cer",
                          "valid.every=3"};
    job.Train(set, "one");
    const TrainResult result = job.Train(set, "two", RunDir::Mode::kFresh, 2);
    EXPECT_EQ(BytesOf(job.Path("one/checkpoints/step-6.weft")), BytesOf(job.Path("two/checkpoints/step-6.weft")));
    EXPECT_EQ(result.best_metric, "cer");
    const auto session = LoadSession(job.Path("two/checkpoints/step-6.weft"));
    EXPECT_EQ(session->source_tokenizer->sep(), session->source_tokenizer->size() - 1);
    const auto test = LoadEvaluationData(job.Path("valid.tsv"), session->evaluation_options());
    ASSERT_TRUE(test.ok()) << test.status();
    EXPECT_EQ(test->examples.Source(0)[2], session->source_tokenizer->sep());
    GradientRunner runner(*session->model, *session->parameters);
    const auto again = Evaluate(*session->model, *session->parameters, test->examples, {"cer"}, 64, &runner,
                                {.target_tokenizer = session->target_tokenizer.get()});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->Get("cer"), result.validation.Get("cer"));
    EXPECT_EQ(again->Get("loss"), result.validation.Get("loss"));
  }
}

}  // namespace
}  // namespace weft
