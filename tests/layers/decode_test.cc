// Decoding with a cache, without one, and drawing tokens.
#include "train/decode.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "tests/layers/model_rig.h"

namespace weft {
namespace {

constexpr int32_t kBos = 0, kEos = 1;

// The same function twice: the second model has a layer that changes nothing (its gain is 0) but cannot decode with a state,
// so every step computes the whole prefix. Equal names have equal values.
struct Pair {
  explicit Pair(TransformerConfig config, DType dtype = DType::kF32) : cached(config, {.dtype = dtype, .perturb = false}) {
    config.decoder_sublayers = {{"self_attention", {}}, {"feed_forward", {}}, {"test_running_mean", {}}};
    if (config.has_encoder()) config.decoder_sublayers.insert(config.decoder_sublayers.begin() + 1, {"cross_attention", {}});
    recomputing = std::make_unique<ModelRig>(config, ModelRigOptions{.dtype = dtype, .perturb = false});
    EXPECT_TRUE(cached.model->decodes_with_state());
    EXPECT_FALSE(recomputing->model->decodes_with_state());
  }
  ModelRig cached;
  std::unique_ptr<ModelRig> recomputing;
};

const std::vector<std::vector<int32_t>>& Sources() {
  static const std::vector<std::vector<int32_t>> sources = {{2, 3, 4, 5, 6}, {7}, {3, 3, 8}, {5, 2, 2, 7, 4, 1}};
  return sources;
}

std::vector<std::vector<int32_t>> Answers(const ModelRig& rig, const DecodeOptions& options, size_t first = 0,
                                          size_t count = 4) {
  std::vector<absl::Span<const int32_t>> sources(Sources().begin() + first, Sources().begin() + first + count);
  Context context(rig.parameters);
  std::vector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), static_cast<int64_t>(first));
  return DecodeSources(context, *rig.model, sources, indices, kBos, kEos, options);
}

std::vector<int32_t> Text(const ModelRig& rig, const std::vector<int32_t>& prompt, int64_t window,
                          const DecodeOptions& options) {
  Context context(rig.parameters);
  std::vector<int32_t> seen;
  const std::vector<int32_t> text =
      ContinueText(context, *rig.model, prompt, window, options, 0, [&](int32_t token) { seen.push_back(token); });
  EXPECT_EQ(seen, text);
  return text;
}

TEST(DecodeSources, CachedAnswersEqualRecomputedOnes) {
  const Pair pair(SmallConfig("encoder_decoder"));
  for (double temperature : {0.0, 1.5}) {
    const DecodeOptions options{.max_new_tokens = 24, .temperature = temperature};
    EXPECT_EQ(Answers(pair.cached, options), Answers(*pair.recomputing, options)) << "temperature " << temperature;
  }
}

TEST(DecodeSources, AnswersDoNotDependOnNeighbours) {
  const ModelRig rig(SmallConfig("encoder_decoder"), {.dtype = DType::kF32});
  for (double temperature : {0.0, 1.0}) {
    const DecodeOptions options{.max_new_tokens = 20, .temperature = temperature, .seed = 5};
    const auto together = Answers(rig, options);
    for (size_t i = 0; i < Sources().size(); ++i) EXPECT_EQ(Answers(rig, options, i, 1)[0], together[i]) << "source " << i;
  }
}

TEST(DecodeSources, AnswersEndAtTheLimitOrBeforeEos) {
  const ModelRig rig(SmallConfig("encoder_decoder"));
  for (int64_t limit : {1, 3, 12}) {
    for (const auto& answer : Answers(rig, {.max_new_tokens = limit, .temperature = 2})) {
      EXPECT_LE(static_cast<int64_t>(answer.size()), limit);
      for (int32_t token : answer) EXPECT_NE(token, kEos);
    }
  }
}

// Case B107 with a model: tokens that were there lose, so a text that would repeat one token does not.
TEST(ContinueText, ARepetitionPenaltyChangesTheTextAndOneDoesNot) {
  const ModelRig rig(SmallConfig("decoder"), {.dtype = DType::kF32});
  const std::vector<int32_t> plain = Text(rig, {2}, 0, {.max_new_tokens = 7});
  EXPECT_EQ(Text(rig, {2}, 0, {.max_new_tokens = 7, .repetition_penalty = 1}), plain);
  const std::vector<int32_t> penalized = Text(rig, {2}, 0, {.max_new_tokens = 7, .repetition_penalty = 1e6});
  // Of 8 tokens each comes once, unless what is left is negative anyhow.
  EXPECT_GT(std::set<int32_t>(penalized.begin(), penalized.end()).size(), std::set<int32_t>(plain.begin(), plain.end()).size());
  EXPECT_NE(penalized[0], 2);
}

TEST(ContinueText, CachedTextEqualsRecomputedText) {
  TransformerConfig config = SmallConfig("decoder");
  const Pair pair(config);
  for (double temperature : {0.0, 1.0}) {
    const DecodeOptions options{.max_new_tokens = 64, .temperature = temperature};
    for (int64_t window : {0, 10}) {
      const std::vector<int32_t> text = Text(pair.cached, {3, 4, 5}, window, options);
      EXPECT_EQ(text, Text(*pair.recomputing, {3, 4, 5}, window, options)) << "window " << window;
      EXPECT_EQ(text.size(), 64u);
    }
  }
}

TEST(ContinueText, LearnedPositionsLimitTheWindow) {
  TransformerConfig config = SmallConfig("decoder");
  config.positions = "learned";
  config.max_positions = 8;
  const Pair pair(config);
  const DecodeOptions options{.max_new_tokens = 30};
  // The prompt itself is longer than the table.
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5, 6, 7, 1, 2, 3};
  EXPECT_EQ(Text(pair.cached, prompt, 0, options), Text(*pair.recomputing, prompt, 0, options));
}

