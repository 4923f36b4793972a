// Files: written whole or not at all, appended line by line, or read at given places. Every error names the path and the
// system's reason. The classes own one file descriptor each, can be moved, and are not thread-safe, but for ReadAt.
#ifndef WEFT_DATA_FILE_H_
#define WEFT_DATA_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// An open file descriptor, closed at the end; -1 is none.
class FileHandle {
 public:
  explicit FileHandle(int fd = -1) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileHandle();
  int fd() const { return fd_; }

 private:
  int fd_;
};

// "path: what: strerror(error)", with what to do about a full disk, permissions and limits, and a fitting code: NotFound,
// PermissionDenied, FailedPrecondition (a folder where a file is needed), ResourceExhausted (no space), otherwise Unavailable.
// Never InvalidArgument.
absl::Status FileError(const std::string& path, absl::string_view what, int error);

// Replaces the file at `path` by the concatenation of `pieces`: temporary file in the same folder ("PATH.tmp-PID"), fsync,
// rename, fsync of the folder. On an error the temporary is removed and the old file, if any, is as it was.
absl::Status AtomicWrite(const std::string& path, absl::Span<const absl::string_view> pieces);
absl::Status AtomicWrite(const std::string& path, absl::string_view contents);
// The first of these two, or WriteOutput.
using FileWriter = absl::Status (*)(const std::string& path, absl::Span<const absl::string_view> pieces);

// Writes a result to a path that the user named. As AtomicWrite, but what is not a regular file is never replaced: behind a
// symbolic link the file that it leads to is, and the bytes go into a pipe or a device as it is. They go to stdout, behind what
// was printed, where `path` is the file that it is open on (as /dev/stdout always is).
absl::Status WriteOutput(const std::string& path, absl::Span<const absl::string_view> pieces);
absl::Status WriteOutput(const std::string& path, absl::string_view contents);
// Whether WriteOutput can be expected to succeed, to be asked before the work whose result it is: FileError for a folder, a
// missing folder around the file, and permissions. Changes nothing.
absl::Status CheckOutput(const std::string& path);

// Whether `name` (without folder) is that of a temporary left by an AtomicWrite of a process that was killed.
bool IsTemporaryName(absl::string_view name);

// All bytes of a file.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// A regular file that is read at given offsets.
class InputFile {
 public:
  static absl::StatusOr<InputFile> Open(const std::string& path);
  const std::string& path() const { return path_; }
  // Bytes, when opened.
  int64_t size() const { return size_; }
  // Reads `bytes` bytes at `offset`. DataLoss if the file ends before.
  absl::Status ReadAt(int64_t offset, void* into, int64_t bytes) const;
  // Another handle on the same open file, also when its name is gone.
  absl::StatusOr<InputFile> Duplicate() const;

 private:
  InputFile(std::string path, FileHandle file, int64_t size) : path_(std::move(path)), file_(std::move(file)), size_(size) {}
  std::string path_;
  FileHandle file_;
  int64_t size_;
};

// A file that is written from start to end and replaces the one at `path` only when it is whole; until then it is
// "PATH.partial", and it is removed with the object. Of several processes that write the same file at once, each waits for
// the one before; one that was killed leaves a partial file, which the next one writes over.
class ReplacementFile {
 public:
  // May wait, see above. Errors of creating and locking.
  static absl::StatusOr<ReplacementFile> Create(const std::string& path);
  ReplacementFile(ReplacementFile&&) = default;
  ReplacementFile& operator=(ReplacementFile&&) = delete;
  ~ReplacementFile();
  absl::Status Append(absl::string_view bytes);
  // Writes over the first bytes, which were appended before, then makes the file durable and renames it. Once.
  absl::Status Finish(absl::string_view first_bytes);

 private:
  ReplacementFile(std::string path, FileHandle file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  FileHandle file_;  // locked as long as it is open
  bool finished_ = false;
};

// A file that grows at its end. Each Append reaches the system before it returns, so a killed process loses no line.
class AppendFile {
 public:
  // Makes the file when missing; `truncate` empties it.
  static absl::StatusOr<AppendFile> Open(const std::string& path, bool truncate);
  absl::Status Append(absl::string_view bytes);
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, FileHandle file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  FileHandle file_;
};

}  // namespace weft

#endif  // WEFT_DATA_FILE_H_
