// Lines in order, whoever makes them when.
#include "tools/ordered_output.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "autograd/base/parallel.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

struct Capture {
  Capture() : file(std::tmpfile()) { EXPECT_NE(file, nullptr); }
  ~Capture() { std::fclose(file); }
  // All that has reached the file, past any buffer of this process.
  std::string Text() const {
    std::string text(1 << 16, '\0');
    const ssize_t size = pread(fileno(file), text.data(), text.size(), 0);
    EXPECT_GE(size, 0);
    text.resize(size);
    return text;
  }
  std::FILE* file;
};

TEST(OrderedOutput, TheFirstLineGoesOutAsItComesAndLaterOnesWait) {
  const Capture capture;
  OrderedOutput output(3, capture.file);
  output.Add(1, "b");
  EXPECT_EQ(capture.Text(), "");
  output.Add(0, "a");
  EXPECT_EQ(capture.Text(), "a");
  output.Add(0, "A");
  EXPECT_EQ(capture.Text(), "aA");
  output.Finish(2);
  output.Finish(0);
  EXPECT_EQ(capture.Text(), "aA\nb");  // line 1 goes on live
  output.Add(1, "B");
  EXPECT_EQ(capture.Text(), "aA\nbB");
  output.Finish(1);
  EXPECT_EQ(capture.Text(), "aA\nbB\n\n");
}

TEST(OrderedOutput, ManyThreadsPrintLineByLine) {
  const Capture capture;
  constexpr int64_t kLines = 500;
  OrderedOutput output(kLines, capture.file);
  Workers(4).Run([&] {
    ParallelFor(kLines, [&](int64_t i) {
      output.Add(i, absl::StrCat(i));
      output.Add(i, "!");
      output.Finish(i);
    });
  });
  std::string expected;
  for (int64_t i = 0; i < kLines; ++i) absl::StrAppend(&expected, i, "!\n");
  EXPECT_EQ(capture.Text(), expected);
}

}  // namespace
}  // namespace weft
