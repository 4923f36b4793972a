// The segmenter and its random forms: equal to the library's plain segmentation where nothing is random, and distributed as the
// papers say where it is.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/random.h"
#include "data/batcher.h"
#include "data/example_sampler.h"
#include "data/piece_segmenter.h"
#include "data/piece_training.h"
#include "data/sentencepiece_library.h"
#include "data/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

// Word i of a made-up language: syllables by rule, some of them with letters of several bytes.
std::string MadeWord(RandomKey key) {
  constexpr absl::string_view kSyllables[] = {"ba", "ku", "ti", "la", "mo", "ren", "ster", "ing", "é", "ö", "日", "an"};
  std::string word;
  const int64_t syllables = 1 + key.Below(0, 4);
  for (int64_t s = 0; s < syllables; ++s) absl::StrAppend(&word, kSyllables[key.Below(1 + s, 12)]);
  return word;
}

std::vector<std::string> MadeLines(uint64_t seed, int64_t count) {
  std::vector<std::string> lines;
  for (int64_t i = 0; i < count; ++i) {
    const RandomKey key = RandomKey{seed}.Fold(static_cast<uint64_t>(i));
    std::string line = MadeWord(key.Fold("first"));
    for (int64_t w = 0; w < key.Below(0, 9); ++w) absl::StrAppend(&line, " ", MadeWord(key.Fold(static_cast<uint64_t>(w))));
    lines.push_back(line);
  }
  return lines;
}

// Strings over few letters, where ties are many, with unknown ones and spaces among them.
std::string RandomString(RandomKey key) {
  constexpr absl::string_view kLetters[] = {"a", "b", "k", "u", "t", "i", "é", "日", "x", "€", " ", " "};
  std::string text;
  const int64_t letters = key.Below(0, 40);
  for (int64_t i = 0; i < letters; ++i) absl::StrAppend(&text, kLetters[key.Below(1 + i, 12)]);
  return text;
}

struct Learned {
  Learned(bool is_bpe, int64_t count) : bpe(is_bpe) {
    PieceTraining training;
    for (const std::string& line : MadeLines(1, 300)) training.AddLine(line);
    // Pieces that overlap themselves, where ties decide.
    for (int i = 0; i < 40; ++i) training.AddLine("aaa aaaaa aa aaaaaaa xxxx xx xxx");
    auto learned = training.Learn(bpe, count, 1.0, 0);
    EXPECT_TRUE(learned.ok()) << learned.status();
    pieces = learned->pieces;
    scores = learned->scores;
    model = learned->model;
  }
  bool bpe;
  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::string model;
};

// The pieces of each word of `text` as texts; unknown characters next to each other are one, as the library gives them.
std::vector<std::string> Texts(const PieceSegmenter& segmenter, absl::string_view text, double alpha_or_dropout, bool bpe,
                               UniformStream* random) {
  PieceSegmenter::Scratch scratch;
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = WordEnd(text, begin);
    std::vector<PieceSpan> spans;
    const absl::string_view word = text.substr(begin, end - begin);
    if (random == nullptr) {
      segmenter.Segment(word, &scratch, &spans);
    } else if (bpe) {
      segmenter.SampleBpe(word, alpha_or_dropout, random, &scratch, &spans);
    } else {
      segmenter.SampleUnigram(word, alpha_or_dropout, random, &scratch, &spans);
    }
    bool unknown = false;
    for (const PieceSpan& span : spans) {
      if (span.piece < 0 && unknown) {
        absl::StrAppend(&texts.back(), text.substr(begin, span.bytes));
      } else {
        texts.emplace_back(text.substr(begin, span.bytes));
      }
      unknown = span.piece < 0;
      begin += span.bytes;
    }
  }
  return texts;
}

// The library on each word, so that its float sums start anew at each as ours do.
std::vector<std::string> ByLibrary(const std::string& model, absl::string_view text) {
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = WordEnd(text, begin);
    const std::vector<std::string> word = library::EncodeByLibrary(model, std::string(text.substr(begin, end - begin)));
    texts.insert(texts.end(), word.begin(), word.end());
    begin = end;
  }
  return texts;
}

