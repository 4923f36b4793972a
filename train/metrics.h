// Numbers of a run over time: MetricsWriter appends them to metrics.jsonl, one strict JSON object a line, and BestMetric keeps
// the best validation and the count for early stopping. Keys, in this order as far as they are known: step, epoch, loss,
// learning_rate, grad_norm, tokens_per_second, eval_loss, eval_perplexity, eval_<metric>. Not thread-safe.
#ifndef WEFT_TRAIN_METRICS_H_
#define WEFT_TRAIN_METRICS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/file.h"

namespace weft {

using MetricPair = std::pair<absl::string_view, double>;

// {"step":10,"loss":2.5} and a newline. Numbers have the fewest digits that read back as the same double. JSON has no other
// numbers than finite ones: those become the strings "NaN", "Infinity", "-Infinity", which Python's float() reads.
std::string MetricsLine(int64_t step, absl::Span<const MetricPair> values);

class MetricsWriter {
 public:
  // A new file: an old one is emptied.
  static absl::StatusOr<MetricsWriter> Create(const std::string& path);
  // Goes on after update `step`: lines of later steps, and a last line that a crash cut off, are dropped by an atomic rewrite,
  // so that no step appears twice. A missing file is made.
  static absl::StatusOr<MetricsWriter> Resume(const std::string& path, int64_t step);

  // Appends one line, which has reached the system on return. Everything known of a step belongs in one call.
  absl::Status Write(int64_t step, absl::Span<const MetricPair> values);

 private:
  explicit MetricsWriter(AppendFile file) : file_(std::move(file)) {}
  AppendFile file_;
};

// The best validation so far, saved in checkpoints, so that a resumed run goes on with it.
struct BestMetric {
  int64_t step = -1;           // -1: no validation yet
  double value = 0;            // only with step >= 0
  int64_t since_improved = 0;  // validations after the best one: what valid.patience counts

  // Takes the validation of update `at_step`; true if it is the new best. NaN is never best, and a tie keeps the old one.
  bool Observe(int64_t at_step, double metric, bool higher_is_better);

  friend bool operator==(const BestMetric&, const BestMetric&) = default;
};

}  // namespace weft

#endif  // WEFT_TRAIN_METRICS_H_
