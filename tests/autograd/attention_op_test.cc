// The Attention op: cases from other libraries' bug lists, and the fused form against attention composed of primitives.
#include <limits>
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "tests/autograd/numbers.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Numbers Filled(DType dtype, const Shape& shape, double value) {
  return Numbers(dtype, shape, std::vector<double>(shape.elements(), value));
}

// One head of width 1, queries all 0: each output is the plain mean of the visible values.
std::vector<double> MeansOfVisible(DType dtype, int32_t query_count, const std::vector<double>& values) {
  const auto key_count = static_cast<int32_t>(values.size());
  const Numbers q = Filled(dtype, {query_count, 1}, 0), k(dtype, {key_count, 1}, 1), v(dtype, {key_count, 1}, values);
  AttentionOptions options;
  options.causal = true;
  Tape tape;
  return ToDoubles(
      Attention(tape.Constant(q), tape.Constant(k), tape.Constant(v), {{0, query_count, 0, 0}}, {{0, key_count, 0, 0}}, options)
          .value());
}

TEST(AttentionTest, CausalMeansThePastAndItself) {  // B004
  for (DType dtype : {DType::kF32, DType::kF64}) {
    EXPECT_LE(LargestDifference(MeansOfVisible(dtype, 3, {1, 2, 4}), {1, 1.5, 7.0 / 3}), 1e-6);
  }
}

TEST(AttentionTest, LastQueryIsAlignedWithTheLastKey) {  // B005
  for (DType dtype : {DType::kF32, DType::kF64}) {
    EXPECT_LE(LargestDifference(MeansOfVisible(dtype, 1, {1, 2, 3, 4}), {2.5}), 1e-6);
    EXPECT_LE(LargestDifference(MeansOfVisible(dtype, 2, {1, 2, 3, 4}), {2, 2.5}), 1e-6);
    EXPECT_LE(LargestDifference(MeansOfVisible(dtype, 3, {1, 2}), {0, 1, 1.5}), 1e-6);  // the first query sees no key
  }
}

TEST(AttentionTest, LaterTokensDoNotChangeEarlierRows) {  // B004
  const Numbers x(DType::kF32, {9, 6}, 1);
  AttentionOptions options;
  options.heads = 2;
  options.causal = true;
  const auto run = [&] {
    Tape tape;
    const Variable v = tape.Constant(x);
    return ToBytes(Attention(v, v, v, {{0, 9, 0, 0}}, {{0, 9, 0, 0}}, options).value().Rows(0, 5));
  };
  const std::vector<char> before = run();
  for (int64_t i = 5 * 6; i < 9 * 6; ++i) x.tensor().Set(i, 1000 + i);
  EXPECT_EQ(run(), before);
}