std::vector<std::string> TestTexts() {
  std::vector<std::string> texts = MadeLines(2, 60);
  for (uint64_t i = 0; i < 120; ++i) texts.push_back(RandomString(RandomKey{3}.Fold(i)));
  for (int n = 1; n < 40; ++n) texts.push_back(absl::StrCat(std::string(n, 'a'), " ", std::string(n, 'x'), "a"));
  return texts;
}

TEST(SubwordSamplingTest, PlainSegmentationIsThatOfTheLibrary) {
  for (const bool bpe : {true, false}) {
    for (const int64_t count : {40, 90}) {
      const Learned learned(bpe, count);
      const PieceSegmenter segmenter(bpe, learned.pieces, learned.scores);
      for (const std::string& text : TestTexts()) {
        EXPECT_EQ(Texts(segmenter, text, 0, bpe, nullptr), ByLibrary(learned.model, text))
            << bpe << " " << count << ": " << text;
      }
    }
  }
}

TEST(SubwordSamplingTest, BpeOfAWholeLineIsThatOfTheLibrary) {
  const Learned learned(true, 90);
  const PieceSegmenter segmenter(true, learned.pieces, learned.scores);
  for (const std::string& text : MadeLines(4, 100)) {
    EXPECT_EQ(Texts(segmenter, text, 0, true, nullptr), library::EncodeByLibrary(learned.model, text)) << text;
  }
}

TEST(SubwordSamplingTest, WithoutDropoutBpeIsPlainAndWithAllOfItCharacters) {
  const Learned learned(true, 90);
  const PieceSegmenter segmenter(true, learned.pieces, learned.scores);
  for (const std::string& text : TestTexts()) {
    UniformStream random(RandomKey{5});
    EXPECT_EQ(Texts(segmenter, text, 0, true, &random), Texts(segmenter, text, 0, true, nullptr)) << text;
    for (const std::string& piece : Texts(segmenter, text, 1, true, &random)) {
      EXPECT_TRUE(piece.size() <= 3 || piece.find("€") != std::string::npos) << piece;
    }
  }
}

TEST(SubwordSamplingTest, LargeAlphaGivesTheBestSegmentation) {
  const Learned learned(false, 90);
  const PieceSegmenter segmenter(false, learned.pieces, learned.scores);
  const auto score = [&](const std::vector<std::string>& texts) {
    double sum = 0;
    for (const std::string& text : texts) {
      const int32_t piece = segmenter.Find(text);
      if (piece >= 0) sum += learned.scores[piece];
    }
    return sum;
  };
  for (const std::string& text : TestTexts()) {
    UniformStream random(RandomKey{6});
    const auto plain = Texts(segmenter, text, 0, false, nullptr), drawn = Texts(segmenter, text, 1e6, false, &random);
    // Of equal sums either may be drawn: scores of up to 20 in float, 40 of them.
    EXPECT_NEAR(score(plain), score(drawn), 1e-4) << text;
  }
}

// All segmentations of a word with their probabilities P^alpha / Z, by recursion.
void Enumerate(const Learned& learned, absl::string_view rest, double log_weight, const std::string& so_far,
               std::map<std::string, double>* weights) {
  if (rest.empty()) (*weights)[so_far] = std::exp(log_weight);
  for (size_t i = 0; i < learned.pieces.size(); ++i) {
    const absl::string_view piece = learned.pieces[i];
    if (rest.substr(0, piece.size()) != piece) continue;
    Enumerate(learned, rest.substr(piece.size()), log_weight + 0.3 * learned.scores[i], absl::StrCat(so_far, "|", piece),
              weights);
  }
}

