// Golden cases: tensors computed by another program (PyTorch), in a folder with an index.json. The folder is
// $WEFT_GOLDEN_DIR, read at run time, or the copy beside these files. Nothing about sizes is fixed here: shapes, heads, lengths
// and settings all come from the folder.
#ifndef WEFT_TESTS_GOLDEN_GOLDEN_CASE_H_
#define WEFT_TESTS_GOLDEN_GOLDEN_CASE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/sequences.h"
#include "layers/context.h"
#include "layers/layer.h"
#include "train/safetensors.h"

namespace weft::golden {

// A tensor of a case as doubles, row-major.
struct Values {
  std::vector<int64_t> shape;
  std::vector<double> v;
  int64_t dim(int i) const { return shape[i < 0 ? shape.size() + i : i]; }
};

// One entry of the index. A field or tensor that a test asks for and the case lacks is a failure of that test.
class Case {
 public:
  std::string name, kind, note;  // note: "note" or "settings"
  // Other fields.
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, bool> switches;
  std::map<std::string, std::vector<int64_t>> lists;

  // Opens the tensors. An error when the file is missing or damaged.
  absl::Status Open(const std::string& folder);
  bool Has(const std::string& tensor) const { return file_->Find(tensor) != nullptr; }
  std::vector<std::string> TensorNames() const { return file_->names(); }
  // What a case is computed in: kF32 when this tensor of it is stored so, else kF64.
  DType TypeOf(const std::string& tensor) const;
  Values Read(const std::string& tensor) const;
  std::vector<int32_t> ReadIds(const std::string& tensor) const;

 private:
  std::shared_ptr<const SafeTensors> file_;  // cases are copied by the test framework
};

// For the test framework's messages.
void PrintTo(const Case& c, std::ostream* out);

std::string Folder();
// All cases of the index in its order.
absl::StatusOr<std::vector<Case>> ReadIndex(const std::string& folder);
// The number that follows `word` in free text ("lr .05, decay .1": "lr" gives 0.05), or `otherwise` without the word.
double NumberAfter(const std::string& text, const std::string& word, double otherwise);

// Fails unless every element is within `tolerance` of the expected tensor's largest magnitude. An expected tensor of zeros up
// to rounding (below 1e-12) is compared absolutely with that magnitude taken as 1e-3.
void ExpectNear(const std::string& what, const std::vector<double>& actual, const std::vector<double>& expected,
                double tolerance);
// For sums of some hundred terms, each rounded at 2^-53 or 2^-24, with room for what norms and softmax magnify.
inline double ToleranceOf(DType type) { return type == DType::kF32 ? 1e-4 : 1e-9; }

// --- Padded [B, T, D] against ragged [N, D].
// Sequences of these lengths laid end to end.
std::vector<Sequence> EndToEnd(const std::vector<int64_t>& lengths);
// The real rows of a padded tensor [B, T, D].
std::vector<double> RealRows(const Values& padded, const std::vector<int64_t>& lengths);
// Fails if a padded tensor is not zero outside of the real rows.
void ExpectZeroAtPadding(const std::string& what, const Values& padded, const std::vector<int64_t>& lengths);
// The lengths of the case's field, or T for each of B.
std::vector<int64_t> LengthsOr(const Case& c, const std::string& field, int64_t batch, int64_t time);

std::vector<double> ToDoubles(const Tensor& tensor);
// A leaf that keeps its gradient.
Variable InputOf(Tape* tape, DType type, const std::vector<double>& values, const Shape& shape);

// Writes `values` into the parameter called `name`; fails when there is none of that size.
void SetParameter(Parameters* parameters, const std::string& name, const std::vector<double>& values);
// A packed in_proj tensor cut into q, k and v.
std::vector<std::vector<double>> CutInThree(const Values& packed);

// --- One test body a kind.
void RunMultiHeadAttention(const Case& c);
void RunAttentionCore(const Case& c);
void RunEncoderOrDecoderLayer(const Case& c, bool decoder);
void RunOperation(const Case& c);
void RunCrossEntropy(const Case& c);
void RunOptimizer(const Case& c);
// `all` since one curve's note may refer to another's optimizer.
void RunCurve(const Case& c, const std::vector<Case>& all);

}  // namespace weft::golden

#endif  // WEFT_TESTS_GOLDEN_GOLDEN_CASE_H_
