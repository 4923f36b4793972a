#include "train/run_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/utf8.h"
#include "train/tensorboard.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kCheckpoints = "checkpoints";
constexpr absl::string_view kEvents = "tensorboard";
constexpr absl::string_view kLock = "lock";
// `weft status` may hold the lock shared, for an instant: only one that stays taken is another run's.
constexpr int kLockTries = 5;
constexpr useconds_t kLockPause = 20000;  // microseconds

std::string CheckpointName(int64_t step) { return absl::StrCat("step-", step, ".weft"); }

// The step in "step-<n>.weft", or -1 for every name that CheckpointName does not make.
int64_t StepOfName(absl::string_view name) {
  const std::string whole(name);
  int64_t step;
  if (!absl::ConsumePrefix(&name, "step-") || !absl::ConsumeSuffix(&name, ".weft")) return -1;
  return absl::SimpleAtoi(name, &step) && step >= 0 && CheckpointName(step) == whole ? step : -1;
}

// Names in a folder, sorted; none for a missing folder.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(path, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && it != fs::directory_iterator(); it.increment(error)) names.push_back(it->path().filename().string());
  if (error) return FileError(path, "cannot list", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status Remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FileError(path, "cannot remove", errno);
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return FileError(path, "cannot make the folder", error.value());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ListSteps(const std::string& run) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(absl::StrCat(run, "/", kCheckpoints)));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    if (const int64_t step = StepOfName(name); step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

// The step that the pointer file `name` of a run names; nothing if there is no such file.
absl::StatusOr<std::optional<int64_t>> ReadPointer(const std::string& run, absl::string_view name) {
  const std::string path = absl::StrCat(run, "/", name);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return std::optional<int64_t>();
  if (!text.ok()) return text.status();
  absl::string_view target = absl::StripAsciiWhitespace(*text);
  if (absl::ConsumePrefix(&target, absl::StrCat(kCheckpoints, "/"))) {
    if (const int64_t step = StepOfName(target); step >= 0) return std::optional<int64_t>(step);
  }
  return absl::DataLossError(absl::StrCat(path, ": damaged: found ", Quote(*text), ", expected the name of a checkpoint"));
}

// The step of `last`, else the newest checkpoint; nothing if there is none.
absl::StatusOr<std::optional<int64_t>> FindLast(const std::string& run) {
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> last, ReadPointer(run, "last"));
  if (last.has_value()) return last;
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps(run));
  return steps.empty() ? std::optional<int64_t>() : steps.back();
}

// Whether the folder, as it is now, allows `mode`.
absl::Status CheckMode(const std::string& path, RunDir::Mode mode) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_directory(status)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the run folder is a file; choose another run.dir"));
  }
  if (mode == RunDir::Mode::kFresh) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(path));
    for (const std::string& name : names) {
      if (name == kLock) continue;
      return absl::InvalidArgumentError(absl::StrCat(path, ": the run folder is not empty (it has ", name,
                                                     "); go on with --resume, start over with --overwrite, or choose another "
                                                     "run.dir"));
    }
  }
  if (mode == RunDir::Mode::kResume) {
    WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> last, FindLast(path));
    if (!last.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": nothing to resume: ", fs::exists(status) ? "the folder has no checkpoint" : "no such folder",
                       "; start without --resume"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FileHandle> TakeLock(const std::string& run) {
  const std::string path = absl::StrCat(run, "/", kLock);
  FileHandle lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.fd() < 0) return FileError(path, "cannot open", errno);
  for (int i = 0; i < kLockTries; ++i) {
    if (::flock(lock.fd(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK) return FileError(path, "cannot lock", errno);
    ::usleep(kLockPause);
  }
  return absl::FailedPreconditionError(absl::StrCat(run, ": another process is training in this run folder (it holds ", path,
                                                    "); wait for it, or choose another run.dir"));
}

// Removes the files of `folder` for which `is_ours(name)`.
template <class F>
absl::Status RemoveFrom(const std::string& folder, F is_ours) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    if (is_ours(absl::string_view(name))) WEFT_RETURN_IF_ERROR(Remove(absl::StrCat(folder, "/", name)));
  }
  return absl::OkStatus();
}