TEST(SubwordSamplingTest, UnigramDrawsEachSegmentationWithItsProbability) {
  const Learned learned(false, 90);
  const PieceSegmenter segmenter(false, learned.pieces, learned.scores);
  std::map<std::string, double> expected;
  Enumerate(learned, "kustering", 0, "", &expected);
  ASSERT_GT(expected.size(), 5u);
  double total = 0;
  for (const auto& [text, weight] : expected) total += weight;
  std::map<std::string, double> drawn;
  UniformStream random(RandomKey{7});
  const int draws = 20000;
  for (int i = 0; i < draws; ++i) drawn["|" + absl::StrJoin(Texts(segmenter, "kustering", 0.3, false, &random), "|")] += 1;
  for (const auto& [text, weight] : expected) {
    const double p = weight / total;
    // Five standard deviations of a frequency.
    EXPECT_NEAR(drawn[text] / draws, p, 5 * std::sqrt(p * (1 - p) / draws) + 1e-9) << text;
  }
}

TEST(SubwordSamplingTest, BpeDropoutFollowsItsAlgorithm) {
  // Vocabulary with the merges ab, then abc, then bc (scores fall). Of "abc" with p = 0.25: the first step draws ab, and bc
  // only if ab was dropped; then abc, from either, again with 1 - p. So abc: (1-p)(1-p) + p(1-p)(1-p); a b c: p * p.
  const PieceSegmenter segmenter(true, {"ab", "abc", "bc", "a", "b", "c"}, {0, -1, -2, -3, -4, -5});
  const double p = 0.25, q = 1 - p;
  const std::map<std::string, double> expected = {
      {"abc", q * q + p * q * q}, {"ab|c", q * p}, {"a|bc", p * q * p}, {"a|b|c", p * p}};
  std::map<std::string, double> drawn;
  UniformStream random(RandomKey{8});
  const int draws = 20000;
  for (int i = 0; i < draws; ++i) drawn[absl::StrJoin(Texts(segmenter, "abc", p, true, &random), "|")] += 1;
  for (const auto& [text, probability] : expected) {
    EXPECT_NEAR(drawn[text] / draws, probability, 5 * std::sqrt(probability * (1 - probability) / draws)) << text;
  }
}

