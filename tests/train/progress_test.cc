#include "train/progress.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

// What a Progress prints, in memory.
class Capture {
 public:
  Capture() : stream_(::open_memstream(&data_, &size_)) {}
  ~Capture() {
    std::fclose(stream_);
    std::free(data_);
  }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  std::FILE* stream_;
};

ProgressState State(int64_t step) {
  ProgressState state;
  state.step = step;
  state.total_steps = 20000;
  state.loss = 2.34561;
  state.learning_rate = 1e-3;
  state.grad_norm = 0.8712;
  state.tokens_per_second = 12345;
  state.seconds_left = 192;
  return state;
}

TEST(FormatProgress, HasAllPartsThatAreKnown) {
  EXPECT_EQ(FormatProgress(State(1200)), "step 1200/20000  loss 2.3456  lr 1.00e-03  norm 0.871  12.3k tok/s  3m 12s left");
  ProgressState start;
  start.step = 1;
  start.loss = std::nan("");
  EXPECT_EQ(FormatProgress(start), "step 1  loss nan  lr 0.00e+00  norm 0");
}

TEST(FormatDuration, UsesTheTwoLargestUnits) {
  EXPECT_EQ(FormatDuration(0), "0s");
  EXPECT_EQ(FormatDuration(59.4), "59s");
  EXPECT_EQ(FormatDuration(59.6), "1m 00s");
  EXPECT_EQ(FormatDuration(192), "3m 12s");
  EXPECT_EQ(FormatDuration(2 * 3600 + 5 * 60 + 9), "2h 05m");
  EXPECT_EQ(FormatDuration(3 * 86400 + 4 * 3600), "3d 04h");
  EXPECT_EQ(FormatDuration(-1), "?");
  EXPECT_EQ(FormatDuration(std::nan("")), "?");
  EXPECT_EQ(FormatDuration(INFINITY), "?");
}

TEST(FormatCount, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(7.5), "7.5");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(999.7), "1.00k");
  EXPECT_EQ(FormatCount(1000), "1.00k");
  EXPECT_EQ(FormatCount(12345), "12.3k");
  EXPECT_EQ(FormatCount(123456), "123k");
  EXPECT_EQ(FormatCount(999999), "1.00M");
  EXPECT_EQ(FormatCount(4.56e6), "4.56M");
  EXPECT_EQ(FormatCount(1e9), "1.00G");
  EXPECT_EQ(FormatCount(NAN), "?");
}

TEST(SecondsLeft, FollowsThePaceSoFar) {
  EXPECT_EQ(SecondsLeft(10, 5.0, 30), 15.0);
  EXPECT_EQ(SecondsLeft(0, 5.0, 30), -1);
}

TEST(FitLine, CutsAtTheEndOfAPart) {
  EXPECT_EQ(FitLine("step 1  loss 2  lr 3", 0), "step 1  loss 2  lr 3");
  EXPECT_EQ(FitLine("step 1  loss 2  lr 3", 20), "step 1  loss 2  lr 3");
  EXPECT_EQ(FitLine("step 1  loss 2  lr 3", 19), "step 1  loss 2");
  EXPECT_EQ(FitLine("step 1  loss 2  lr 3", 14), "step 1  loss 2");
  EXPECT_EQ(FitLine("step 1  loss 2  lr 3", 13), "step 1");
  EXPECT_EQ(FitLine("step 1  loss 2  lr 3", 3), "ste");
}

TEST(Progress, PrintsPlainLinesEverySoOften) {
  Capture capture;
  ProgressOptions options;
  options.stream = capture.stream();
  options.plain_interval = 10;
  Progress progress(options);
  progress.Update(State(1), 100);
  progress.Update(State(2), 105);
  progress.Update(State(3), 110);
  progress.Message("valid 2.5");
  progress.Show(State(4), 111);
  progress.Finish();
  EXPECT_EQ(capture.text(),
            FormatProgress(State(1)) + "\n" + FormatProgress(State(3)) + "\nvalid 2.5\n" + FormatProgress(State(4)) + "\n");
}

TEST(Progress, RedrawsOneLineWithinTheWidthOfATerminal) {
  Capture capture;
  ProgressOptions options;
  options.stream = capture.stream();
  options.live = true;
  options.columns = 31;
  Progress progress(options);
  progress.Update(State(1), 0);
  EXPECT_EQ(capture.text(), "\r\x1b[Kstep 1/20000  loss 2.3456");
  progress.Update(State(2), 0.05);
  EXPECT_FALSE(absl::StrContains(capture.text(), "step 2"));
  progress.Update(State(3), 0.2);
  progress.Message("saved");
  progress.Finish();
  EXPECT_EQ(capture.text(),
            "\r\x1b[Kstep 1/20000  loss 2.3456\r\x1b[Kstep 3/20000  loss 2.3456\r\x1b[Ksaved\n\r\x1b[Kstep 3/20000  loss "
            "2.3456\n");
}

}  // namespace
}  // namespace weft
