#include "train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

constexpr char kEraseLine[] = "\r\x1b[K";

int TerminalColumns(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void Print(std::FILE* stream, absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace

std::string FormatDuration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const int64_t s = std::llround(seconds);
  if (s < 60) return absl::StrCat(s, "s");
  if (s < 3600) return absl::StrFormat("%dm %02ds", s / 60, s % 60);
  if (s < 86400) return absl::StrFormat("%dh %02dm", s / 3600, s % 3600 / 60);
  return absl::StrFormat("%dd %02dh", s / 86400, s % 86400 / 3600);
}

std::string FormatCount(double value) {
  if (!std::isfinite(value)) return "?";
  constexpr std::array<absl::string_view, 5> kUnits = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  // 999.5 would round to 1000, which is 1.00 of the next unit.
  while (unit + 1 < kUnits.size() && std::abs(value) >= 999.5) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return value == std::round(value) ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.3g", value);
  const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f%s", decimals, value, kUnits[unit]);
}

double SecondsLeft(int64_t done, double elapsed, int64_t remaining) {
  if (done <= 0 || !(elapsed >= 0)) return -1;
  return elapsed / static_cast<double>(done) * static_cast<double>(remaining);
}

std::string FormatProgress(const ProgressState& state) {
  std::string line = absl::StrCat("step ", state.step);
  if (state.total_steps > 0) absl::StrAppend(&line, "/", state.total_steps);
  absl::StrAppendFormat(&line, "  loss %.4f  lr %.2e  norm %.3g", state.loss, state.learning_rate, state.grad_norm);
  if (state.tokens_per_second > 0) absl::StrAppend(&line, "  ", FormatCount(state.tokens_per_second), " tok/s");
  if (state.seconds_left >= 0) absl::StrAppend(&line, "  ", FormatDuration(state.seconds_left), " left");
  return line;
}

absl::string_view FitLine(absl::string_view line, int columns) {
  if (columns <= 0 || line.size() <= static_cast<size_t>(columns)) return line;
  const size_t end = line.rfind("  ", static_cast<size_t>(columns));
  return line.substr(0, end == absl::string_view::npos || end == 0 ? static_cast<size_t>(columns) : end);
}

ProgressOptions ProgressOptions::ForStderr() {
  ProgressOptions options;
  const char* term = std::getenv("TERM");
  options.live = ::isatty(STDERR_FILENO) == 1 && term != nullptr && absl::string_view(term) != "dumb";
  return options;
}

bool Progress::Due(double now) const {
  return !shown_ || now - last_ >= (options_.live ? options_.live_interval : options_.plain_interval);
}

void Progress::Update(const ProgressState& state, double now) {
  if (Due(now)) Show(state, now);
}

void Progress::Show(const ProgressState& state, double now) {
  shown_ = true;
  last_ = now;
  if (options_.live) {
    line_ = FormatProgress(state);
    Draw();
  } else {
    Print(options_.stream, absl::StrCat(FormatProgress(state), "\n"));
  }
}

void Progress::Draw() {
  const int columns = options_.columns > 0 ? options_.columns : TerminalColumns(options_.stream);
  // One column stays free: a full line would make some terminals wrap.
  Print(options_.stream, absl::StrCat(kEraseLine, FitLine(line_, columns > 1 ? columns - 1 : 1)));
}

void Progress::Message(absl::string_view line) {
  Print(options_.stream, absl::StrCat(line_.empty() ? "" : kEraseLine, line, "\n"));
  if (!line_.empty()) Draw();
}

void Progress::Finish() {
  if (!line_.empty()) Print(options_.stream, "\n");
  line_.clear();
}

}  // namespace weft
