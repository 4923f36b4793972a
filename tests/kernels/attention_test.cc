#include "autograd/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "autograd/base/parallel.h"
#include "autograd/base/random.h"
#include "autograd/kernels/scratch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::kernels {
namespace {

using Vector = std::vector<double>;

// An attention problem in double, and what the kernel of type T made of it.
struct Problem {
  AttentionShape shape;
  std::vector<SequenceSpan> sequences = {};
  AttentionDropout dropout = {};
  int64_t query_rows = 0, key_rows = 0;
  int64_t gap = 0;  // unused columns at the end of each row
  Vector q = {}, k = {}, v = {}, dout = {};

  int64_t ldq() const { return shape.heads * shape.d_head + gap; }
  int64_t ldk() const { return shape.kv_heads * shape.d_head + gap; }

  // Sequences of (Tq, Tk), rows laid end to end, operands rounded to float so that both types see the same numbers.
  static Problem Random(AttentionShape shape, const std::vector<std::pair<int64_t, int64_t>>& lengths, int64_t gap = 0) {
    Problem x{.shape = shape, .gap = gap};
    for (const auto& [tq, tk] : lengths) {
      x.sequences.push_back({x.query_rows, tq, x.key_rows, tk, 100 + x.sequences.size()});
      x.query_rows += tq;
      x.key_rows += tk;
    }
    const auto fill = [](uint64_t seed, int64_t n) {
      Vector values(static_cast<size_t>(std::max<int64_t>(n, 1)));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(RandomKey{seed}.Normal(i));
      return values;
    };
    x.q = fill(1, x.query_rows * x.ldq());
    x.k = fill(2, x.key_rows * x.ldk());
    x.v = fill(3, x.key_rows * x.ldk());
    x.dout = fill(4, x.query_rows * x.ldq());
    return x;
  }
};

template <class T>
struct Result {
  std::vector<T> out = {}, log_sum_exp = {}, weights = {}, dq = {}, dk = {}, dv = {};
};

template <class T>
std::vector<T> As(const Vector& x) {
  return {x.begin(), x.end()};
}

template <class T>
Result<T> RunKernels(const Problem& x, bool backward = true) {
  const std::vector<T> q = As<T>(x.q), k = As<T>(x.k), v = As<T>(x.v), dout = As<T>(x.dout);
  const AttentionArgs<T> args = {x.shape, x.sequences, q.data(), x.ldq(), k.data(), x.ldk(), v.data(), x.ldk(), x.dropout};
  int64_t weights = 0;
  for (const SequenceSpan& s : x.sequences) weights += x.shape.heads * s.query_length * s.key_length;
  // Filled with a number that must be overwritten (forward) or added to (backward).
  Result<T> r = {std::vector<T>(q.size(), 7), std::vector<T>(std::max<int64_t>(1, x.query_rows * x.shape.heads), 7),
                 std::vector<T>(std::max<int64_t>(1, weights), 7)};
  AttentionForward(args, r.out.data(), x.ldq(), r.log_sum_exp.data(), r.weights.data());
  if (!backward) return r;
  r.dq.assign(q.size(), 0);
  r.dk.assign(k.size(), 0);
  r.dv.assign(v.size(), 0);
  AttentionBackward(args, r.out.data(), x.ldq(), r.log_sum_exp.data(), dout.data(), x.ldq(), r.dq.data(), x.ldq(), r.dk.data(),
                    x.ldk(), r.dv.data(), x.ldk());
  return r;
}

// The composed form: scores, mask, softmax, dropout mask word by word, weighted sum; gradients by the chain rule through the
// softmax's Jacobian. Stores every matrix.
Result<double> Composed(const Problem& x) {
  const AttentionShape& shape = x.shape;
  const int64_t d = shape.d_head;
  Result<double> r = {Vector(x.q.size(), 7),
                      Vector(static_cast<size_t>(x.query_rows * shape.heads)),
                      {},
                      Vector(x.q.size()),
                      Vector(x.k.size()),
                      Vector(x.v.size())};
  for (const SequenceSpan& s : x.sequences) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t kv = h / (shape.heads / shape.kv_heads);
      const RandomKey key = RandomKey{x.dropout.key}.Fold(s.id).Fold(static_cast<uint64_t>(h));
      for (int64_t i = 0; i < s.query_length; ++i) {
        const int64_t row = (s.query_start + i) * x.ldq() + h * d;
        const auto key_at = [&](int64_t j) { return (s.key_start + j) * x.ldk() + kv * d; };
        const int64_t seen = shape.causal ? i + s.key_length - s.query_length + 1 : s.key_length;
        Vector p(static_cast<size_t>(s.key_length)), mask(p.size(), 1.0), dp(p.size());
        double sum = 0, mean = 0;
        for (int64_t j = 0; j < s.key_length; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < d; ++c) dot += x.q[row + c] * x.k[key_at(j) + c];
          p[j] = j < seen ? std::exp(shape.scale * dot) : 0;
          sum += p[j];
          if (x.dropout.p > 0) {
            const uint32_t word = key.Block((static_cast<uint64_t>(i) << 30) + static_cast<uint64_t>(j / 4))[j % 4];
            mask[j] = word < x.dropout.p * 0x1p32 - 1 ? 0 : 1 / (1 - x.dropout.p);
          }
        }
        r.log_sum_exp[(s.query_start + i) * shape.heads + h] = std::log(sum);
        for (int64_t c = 0; c < d; ++c) r.out[row + c] = 0;
        for (int64_t j = 0; j < s.key_length; ++j) {
          if (sum > 0) p[j] /= sum;
          r.weights.push_back(p[j]);
          for (int64_t c = 0; c < d; ++c) {
            r.out[row + c] += p[j] * mask[j] * x.v[key_at(j) + c];
            dp[j] += mask[j] * x.dout[row + c] * x.v[key_at(j) + c];
            r.dv[key_at(j) + c] += p[j] * mask[j] * x.dout[row + c];
          }
          mean += p[j] * dp[j];
        }
        for (int64_t j = 0; j < s.key_length; ++j) {
          for (int64_t c = 0; c < d; ++c) {
            r.dq[row + c] += shape.scale * p[j] * (dp[j] - mean) * x.k[key_at(j) + c];
            r.dk[key_at(j) + c] += shape.scale * p[j] * (dp[j] - mean) * x.q[row + c];
          }
        }
      }
    }
  }
  return r;
}

