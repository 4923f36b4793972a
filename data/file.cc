#include "data/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

constexpr absl::string_view kTemporaryMark = ".tmp-";
constexpr absl::string_view kPartialMark = ".partial";
constexpr int64_t kMaxTransfer = 1 << 30;  // bytes of one system call

// -1 with errno set on an error.
int OpenRetrying(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

absl::Status WriteAll(const FileHandle& file, const std::string& path, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.fd(), bytes.data(), std::min<size_t>(bytes.size(), kMaxTransfer));
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError(path, "cannot write", errno);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Errors name `path`, which the user knows, and not the temporary.
absl::Status WriteTemporary(const std::string& temporary, const std::string& path, absl::Span<const absl::string_view> pieces) {
  FileHandle file(OpenRetrying(temporary, O_WRONLY | O_CREAT | O_TRUNC));
  if (file.fd() < 0) return FileError(path, "cannot create", errno);
  for (absl::string_view piece : pieces) WEFT_RETURN_IF_ERROR(WriteAll(file, path, piece));
  if (::fsync(file.fd()) != 0) return FileError(path, "cannot write to the disk", errno);
  return absl::OkStatus();
}

// The cure, for causes that have one outside of the program.
absl::string_view WhatToDo(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there, or choose a folder on another disk";
    case EFBIG:
      return "; raise the limit of file sizes (ulimit -f)";
    case EROFS:
      return "; make the file system writable, or choose another folder";
    case EACCES:
    case EPERM:
      return "; change the permissions, or choose another folder";
    default:
      return "";
  }
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes a rename to `path` durable.
absl::Status SyncFolderOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  FileHandle directory(OpenRetrying(folder, O_RDONLY | O_DIRECTORY));
  if (directory.fd() < 0) return FileError(folder, "cannot open", errno);
  // Some file systems cannot sync a folder (EINVAL); the rename is then as durable as they make it.
  if (::fsync(directory.fd()) != 0 && errno != EINVAL) return FileError(folder, "cannot write to the disk", errno);
  return absl::OkStatus();
}

bool SameFile(const struct stat& a, const struct stat& b) { return a.st_ino == b.st_ino && a.st_dev == b.st_dev; }

// Whether `path` is still the file that `file` is open on.
bool IsStillAt(const std::string& path, const FileHandle& file) {
  struct stat open_file, there;
  return ::fstat(file.fd(), &open_file) == 0 && ::stat(path.c_str(), &there) == 0 && SameFile(open_file, there);
}

// The path that the symbolic links at the end of `path` lead to, where there need not be a file.
absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as Linux has it
  std::filesystem::path at = path;
  for (int links = 0; links <= kMaxLinks; ++links) {
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(at, no_link);
    if (no_link) return at.string();
    at = at.parent_path() / target;
  }
  return FileError(path, "cannot open", ELOOP);
}

// How WriteOutput writes.
struct Destination {
  enum class Way { kReplace, kInto, kStdout };
  Way way;
  std::string file;  // behind symbolic links, for kReplace
};

absl::StatusOr<Destination> FindDestination(const std::string& path) {
  struct stat there, printed, behind;
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) return FileError(path, "cannot write", EISDIR);
  if (exists && ::fstat(STDOUT_FILENO, &printed) == 0 && SameFile(there, printed)) {
    return Destination{Destination::Way::kStdout, path};
  }
  if (exists && !S_ISREG(there.st_mode)) return Destination{Destination::Way::kInto, path};
  WEFT_ASSIGN_OR_RETURN(const std::string file, FollowLinks(path));
  // /dev/fd/N of a file whose name is gone leads nowhere.
  const bool found = !exists || (::stat(file.c_str(), &behind) == 0 && SameFile(there, behind));
  return Destination{found ? Destination::Way::kReplace : Destination::Way::kInto, file};
}

}  // namespace

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status FileError(const std::string& path, absl::string_view what, int error) {
  const std::string message = absl::StrCat(path, ": ", what, ": ", std::generic_category().message(error), WhatToDo(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EISDIR:
      return absl::FailedPreconditionError(message);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

absl::Status AtomicWrite(const std::string& path, absl::Span<const absl::string_view> pieces) {
  const std::string temporary = absl::StrCat(path, kTemporaryMark, ::getpid());
  absl::Status status = WriteTemporary(temporary, path, pieces);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) status = FileError(path, "cannot replace", errno);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return SyncFolderOf(path);
}

absl::Status AtomicWrite(const std::string& path, absl::string_view contents) {
  return AtomicWrite(path, absl::MakeConstSpan(&contents, 1));
}

absl::Status WriteOutput(const std::string& path, absl::Span<const absl::string_view> pieces) {
  WEFT_ASSIGN_OR_RETURN(const Destination destination, FindDestination(path));
  if (destination.way == Destination::Way::kReplace) return AtomicWrite(destination.file, pieces);
  const bool printed = destination.way == Destination::Way::kStdout;
  if (printed && std::fflush(stdout) != 0) return FileError(path, "cannot write", errno);
  // A copy of the descriptor shares its place in the file.
  FileHandle file(printed ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : OpenRetrying(path, O_WRONLY | O_TRUNC));
  if (file.fd() < 0) return FileError(path, "cannot open", errno);
  for (absl::string_view piece : pieces) WEFT_RETURN_IF_ERROR(WriteAll(file, path, piece));
  return absl::OkStatus();
}

absl::Status WriteOutput(const std::string& path, absl::string_view contents) {
  return WriteOutput(path, absl::MakeConstSpan(&contents, 1));
}

absl::Status CheckOutput(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Destination destination, FindDestination(path));
  const auto allowed = [](const std::string& name, int mode) {
    return ::faccessat(AT_FDCWD, name.c_str(), mode, AT_EACCESS) == 0;
  };
  switch (destination.way) {
    case Destination::Way::kReplace:
      return allowed(FolderOf(destination.file), W_OK | X_OK) ? absl::OkStatus() : FileError(path, "cannot create", errno);
    case Destination::Way::kInto:
      return allowed(path, W_OK) ? absl::OkStatus() : FileError(path, "cannot write", errno);
    case Destination::Way::kStdout:
      break;
  }
  return absl::OkStatus();
}

bool IsTemporaryName(absl::string_view name) {
  const size_t mark = name.rfind(kTemporaryMark);
  int64_t pid;
  return mark != absl::string_view::npos && mark > 0 && absl::SimpleAtoi(name.substr(mark + kTemporaryMark.size()), &pid) &&
         pid > 0;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  WEFT_RETURN_IF_ERROR(file.ReadAt(0, bytes.data(), file.size()));
  return bytes;
}

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  // A pipe without a writer must not block: it is refused below.
  FileHandle file(OpenRetrying(path, O_RDONLY | O_NONBLOCK));
  if (file.fd() < 0) return FileError(path, "cannot open", errno);
  struct stat info;
  if (::fstat(file.fd(), &info) != 0) return FileError(path, "cannot inspect", errno);
  if (S_ISDIR(info.st_mode)) return FileError(path, "cannot read", EISDIR);
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, ": is not a regular file"));
  return InputFile(path, std::move(file), info.st_size);
}

