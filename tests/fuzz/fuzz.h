// What the fuzz targets share. A target is one .cc file with LLVMFuzzerTestOneInput: libFuzzer calls it with made-up bytes
// (cmake --preset fuzz), replay_main.cc with the files of corpus/TARGET. A promise that breaks ends the process: a sanitizer,
// WEFT_CHECK, or FUZZ_EXPECT. The first byte of an input chooses how the rest is read, so that one corpus reaches both what
// damage finds and what lies behind a checksum.
#ifndef WEFT_TESTS_FUZZ_FUZZ_H_
#define WEFT_TESTS_FUZZ_FUZZ_H_

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/string_view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#define FUZZ_EXPECT(condition)                                                                        \
  do {                                                                                                \
    if (!(condition)) {                                                                               \
      std::fprintf(stderr, "%s:%d: FUZZ_EXPECT(%s) does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                   \
    }                                                                                                 \
  } while (false)

namespace weft {

// A file of this process alone, in memory where /dev/shm is there, removed at the end.
class FuzzFile {
 public:
  FuzzFile() {
    const char* temporary = std::getenv("TMPDIR");
    const std::string folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : temporary != nullptr ? temporary : "/tmp";
    path_ = folder + "/weft-fuzz-XXXXXX";
    const int fd = ::mkstemp(path_.data());
    FUZZ_EXPECT(fd >= 0);
    ::close(fd);
  }
  ~FuzzFile() { ::unlink(path_.c_str()); }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  const std::string& path() const { return path_; }
  void Put(absl::string_view bytes) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    FUZZ_EXPECT(file.good());
  }

 private:
  std::string path_;
};

// Splits an input into its first byte (0 for an empty one) and the rest.
struct FuzzInput {
  FuzzInput(const uint8_t* data, size_t size)
      : mode(size == 0 ? 0 : data[0]),
        rest(size == 0 ? "" : reinterpret_cast<const char*>(data) + 1, size == 0 ? 0 : size - 1) {}
  const unsigned mode;
  absl::string_view rest;
};

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_FUZZ_H_
