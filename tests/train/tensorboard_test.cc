// B110: files that TensorBoard reads, whole, without a step twice or missing after a resume.
#include "train/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/train/event_reader.h"

namespace weft {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class TensorBoardTest : public testing::Test {
 protected:
  void WriteSteps(TensorBoardWriter writer, std::vector<int64_t> steps) {
    for (const int64_t step : steps) ASSERT_TRUE(writer.WriteScalars(step, {{"loss", 0.5 * static_cast<double>(step)}}).ok());
  }
  std::vector<Event> Events() { return ReadEvents(path_); }
  std::string File(int number) { return path_ + "/events.out.tfevents.0000000" + std::to_string(number); }

  TemporaryFolder folder_;
  const std::string path_ = folder_.Path("run/tensorboard");
};

// The check value of the catalogue of CRCs, those of RFC 3720 (appendix B.4), and the length field of a known event file.
TEST(Crc32c, HasTheKnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(MaskedCrc32c(std::string("\x18\0\0\0\0\0\0\0", 8)), 0x224B7FA3u);
  EXPECT_EQ(SlowMaskedCrc(std::string("\x18\0\0\0\0\0\0\0", 8)), 0x224B7FA3u);
}

TEST_F(TensorBoardTest, EventsReadBackWithTheirTagsStepAndTime) {
  const double before = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  TensorBoardWriter writer(path_, 0);
  ASSERT_TRUE(
      writer.WriteScalars(10, {{"loss", 2.5}, {"learning_rate", 1e-3}, {"eval_loss", 3}, {"eval_exact_match", 0.25}}).ok());
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 10);
  EXPECT_THAT(events[1].wall_time, DoubleNear(before, 60));
  const std::map<std::string, float> expected = {
      {"train/loss", 2.5f}, {"train/learning_rate", 1e-3f}, {"eval/loss", 3.0f}, {"eval/exact_match", 0.25f}};
  EXPECT_EQ(events[1].scalars, expected);
}

TEST_F(TensorBoardTest, NothingIsMadeBeforeTheFirstNumber) {
  const TensorBoardWriter writer(path_, 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TensorBoardTest, StepsBeyond32BitsStayWhole) {
  const std::vector<int64_t> steps = {(int64_t{1} << 31) - 1, (int64_t{1} << 31) + 1, int64_t{1} << 40};
  WriteSteps(TensorBoardWriter(path_, 0), steps);
  EXPECT_EQ(ScalarSteps(Events()), steps);
  ASSERT_TRUE(DropEventsAfter(path_, (int64_t{1} << 31) + 1).ok());
  EXPECT_THAT(ScalarSteps(Events()), ElementsAre(steps[0], steps[1]));
}

// An infinite value would leave no scale for the others.
TEST_F(TensorBoardTest, WhatIsNoFiniteFloatBecomesNaN) {
  TensorBoardWriter writer(path_, 0);
  ASSERT_TRUE(
      writer.WriteScalars(1, {{"a", std::nan("")}, {"b", kInfinity}, {"c", -kInfinity}, {"d", 2.7e43}, {"e", 3.4e38}}).ok());
  const std::map<std::string, float> scalars = Events()[1].scalars;
  for (const char* tag : {"train/a", "train/b", "train/c", "train/d"}) EXPECT_TRUE(std::isnan(scalars.at(tag))) << tag;
  EXPECT_EQ(scalars.at("train/e"), 3.4e38f);
}

TEST_F(TensorBoardTest, AResumeAtTenLeavesNoStepTwiceAndNoneOut) {
  WriteSteps(TensorBoardWriter(path_, 0), {5, 10, 15, 20});
  ASSERT_TRUE(DropEventsAfter(path_, 10).ok());
  WriteSteps(TensorBoardWriter(path_, 10), {15, 20, 25});
  const std::vector<Event> events = Events();
  EXPECT_THAT(ScalarSteps(events), ElementsAre(5, 10, 15, 20, 25));
  // A TensorBoard that has read the old 15 and 20 is told to forget them.
  EXPECT_TRUE(events[4].session_start);
  EXPECT_EQ(events[4].step, 11);

  // And once more, from before the first file's end.
  ASSERT_TRUE(DropEventsAfter(path_, 5).ok());
  WriteSteps(TensorBoardWriter(path_, 5), {10});
  EXPECT_THAT(ScalarSteps(Events()), ElementsAre(5, 10));
  EXPECT_EQ(NamesIn(path_).size(), 3);
}

// Wherever a crash cuts the file: what is whole before stays, and the file can be read again to its end.
TEST_F(TensorBoardTest, ACutTailIsDropped) {
  WriteSteps(TensorBoardWriter(path_, 0), {5, 10});
  const std::string whole = BytesOf(File(1));
  WriteSteps(TensorBoardWriter(folder_.Path("short"), 0), {5});
  const size_t before = BytesOf(folder_.Path("short/events.out.tfevents.00000001")).size();
  for (size_t size = before + 1; size < whole.size(); ++size) {
    PutBytes(File(1), whole.substr(0, size));
    EXPECT_THROW(Events(), std::runtime_error);
    ASSERT_TRUE(DropEventsAfter(path_, 10).ok());
    EXPECT_THAT(ScalarSteps(Events()), ElementsAre(5)) << size;
  }
  PutBytes(File(1), whole);
  ASSERT_TRUE(DropEventsAfter(path_, 10).ok());
  EXPECT_EQ(BytesOf(File(1)), whole);
}

TEST_F(TensorBoardTest, NoDamagedByteIsTakenForAnEvent) {
  WriteSteps(TensorBoardWriter(path_, 0), {5});
  const std::string whole = BytesOf(File(1));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 0x10;
    PutBytes(File(1), damaged);
    ASSERT_TRUE(DropEventsAfter(path_, 10).ok());
    EXPECT_LT(BytesOf(File(1)).size(), whole.size()) << i;
    ReadEventFile(File(1));  // throws if anything damaged was kept
  }
}