template <class T>
void ExpectNear(const std::vector<T>& actual, const Vector& expected, double tolerance, const std::string& what) {
  ASSERT_GE(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i])) {
      ASSERT_EQ(actual[i], expected[i]) << what << " at " << i;
    } else {
      ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << what << " at " << i;
    }
  }
}

// Errors of a weight: its score is a sum of d products of normals, scaled to size about 4 at most, with an error of about
// d/2 eps 4, and each output is a mean of values; sums over 150 rows at most in the gradients. 1000 eps covers that.
template <class T>
void ExpectMatchesComposed(const Problem& x) {
  const Result<T> actual = RunKernels<T>(x);
  const Result<double> expected = Composed(x);
  const double tolerance = 1000 * std::numeric_limits<T>::epsilon();
  ExpectNear(actual.out, expected.out, tolerance, "out");
  ExpectNear(actual.log_sum_exp, expected.log_sum_exp, tolerance, "log_sum_exp");
  ExpectNear(actual.weights, expected.weights, tolerance, "weights");
  ExpectNear(actual.dq, expected.dq, tolerance, "dq");
  ExpectNear(actual.dk, expected.dk, tolerance, "dk");
  ExpectNear(actual.dv, expected.dv, tolerance, "dv");
}

AttentionShape Shape(int64_t heads, int64_t kv_heads, int64_t d_head, bool causal) {
  return {heads, kv_heads, d_head, causal, 1 / std::sqrt(static_cast<double>(d_head))};
}

template <class T>
class AttentionTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionTest, Types);

TYPED_TEST(AttentionTest, RaggedSequencesMatchTheComposedForm) {
  for (const bool causal : {false, true}) {
    for (const int64_t d : {1, 3, 8, 16, 20, 32, 64}) {
      ExpectMatchesComposed<TypeParam>(
          Problem::Random(Shape(2, 2, d, causal), {{1, 1}, {5, 5}, {17, 17}, {1, 9}, {7, 3}, {3, 7}, {0, 4}, {4, 0}}, d % 3));
    }
  }
}

