// OrderedOutput: lines that are made in any order, by several threads, and printed in the order of their numbers. The text of
// the first line that is not finished goes out as it comes; that of later ones waits. Thread-safe.
#ifndef WEFT_TOOLS_ORDERED_OUTPUT_H_
#define WEFT_TOOLS_ORDERED_OUTPUT_H_

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

class OrderedOutput {
 public:
  // Lines 0 .. count - 1 go to `file`, which must outlive this.
  OrderedOutput(int64_t count, std::FILE* file) : file_(file), waiting_(count), finished_(count, false) {}

  // More text of a line. REQUIRES: it is not finished.
  void Add(int64_t line, absl::string_view text);
  // Ends a line, with a newline.
  void Finish(int64_t line);

 private:
  void Print(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), file_); }

  std::FILE* const file_;
  std::mutex mutex_;
  int64_t current_ = 0;  // the first line that is not finished
  std::vector<std::string> waiting_;
  std::vector<bool> finished_;
};

}  // namespace weft

#endif  // WEFT_TOOLS_ORDERED_OUTPUT_H_
