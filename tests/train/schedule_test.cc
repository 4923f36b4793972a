#include "train/schedule.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

ScheduleConfig Make(const std::string& kind, int64_t warmup, int64_t steps, double min_lr = 0) {
  ScheduleConfig schedule;
  schedule.kind = kind;
  schedule.warmup_steps = warmup;
  schedule.steps = steps;
  schedule.min_lr = min_lr;
  return schedule;
}

const char* const kKinds[] = {"constant", "linear", "cosine", "inverse_sqrt"};

TEST(LearningRate, RisesFromAboveZeroToThePeakAtTheEndOfWarmup) {
  for (const char* kind : kKinds) {
    const ScheduleConfig schedule = Make(kind, 8, 100);
    EXPECT_EQ(LearningRate(schedule, 0.4, 1), 0.4 / 8) << kind;
    EXPECT_EQ(LearningRate(schedule, 0.4, 4), 0.2) << kind;
    EXPECT_EQ(LearningRate(schedule, 0.4, 8), 0.4) << kind;
    EXPECT_LE(LearningRate(schedule, 0.4, 9), 0.4) << kind;
  }
}

TEST(LearningRate, StartsAtThePeakWithoutWarmup) {
  for (const char* kind : kKinds) EXPECT_EQ(LearningRate(Make(kind, 0, 100), 0.3, 1), 0.3) << kind;
}

TEST(LearningRate, DecaysByItsFormula) {
  // Half way between update 10 and update 110.
  EXPECT_DOUBLE_EQ(LearningRate(Make("linear", 10, 110, 0.2), 1.0, 60), 0.6);
  EXPECT_DOUBLE_EQ(LearningRate(Make("cosine", 10, 110, 0.2), 1.0, 60), 0.6);
  // A quarter: (1 + cos(pi / 4)) / 2.
  EXPECT_DOUBLE_EQ(LearningRate(Make("cosine", 10, 110), 1.0, 35), (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(LearningRate(Make("linear", 10, 110), 1.0, 35), 0.75);
  EXPECT_DOUBLE_EQ(LearningRate(Make("inverse_sqrt", 100, 0), 1.0, 400), 0.5);
  EXPECT_EQ(LearningRate(Make("constant", 10, 0), 1.0, 1000000), 1.0);
}

TEST(LearningRate, EndsAtTheMinimumAndStaysThere) {
  for (const char* kind : {"linear", "cosine"}) {
    const ScheduleConfig schedule = Make(kind, 10, 110, 0.125);
    EXPECT_GT(LearningRate(schedule, 1.0, 109), 0.125) << kind;
    EXPECT_EQ(LearningRate(schedule, 1.0, 110), 0.125) << kind;
    EXPECT_EQ(LearningRate(schedule, 1.0, 111), 0.125) << kind;
    EXPECT_EQ(LearningRate(schedule, 1.0, int64_t{1} << 40), 0.125) << kind;
  }
}

TEST(LearningRate, NeverRisesAfterWarmup) {
  for (const char* kind : kKinds) {
    const ScheduleConfig schedule = Make(kind, 7, 50, 0.01);
    for (int64_t update = 8; update < 80; ++update) {
      EXPECT_LE(LearningRate(schedule, 0.5, update), LearningRate(schedule, 0.5, update - 1)) << kind << " at " << update;
    }
  }
}

TEST(LearningRate, IsFiniteAndNotNegativeForEdgeValues) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  for (const char* kind : kKinds) {
    for (int64_t warmup : {int64_t{0}, int64_t{1}, int64_t{100}, huge}) {
      for (int64_t steps : {int64_t{0}, int64_t{1}, int64_t{100}, huge}) {
        for (int64_t update : {int64_t{1}, int64_t{2}, int64_t{99}, int64_t{100}, int64_t{101}, huge}) {
          const double rate = LearningRate(Make(kind, warmup, steps), 1.0, update);
          EXPECT_TRUE(std::isfinite(rate) && rate >= 0 && rate <= 1)
              << kind << " warmup " << warmup << " steps " << steps << " update " << update << ": " << rate;
        }
        EXPECT_GT(LearningRate(Make(kind, warmup, steps), 1.0, 1), 0) << kind;
      }
    }
  }
}

TEST(LearningRateDeathTest, RefusesUpdateZero) {
  EXPECT_DEATH(LearningRate(Make("constant", 0, 0), 1.0, 0), "updates count from 1");
}

}  // namespace
}  // namespace weft
