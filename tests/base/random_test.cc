#include "autograd/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace weft {
namespace {

// A known answer of philox4x32-10, from the kat_vectors file of the Random123 distribution: the one whose counter has the form
// {low, high, 0, 0} that Block uses.
TEST(RandomTest, BlockIsPhilox4x32With10Rounds) {
  const std::array<uint32_t, 4> expected = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  EXPECT_EQ(RandomKey{0}.Block(0), expected);
}

// The same algorithm written out from the paper (table 2: multipliers and Weyl constants), for other keys and counters.
std::array<uint32_t, 4> ReferencePhilox(uint64_t key, uint64_t counter) {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * x[0], p1 = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1,
         static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return x;
}

TEST(RandomTest, BlockUsesAllBitsOfKeyAndCounter) {
  for (const uint64_t key : {uint64_t{1}, uint64_t{1} << 40, ~uint64_t{0}}) {
    for (const uint64_t counter : {uint64_t{0}, uint64_t{5}, uint64_t{1} << 33, ~uint64_t{0}}) {
      EXPECT_EQ(RandomKey{key}.Block(counter), ReferencePhilox(key, counter)) << key << " " << counter;
    }
  }
}

TEST(RandomTest, WordWalksThroughTheBlocks) {
  const RandomKey key{42};
  for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(key.Word(i), key.Block(i / 4)[i % 4]);
}

TEST(RandomTest, UniformIsInUnitIntervalWithRightMoments) {
  const RandomKey key{7};
  const int n = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = key.Uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  // Five standard errors of the mean (sqrt(1/12/n)) and of the mean square (sqrt(4/45/n)).
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
}

TEST(RandomTest, NormalHasMomentsOfTheStandardNormal) {
  const RandomKey key{8};
  const int n = 100000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (int i = 0; i < n; ++i) {
    const double x = key.Normal(i);
    ASSERT_TRUE(std::isfinite(x));
    m1 += x / n;
    m2 += x * x / n;
    m3 += x * x * x / n;
    m4 += x * x * x * x / n;
  }
  // Five standard errors: the variances of x, x^2, x^3, x^4 are 1, 2, 15, 96.
  EXPECT_NEAR(m1, 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(m2, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(m3, 0, 5 * std::sqrt(15.0 / n));
  EXPECT_NEAR(m4, 3, 5 * std::sqrt(96.0 / n));
}

TEST(RandomTest, FoldsAreDistinct) {
  std::set<uint64_t> seen;
  const RandomKey root{1};
  for (uint64_t i = 0; i < 1000; ++i) seen.insert(root.Fold(i).bits);
  for (uint64_t i = 0; i < 1000; ++i) seen.insert(root.Fold(uint64_t{3}).Fold(i).bits);
  for (uint64_t i = 0; i < 1000; ++i) seen.insert(root.Fold("layer." + std::to_string(i)).bits);
  for (uint64_t i = 2; i < 1000; ++i) seen.insert(RandomKey{i}.Fold(uint64_t{0}).bits);
  EXPECT_EQ(seen.size(), 3998u);
}

TEST(RandomTest, SeedsBeyondDoublePrecisionDiffer) {
  EXPECT_NE(RandomKey{9007199254740992}.Word(0), RandomKey{9007199254740993}.Word(0));
  EXPECT_NE(RandomKey{uint64_t{1} << 32}.Word(0), RandomKey{0}.Word(0));
}

TEST(RandomTest, BelowStaysInBoundsAndIsEven) {
  const RandomKey key{9};
  for (const int64_t n : {int64_t{1}, int64_t{2}, int64_t{7}, int64_t{1} << 40, INT64_MAX}) {
    for (int i = 0; i < 200; ++i) {
      const int64_t value = key.Below(i, n);
      ASSERT_GE(value, 0);
      ASSERT_LT(value, n);
    }
  }
  const int draws = 70000, n = 7;
  std::array<int, 7> counts = {};
  for (int i = 0; i < draws; ++i) ++counts[key.Below(i, n)];
  // Chi-square with 6 degrees of freedom: above 27.9 with probability 1e-4.
  double chi = 0;
  for (const int count : counts) chi += std::pow(count - draws / 7.0, 2) / (draws / 7.0);
  EXPECT_LT(chi, 27.9);
}

TEST(RandomDeathTest, BelowRefusesAnEmptyRange) { EXPECT_DEATH(RandomKey{1}.Below(0, 0), "0 against 0"); }

TEST(PermutationTest, VisitsEachElementOnce) {
  std::vector<int64_t> sizes = {1000};
  for (int64_t n = 0; n <= 70; ++n) sizes.push_back(n);
  for (const int64_t n : sizes) {
    const Permutation permutation(RandomKey{5}, n);
    ASSERT_EQ(permutation.size(), n);
    std::vector<int64_t> seen;
    for (int64_t i = 0; i < n; ++i) seen.push_back(permutation[i]);
    std::sort(seen.begin(), seen.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(seen[i], i) << "n = " << n;
  }
}

TEST(PermutationTest, DependsOnTheKeyAndMovesElements) {
  const int64_t n = 1000;
  const Permutation a(RandomKey{1}, n), b(RandomKey{2}, n), again(RandomKey{1}, n);
  int same = 0, fixed = 0;
  for (int64_t i = 0; i < n; ++i) {
    same += a[i] == b[i];
    fixed += a[i] == i;
    ASSERT_EQ(a[i], again[i]);
  }
  // Both counts are Poisson with mean 1 for random permutations; 12 or more has probability 1e-9.
  EXPECT_LT(same, 12);
  EXPECT_LT(fixed, 12);
}

TEST(PermutationTest, ShortPermutationsAreNearlyUniform) {
  // All 6 orders of 3 elements, over many keys. Chi-square with 5 degrees of freedom: above 25.7 with probability 1e-4.
  std::array<int, 27> counts = {};
  const int keys = 6000;
  for (int k = 0; k < keys; ++k) {
    const Permutation p(RandomKey{1}.Fold(static_cast<uint64_t>(k)), 3);
    ++counts[p[0] * 9 + p[1] * 3 + p[2]];
  }
  double chi = 0;
  for (const int count : counts) chi += count == 0 ? 0 : std::pow(count - keys / 6.0, 2) / (keys / 6.0);
  EXPECT_EQ(std::count_if(counts.begin(), counts.end(), [](int count) { return count > 0; }), 6);
  EXPECT_LT(chi, 25.7);
}

TEST(PermutationDeathTest, RefusesPlacesOutside) {
  const Permutation permutation(RandomKey{1}, 4);
  EXPECT_DEATH(permutation[4], "permutation of 4 elements asked for place 4");
  EXPECT_DEATH(permutation[-1], "place -1");
}

}  // namespace
}  // namespace weft