// Item 0 has no keys at all, item 1 is ordinary.
TEST(AttentionTest, QueriesWithoutKeysGiveZerosAndDisturbNobody) {  // B001
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const Numbers q(dtype, {6, 8}, 1), k(dtype, {3, 8}, 2), v(dtype, {3, 8}, 3), up(dtype, {6, 8}, 4);
    AttentionOptions options;
    options.heads = 2;
    const Sequence queries[] = {{0, 3, 0, 0}, {3, 3, 0, 1}}, keys[] = {{0, 0, 0, 0}, {0, 3, 0, 1}};
    const Numbers weights = Filled(dtype, {AttentionWeightCount(queries, keys, options)}, 99);
    EXPECT_EQ(weights.tensor().elements(), 2 * 3 * 3);
    options.weights = weights;
    Tape tape, alone;
    const Variable vq = tape.Input(q), vk = tape.Input(k), vv = tape.Input(v);
    const Variable y = Attention(vq, vk, vv, queries, keys, options);
    tape.Backward(y, up);
    const Variable aq = alone.Input(q.tensor().Rows(3, 3)), ak = alone.Input(k), av = alone.Input(v);
    options.weights = Tensor();  // weights on or off: the same output
    const Variable ay = Attention(aq, ak, av, {{0, 3, 0, 1}}, {{0, 3, 0, 1}}, options);
    alone.Backward(ay, up.tensor().Rows(3, 3));

    EXPECT_EQ(ToDoubles(y.value().Rows(0, 3)), std::vector<double>(24, 0.0));
    EXPECT_EQ(ToBytes(y.value().Rows(3, 3)), ToBytes(ay.value()));
    EXPECT_EQ(ToDoubles(tape.Gradient(vq).Rows(0, 3)), std::vector<double>(24, 0.0));
    EXPECT_EQ(ToBytes(tape.Gradient(vq).Rows(3, 3)), ToBytes(alone.Gradient(aq)));
    EXPECT_EQ(ToBytes(tape.Gradient(vk)), ToBytes(alone.Gradient(ak)));
    EXPECT_EQ(ToBytes(tape.Gradient(vv)), ToBytes(alone.Gradient(av)));
    for (int64_t row = 0; row < 6; ++row) {
      double sum = 0;
      for (int64_t j = 0; j < 3; ++j) sum += weights.tensor().At(row * 3 + j);
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

// A padded batch would hold tokens 0 and 1 of padding; here the sequence simply starts at row 2, and causal rows before it do
// not exist.
TEST(AttentionTest, ASequenceInTheMiddleEqualsItAlone) {  // B002
  const Numbers x(DType::kF32, {5, 4}, 1), up(DType::kF32, {5, 4}, 2);
  AttentionOptions options;
  options.causal = true;
  Tape tape, alone;
  const Variable vx = tape.Input(x);
  const Variable y = Attention(vx, vx, vx, {{2, 2, 0, 0}}, {{2, 2, 0, 0}}, options);
  tape.Backward(y, up);
  const Variable ax = alone.Input(x.tensor().Rows(2, 2));
  const Variable ay = Attention(ax, ax, ax, {{0, 2, 0, 0}}, {{0, 2, 0, 0}}, options);
  alone.Backward(ay, up.tensor().Rows(2, 2));
  EXPECT_EQ(ToBytes(y.value().Rows(2, 2)), ToBytes(ay.value()));
  EXPECT_EQ(ToBytes(tape.Gradient(vx).Rows(2, 2)), ToBytes(alone.Gradient(ax)));
  for (int64_t row : {0, 1, 4}) {  // in no sequence
    EXPECT_EQ(ToDoubles(y.value().Rows(row, 1)), std::vector<double>(4, 0.0));
    EXPECT_EQ(ToDoubles(tape.Gradient(vx).Rows(row, 1)), std::vector<double>(4, 0.0));
  }
}

// With one key per query, head h returns the values of its own columns: heads are columns, time stays time.
TEST(AttentionTest, HeadsAreColumns) {  // B007
  const Numbers q(DType::kF32, {2, 4}, {0, 0, 100, 0, 0, 0, 100, 0}), v(DType::kF32, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Numbers k(DType::kF32, {2, 4}, {0, 0, 9, 0, 0, 0, -9, 0});
  AttentionOptions options;
  options.heads = 2;
  Tape tape;
  const Variable y = Attention(tape.Constant(q), tape.Constant(k), tape.Constant(v), {{0, 2, 0, 0}}, {{0, 2, 0, 0}}, options);
  // Head 0 has equal scores: the mean of [0, 1] and [4, 5]. Head 1 looks at key 0 only: [2, 3].
  EXPECT_LE(LargestDifference(ToDoubles(y.value()), {2, 3, 2, 3, 2, 3, 2, 3}), 1e-6);
}

TEST(AttentionTest, ScoresAreScaledByTheHeadsWidth) {  // B008
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const Numbers q(dtype, {1, 4}, {2, 0, 2, 0}), k(dtype, {2, 4}, {2, 0, 2, 0, 0, 0, 0, 0}), v(dtype, {2, 4}, 1);
    AttentionOptions options;
    options.heads = 2;
    const Numbers weights = Filled(dtype, {4}, 0);
    options.weights = weights;
    Tape tape;
    Attention(tape.Constant(q), tape.Constant(k), tape.Constant(v), {{0, 1, 0, 0}}, {{0, 2, 0, 0}}, options);
    EXPECT_LE(LargestDifference(ToDoubles(weights), {0.944193, 0.055807, 0.944193, 0.055807}), 1e-6);
  }
}

TEST(AttentionTest, GradientsMatchDifferences) { ExpectGradientsOf("attention"); }

struct Result {
  std::vector<double> y, dq, dk, dv, weights;
};

// B items of T queries and T keys; the fused op.
Result Fused(DType dtype, int64_t items, int64_t time, int64_t heads, int64_t d, bool causal, uint64_t seed) {
  const Shape shape = {items * time, heads * d};
  const Numbers q(dtype, shape, seed), k(dtype, shape, seed + 1), v(dtype, shape, seed + 2), up(dtype, shape, seed + 3);
  std::vector<Sequence> sequences;
  for (int64_t i = 0; i < items; ++i) {
    sequences.push_back({static_cast<int32_t>(i * time), static_cast<int32_t>(time), 0, static_cast<uint64_t>(i)});
  }
  const Numbers weights = Filled(dtype, {items, heads, time, time}, 0);
  AttentionOptions options;
  options.heads = heads;
  options.causal = causal;
  options.weights = weights;
  Tape tape;
  const Variable vq = tape.Input(q), vk = tape.Input(k), vv = tape.Input(v);
  const Variable y = Attention(vq, vk, vv, sequences, sequences, options);
  tape.Backward(y, up);
  return {ToDoubles(y.value()), ToDoubles(tape.Gradient(vq)), ToDoubles(tape.Gradient(vk)), ToDoubles(tape.Gradient(vv)),
          ToDoubles(weights)};
}

// The same from MatMul, MaskedFill and Softmax, on [B, H, T, d].
Result Composed(DType dtype, int64_t items, int64_t time, int64_t heads, int64_t d, bool causal, uint64_t seed) {
  const Shape shape = {items * time, heads * d};
  const Numbers q(dtype, shape, seed), k(dtype, shape, seed + 1), v(dtype, shape, seed + 2), up(dtype, shape, seed + 3);
  Tape tape;
  const Variable vq = tape.Input(q), vk = tape.Input(k), vv = tape.Input(v);
  const auto by_head = [&](Variable x) { return Transpose(Reshape(x, {items, time, heads, d}), 1, 2); };
  Variable scores = Scale(MatMul(by_head(vq), by_head(vk), false, true), 1 / std::sqrt(static_cast<double>(d)));
  std::vector<int32_t> hidden(time * time);
  for (int64_t i = 0; i < time; ++i) {
    for (int64_t j = 0; j < time; ++j) hidden[i * time + j] = causal && j > i;
  }
  scores = MaskedFill(scores, Tensor::Of(absl::MakeSpan(hidden), {time, time}), -kInfinity);
  const Variable weights = Softmax(scores);
  const Variable y = Reshape(Transpose(MatMul(weights, by_head(vv)), 1, 2), shape);
  tape.Backward(y, up);
  return {ToDoubles(y.value()), ToDoubles(tape.Gradient(vq)), ToDoubles(tape.Gradient(vk)), ToDoubles(tape.Gradient(vv)),
          ToDoubles(weights.value())};
}

TEST(AttentionTest, EqualsTheComposedForm) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    for (bool causal : {false, true}) {
      for (int64_t time : {1, 5, 70}) {
        const Result fused = Fused(dtype, 2, time, 3, 4, causal, 1), composed = Composed(dtype, 2, time, 3, 4, causal, 1);
        // f32: each form rounds sums of at most 70 terms below 10 a few times, |y| and gradients stay below 30: some 70 * 30 *
        // 2^-24.
        const double tolerance = dtype == DType::kF32 ? 70 * 30 * 0x1p-24 : 1e-12;
        EXPECT_LE(LargestDifference(fused.y, composed.y), tolerance) << dtype << " " << time;
        EXPECT_LE(LargestDifference(fused.weights, composed.weights), tolerance) << dtype << " " << time;
        EXPECT_LE(LargestDifference(fused.dq, composed.dq), tolerance) << dtype << " " << time;
        EXPECT_LE(LargestDifference(fused.dk, composed.dk), tolerance) << dtype << " " << time;
        EXPECT_LE(LargestDifference(fused.dv, composed.dv), tolerance) << dtype << " " << time;
      }
    }
  }
}