TYPED_TEST(AttentionTest, LongSequencesMatchTheComposedForm) {
  for (const bool causal : {false, true}) {
    ExpectMatchesComposed<TypeParam>(Problem::Random(Shape(2, 1, 24, causal), {{70, 70}, {130, 130}, {49, 128}, {97, 65}}, 5));
  }
}

TYPED_TEST(AttentionTest, EveryLengthMatchesTheComposedForm) {
  const int64_t widths[] = {8, 17, 40, 64};  // whole vectors and panels or not, on every instruction set
  for (int64_t t = 1; t <= 70; ++t) {
    ExpectMatchesComposed<TypeParam>(Problem::Random(Shape(1, 1, widths[t % 4], t % 3 != 0), {{t, t}}, t % 2));
    ExpectMatchesComposed<TypeParam>(Problem::Random(Shape(1, 1, widths[(t + 1) % 4], true), {{t, 71 + t / 2}, {71, t}}));
  }
}

// A score of -infinity is a weight of 0, also where it fills the first tile of keys.
TYPED_TEST(AttentionTest, ScoresOfMinusInfinityWeighNothing) {
  Problem x = Problem::Random(Shape(1, 1, 4, false), {{5, 100}}), rest = x;
  for (int64_t row = 0; row < 5; ++row) x.q[row * 4] = rest.q[row * 4] = 1;
  for (int64_t key = 0; key < 70; ++key) x.k[key * 4] = -std::numeric_limits<double>::infinity();
  rest.sequences[0].key_start = 70;
  rest.sequences[0].key_length = 30;
  const Result<TypeParam> with = RunKernels<TypeParam>(x, false), without = RunKernels<TypeParam>(rest, false);
  // The same 30 weights, summed in another order.
  for (int64_t i = 0; i < 20; ++i) EXPECT_NEAR(with.out[i], without.out[i], 100 * std::numeric_limits<TypeParam>::epsilon());
  for (int64_t key = 0; key < 70; ++key) EXPECT_EQ(with.weights[key], 0);
}

TYPED_TEST(AttentionTest, DenormalOperandsGiveUniformWeights) {
  Problem x = Problem::Random(Shape(1, 1, 8, true), {{70, 70}});
  for (double& value : x.q) value *= 1e-39;
  for (double& value : x.k) value *= 1e-39;
  const Result<TypeParam> r = RunKernels<TypeParam>(x);
  for (int64_t i = 0; i < 70; ++i) {
    for (int64_t j = 0; j < 70; ++j) ASSERT_NEAR(r.weights[i * 70 + j], j <= i ? 1.0 / (i + 1) : 0.0, 1e-6);
  }
  for (const TypeParam value : r.dv) ASSERT_TRUE(std::isfinite(value));
}

TYPED_TEST(AttentionTest, GroupedHeadsShareKeys) {
  ExpectMatchesComposed<TypeParam>(Problem::Random(Shape(6, 2, 16, true), {{20, 20}, {3, 70}}));
  ExpectMatchesComposed<TypeParam>(Problem::Random(Shape(4, 1, 8, false), {{20, 33}}));
}

TYPED_TEST(AttentionTest, SequencesMayShareOrOverlapKeyRows) {
  Problem x = Problem::Random(Shape(2, 1, 8, false), {{5, 10}, {6, 20}, {7, 12}, {4, 6}});
  x.sequences[2].key_start = x.sequences[0].key_start;  // shared with 0, and reaching into 1
  x.sequences[3].key_start = 15;                        // inside 1
  ExpectMatchesComposed<TypeParam>(x);
}

TYPED_TEST(AttentionTest, DropoutMatchesTheComposedForm) {
  for (const double p : {0.25, 0.5, 1.0}) {
    Problem x = Problem::Random(Shape(2, 2, 12, true), {{20, 20}, {70, 75}});
    x.dropout = {p, 42};
    if (p < 1) {
      ExpectMatchesComposed<TypeParam>(x);
    } else {
      const Result<TypeParam> r = RunKernels<TypeParam>(x);
      EXPECT_THAT(r.out, ::testing::Each(TypeParam{0}));
      EXPECT_THAT(r.dq, ::testing::Each(TypeParam{0}));
      EXPECT_THAT(r.dv, ::testing::Each(TypeParam{0}));
    }
  }
}

