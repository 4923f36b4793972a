// RunDir: the folder of one training run and the names in it.
//   config.toml  log.txt  metrics.jsonl  tensorboard/  checkpoints/step-<n>.weft  last  best  lock
// `last` and `best` are one-line text files with the relative name of a checkpoint, replaced atomically. A RunDir holds the
// lock (flock on `lock`) as long as it lives, so two live runs never share a folder; the system frees it when a process dies.
// Files that Weft did not name are never touched. Movable; not thread-safe.
#ifndef WEFT_TRAIN_RUN_DIR_H_
#define WEFT_TRAIN_RUN_DIR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/file.h"

namespace weft {

class RunDir {
 public:
  enum class Mode {
    kFresh,      // the folder must be missing or empty
    kResume,     // the folder must have a checkpoint
    kOverwrite,  // what Weft wrote there before is removed first
  };

  // Makes or opens the folder, parents too, and takes the lock. InvalidArgument, naming the folder and the flags --resume and
  // --overwrite, when the mode does not fit what is there; nothing is then made or changed. FailedPrecondition when another
  // process runs there. Temporaries of killed runs are removed.
  static absl::StatusOr<RunDir> Create(const std::string& path, Mode mode);

  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.toml"; }
  std::string log_path() const { return path_ + "/log.txt"; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  std::string tensorboard_path() const { return path_ + "/tensorboard"; }
  std::string checkpoints_path() const { return path_ + "/checkpoints"; }
  std::string CheckpointPath(int64_t step) const;

  // Points `last` or `best` to the checkpoint of `step`. REQUIRES: the file has been written.
  absl::Status SetLast(int64_t step);
  absl::Status SetBest(int64_t step);
  // The step that `last` points to; where a crash left no pointer, the newest checkpoint. NotFound when there is none.
  absl::StatusOr<int64_t> LastStep() const;
  // The step that `best` points to; nothing before the first SetBest.
  absl::StatusOr<std::optional<int64_t>> BestStep() const;

  // Points `best` to the checkpoint of `step` if that exists and `best` names another or nothing: a crash may have come between
  // saving a checkpoint and SetBest.
  absl::Status RepairBest(int64_t step);
  // `error`, that of opening the checkpoint of `step`, with the checkpoint before it as a way out.
  absl::Status SuggestEarlier(const absl::Status& error, int64_t step) const;

  // Steps of all checkpoints, sorted by number.
  absl::StatusOr<std::vector<int64_t>> ListCheckpoints() const;
  // Removes checkpoints except the newest `keep_last`, those of `keep`, and those that `last` and `best` point to. Steps after
  // `last` are of another run: neither counted nor removed. REQUIRES: keep_last >= 1.
  absl::Status Rotate(int64_t keep_last, absl::Span<const int64_t> keep);

  // Appends a line to log.txt (a newline is added).
  absl::Status Log(absl::string_view line);

 private:
  RunDir(std::string path, FileHandle lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  FileHandle lock_;
  std::optional<AppendFile> log_;
};

// What can be seen of a run from outside, while it lives or afterwards. Changes nothing; the lock is tried for an instant.
struct RunGlance {
  bool live = false;                  // a process trains in it
  std::optional<int64_t> last, best;  // steps of the checkpoints that the pointers name
};
// NotFound if `path` is no run folder; DataLoss for a damaged pointer.
absl::StatusOr<RunGlance> GlanceAtRun(const std::string& path);
// "RUN/checkpoints/step-<n>.weft".
std::string CheckpointPathIn(const std::string& run, int64_t step);

// The checkpoint file that a RUN or CHECKPOINT argument means: a file is taken as it is; a run folder means its `best`, else
// its `last`, else its newest checkpoint. NotFound, saying what is missing where. Takes no lock: the run may be live.
absl::StatusOr<std::string> ResolveCheckpoint(const std::string& run_or_checkpoint);

// The newest `count` checkpoint files of a run folder, oldest first, none after the one that `last` names. NotFound when the
// folder has fewer. Takes no lock.
absl::StatusOr<std::vector<std::string>> NewestCheckpoints(const std::string& run, int64_t count);

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_DIR_H_