TEST(ContinueText, GreedyIsTheSameEachTimeAndSamplingBySeed) {
  const ModelRig rig(SmallConfig("decoder"), {.dtype = DType::kF32});
  EXPECT_EQ(Text(rig, {2}, 0, {.max_new_tokens = 30, .seed = 1}), Text(rig, {2}, 0, {.max_new_tokens = 30, .seed = 2}));
  const auto sampled = [&](uint64_t seed) {
    return Text(rig, {2}, 0, {.max_new_tokens = 30, .temperature = 1.5, .seed = seed});
  };
  EXPECT_EQ(sampled(1), sampled(1));
  EXPECT_NE(sampled(1), sampled(2));
}

TEST(Decode, LogitsWithACacheEqualOneFullPass) {
  TransformerConfig config = SmallConfig("encoder_decoder");
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const ModelRig rig(config, {.dtype = dtype});
    const std::vector<int32_t> source = {2, 3, 4, 5}, target = {0, 3, 5, 2, 7, 7, 4, 1, 6};
    const std::vector<Sequence> source_rows = {{0, 4, 0, 0}};
    Context context(rig.parameters);
    const auto run = [&](State* state, int32_t first, int32_t count) {
      context.Begin(Tensor(), {});
      context.memory = rig.model->Encode(context, source, source_rows);
      context.memory_sequences = source_rows;
      context.state = state;
      const Sequence rows{0, count, first, 0};
      const auto ids = absl::MakeConstSpan(target).subspan(first, count);
      return ToDoubles(rig.model->Logits(context, rig.model->Decode(context, ids, {&rows, 1})).value());
    };
    const std::vector<double> full = run(nullptr, 0, 9);
    for (const std::vector<int32_t>& chunks : {std::vector<int32_t>{9}, {3, 4, 2}, std::vector<int32_t>(9, 1)}) {
      State state(1, 9);
      int32_t first = 0;
      for (int32_t count : chunks) {
        EXPECT_LT(RelativeError(run(&state, first, count), Rows(full, kTargetVocabulary, first, count)),
                  dtype == DType::kF32 ? 1e-5 : 1e-12);
        first += count;
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------------------- sampling

constexpr double kAlmostOne = 1 - 0x1p-53;  // the largest u there is

TEST(SampleToken, NeverPicksProbabilityZero) {
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  // 49,999 equal classes and a last one that is masked.
  std::vector<double> logits(50000, 0.25);
  logits.back() = minus_infinity;
  for (double u : {0.0, 0.5, 1 - 0x1p-24, kAlmostOne}) EXPECT_LT(SampleToken(logits, {.temperature = 1}, u), 49999);
  // A masked first class.
  logits.front() = minus_infinity;
  for (double u : {0.0, 0x1p-53, kAlmostOne}) {
    const int32_t token = SampleToken(logits, {.temperature = 1}, u);
    EXPECT_GT(token, 0);
    EXPECT_LT(token, 49999);
  }
  // Logits so low that their exp underflows.
  for (double u : {0.0, kAlmostOne}) EXPECT_EQ(SampleToken({-2000, 0, -2000}, {.temperature = 1}, u), 1);
}

TEST(SampleToken, GreedyTakesTheFirstOfEqualLargest) {
  EXPECT_EQ(SampleToken({1, 3, 2, 3}, {}, 0.99), 1);
  for (double u : {0.0, 0.3, kAlmostOne}) {
    EXPECT_EQ(SampleToken({1, 3, 2, 3}, {.temperature = 5, .top_k = 1}, u), 1);
    EXPECT_EQ(SampleToken({1, 3, 2, 2.5}, {.temperature = 1, .top_p = 1e-9}, u), 1);
  }
}

TEST(SampleToken, TopKAndTopPKeepTheMostProbable) {
  const std::vector<double> logits = {std::log(0.1), std::log(0.4), std::log(0.2), std::log(0.3)};
  for (int i = 0; i < 100; ++i) {
    const double u = i / 100.0;
    EXPECT_THAT(SampleToken(logits, {.temperature = 1, .top_k = 2}, u), testing::AnyOf(1, 3));
    EXPECT_THAT(SampleToken(logits, {.temperature = 1, .top_p = 0.65}, u), testing::AnyOf(1, 3));
    EXPECT_THAT(SampleToken(logits, {.temperature = 1, .top_p = 0.75}, u), testing::AnyOf(1, 3, 2));
  }
}

TEST(SampleToken, FrequenciesMatchTheProbabilities) {
  const std::vector<double> logits = {0.5, -1, 2, 0, 1.5, -3};
  for (const DecodeOptions& options : {DecodeOptions{.temperature = 1}, {.temperature = 0.7, .top_k = 4}}) {
    std::vector<double> p(logits.size());
    double total = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      // Top 4 are ids 2, 4, 0 and 3.
      const bool kept = options.top_k == 0 || logits[i] >= 0;
      total += p[i] = kept ? std::exp(logits[i] / options.temperature) : 0;
    }
    constexpr int kDraws = 100000;
    std::vector<int> counts(p.size());
    for (int i = 0; i < kDraws; ++i) ++counts[SampleToken(logits, options, RandomKey{17}.Uniform(i))];
    for (size_t i = 0; i < p.size(); ++i) {
      const double q = p[i] / total, sigma = std::sqrt(kDraws * q * (1 - q));
      EXPECT_NEAR(counts[i], kDraws * q, 4 * sigma) << "token " << i;
    }
  }
}

}  // namespace
}  // namespace weft