std::unique_ptr<Tokenizer> BuildMade(const char* kind, bool specials) {
  const std::vector<std::string> lines = MadeLines(1, 200);
  const std::vector<absl::string_view> views(lines.begin(), lines.end());
  auto made = BuildTokenizer({.kind = kind, .specials = specials, .vocab_size = 340}, views);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

TEST(SubwordSamplingTest, DrawnEncodingsDecodeToTheSameText) {
  for (const char* kind : {"bpe", "unigram"}) {
    const auto tokenizer = BuildMade(kind, false);
    const SubwordSampling sampling{.bpe_dropout = kind[0] == 'b' ? 0.3 : 0, .alpha = kind[0] == 'u' ? 0.2 : 0};
    int64_t differing = 0;
    for (const std::string& text : TestTexts()) {
      std::vector<int32_t> drawn, again, plain;
      ASSERT_EQ(tokenizer->TrySample(text, sampling, RandomKey{9}, &drawn), -1);
      ASSERT_EQ(tokenizer->TrySample(text, sampling, RandomKey{9}, &again), -1);
      ASSERT_EQ(tokenizer->TryEncode(text, &plain), -1);
      EXPECT_EQ(tokenizer->Decode(drawn), text);
      EXPECT_EQ(drawn, again);
      differing += drawn != plain;
    }
    EXPECT_GT(differing, 30) << kind;
  }
}

ExampleSet SampledPairs(const Tokenizer& tokenizer, const std::vector<std::string>& lines, int64_t limit) {
  ExampleSet set = ExampleSet::Pairs(tokenizer.bos(), tokenizer.eos());
  set.SetSampler(ExampleSampler(&tokenizer, {.bpe_dropout = 0.3}, &tokenizer, {.bpe_dropout = 0.3}));
  set.sampler().Limit(limit);
  for (const std::string& line : lines) {
    const std::vector<int32_t> ids = tokenizer.Encode(line).value();
    set.AddPair(ids, ids);
    set.Sample(line, line);
  }
  return set;
}

TEST(SubwordSamplingTest, ADrawDependsOnSeedEpochExampleAndSideOnly) {
  const auto tokenizer = BuildMade("bpe", true);
  const std::vector<std::string> lines = MadeLines(10, 40);
  const ExampleSet set = SampledPairs(*tokenizer, lines, 1000);
  using Draw = std::pair<std::vector<int32_t>, std::vector<int32_t>>;
  const auto read = [&](const BatcherOptions& options, Position from, int64_t sequences) {
    Batcher batcher = Batcher::Create(&set, options).value();
    EXPECT_TRUE(batcher.Seek(from).ok());
    std::map<std::pair<int64_t, int64_t>, Draw> draws;  // (epoch, example)
    Batch batch;
    for (int64_t seen = 0; seen < sequences; seen += batch.size()) {
      EXPECT_TRUE(batcher.Next(&batch).ok());
      for (int64_t i = 0; i < batch.size(); ++i) {
        const BatchView view = batch.View(i, 1);
        draws[{batch.epoch, batch.sequence_ids[i]}] = {{view.source_ids.begin(), view.source_ids.end()},
                                                       {view.target_labels.begin(), view.target_labels.end()}};
      }
    }
    return draws;
  };
  const auto all = read({.batch_size = 7, .seed = 3}, {0, 0}, 80);
  ASSERT_EQ(all.size(), 80u);
  // Other neighbours, another start: the same draws.
  for (const auto& [place, draw] : read({.batch_tokens = 50, .seed = 3}, {0, 13}, 60)) EXPECT_EQ(draw, all.at(place));
  int64_t by_epoch = 0, by_side = 0, by_seed = 0;
  const auto other_seed = read({.batch_size = 7, .seed = 4}, {0, 0}, 40);
  for (int64_t i = 0; i < 40; ++i) {
    const Draw& draw = all.at({0, i});
    std::vector<int32_t> target = draw.second;
    ASSERT_EQ(target.back(), tokenizer->eos());
    target.pop_back();
    EXPECT_EQ(tokenizer->Decode(draw.first), lines[i]);
    EXPECT_EQ(tokenizer->Decode(target), lines[i]);
    by_epoch += draw.first != all.at({1, i}).first;
    by_side += draw.first != target;
    by_seed += draw.first != other_seed.at({0, i}).first;
  }
  EXPECT_GT(by_epoch, 25);
  EXPECT_GT(by_side, 25);
  EXPECT_GT(by_seed, 25);
}

TEST(SubwordSamplingTest, EqualTextsAreDrawnApart) {
  const auto tokenizer = BuildMade("bpe", true);
  const ExampleSet set = SampledPairs(*tokenizer, std::vector<std::string>(30, MadeLines(10, 4)[3] + " sterkuti"), 1000);
  Batcher batcher = Batcher::Create(&set, {.batch_size = 30}).value();
  Batch batch;
  ASSERT_TRUE(batcher.Next(&batch).ok());
  std::map<std::vector<int32_t>, int> kinds;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const BatchView view = batch.View(i, 1);
    ++kinds[{view.source_ids.begin(), view.source_ids.end()}];
  }
  EXPECT_GT(kinds.size(), 5u);
}

TEST(SubwordSamplingTest, AnEncodingThatTheModelCannotTakeGivesWayToThePlainOne) {
  const auto tokenizer = BuildMade("bpe", true);
  const std::vector<std::string> lines = MadeLines(10, 40);
  const ExampleSet set = SampledPairs(*tokenizer, lines, 12);
  Batcher batcher = Batcher::Create(&set, {.batch_size = 40}).value();
  Batch batch;
  ASSERT_TRUE(batcher.Next(&batch).ok());
  int64_t drawn = 0;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t example = batch.sequence_ids[i], plain = set.TargetLength(example);
    EXPECT_TRUE(batch.target_lengths[i] <= 12 || batch.target_lengths[i] == plain) << example;
    drawn += batch.target_lengths[i] != plain;
  }
  EXPECT_GT(drawn, 3);
}

}  // namespace
}  // namespace weft
