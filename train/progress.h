// What a person sees of a running training: one live line that is redrawn in place when the stream is a terminal, plain lines
// every few seconds when it is not (a pipe, a CI log). Formatting is pure; the clock is the caller's, so tests need no time.
// The stream is not owned. Not thread-safe.
#ifndef WEFT_TRAIN_PROGRESS_H_
#define WEFT_TRAIN_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"

namespace weft {

struct ProgressState {
  int64_t step = 0;
  int64_t total_steps = 0;  // 0: not known
  double loss = 0;          // mean over tokens
  double learning_rate = 0;
  double grad_norm = 0;
  double tokens_per_second = 0;
  double seconds_left = -1;  // below 0: not known
};

// "step 1200/20000  loss 2.3456  lr 1.00e-03  norm 0.87  12.3k tok/s  3m 12s left"; parts that are not known are left out.
std::string FormatProgress(const ProgressState& state);
// "0s", "59s", "3m 12s", "2h 05m", "3d 04h"; "?" for negative or non-finite values.
std::string FormatDuration(double seconds);
// Three digits and a unit: "0", "7.5", "999", "12.3k", "4.56M", "1.00G".
std::string FormatCount(double value);
// Time that `remaining` steps will take at the pace of `done` steps in `elapsed` seconds; -1 when nothing is done yet.
double SecondsLeft(int64_t done, double elapsed, int64_t remaining);
// At most `columns` bytes of an ASCII line, cut at the end of a part (two spaces) where possible. columns <= 0: all of it.
absl::string_view FitLine(absl::string_view line, int columns);

struct ProgressOptions {
  std::FILE* stream = stderr;
  bool live = false;           // redraw one line in place
  int columns = 0;             // width of the terminal; 0: ask the system at each draw
  double live_interval = 0.1;  // seconds between two drawings
  double plain_interval = 10;  // seconds between two plain lines
  // For stderr: live exactly if it is a terminal that understands a carriage return (TERM is not "dumb").
  static ProgressOptions ForStderr();
};

class Progress {
 public:
  explicit Progress(const ProgressOptions& options) : options_(options) {}
  // Leaves the cursor at the start of a new line.
  ~Progress() { Finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // True if Update at time `now` (seconds, any origin, increasing) would print: formatting can be skipped otherwise.
  bool Due(double now) const;
  // Shows `state` if it is due.
  void Update(const ProgressState& state, double now);
  // Shows `state` in any case: the last step.
  void Show(const ProgressState& state, double now);
  // Prints a line of its own (a validation result, a warning); the live line stays below.
  void Message(absl::string_view line);
  // Ends the live line.
  void Finish();

 private:
  void Draw();

  ProgressOptions options_;
  std::string line_;  // the live line; empty: none on the screen
  double last_ = 0;
  bool shown_ = false;
};

}  // namespace weft

#endif  // WEFT_TRAIN_PROGRESS_H_
