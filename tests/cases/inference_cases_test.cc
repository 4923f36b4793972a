// Cases about models in use: caches, positions, dropout, the end of sequences.
#include <algorithm>
#include <cmath>
#include <set>

#include "layers/positions.h"
#include "tests/cases/job.h"
#include "train/decode.h"
#include "train/evaluate.h"

namespace weft {
namespace {

constexpr char kTextJob[] = R"([data]
kind = "text"
train = "train.tsv"
window = 8

[model]
family = "decoder"
d_model = 16
layers = 2
heads = 2
init = "gpt2"

[train]
steps = 1
batch_size = 2
)";

int32_t ArgMax(const Tensor& row) {
  const float* values = row.data<float>();
  return static_cast<int32_t>(std::max_element(values, values + row.elements()) - values);
}

// Large random weights, so that each token depends on all before it.
void Roughen(Parameters* parameters) {
  const Tensor slab = parameters->Mutable();
  for (int64_t i = 0; i < slab.elements(); ++i) slab.Set(i, slab.At(i) + 0.7 * RandomKey{7}.Normal(i));
}

// More tokens than a cache holds at first, so it grows on the way; against a pass over the whole prefix for each token.
TEST(CacheCase, B013_CachedTextEqualsRecomputedText) {
  const Job job(kTextJob, "the quick brown fox jumps over the lazy dog");
  const Fresh fresh(job.Load());
  const Transformer& model = *fresh.session->model;
  ASSERT_TRUE(model.decodes_with_state());
  Roughen(fresh.session->parameters.get());
  const std::vector<int32_t> prompt = {3, 1, 4};
  Context context(*fresh.session->parameters);
  const DecodeOptions options{.max_new_tokens = 150};
  const std::vector<int32_t> cached = ContinueText(context, model, prompt, 0, options, 0, [](int32_t) {});

  std::vector<int32_t> text = prompt;
  for (int64_t i = 0; i < options.max_new_tokens; ++i) {
    context.Begin(Tensor(), {});
    const Sequence sequence{0, static_cast<int32_t>(text.size()), 0, 0};
    const Variable hidden = model.Decode(context, text, {&sequence, 1});
    const auto last = static_cast<int32_t>(text.size()) - 1;
    text.push_back(ArgMax(model.Logits(context, GatherRows(hidden, {&last, 1})).value()));
  }
  EXPECT_EQ(cached, std::vector<int32_t>(text.begin() + 3, text.end()));
  // A text of one token only would say little.
  EXPECT_GE(std::set<int32_t>(cached.begin(), cached.end()).size(), 3);
}

// Answers of 150 tokens from a batch, whose cache grows for all slots at once, equal those of each source alone.
TEST(CacheCase, B013_LongAnswersInABatchEqualThoseAlone) {
  const Job job(kPairsJob, UnequalPairs(10));
  const Fresh fresh(job.Load());
  const std::vector<std::vector<int32_t>> ids = {{0, 1, 2}, {3}, {4, 4, 5, 1}};
  const std::vector<absl::Span<const int32_t>> sources(ids.begin(), ids.end());
  Roughen(fresh.session->parameters.get());
  const DecodeOptions options{.max_new_tokens = 150, .temperature = 1.0};
  const int32_t bos = fresh.session->target_tokenizer->bos(), no_eos = -1;
  Context context(*fresh.session->parameters);
  const auto together = DecodeSources(context, *fresh.session->model, sources, {0, 1, 2}, bos, no_eos, options);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(together[i].size(), 150);
    EXPECT_EQ(DecodeSources(context, *fresh.session->model, {&sources[i], 1}, {i}, bos, no_eos, options)[0], together[i]);
  }
}

TEST(PositionsCase, B016_LengthsAboveTheTableAreRefusedBeforeTraining) {
  const Job job(kTextJob, "the quick brown fox jumps over the lazy dog");
  const Job::Set learned = {"model.positions=learned", "model.max_positions=8", "data.window=16"};
  const auto config = LoadTrainingConfig(job.Path("job.toml"), learned);
  ASSERT_TRUE(absl::IsInvalidArgument(config.status())) << config.status();
  EXPECT_NE(config.status().message().find("model.max_positions: found 8, allowed at least data.window = 16"),
            std::string::npos)
      << config.status();
  EXPECT_TRUE(absl::IsInvalidArgument(LoadTrainingConfig(job.Path("job.toml"), {"data.window=0"}).status()));
}

