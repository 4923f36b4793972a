// A file of a test with given bytes, removed with the object.
#ifndef WEFT_TESTS_DATA_TEMP_FILE_H_
#define WEFT_TESTS_DATA_TEMP_FILE_H_

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace weft {

class TempFile {
 public:
  TempFile(absl::string_view name, absl::string_view bytes) {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = absl::StrCat(testing::TempDir(), "/weft_", test->test_suite_name(), "_", test->name(), "_", std::string(name));
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  ~TempFile() { std::remove(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace weft

#endif  // WEFT_TESTS_DATA_TEMP_FILE_H_