TYPED_TEST(AttentionTest, CausalAlignsTheLastQueryWithTheLastKey) {
  Problem x{.shape = {1, 1, 1, true, 1}, .query_rows = 6, .key_rows = 10};
  x.sequences = {{0, 1, 0, 4}, {1, 2, 4, 4}, {3, 3, 8, 2}};
  x.q = Vector(6, 0.0);
  x.k = Vector(10, 0.5);
  x.v = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2};
  x.dout = Vector(6, 1.0);
  const Result<TypeParam> r = RunKernels<TypeParam>(x);
  const std::vector<TypeParam> expected = {2.5, 2, 2.5, 0, 1, 1.5};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(r.out[i], expected[i], 1e-6) << i;
  EXPECT_EQ(r.out[3], 0) << "sees no key";
  EXPECT_EQ(r.dq[3], 0);
}

TYPED_TEST(AttentionTest, QueriesWithoutKeysGiveZerosAndNoGradient) {
  Problem x = Problem::Random(Shape(2, 1, 20, true), {{9, 0}, {100, 2}, {3, 3}});
  const Result<TypeParam> r = RunKernels<TypeParam>(x);
  for (int64_t row = 0; row < 9 + 98; ++row) {
    for (int64_t c = 0; c < 40; ++c) {
      ASSERT_EQ(r.out[row * 40 + c], 0) << row;
      ASSERT_EQ(r.dq[row * 40 + c], 0) << row;
    }
    EXPECT_EQ(r.log_sum_exp[row * 2], -std::numeric_limits<TypeParam>::infinity());
  }
  for (const std::vector<TypeParam>* values : {&r.out, &r.weights, &r.dq, &r.dk, &r.dv}) {
    for (const TypeParam value : *values) ASSERT_TRUE(std::isfinite(value));
  }
}

TYPED_TEST(AttentionTest, WeightsOfARowSumToOne) {
  const Problem x = Problem::Random(Shape(2, 2, 16, true), {{3, 3}, {70, 90}});
  const Result<TypeParam> r = RunKernels<TypeParam>(x, false);
  size_t at = 0;
  for (const SequenceSpan& s : x.sequences) {
    for (int64_t row = 0; row < 2 * s.query_length; ++row) {
      double sum = 0;
      for (int64_t j = 0; j < s.key_length; ++j) sum += r.weights[at++];
      EXPECT_NEAR(sum, 1, s.key_length * std::numeric_limits<TypeParam>::epsilon());
    }
  }
}

// softmax([4, 0] / sqrt 2) worked out by hand.
TYPED_TEST(AttentionTest, ScoresAreScaled) {
  Problem x{.shape = Shape(1, 1, 2, false), .query_rows = 1, .key_rows = 2};
  x.sequences = {{0, 1, 0, 2}};
  x.q = {2, 0};
  x.k = {2, 0, 0, 0};
  x.v = {1, 0, 0, 1};
  const Result<TypeParam> r = RunKernels<TypeParam>(x, false);
  EXPECT_NEAR(r.weights[0], 0.944193, 1e-6);
  EXPECT_NEAR(r.weights[1], 0.055807, 1e-6);
  EXPECT_NEAR(r.out[1], 0.055807, 1e-6);
}

TYPED_TEST(AttentionTest, LargeAndNegativelyScaledScoresStayFinite) {
  Problem x = Problem::Random({1, 1, 4, true, -1.0}, {{70, 70}});
  ExpectMatchesComposed<TypeParam>(x);
  for (double& value : x.q) value *= 100;
  for (const TypeParam value : RunKernels<TypeParam>(x).dk) ASSERT_TRUE(std::isfinite(value));
}

