#include "tools/ordered_output.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {

void OrderedOutput::Add(int64_t line, absl::string_view text) {
  if (text.empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (line == current_) {
    Print(text);
    std::fflush(file_);
  } else {
    absl::StrAppend(&waiting_[line], text);
  }
}

void OrderedOutput::Finish(int64_t line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  finished_[line] = true;
  if (line != current_) return;
  const auto count = static_cast<int64_t>(finished_.size());
  while (current_ < count && finished_[current_]) {
    Print("\n");
    if (++current_ < count) Print(std::exchange(waiting_[current_], {}));
  }
  std::fflush(file_);
}

}  // namespace weft