// q, k and v as columns of one matrix against three matrices with the same numbers.
TEST(AttentionTest, PackedColumnsEqualSeparateMatrices) {
  const Numbers packed(DType::kF32, {7, 12}, 1), up(DType::kF32, {7, 4}, 2);
  const Sequence sequences[] = {{0, 4, 0, 0}, {4, 3, 0, 1}};
  AttentionOptions options;
  options.heads = 2;
  Tape tape;
  const Variable x = tape.Input(packed);
  const Variable y = Attention({x, 0, 4}, {x, 4, 4}, {x, 8}, sequences, sequences, options);
  const std::vector<char> bytes = ToBytes(y.value());
  tape.Backward(y, up);
  const std::vector<double> gradient = ToDoubles(tape.Gradient(x));
  tape.Reset();
  const Variable again = tape.Input(packed);
  const Variable q = Slice(again, 1, 0, 4), k = Slice(again, 1, 4, 4), v = Slice(again, 1, 8, 4);
  const Variable z = Attention(q, k, v, sequences, sequences, options);
  tape.Backward(z, up);
  EXPECT_EQ(ToBytes(z.value()), bytes);
  EXPECT_EQ(ToDoubles(tape.Gradient(again)), gradient);
}

// Attention of x to itself, without projections: three gradients meet in the same elements.
TEST(AttentionTest, OneMatrixAsQueriesKeysAndValuesAddsThreeGradients) {
  const Numbers x(DType::kF64, {6, 4}, 1), up(DType::kF64, {6, 4}, 2);
  const Sequence queries[] = {{0, 3, 0, 0}, {3, 3, 0, 1}};
  const int32_t crossed[] = {1, 0};
  AttentionOptions options;
  options.heads = 2;
  options.key_of_query = crossed;
  Tape tape;
  const Variable q = tape.Input(x), k = tape.Input(x), v = tape.Input(x), all = tape.Input(x);
  const Variable apart = Attention(q, k, v, queries, queries, options);
  const Variable together = Attention(all, all, all, queries, queries, options);
  EXPECT_EQ(ToBytes(apart.value()), ToBytes(together.value()));
  const Variable both = Add(apart, together);
  tape.Backward(both, up);
  std::vector<double> sum(24);
  for (int64_t i = 0; i < 24; ++i) sum[i] = tape.Gradient(q).At(i) + tape.Gradient(k).At(i) + tape.Gradient(v).At(i);
  EXPECT_LE(LargestDifference(ToDoubles(tape.Gradient(all)), sum), 1e-14);
}

