#include "train/schedule.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "autograd/base/status.h"
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

ScheduleConfig Cycles(int64_t warmup, int64_t first, int64_t multiplier, double min_lr = 0) {
  ScheduleConfig schedule = Make("cosine", warmup, 0, min_lr);
  schedule.cycle_steps = first;
  schedule.cycle_multiplier = multiplier;
  return schedule;
}

ScheduleConfig Wsd(int64_t warmup, int64_t steps, int64_t decay, const std::string& shape, double min_lr = 0) {
  ScheduleConfig schedule = Make("wsd", warmup, steps, min_lr);
  schedule.decay_steps = decay;
  schedule.shape = shape;
  return schedule;
}

const char* const kKinds[] = {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};

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
  for (const char* kind : {"linear", "cosine", "wsd"}) {
    const ScheduleConfig schedule = Make(kind, 10, 110, 0.125);
    EXPECT_GT(LearningRate(schedule, 1.0, 109), 0.125) << kind;
    EXPECT_EQ(LearningRate(schedule, 1.0, 110), 0.125) << kind;
    EXPECT_EQ(LearningRate(schedule, 1.0, 111), 0.125) << kind;
    EXPECT_EQ(LearningRate(schedule, 1.0, int64_t{1} << 40), 0.125) << kind;
  }
}

TEST(LearningRate, IsStableThenDecaysInTheChosenShape) {
  for (const char* shape : {"linear", "cosine", "sqrt"}) {
    const ScheduleConfig schedule = Wsd(10, 200, 100, shape, 0.2);
    EXPECT_EQ(LearningRate(schedule, 1.0, 5), 0.5) << shape;
    for (int64_t update = 10; update <= 100; ++update) EXPECT_EQ(LearningRate(schedule, 1.0, update), 1.0) << shape;
    EXPECT_LT(LearningRate(schedule, 1.0, 101), 1.0) << shape;
    EXPECT_GT(LearningRate(schedule, 1.0, 199), 0.2) << shape;
    EXPECT_EQ(LearningRate(schedule, 1.0, 200), 0.2) << shape;
  }
  // A quarter of the decay: 1 - 1/4, (1 + cos(pi / 4)) / 2, 1 - sqrt(1/4).
  EXPECT_DOUBLE_EQ(LearningRate(Wsd(0, 200, 100, "linear"), 1.0, 125), 0.75);
  EXPECT_DOUBLE_EQ(LearningRate(Wsd(0, 200, 100, "cosine"), 1.0, 125), (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(LearningRate(Wsd(0, 200, 100, "sqrt"), 1.0, 125), 0.5);
  // Unless given, a fifth of the updates decays: from 80 of 100 on.
  EXPECT_EQ(LearningRate(Wsd(0, 100, 0, "linear"), 1.0, 80), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(Wsd(0, 100, 0, "linear"), 1.0, 90), 0.5);
}

TEST(LearningRate, RestartsEachCycleAtThePeak) {
  // Cycles of 10, 20, 40 ... updates, the first of which begins at update 5.
  const ScheduleConfig schedule = Cycles(5, 10, 2, 0.1);
  for (int64_t start : {5, 15, 35, 75, 155}) EXPECT_EQ(LearningRate(schedule, 1.0, start), 1.0) << start;
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1.0, 10), 0.55);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1.0, 25), 0.55);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1.0, 55), 0.55);
  EXPECT_LT(LearningRate(schedule, 1.0, 34), 0.11);
  for (int64_t update = 6; update < 155; ++update) {
    const double rate = LearningRate(schedule, 1.0, update);
    EXPECT_GT(rate, 0.1) << update;
    const bool starts = update == 15 || update == 35 || update == 75;
    EXPECT_TRUE(starts || rate < LearningRate(schedule, 1.0, update - 1)) << update;
  }
  const ScheduleConfig equal = Cycles(0, 4, 1);
  for (int64_t update = 1; update < 40; ++update) {
    EXPECT_EQ(LearningRate(equal, 1.0, update), LearningRate(equal, 1.0, update + 4)) << update;
  }
  for (int64_t multiplier : {1, 2, 1000}) {
    for (int64_t update : {int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
      const double rate = LearningRate(Cycles(3, int64_t{1000000000000}, multiplier), 1.0, update);
      EXPECT_TRUE(rate >= 0 && rate <= 1) << multiplier << " " << update << ": " << rate;
    }
  }
}

// Warm-up and last update of case B053, also where the config would be refused.
TEST(LearningRate, B053_IsAboveZeroFirstAndAtThePeakOnce) {
  constexpr std::pair<int64_t, int64_t> kWarmupAndSteps[] = {{0, 10}, {10, 10}, {20, 10}, {0, 1}, {1, 1}, {9, 10}};
  for (const auto& [warmup, steps] : kWarmupAndSteps) {
    std::vector<ScheduleConfig> schedules;
    for (const char* kind : kKinds) schedules.push_back(Make(kind, warmup, steps));
    for (const char* shape : {"cosine", "sqrt"}) schedules.push_back(Wsd(warmup, steps, 1, shape));
    schedules.push_back(Cycles(warmup, 100, 2));
    for (const ScheduleConfig& schedule : schedules) {
      int64_t peaks = 0;
      for (int64_t update = 1; update <= steps; ++update) {
        const double rate = LearningRate(schedule, 0.3, update);
        EXPECT_TRUE(std::isfinite(rate) && rate >= 0 && rate <= 0.3) << schedule.kind << " " << rate;
        const bool reached = rate == 0.3 && (update == 1 || LearningRate(schedule, 0.3, update - 1) < 0.3);
        peaks += reached ? 1 : 0;
      }
      EXPECT_GT(LearningRate(schedule, 0.3, 1), 0) << schedule.kind;
      EXPECT_EQ(peaks, warmup <= steps ? 1 : 0) << schedule.kind << " " << warmup << " " << steps;
    }
  }
}

TEST(CompleteSchedule, FillsInAHorizonThatWarmupAndDecayFitInto) {
  ScheduleConfig cosine = Make("cosine", 5, 0);
  EXPECT_TRUE(CompleteSchedule(10, &cosine).ok());
  EXPECT_EQ(cosine.steps, 10);
  ScheduleConfig stated = Make("linear", 5, 7);
  EXPECT_TRUE(CompleteSchedule(10, &stated).ok());
  EXPECT_EQ(stated.steps, 7);
  ScheduleConfig late = Make("cosine", 11, 0);
  EXPECT_EQ(ExitCode(CompleteSchedule(10, &late)), 2);
  ScheduleConfig wsd = Wsd(5, 0, 6, "linear");
  EXPECT_EQ(CompleteSchedule(10, &wsd).message(),
            "schedule.warmup_steps: found 5 and decay_steps = 6, allowed in all 10, the updates of train.epochs");
  wsd.kind = "linear";
  EXPECT_TRUE(CompleteSchedule(10, &wsd).ok());
  // Kinds without an end have nothing to fill in, or they could not be loaded again.
  ScheduleConfig constant = Make("constant", 20, 0), cycles = Cycles(20, 5, 1);
  for (ScheduleConfig* schedule : {&constant, &cycles}) {
    EXPECT_TRUE(CompleteSchedule(10, schedule).ok());
    EXPECT_EQ(schedule->steps, 0);
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
