// modular_addition: "a + b =" -> the class (a + b) mod 97, for all 97 x 97 pairs (a, b); the task on which Power, Burda,
// Edwards, Babuschkin, Misra, "Grokking" (2022) saw generalisation long after the training half was known by heart. A
// classifier with pool = "last" reads its answer at "=", as there. Held out: half of the pairs (a, b).
#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "data/tasks/makers.h"

namespace weft {

absl::StatusOr<TaskData> MakeModularAddition(const TaskOptions& options) {
  constexpr int64_t kP = 97;
  TaskData data;
  data.kind = DataKind::kLabels;
  data.source_tokenizer = "word";
  std::vector<TaskExample> all;
  for (int64_t a = 0; a < kP; ++a) {
    data.class_names.push_back(absl::StrCat(a));
    for (int64_t b = 0; b < kP; ++b) all.push_back({absl::StrCat(a, " + ", b, " ="), absl::StrCat((a + b) % kP)});
  }
  WEFT_RETURN_IF_ERROR(SplitAll(std::move(all), options, kP * kP / 2, "modular_addition", &data));
  return data;
}

}  // namespace weft