TEST(AttentionTest, SameBitsForAnyNumberOfThreads) {
  std::vector<Result> results;
  for (int threads : {1, 2, 4}) {
    Workers(threads).Run([&] { results.push_back(Fused(DType::kF32, 3, 90, 4, 16, true, 1)); });
  }
  for (int i : {1, 2}) {
    EXPECT_TRUE(results[0].y == results[i].y && results[0].weights == results[i].weights);
    EXPECT_TRUE(results[0].dq == results[i].dq && results[0].dk == results[i].dk && results[0].dv == results[i].dv);
  }
}

// The same where the op forks: the kernel's pieces must not meet in the memory of one gradient.
TEST(AttentionTest, OneMatrixAsQueriesKeysAndValuesHasTheSameBitsForAnyNumberOfThreads) {
  constexpr int32_t kItems = 40, kTime = 16;
  const Numbers x(DType::kF32, {kItems * kTime, 32}, 1), up(DType::kF32, {kItems * kTime, 32}, 2);
  std::vector<Sequence> sequences;
  std::vector<int32_t> next;
  for (int32_t i = 0; i < kItems; ++i) {
    sequences.push_back({i * kTime, kTime, 0, static_cast<uint64_t>(i)});
    next.push_back((i + 1) % kItems);
  }
  AttentionOptions options;
  options.heads = 4;
  options.key_of_query = next;
  for (int threads : {1, 2, 4}) {
    Workers(threads).Run([&] {
      Tape tape;
      const Variable q = tape.Input(x), k = tape.Input(x), v = tape.Input(x);
      tape.Backward(Attention(q, k, v, sequences, sequences, options), up);
      std::vector<float> sum(x.tensor().elements());
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] = tape.Gradient(q).data<float>()[i] + tape.Gradient(k).data<float>()[i];
        sum[i] += tape.Gradient(v).data<float>()[i];
      }
      tape.Reset();
      const Variable all = tape.Input(x);
      tape.Backward(Attention(all, all, all, sequences, sequences, options), up);
      EXPECT_EQ(ToDoubles(tape.Gradient(all)), std::vector<double>(sum.begin(), sum.end())) << threads;
    });
  }
}