// What Weft writes into the run folder itself, the lock apart.
bool IsTopLevelFile(absl::string_view name) {
  for (absl::string_view ours : {"config.toml", "log.txt", "metrics.jsonl", "last", "best"}) {
    if (name == ours) return true;
  }
  return false;
}

bool IsTemporaryOf(absl::string_view name, bool (*is_ours)(absl::string_view)) {
  return IsTemporaryName(name) && is_ours(name.substr(0, name.rfind(".tmp-")));
}

bool IsCheckpointName(absl::string_view name) { return StepOfName(name) >= 0; }

absl::Status RemoveTemporaries(const std::string& run) {
  WEFT_RETURN_IF_ERROR(RemoveFrom(run, [](absl::string_view name) { return IsTemporaryOf(name, IsTopLevelFile); }));
  WEFT_RETURN_IF_ERROR(
      RemoveFrom(absl::StrCat(run, "/", kEvents), [](absl::string_view name) { return IsTemporaryOf(name, IsEventFileName); }));
  return RemoveFrom(absl::StrCat(run, "/", kCheckpoints),
                    [](absl::string_view name) { return IsTemporaryOf(name, IsCheckpointName); });
}

// Pointers go first, so that a crash in between leaves none that points to nothing.
absl::Status RemoveOldRun(const std::string& run) {
  WEFT_RETURN_IF_ERROR(RemoveFrom(run, IsTopLevelFile));
  WEFT_RETURN_IF_ERROR(RemoveFrom(absl::StrCat(run, "/", kCheckpoints), IsCheckpointName));
  return RemoveFrom(absl::StrCat(run, "/", kEvents), IsEventFileName);
}

}  // namespace

absl::StatusOr<RunDir> RunDir::Create(const std::string& path, Mode mode) {
  if (path.empty()) return absl::InvalidArgumentError("run.dir: found an empty path, allowed a folder");
  // Before anything is made, so that a refusal changes nothing; and again under the lock, since another run may have come and
  // gone in between.
  WEFT_RETURN_IF_ERROR(CheckMode(path, mode));
  WEFT_RETURN_IF_ERROR(MakeFolder(path));
  WEFT_ASSIGN_OR_RETURN(FileHandle lock, TakeLock(path));
  WEFT_RETURN_IF_ERROR(CheckMode(path, mode));
  WEFT_RETURN_IF_ERROR(RemoveTemporaries(path));
  if (mode == Mode::kOverwrite) WEFT_RETURN_IF_ERROR(RemoveOldRun(path));
  RunDir run(path, std::move(lock));
  WEFT_RETURN_IF_ERROR(MakeFolder(run.checkpoints_path()));
  return run;
}

std::string RunDir::CheckpointPath(int64_t step) const { return CheckpointPathIn(path_, step); }

absl::Status RunDir::SetLast(int64_t step) {
  return AtomicWrite(path_ + "/last", absl::StrCat(kCheckpoints, "/", CheckpointName(step), "\n"));
}

absl::Status RunDir::SetBest(int64_t step) {
  return AtomicWrite(path_ + "/best", absl::StrCat(kCheckpoints, "/", CheckpointName(step), "\n"));
}

absl::StatusOr<int64_t> RunDir::LastStep() const {
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> last, FindLast(path_));
  if (last.has_value()) return *last;
  return absl::NotFoundError(absl::StrCat(path_, ": has no checkpoint"));
}

absl::StatusOr<std::optional<int64_t>> RunDir::BestStep() const { return ReadPointer(path_, "best"); }

absl::StatusOr<std::vector<int64_t>> RunDir::ListCheckpoints() const { return ListSteps(path_); }

absl::Status RunDir::Rotate(int64_t keep_last, absl::Span<const int64_t> keep) {
  WEFT_CHECK_GE(keep_last, 1) << "RunDir::Rotate";
  WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> steps, ListCheckpoints());
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> last, FindLast(path_));
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> best, BestStep());
  std::erase_if(steps, [&](int64_t step) { return last.has_value() && step > *last; });
  const int64_t old = static_cast<int64_t>(steps.size()) - keep_last;
  for (int64_t i = 0; i < old; ++i) {
    if (steps[i] == best || steps[i] == last || std::find(keep.begin(), keep.end(), steps[i]) != keep.end()) continue;
    WEFT_RETURN_IF_ERROR(Remove(CheckpointPath(steps[i])));
  }
  return absl::OkStatus();
}

