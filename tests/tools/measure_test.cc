#include "tools/benchmarks/measure.h"

#include <gtest/gtest.h>

#include "autograd/base/parallel.h"

namespace weft::bench {
namespace {

TEST(Summarise, MedianMinimumMeanAndSpreadOfAnyOrder) {
  const Statistics s = Summarise({11, 1, 3, 2, 10, 9, 4, 8, 5, 7, 6});
  EXPECT_EQ(s.count, 11);
  EXPECT_EQ(s.median, 6);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.mean, 6);
  EXPECT_DOUBLE_EQ(s.spread, (10.0 - 2.0) / 6);  // places 1 and 9 of 0 to 10
}

TEST(Summarise, PercentilesBetweenValuesAreInterpolated) {
  EXPECT_DOUBLE_EQ(Summarise({1, 2}).median, 1.5);
  EXPECT_DOUBLE_EQ(Summarise({1, 2}).spread, 0.8 / 1.5);
  EXPECT_EQ(Summarise({3}).median, 3);
  EXPECT_EQ(Summarise({3}).spread, 0);
}

TEST(Time, RunsAsOftenAsToldAfterTheWarmUp) {
  int runs = 0;
  const auto count = [&] { ++runs; };
  EXPECT_EQ(Time({.exactly = 4}, 2, count).size(), 4);
  EXPECT_EQ(runs, 6);
  EXPECT_EQ(Time({.seconds = 0, .least = 3}, 0, count).size(), 3);
  EXPECT_GT(Time({.seconds = 1e-3, .least = 1}, 0, count).size(), 1);
}

TEST(PeakRuns, GivesARateForEachRun) {
  Workers(2).Run([] {
    const std::vector<double> rates = PeakRuns(2, 3, 1000);
    EXPECT_EQ(rates.size(), 3);
    for (double rate : rates) EXPECT_GT(rate, 0);
  });
}

TEST(Record, IsOneJsonObjectInTheOrderOfItsKeys) {
  testing::internal::CaptureStdout();
  Record().Set("suite", "a\"b").Set("threads", int64_t{2}).Set("share", 0.5).Print();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"suite\":\"a\\\"b\",\"threads\":2,\"share\":0.5}\n");
}

}  // namespace
}  // namespace weft::bench