TYPED_TEST(AttentionTest, SameBitsForAnyNumberOfThreads) {
  for (const bool causal : {false, true}) {
    Problem x = Problem::Random(Shape(4, 2, 16, causal), {{60, 60}, {1, 1}, {33, 80}, {130, 130}, {20, 20}});
    x.sequences[4].key_start = x.sequences[0].key_start;
    x.dropout = {0.1, 5};
    Result<TypeParam> first;
    Workers(1).Run([&] { first = RunKernels<TypeParam>(x); });
    for (const int threads : {2, 4}) {
      Result<TypeParam> r;
      Workers(threads).Run([&] { r = RunKernels<TypeParam>(x); });
      EXPECT_EQ(r.out, first.out);
      EXPECT_EQ(r.dq, first.dq);
      EXPECT_EQ(r.dk, first.dk);
      EXPECT_EQ(r.dv, first.dv);
    }
  }
}

TYPED_TEST(AttentionTest, ASequenceAloneHasTheBitsItHasAmongOthers) {
  for (const bool causal : {false, true}) {
    Problem x = Problem::Random(Shape(2, 2, 24, causal), {{13, 13}, {75, 75}, {1, 30}, {50, 50}});
    x.dropout = {0.2, 9};
    const Result<TypeParam> together = RunKernels<TypeParam>(x);
    for (const SequenceSpan& s : x.sequences) {
      Problem alone = x;
      alone.sequences = {s};
      const Result<TypeParam> r = RunKernels<TypeParam>(alone);
      for (int64_t i = s.query_start * x.ldq(); i < (s.query_start + s.query_length) * x.ldq(); ++i) {
        ASSERT_EQ(r.out[i], together.out[i]) << i;
        ASSERT_EQ(r.dq[i], together.dq[i]) << i;
      }
      for (int64_t i = s.key_start * x.ldk(); i < (s.key_start + s.key_length) * x.ldk(); ++i) {
        ASSERT_EQ(r.dk[i], together.dk[i]) << i;
        ASSERT_EQ(r.dv[i], together.dv[i]) << i;
      }
    }
  }
}

// Decoding: the query at position t, alone, with the keys up to t, is row t of the whole causal product.
TYPED_TEST(AttentionTest, ADecodedRowHasTheBitsOfTheFullCausalForward) {
  const Problem x = Problem::Random(Shape(2, 1, 20, true), {{150, 150}}, 4);
  const Result<TypeParam> full = RunKernels<TypeParam>(x, false);
  for (int64_t t = 0; t < 150; ++t) {
    Problem one = x;
    one.sequences = {{t, 1, 0, t + 1}};
    const Result<TypeParam> r = RunKernels<TypeParam>(one, false);
    for (int64_t c = 0; c < 40; ++c) ASSERT_EQ(r.out[t * x.ldq() + c], full.out[t * x.ldq() + c]) << t;
    ASSERT_EQ(r.log_sum_exp[t * 2 + 1], full.log_sum_exp[t * 2 + 1]) << t;
  }
}

TYPED_TEST(AttentionTest, CausalRowsIgnoreLaterKeysEvenNan) {
  Problem x = Problem::Random(Shape(1, 1, 20, true), {{80, 80}});
  const Result<TypeParam> clean = RunKernels<TypeParam>(x, false);
  x.k[70 * 20 + 3] = std::numeric_limits<double>::quiet_NaN();
  x.v[70 * 20 + 3] = std::numeric_limits<double>::infinity();
  const Result<TypeParam> r = RunKernels<TypeParam>(x, false);
  for (int64_t i = 0; i < 70 * 20; ++i) ASSERT_EQ(r.out[i], clean.out[i]) << "row " << i / 20;
  for (int64_t i = 70; i < 80; ++i) EXPECT_TRUE(std::isnan(r.out[i * 20])) << "row " << i;
}

TYPED_TEST(AttentionTest, GradientsAddAndMayBeLeftOut) {
  const Problem x = Problem::Random(Shape(2, 1, 12, false), {{6, 9}});
  const Result<TypeParam> r = RunKernels<TypeParam>(x);
  const std::vector<TypeParam> q = As<TypeParam>(x.q), k = As<TypeParam>(x.k), v = As<TypeParam>(x.v),
                               dout = As<TypeParam>(x.dout);
  const AttentionArgs<TypeParam> args = {x.shape, x.sequences, q.data(), 24, k.data(), 12, v.data(), 12, {}};
  std::vector<TypeParam> dk(k.size(), 3);
  AttentionBackward(args, r.out.data(), 24, r.log_sum_exp.data(), dout.data(), 24, nullptr, 0, dk.data(), 12, nullptr, 0);
  for (size_t i = 0; i < dk.size(); ++i) EXPECT_NEAR(dk[i], 3 + r.dk[i], 1e-5);
}