absl::Status RunDir::RepairBest(int64_t step) {
  const absl::StatusOr<std::optional<int64_t>> pointer = BestStep();
  if (pointer.ok() && *pointer == step) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints());
  return std::find(steps.begin(), steps.end(), step) == steps.end() ? absl::OkStatus() : SetBest(step);
}

absl::Status RunDir::SuggestEarlier(const absl::Status& error, int64_t step) const {
  WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> steps, ListCheckpoints());
  std::erase_if(steps, [&](int64_t other) { return other >= step; });
  if (steps.empty()) return error;
  return absl::Status(error.code(), absl::StrCat(error.message(), "; to go on from the checkpoint before it, write ",
                                                 kCheckpoints, "/", CheckpointName(steps.back()), " into ", path_, "/last"));
}

absl::Status RunDir::Log(absl::string_view line) {
  if (!log_.has_value()) {
    WEFT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(log_path(), /*truncate=*/false));
    log_ = std::move(file);
  }
  return log_->Append(absl::StrCat(line, "\n"));
}

absl::StatusOr<RunGlance> GlanceAtRun(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error) || !fs::exists(absl::StrCat(path, "/config.toml"), error)) {
    return absl::NotFoundError(absl::StrCat(path, ": is no run folder: ",
                                            fs::is_directory(path, error) ? "it has no config.toml, which a run writes first"
                                            : fs::exists(path, error)     ? "it is a file"
                                                                          : "no such folder"));
  }
  RunGlance glance;
  const FileHandle lock(::open(absl::StrCat(path, "/", kLock).c_str(), O_RDONLY | O_CLOEXEC));
  // Closing the descriptor frees the lock again. Without a lock file, in a copied folder, nothing runs.
  glance.live = lock.fd() >= 0 && ::flock(lock.fd(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  WEFT_ASSIGN_OR_RETURN(glance.last, FindLast(path));
  WEFT_ASSIGN_OR_RETURN(glance.best, ReadPointer(path, "best"));
  return glance;
}

std::string CheckpointPathIn(const std::string& run, int64_t step) {
  return absl::StrCat(run, "/", kCheckpoints, "/", CheckpointName(step));
}

absl::StatusOr<std::string> ResolveCheckpoint(const std::string& run_or_checkpoint) {
  std::error_code error;
  const fs::file_status status = fs::status(run_or_checkpoint, error);
  if (!fs::exists(status)) {
    return FileError(run_or_checkpoint, "cannot open the run folder or checkpoint", error ? error.value() : ENOENT);
  }
  if (!fs::is_directory(status)) return run_or_checkpoint;
  WEFT_ASSIGN_OR_RETURN(std::optional<int64_t> step, ReadPointer(run_or_checkpoint, "best"));
  absl::string_view origin = "best";
  if (!step.has_value()) {
    WEFT_ASSIGN_OR_RETURN(step, FindLast(run_or_checkpoint));
    origin = "last";
  }
  if (!step.has_value()) {
    return absl::NotFoundError(absl::StrCat(run_or_checkpoint, ": is no run folder with a checkpoint (no best, last or ",
                                            kCheckpoints, "/step-<n>.weft in it)"));
  }
  const std::string path = CheckpointPathIn(run_or_checkpoint, *step);
  if (!fs::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat(path, ": does not exist, but ", run_or_checkpoint, "/", origin, " names it"));
  }
  return path;
}

absl::StatusOr<std::vector<std::string>> NewestCheckpoints(const std::string& run, int64_t count) {
  WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> steps, ListSteps(run));
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> last, FindLast(run));
  std::erase_if(steps, [&](int64_t step) { return last.has_value() && step > *last; });
  if (static_cast<int64_t>(steps.size()) < count) {
    return absl::NotFoundError(absl::StrCat(run, ": has ", steps.size(), " checkpoints, ", count,
                                            " are asked for; train with checkpoint.keep_last = ", count, " or more"));
  }
  std::vector<std::string> paths;
  for (auto step = steps.end() - count; step != steps.end(); ++step) {
    paths.push_back(absl::StrCat(run, "/", kCheckpoints, "/", CheckpointName(*step)));
  }
  return paths;
}

}  // namespace weft
