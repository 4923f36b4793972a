// Checkpoint: the state of a run in one file, written whole or not at all. Layout (little-endian):
//   header   64 bytes: magic, format version, file size, archive size, start of the tensor bytes, checksum, 16 zero bytes
//   archive  a cereal portable binary archive of plain versioned structs: CheckpointMeta and the table of tensors
//   tensors  the bytes of each tensor, in the order of the table, each at a multiple of 64 in the file (mappable)
// The checksum (train/hash.h) covers every byte but its own eight. Open verifies magic, version, sizes and checksum before a
// byte reaches cereal, and every place and size of the table before it is used. Nothing in the file depends on time, threads,
// folders or the machine: equal runs give equal bytes. CheckpointMeta is a value; a Checkpoint owns its open file, so it stays
// readable when the file is rotated away. Not thread-safe.
#ifndef WEFT_TRAIN_CHECKPOINT_H_
#define WEFT_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/tensor.h"
#include "data/batcher.h"
#include "data/file.h"
#include "data/tokenizer.h"
#include "train/metrics.h"

namespace weft {

// The version this build writes and the newest it reads.
inline constexpr uint64_t kCheckpointVersion = 3;

// One value of a validation.
struct MetricValue {
  int64_t step = 0;
  std::string name;
  double value = 0;
};

// Everything but the tensors.
struct CheckpointMeta {
  int64_t step = 0;                      // updates behind the model
  int64_t optimizer_updates = 0;         // t of the bias correction
  uint64_t seed = 0;                     // the random key of the run
  Position position;                     // the next example
  int64_t tokens = 0;                    // target tokens trained on
  int64_t shards = 0;                    // train.shards as resolved: decides the rounding
  uint64_t data_hash = 0;                // of the training data, since paths are not stored
  std::string config_toml;               // CanonicalConfig
  SerializedTokenizer source_tokenizer;  // kind "": none
  SerializedTokenizer target_tokenizer;  // kind "": none
  std::vector<std::string> class_names;  // classifiers
  std::vector<MetricValue> history;      // all validations so far
  BestMetric best;
  int64_t skipped_in_row = 0;  // updates left out just before (train.on_nonfinite = "skip"); since format 2
};

// Where a tensor lies.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int64_t offset = 0;  // bytes from the start of the file, a multiple of 64
  int64_t bytes = 0;
};

// Writes atomically (see AtomicWrite), or by WriteOutput to a path that the user named. REQUIRES: names are not empty and
// differ.
absl::Status SaveCheckpoint(const std::string& path, const CheckpointMeta& meta, absl::Span<const NamedTensor> tensors,
                            FileWriter write = AtomicWrite);

class Checkpoint {
 public:
  // Opens and verifies a file. NotFound and the like when it cannot be read; DataLoss, with the place and both values, for a
  // file that is foreign, damaged, cut or extended; FailedPrecondition for a folder or a format newer than this build. Reads
  // the file once, in pieces; keeps only meta() and tensors() in memory.
  static absl::StatusOr<Checkpoint> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t file_size() const { return file_.size(); }
  const CheckpointMeta& meta() const { return meta_; }
  // In the order of the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Null when absent; valid as long as this object.
  const StoredTensor* Find(absl::string_view name) const;
  // Copies the bytes of a tensor. NotFound for an unknown name, FailedPrecondition for another shape or dtype (both named).
  absl::Status ReadInto(absl::string_view name, const Tensor& tensor) const;

 private:
  Checkpoint(InputFile file, CheckpointMeta meta, std::vector<StoredTensor> tensors)
      : file_(std::move(file)), meta_(std::move(meta)), tensors_(std::move(tensors)) {}
  InputFile file_;
  CheckpointMeta meta_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_CHECKPOINT_H_