TEST(AttentionTest, NothingToAttend) {
  const Numbers q(DType::kF32, {0, 4}, 1), k(DType::kF32, {3, 4}, 2), up(DType::kF32, {0, 4}, 3);
  Tape tape;
  const Variable vq = tape.Input(q), vk = tape.Input(k);
  const Variable y = Attention(vq, vk, vk, {}, {}, {});
  EXPECT_EQ(y.shape(), (Shape{0, 4}));
  tape.Backward(y, up);
  EXPECT_EQ(ToDoubles(tape.Gradient(vk)), std::vector<double>(12, 0.0));
}

TEST(AttentionDeathTest, ShapesAndSequencesThatDoNotFitAreNamed) {
  const Numbers q(DType::kF32, {4, 6}, 1), k(DType::kF32, {4, 4}, 2), d(DType::kF64, {4, 6}, 1);
  Tape tape;
  const Variable vq = tape.Constant(q), vk = tape.Constant(k), vd = tape.Constant(d);
  const Sequence one[] = {{0, 4, 0, 0}}, two[] = {{0, 2, 0, 0}, {1, 2, 0, 1}}, beyond[] = {{2, 3, 0, 0}};
  AttentionOptions options;
  EXPECT_DEATH(Attention(vq, vk, vk, one, one, options),
               "attention: q \\[4, 6\\] with 1 heads of 6 columns needs .* k \\[4, 4\\]");
  EXPECT_DEATH(Attention(vq, vq, vd, one, one, options), "attention: q f32\\[4, 6\\], k f32\\[4, 6\\], v f64\\[4, 6\\]");
  EXPECT_DEATH(Attention(vq, vq, vq, one, two, options), "attention: 1 query sequences, 2 key sequences, 0 key_of_query");
  EXPECT_DEATH(Attention(vq, vq, vq, two, two, options), "attention: query sequences must be disjoint");
  EXPECT_DEATH(Attention(vq, vq, vq, beyond, one, options), "attention: query sequences reach beyond");
  EXPECT_DEATH(Attention(vq, vq, vq, one, beyond, options), "attention: keys at rows 2 to 5 of 4");
  EXPECT_DEATH(Attention({vq, 4, 4}, vq, vq, one, one, options), "attention: columns 4 to 8 of q \\[4, 6\\]");
  options.weights = k;
  EXPECT_DEATH(Attention(vk, vk, vk, {}, {}, options), "attention: weights f32\\[4, 4\\] cannot hold 0 elements");
  options = {};
  options.heads = 4;
  EXPECT_DEATH(Attention(vq, vq, vq, one, one, options), "attention: q \\[4, 6\\]: 6 columns do not divide into 4 heads");
  options.kv_heads = 3;
  EXPECT_DEATH(Attention(vk, vk, vk, one, one, options), "attention: heads 4 is not a multiple of kv_heads 3");
  options = {};
  options.dropout = 1.5;
  EXPECT_DEATH(Attention(vq, vq, vq, one, one, options), "attention: dropout 1.5 is not in");
}

}  // namespace
}  // namespace weft