absl::Status InputFile::ReadAt(int64_t offset, void* into, int64_t bytes) const {
  char* next = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::pread(file_.fd(), next, static_cast<size_t>(std::min(bytes, kMaxTransfer)), offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      return FileError(path_, absl::StrCat("cannot read at byte ", offset), errno);
    }
    if (got == 0) return absl::DataLossError(absl::StrCat(path_, ": ends at byte ", offset, ", ", bytes, " bytes too early"));
    next += got;
    offset += got;
    bytes -= got;
  }
  return absl::OkStatus();
}

absl::StatusOr<InputFile> InputFile::Duplicate() const {
  FileHandle copy(::fcntl(file_.fd(), F_DUPFD_CLOEXEC, 0));
  if (copy.fd() < 0) return FileError(path_, "cannot open once more", errno);
  return InputFile(path_, std::move(copy), size_);
}

absl::StatusOr<ReplacementFile> ReplacementFile::Create(const std::string& path) {
  const std::string partial = absl::StrCat(path, kPartialMark);
  while (true) {
    FileHandle file(OpenRetrying(partial, O_RDWR | O_CREAT));
    if (file.fd() < 0) return FileError(path, "cannot create", errno);
    while (::flock(file.fd(), LOCK_EX) != 0) {
      if (errno != EINTR) return FileError(path, "cannot lock", errno);
    }
    // Whoever had the lock before may have renamed or removed the file.
    if (!IsStillAt(partial, file)) continue;
    if (::ftruncate(file.fd(), 0) != 0) return FileError(path, "cannot write", errno);
    return ReplacementFile(path, std::move(file));
  }
}

ReplacementFile::~ReplacementFile() {
  if (file_.fd() >= 0 && !finished_) ::unlink(absl::StrCat(path_, kPartialMark).c_str());
}

absl::Status ReplacementFile::Append(absl::string_view bytes) { return WriteAll(file_, path_, bytes); }

absl::Status ReplacementFile::Finish(absl::string_view first_bytes) {
  if (::lseek(file_.fd(), 0, SEEK_SET) != 0) return FileError(path_, "cannot write", errno);
  WEFT_RETURN_IF_ERROR(WriteAll(file_, path_, first_bytes));
  if (::fsync(file_.fd()) != 0) return FileError(path_, "cannot write to the disk", errno);
  if (std::rename(absl::StrCat(path_, kPartialMark).c_str(), path_.c_str()) != 0)
    return FileError(path_, "cannot replace", errno);
  finished_ = true;
  return SyncFolderOf(path_);
}

absl::StatusOr<AppendFile> AppendFile::Open(const std::string& path, bool truncate) {
  FileHandle file(OpenRetrying(path, O_WRONLY | O_CREAT | O_APPEND | (truncate ? O_TRUNC : 0)));
  if (file.fd() < 0) return FileError(path, "cannot open", errno);
  return AppendFile(path, std::move(file));
}

absl::Status AppendFile::Append(absl::string_view bytes) { return WriteAll(file_, path_, bytes); }

}  // namespace weft