// Width 5: three sines and two cosines, of frequencies 10000^(-2i/5).
TEST(PositionsCase, B016_AnOddWidthHasOneMoreSine) {
  Parameters parameters;
  const SinusoidalPositions layer(Builder(&parameters), {.d_model = 5});
  parameters.Allocate(DType::kF64, 1);
  Context context(parameters);
  context.Begin(Tensor(), {});
  const Tensor zeros = context.tape().Allocate(DType::kF64, {2, 5});
  zeros.Zero();
  const Sequence sequence{0, 2, 0, 0};
  context.sequences = {&sequence, 1};
  const Tensor rows = layer.Forward(context, context.tape().Constant(zeros)).value();
  const double w1 = std::pow(10000.0, -0.4), w2 = std::pow(10000.0, -0.8);
  const double expected[] = {0, 1, 0, 1, 0, std::sin(1.0), std::cos(1.0), std::sin(w1), std::cos(w1), std::sin(w2)};
  for (int64_t i = 0; i < 10; ++i) EXPECT_NEAR(rows.At(i), expected[i], 1e-15) << i;  // a few f64 roundings
  const Job job(kTextJob, "abcdefghijklmnop");
  EXPECT_EQ(job.Train({"model.d_model=5", "model.heads=1", "model.hidden=7"}, "run").step, 1);
}

TEST(DropoutCase, B019_EvaluationAndGreedyAnswersUseNoDropout) {
  const Job job(kPairsJob, UnequalPairs(12));
  job.Write("valid.tsv", UnequalPairs(9));
  const std::string valid = absl::StrCat("data.valid=", job.Path("valid.tsv"));
  const Fresh dropping(job.Load({valid, "model.dropout=0.5"})), plain(job.Load({valid}));
  const std::vector<std::string> metrics = {"exact_match", "per"};
  GradientRunner runner(*dropping.session->model, *dropping.session->parameters);
  GradientRunner plain_runner(*plain.session->model, *plain.session->parameters);
  const auto scores = [&](const Fresh& fresh, GradientRunner* its_runner) {
    return Evaluate(*fresh.session->model, *fresh.session->parameters, fresh.data->valid, metrics, 4, its_runner)->metrics;
  };
  const auto expected = scores(plain, &plain_runner);
  const auto answers = DecodeAnswers(*plain.session->model, *plain.session->parameters, plain.data->valid, 0, 9, 4);
  for (int round = 0; round < 2; ++round) {
    const auto found = scores(dropping, &runner);
    for (size_t m = 0; m < expected.size(); ++m) EXPECT_EQ(found[m].value, expected[m].value) << expected[m].name;
    EXPECT_EQ(DecodeAnswers(*dropping.session->model, *dropping.session->parameters, dropping.data->valid, 0, 9, 4), answers);
  }
  // Training after evaluation drops as it would have without it.
  Batch batch;
  ASSERT_TRUE(ValidationBatches(&dropping.data->valid, 9).Next(&batch).ok());
  const std::vector<BatchView> leaf = {batch.View()};
  GradientRunner untouched(*dropping.session->model, *dropping.session->parameters);
  Tensor gradients;
  const double after = runner.Run(leaf, 0, RandomKey{7}, &gradients).loss;
  EXPECT_EQ(after, untouched.Run(leaf, 0, RandomKey{7}, &gradients).loss);
  EXPECT_NE(after, runner.Evaluate(leaf).loss);
}

// <eos> is a target like any other: the model learns where to stop.
TEST(EndCase, B029_AnOverfitModelStopsAtEos) {
  const Job job(kPairsJob, "ab\tx\nba\tyx\n");
  const Fresh fresh(job.Load());
  EXPECT_EQ(fresh.data->train.total_target_tokens(), 5);  // x <eos>, y x <eos>
  const TrainResult result =
      job.Train({"optimizer.kind=adamw", "optimizer.lr=0.01", "train.steps=200", "train.clip_norm=1"}, "run");
  EXPECT_LT(result.loss, 0.1);
  const auto session = LoadSession(job.Path("run"));
  Context context(*session->parameters);
  for (const auto& [source, target] : {std::pair<const char*, const char*>{"ab", "x"}, {"ba", "yx"}}) {
    const auto ids = session->source_tokenizer->Encode(source);
    const absl::Span<const int32_t> span = *ids;
    const Tokenizer& tokenizer = *session->target_tokenizer;
    const auto answer =
        DecodeSources(context, *session->model, {&span, 1}, {0}, tokenizer.bos(), tokenizer.eos(), {.max_new_tokens = 20});
    EXPECT_EQ(tokenizer.Decode(answer[0]), target);
  }
}

}  // namespace
}  // namespace weft