TEST_F(TensorBoardTest, ForeignFilesAndAMissingFolderAreLeftAlone) {
  EXPECT_TRUE(DropEventsAfter(path_, 10).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  std::filesystem::create_directories(path_);
  PutBytes(path_ + "/notes.txt", "mine");
  PutBytes(path_ + "/events.out.tfevents.1712.host", "");
  EXPECT_TRUE(DropEventsAfter(path_, 10).ok());
  WriteSteps(TensorBoardWriter(path_, 10), {20});
  EXPECT_EQ(BytesOf(path_ + "/notes.txt"), "mine");
}

TEST_F(TensorBoardTest, AFailedWriteNamesTheFile) {
  PutBytes(folder_.Path("file"), "");
  const absl::Status status = TensorBoardWriter(folder_.Path("file/tensorboard"), 0).WriteScalars(1, {{"loss", 1}});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("file/tensorboard"));
}

TEST(Histogram, CountsEachFiniteValueOnce) {
  const std::vector<float> values = {-1, -1, 0.5f, 2, 2, 2, std::nanf(""), INFINITY};
  const Histogram h = MakeHistogram(values);
  EXPECT_EQ(h.min, -1);
  EXPECT_EQ(h.max, 2);
  EXPECT_EQ(h.count, 6);
  EXPECT_EQ(h.sum, 4.5);
  EXPECT_EQ(h.sum_of_squares, 14.25);
  ASSERT_EQ(h.limits.size(), 30);
  ASSERT_EQ(h.counts.size(), 30);
  EXPECT_EQ(h.counts[0], 2);
  EXPECT_EQ(h.counts[15], 1);  // 0.5 is the left end of the sixteenth of 30 buckets of width 0.1
  EXPECT_EQ(h.counts[29], 3);  // the last one has its right end
  EXPECT_EQ(h.limits[29], 2);
  for (int i = 0; i < 30; ++i) EXPECT_NEAR(h.limits[i], -1 + 0.1 * (i + 1), 1e-12);
}

TEST(Histogram, EqualAndMissingValues) {
  const Histogram equal = MakeHistogram(std::vector<float>(7, 0.25f));
  EXPECT_THAT(equal.limits, Each(0.25));
  EXPECT_EQ(equal.counts[29], 7);
  EXPECT_EQ(equal.count, 7);
  EXPECT_THAT(MakeHistogram(std::vector<float>{std::nanf("")}).limits, IsEmpty());
  EXPECT_THAT(MakeHistogram({}).limits, IsEmpty());
}

TEST_F(TensorBoardTest, HistogramsReadBack) {
  TensorBoardWriter writer(path_, 0);
  const std::vector<float> values = {0, 1, 1, 3};
  ASSERT_TRUE(writer.WriteHistograms(4, {{"output.weight", values}}).ok());
  const std::vector<Event> events = Events();
  EXPECT_EQ(events[1].step, 4);
  const EventHistogram h = events[1].histograms.at("weights/output.weight");
  EXPECT_EQ(h.num, 4);
  EXPECT_EQ(h.sum, 5);
  EXPECT_EQ(h.sum_squares, 11);
  EXPECT_EQ(h.max, 3);
  const Histogram expected = MakeHistogram(values);
  EXPECT_EQ(h.limits, expected.limits);
  EXPECT_EQ(h.buckets, expected.counts);
}

}  // namespace
}  // namespace weft
