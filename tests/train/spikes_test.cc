#include "train/spikes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft {
namespace {

// A loss that falls from 4 to about 2 with ripples.
double Ordinary(int i) { return 2 + 2 * std::exp(-i / 40.0) + 0.05 * std::sin(7.0 * i); }

TEST(LossSpikes, AnOrdinaryCourseHasNone) {
  LossSpikes spikes;
  for (int i = 0; i < 2000; ++i) EXPECT_FALSE(spikes.Observe(Ordinary(i))) << i;
  LossSpikes constant;
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(constant.Observe(1.5)) << i;
}

TEST(LossSpikes, AJumpIsOne) {
  LossSpikes spikes;
  for (int i = 0; i < 1000; ++i) spikes.Observe(Ordinary(i));
  EXPECT_TRUE(spikes.Observe(4));
  EXPECT_NEAR(spikes.mean(), 2, 0.05);
  EXPECT_NEAR(spikes.deviation(), 0.05 / std::sqrt(2.0), 0.01);
  EXPECT_FALSE(spikes.Observe(Ordinary(1001)));
}

TEST(LossSpikes, NotAmongTheFirstAndNotOnTheWayDown) {
  LossSpikes spikes;
  for (int i = 0; i < 49; ++i) EXPECT_FALSE(spikes.Observe(i == 40 ? 100.0 : 1.0)) << i;
  LossSpikes falling;
  for (int i = 0; i < 200; ++i) falling.Observe(Ordinary(i));
  EXPECT_FALSE(falling.Observe(0.1));
}

TEST(LossSpikes, NonFiniteLossesAreLeftOut) {
  LossSpikes spikes;
  for (int i = 0; i < 100; ++i) spikes.Observe(Ordinary(i));
  EXPECT_FALSE(spikes.Observe(std::nan("")));
  EXPECT_FALSE(spikes.Observe(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(spikes.Observe(Ordinary(101)));
  EXPECT_TRUE(std::isfinite(spikes.mean()) && std::isfinite(spikes.deviation()));
}

}  // namespace
}  // namespace weft