TYPED_TEST(AttentionTest, SteadyStateTakesNoNewScratch) {
  Problem x = Problem::Random(Shape(2, 2, 64, true), {{10, 300}, {100, 100}});
  Workers(1).Run([&] {
    RunKernels<TypeParam>(x);
    const int64_t blocks = ScratchPool::Get().blocks();
    RunKernels<TypeParam>(x);
    EXPECT_EQ(ScratchPool::Get().blocks(), blocks);
  });
}

// Values of one make the outputs sums of kept weights / (1 - p): the share of dropped ones, equal weights, is binomial.
TYPED_TEST(AttentionTest, DropoutDropsTheShareItShould) {
  Problem x = Problem::Random(Shape(1, 1, 1, false), {{200, 200}});
  x.dropout = {0.25, 3};
  std::fill(x.q.begin(), x.q.end(), 0.0);
  std::fill(x.v.begin(), x.v.end(), 1.0);
  const Result<TypeParam> r = RunKernels<TypeParam>(x, false);
  double mean = 0;
  for (const TypeParam value : r.out) mean += value / 200;
  // Standard deviation of the mean of 40000 draws: sqrt(.25 * .75 / 40000) / .75 = .0029; five of them.
  EXPECT_NEAR(mean, 1, 0.0145);
  // Another sequence id, another mask.
  x.sequences[0].id += 1;
  EXPECT_NE(RunKernels<TypeParam>(x, false).out, r.out);
}

// Central differences of sum(out * dout) in f64. Error: h^2/6 third derivative + eps/h, about 1e-9 for h = 1e-5.
// Rounding noise here would become whole steps of Adam, which divides a gradient by its own size.
TEST(AttentionGradientTest, AQueryWithOneKeyGivesScoresNoGradientAtAll) {
  Problem x = Problem::Random({2, 2, 9, true, 0.3}, {{4, 4}, {3, 1}});
  for (const double p : {0.0, 0.4}) {
    x.dropout = {p, 8};
    const Result<float> f = RunKernels<float>(x);
    const Result<double> d = RunKernels<double>(x);
    for (int64_t c = 0; c < x.ldq(); ++c) {
      EXPECT_EQ(f.dq[c], 0.0f);
      EXPECT_EQ(d.dq[c], 0.0);
    }
    EXPECT_NE(f.dq[x.ldq()], 0.0f);
  }
}

TEST(AttentionGradientTest, MatchesCentralDifferences) {
  for (const double p : {0.0, 0.25}) {
    for (const bool causal : {false, true}) {
      Problem x = Problem::Random(Shape(2, 1, 3, causal), {{4, 4}, {2, 5}, {3, 2}});
      x.dropout = {p, 11};
      const Result<double> r = RunKernels<double>(x);
      const auto loss = [&] {
        const Result<double> y = RunKernels<double>(x, false);
        double sum = 0;
        for (size_t i = 0; i < y.out.size(); ++i) sum += y.out[i] * x.dout[i];
        return sum;
      };
      for (const auto& [values, gradients] : {std::pair{&x.q, &r.dq}, std::pair{&x.k, &r.dk}, std::pair{&x.v, &r.dv}}) {
        for (size_t i = 0; i < values->size(); ++i) {
          const double h = 1e-5, before = (*values)[i];
          (*values)[i] = before + h;
          const double up = loss();
          (*values)[i] = before - h;
          const double down = loss();
          (*values)[i] = before;
          ASSERT_NEAR((*gradients)[i], (up - down) / (2 * h), 1e-7) << i;
        }
      }
    }
  }
}

TEST(AttentionDeathTest, HeadsMustDivide) {
  const Problem x = Problem::Random(Shape(3, 2, 4, false), {{2, 2}});
  EXPECT_DEATH(RunKernels<float>(x), "heads 3, kv_heads 2");
}

}  // namespace
}  // namespace weft::kernels
