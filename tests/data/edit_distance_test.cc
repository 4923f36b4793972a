#include "data/edit_distance.h"

#include <algorithm>
#include <string>
#include <vector>

#include "autograd/base/random.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

std::vector<int32_t> Ids(const std::string& text) { return std::vector<int32_t>(text.begin(), text.end()); }

// The recursive definition, exponential in time: the reference.
int64_t Slow(absl::Span<const int32_t> a, absl::Span<const int32_t> b) {
  if (a.empty() || b.empty()) return static_cast<int64_t>(a.size() + b.size());
  const int64_t change = Slow(a.subspan(1), b.subspan(1)) + (a[0] == b[0] ? 0 : 1);
  return std::min({change, Slow(a.subspan(1), b) + 1, Slow(a, b.subspan(1)) + 1});
}

TEST(EditDistanceTest, KnownDistances) {
  EXPECT_EQ(EditDistance(Ids("kitten"), Ids("sitting")), 3);
  EXPECT_EQ(EditDistance(Ids("saturday"), Ids("sunday")), 3);
  EXPECT_EQ(EditDistance(Ids(""), Ids("abc")), 3);
  EXPECT_EQ(EditDistance(Ids("abc"), Ids("")), 3);
  EXPECT_EQ(EditDistance(Ids(""), Ids("")), 0);
  EXPECT_EQ(EditDistance(Ids("same"), Ids("same")), 0);
}

TEST(EditDistanceTest, EqualsItsDefinition) {
  const RandomKey key{7};
  uint64_t draw = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> a(key.Below(draw++, 6));
    std::vector<int32_t> b(key.Below(draw++, 6));
    for (int32_t& id : a) id = static_cast<int32_t>(key.Below(draw++, 3));
    for (int32_t& id : b) id = static_cast<int32_t>(key.Below(draw++, 3));
    EXPECT_EQ(EditDistance(a, b), Slow(a, b));
  }
}

ExampleSet TwoReferences() {
  ExampleSet set = ExampleSet::Pairs(90, 91);
  const std::vector<std::vector<int32_t>> references = {{1, 2, 3, 4}, {5, 6}};
  set.AddPair({1}, references[0], "a", references, {"1 2 3 4", "5 6"});
  return set;
}

TEST(PairScoreTest, AnyReferenceIsRight) {
  const ExampleSet set = TwoReferences();
  EXPECT_TRUE(ScorePair(set, 0, {1, 2, 3, 4}).exact);
  const PairScore second = ScorePair(set, 0, {5, 6});
  EXPECT_TRUE(second.exact);
  EXPECT_EQ(second.length, 2);
  EXPECT_FALSE(ScorePair(set, 0, {}).exact);
}

TEST(PairScoreTest, TheNearestReferenceCounts) {
  const ExampleSet set = TwoReferences();
  const PairScore near_second = ScorePair(set, 0, {5, 7});
  EXPECT_EQ(near_second.distance, 1);
  EXPECT_EQ(near_second.length, 2);
  const PairScore near_first = ScorePair(set, 0, {1, 2, 4});
  EXPECT_EQ(near_first.distance, 1);
  EXPECT_EQ(near_first.length, 4);
}

TEST(PairScoreTest, SumsAreDividedOnceAtTheEnd) {
  PairScores scores;
  EXPECT_EQ(scores.exact_match(), 0.0);
  EXPECT_EQ(scores.per(), 0.0);
  scores.Add({.exact = true, .distance = 0, .length = 6});
  scores.Add({.exact = false, .distance = 1, .length = 2});
  EXPECT_EQ(scores.exact_match(), 0.5);
  EXPECT_EQ(scores.per(), 0.125);
}

}  // namespace
}  // namespace weft
