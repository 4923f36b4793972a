// Beam search with a model: cached against recomputed, alone against in a batch, and for any number of threads.
#include <cmath>

#include "autograd/base/parallel.h"
#include "gmock/gmock.h"
#include "tests/layers/model_rig.h"
#include "train/decode.h"
#include "train/evaluate.h"

namespace weft {
namespace {

constexpr int32_t kBos = 0, kEos = 1;

const std::vector<std::vector<int32_t>>& Sources() {
  static const std::vector<std::vector<int32_t>> sources = {{2, 3, 4, 5, 6}, {7}, {3, 3, 8}, {5, 2, 2, 7, 4, 1}, {1, 6}};
  return sources;
}

// Random weights large enough that answers differ and end at different lengths.
struct Rough : ModelRig {
  explicit Rough(const TransformerConfig& config) : ModelRig(config, {.dtype = DType::kF32, .perturb = false}) {
    const Tensor slab = parameters.Mutable();
    for (int64_t i = 0; i < slab.elements(); ++i) slab.Set(i, 1.6 * slab.At(i));
  }
};

std::vector<std::vector<Hypothesis>> Answers(const ModelRig& rig, const BeamOptions& options, size_t first = 0,
                                             size_t count = 5) {
  const std::vector<absl::Span<const int32_t>> sources(Sources().begin() + first, Sources().begin() + first + count);
  Context context(rig.parameters);
  return SearchSources(context, *rig.model, sources, kBos, kEos, options);
}

void ExpectEqualBits(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t h = 0; h < found.size(); ++h) {
    EXPECT_EQ(found[h].tokens, expected[h].tokens);
    EXPECT_EQ(found[h].score, expected[h].score);
    EXPECT_EQ(found[h].log_probability, expected[h].log_probability);
  }
}

// Log-probabilities of the next token after `text`, from a pass over all of it, without a state.
std::vector<double> NextToken(const ModelRig& rig, const std::vector<int32_t>* source, std::vector<int32_t> text) {
  Context context(rig.parameters);
  context.Begin(Tensor(), {});
  Sequence source_row;
  if (source != nullptr) {
    source_row = {0, static_cast<int32_t>(source->size()), 0, 0};
    context.memory = rig.model->Encode(context, *source, {&source_row, 1});
    context.memory_sequences = {&source_row, 1};
  }
  const Sequence row{0, static_cast<int32_t>(text.size()), 0, 0};
  const auto last = static_cast<int32_t>(text.size()) - 1;
  const Variable hidden = rig.model->Decode(context, text, {&row, 1});
  std::vector<double> scores = ToDoubles(rig.model->Logits(context, GatherRows(hidden, {&last, 1})).value());
  double total = 0;
  for (double logit : scores) total += std::exp(logit);
  for (double& logit : scores) logit -= std::log(total);
  return scores;
}

std::vector<int32_t> Joined(std::vector<int32_t> a, absl::Span<const int32_t> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The reference is the search over a plain function that computes every prefix anew.
void ExpectClose(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t h = 0; h < found.size(); ++h) {
    EXPECT_EQ(found[h].tokens, expected[h].tokens);
    EXPECT_NEAR(found[h].score, expected[h].score, 1e-5);
  }
}

TEST(SearchSources, CachedSearchesEqualRecomputedOnes) {
  for (const char* positions : {"sinusoidal", "learned"}) {
    TransformerConfig config = SmallConfig("encoder_decoder");
    config.positions = positions;
    if (config.positions == "learned") config.max_positions = 20;
    const Rough rig(config);
    ASSERT_TRUE(rig.model->decodes_with_state());
    for (int64_t beam : {1, 2, 5, 12}) {
      for (double penalty : {0.0, 1.0}) {
        const BeamOptions options{.beam = beam, .length_penalty = penalty, .min_length = 1, .max_length = 9, .n_best = 3};
        const auto found = Answers(rig, options);
        for (size_t i = 0; i < Sources().size(); ++i) {
          ExpectClose(found[i],
                      SearchBeams([&](absl::Span<const int32_t> p) { return NextToken(rig, &Sources()[i], Joined({kBos}, p)); },
                                  kEos, options));
        }
      }
    }
  }
}

// A decoder with a layer that has no state computes every prefix again, in one batch of unequal sources.
TEST(SearchSources, LayersWithoutAStateAreSearchedToo) {
  TransformerConfig config = SmallConfig("encoder_decoder");
  config.decoder_sublayers = {{"self_attention", {}}, {"cross_attention", {}}, {"feed_forward", {}}, {"test_running_mean", {}}};
  const Rough rig(config);
  ASSERT_FALSE(rig.model->decodes_with_state());
  const BeamOptions options{.beam = 3, .max_length = 6, .n_best = 3};
  const auto found = Answers(rig, options);
  for (size_t i = 0; i < Sources().size(); ++i) {
    ExpectClose(found[i],
                SearchBeams([&](absl::Span<const int32_t> p) { return NextToken(rig, &Sources()[i], Joined({kBos}, p)); }, kEos,
                            options));
  }
}

TEST(SearchSources, ASourceAloneGivesTheTokensAndTheBitsOfAnyBatch) {
  const Rough rig(SmallConfig("encoder_decoder"));
  for (int64_t beam : {1, 4, 7}) {
    const BeamOptions options{.beam = beam, .max_length = 80, .n_best = 4};  // longer than a cache is at first
    const auto together = Answers(rig, options);
    for (size_t i = 0; i < Sources().size(); ++i) ExpectEqualBits(Answers(rig, options, i, 1)[0], together[i]);
    const auto three = Answers(rig, options, 1, 3);
    for (size_t i = 0; i < 3; ++i) ExpectEqualBits(three[i], together[i + 1]);
  }
}

TEST(SearchSources, ABeamOfOneAnswersAsGreedyDoes) {
  const Rough rig(SmallConfig("encoder_decoder"));
  const std::vector<absl::Span<const int32_t>> sources(Sources().begin(), Sources().end());
  Context context(rig.parameters);
  for (int64_t shortest : {0, 3}) {
    const auto greedy = DecodeSources(context, *rig.model, sources, {0, 1, 2, 3, 4}, kBos, kEos,
                                      {.max_new_tokens = 12, .min_new_tokens = shortest});
    const auto beams = Answers(rig, {.min_length = shortest, .max_length = 12});
    for (size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(beams[i][0].tokens, greedy[i]);
      EXPECT_GE(static_cast<int64_t>(greedy[i].size()), shortest);
    }
  }
}

// <bos> and an answer fill the model's 8 positions; one more token could not be followed by <eos>.
TEST(SearchSources, TheModelsLengthLimitCuts) {
  TransformerConfig config = SmallConfig("encoder_decoder");
  config.positions = "learned";
  config.max_positions = 8;
  const Rough rig(config);
  ASSERT_EQ(LongestAnswer(*rig.model), 7);
  const std::vector<absl::Span<const int32_t>> sources(Sources().begin(), Sources().end());
  Context context(rig.parameters);
  for (int64_t shortest : {0, 50}) {
    const auto greedy = DecodeSources(context, *rig.model, sources, {0, 1, 2, 3, 4}, kBos, kEos,
                                      {.max_new_tokens = 100, .min_new_tokens = shortest});
    const auto beams = Answers(rig, {.min_length = shortest, .max_length = 100});
    for (size_t i = 0; i < sources.size(); ++i) EXPECT_EQ(beams[i][0].tokens, greedy[i]) << "a beam of one, source " << i;
  }
  for (const auto& hypotheses : Answers(rig, {.beam = 3, .min_length = 50, .max_length = 100})) {
    ASSERT_EQ(hypotheses.size(), 1);
    EXPECT_EQ(hypotheses[0].tokens.size(), 7);
    EXPECT_TRUE(hypotheses[0].ended);
  }
}

TEST(SearchText, CachedSearchesEqualRecomputedOnesAlsoPastTheWindow) {
  const Rough rig(SmallConfig("decoder"));
  const std::vector<int32_t> prompt = {3, 4, 5};
  for (int64_t window : {0, 2, 6}) {
    for (int64_t beam : {1, 4}) {
      for (int32_t eos : {-1, kEos}) {
        const BeamOptions options{.beam = beam, .max_length = 10, .n_best = 2};
        const auto scorer = [&](absl::Span<const int32_t> p) {
          std::vector<int32_t> text = Joined(prompt, p);
          const auto size = static_cast<int64_t>(text.size());
          if (window > 0 && size > window) text.erase(text.begin(), text.end() - window);
          return NextToken(rig, nullptr, text);
        };
        Context context(rig.parameters);
        const auto found = SearchText(context, *rig.model, prompt, window, eos, options);
        ExpectClose(found, SearchBeams(scorer, eos, options));
        if (eos < 0) {
          EXPECT_EQ(found[0].tokens.size(), 10);
        }
      }
    }
  }
}

TEST(DecodeAnswers, AreTheSameForAnyNumberOfThreads) {
  const Rough rig(SmallConfig("encoder_decoder"));
  ExampleSet examples = ExampleSet::Pairs(kBos, kEos);
  for (int64_t i = 0; i < 40; ++i) {
    std::vector<int32_t> source;
    for (int64_t t = 0; t < 1 + i % 6; ++t)
      source.push_back(static_cast<int32_t>(RandomKey{4}.Below(10 * i + t, kSourceVocabulary)));
    examples.AddPair(source, {2});
  }
  for (int64_t beam : {1, 60}) {  // 60: two sources at once, so 20 tasks
    std::vector<std::vector<int32_t>> expected;
    for (int threads : {1, 2, 4}) {
      Workers(threads).Run([&] {
        const auto answers = DecodeAnswers(*rig.model, rig.parameters, examples, 0, 40, 8, {.beam = beam});
        if (threads == 1) expected = answers;
        EXPECT_EQ(answers, expected);
      });
    }
  }
}

}  // namespace
}  // namespace weft
