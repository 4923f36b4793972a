#include "train/gradient_noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "autograd/base/parallel.h"
#include "layers/builder.h"

namespace weft {
namespace {

constexpr int64_t kElements = 20000;

std::string Noise(int64_t t, uint64_t seed, int threads, bool with_more = false) {
  Parameters parameters;
  Builder builder(&parameters);
  if (with_more) builder.Parameter("more", {33}, Init::Zeros());
  builder.Parameter("w", {kElements}, Init::Zeros());
  parameters.Allocate(DType::kF32, 1);
  const Slab gradients(DType::kF32, parameters.slab_size());
  Workers(threads).Run([&] { AddGradientNoise(0.3, t, RandomKey{seed}, 50, parameters, gradients.tensor()); });
  const Tensor w = Parameters::In(gradients.tensor(), parameters.list()[with_more ? 1 : 0]);
  return {static_cast<const char*>(w.raw()), static_cast<size_t>(w.bytes())};
}

TEST(GradientNoise, HasTheVarianceOfItsFormulaPerToken) {
  for (int64_t t : {0, 1, 1000}) {
    const std::string bytes = Noise(t, 1, 1);
    const auto* g = reinterpret_cast<const float*>(bytes.data());
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      sum += g[i] / 50;
      squares += g[i] / 50 * (g[i] / 50);
    }
    const double variance = 0.3 / std::pow(1.0 + static_cast<double>(t), 0.55);
    // 5 standard errors: of the mean sqrt(v / n), of the variance v sqrt(2 / n) = 1 % of v.
    EXPECT_NEAR(sum / kElements, 0, 5 * std::sqrt(variance / kElements)) << t;
    EXPECT_NEAR(squares / kElements, variance, 5 * variance * std::sqrt(2.0 / kElements)) << t;
  }
}

TEST(GradientNoise, DependsOnSeedUpdateAndNameOnly) {
  const std::string one = Noise(3, 1, 1);
  EXPECT_EQ(one, Noise(3, 1, 2));
  EXPECT_EQ(one, Noise(3, 1, 4, /*with_more=*/true));
  EXPECT_NE(one, Noise(4, 1, 1));
  EXPECT_NE(one, Noise(3, 2, 1));
}

TEST(GradientNoise, IsDrawnAnewForEachUpdate) {
  const std::string a = Noise(3, 1, 1), b = Noise(4, 1, 1);
  int64_t same_sign = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    same_sign +=
        std::signbit(reinterpret_cast<const float*>(a.data())[i]) == std::signbit(reinterpret_cast<const float*>(b.data())[i]);
  }
  // Half of them, with a standard deviation of sqrt(n) / 2; five of these.
  EXPECT_NEAR(static_cast<double>(same_sign), kElements / 2.0, 2.5 * std::sqrt(kElements));
}

TEST(GradientNoise, AddsToTheGradient) {
  Parameters parameters;
  Builder(&parameters).Parameter("w", {4}, Init::Zeros());
  parameters.Allocate(DType::kF64, 1);
  const Slab zeros(DType::kF64, parameters.slab_size()), twos(DType::kF64, parameters.slab_size());
  for (int64_t i = 0; i < 4; ++i) twos.tensor().Set(i, 2);
  for (const Slab* slab : {&zeros, &twos}) AddGradientNoise(1, 0, RandomKey{1}, 1, parameters, slab->tensor());
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(twos.tensor().At(i), 2 + zeros.tensor().At(i));
}

}  // namespace
}  // namespace weft
