// The safetensors file format (Hugging Face): 8 bytes with the length of a JSON header, the header, then the tensor bytes.
// Files come from anywhere, so nothing in them is trusted: lengths, nesting, names, shapes and offsets are checked against the
// file before use, and no more memory than the header needs is taken before that. A SafeTensors owns its open file. Reading is
// thread-safe.
#ifndef WEFT_TRAIN_SAFETENSORS_H_
#define WEFT_TRAIN_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/tensor.h"
#include "data/file.h"

namespace weft {

class SafeTensors {
 public:
  struct Entry {
    std::string dtype;           // as in the file: "F32", "BF16", "I64" ...
    std::vector<int64_t> shape;  // any rank, each >= 0
    int64_t offset = 0;          // bytes from the start of the file
    int64_t bytes = 0;
    int64_t elements() const;
  };

  // Reads and checks the header. DataLoss, with the file, the tensor and both values, for anything that is not a complete
  // safetensors file whose tensors tile the data without gap or overlap; errors of InputFile::Open.
  static absl::StatusOr<SafeTensors> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // Sorted by name.
  const std::map<std::string, Entry>& entries() const { return entries_; }
  std::vector<std::string> names() const;
  // Null when absent; valid as long as this object.
  const Entry* Find(absl::string_view name) const;
  // The free strings of "__metadata__".
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // All elements in row-major order. NotFound for an unknown name; FailedPrecondition for a dtype that does not convert, or a
  // value that the result cannot hold, naming it and its index.
  //   ReadAsDouble: F64, F32, F16, BF16, integers and BOOL, exact (I64 and U64 beyond 2^53: refused unless exact)
  //   ReadFloat:    the same, exact for F32 (bitwise), F16 and BF16, otherwise rounded; finite values beyond f32 are refused
  //   ReadInt64:    integers and BOOL, exact
  absl::StatusOr<std::vector<double>> ReadAsDouble(absl::string_view name) const;
  absl::StatusOr<std::vector<float>> ReadFloat(absl::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> ReadInt64(absl::string_view name) const;
  // Into an f32 or f64 tensor by the rules above. FailedPrecondition, naming both, when the shapes differ.
  absl::Status ReadInto(absl::string_view name, const Tensor& tensor) const;

 private:
  explicit SafeTensors(InputFile file) : file_(std::move(file)) {}
  absl::Status Parse(absl::string_view header, int64_t data_start);
  absl::Status CheckTiling(int64_t data_start) const;
  absl::StatusOr<const Entry*> Require(absl::string_view name) const;
  // The raw bytes of a tensor.
  absl::StatusOr<std::string> ReadBytes(const Entry& entry) const;

  InputFile file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Writes f32, f64, i32 and bf16 tensors as F32, F64, I32 and BF16, atomically: header padded with spaces to a multiple of 8,
// then the tensors without gaps, wider dtypes first and otherwise in the given order, so that each is aligned to its element
// size. InvalidArgument for an empty, repeated, reserved ("__metadata__") or non-UTF-8 name.
absl::Status WriteSafeTensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

// bfloat16: the upper half of a float, rounded to nearest, ties to even; NaN stays NaN, infinities and subnormals are kept.
uint16_t ToBf16(float value);
float FromBf16(uint16_t bits);
// IEEE 754 binary16, exact.
float FromF16(uint16_t bits);

}  // namespace weft

#endif  // WEFT_TRAIN_SAFETENSORS_H_
