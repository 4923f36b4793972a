// TensorBoardWriter: the numbers of metrics.jsonl, and histograms of weights, as event files that TensorBoard reads. A folder
// has one file a session of the run, events.out.tfevents.00000001 and so on; only whole records are written, each with its
// checksums. The time of day is in here and nowhere else in a run's numbers.
//
// Formats: TFRecord (tensorflow/core/lib/io/record_writer.h): u64 length, u32 masked CRC of these 8 bytes, the bytes, u32
// masked CRC of them, all little-endian. A record is an Event (tensorflow/core/util/event.proto) with a Summary
// (tensorflow/core/framework/summary.proto, HistogramProto in histogram.proto), in Protocol Buffers' wire format. Not
// thread-safe.
#ifndef WEFT_TRAIN_TENSORBOARD_H_
#define WEFT_TRAIN_TENSORBOARD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/file.h"
#include "train/metrics.h"

namespace weft {

// CRC-32C, the Castagnoli polynomial 0x1EDC6F41 reflected (RFC 3720, section 12.1 and appendix B.4).
uint32_t Crc32c(absl::string_view bytes);
// ((crc >> 15) | (crc << 17)) + 0xa282ead8: so that a checksum of data which holds checksums stays a good one (LevelDB,
// util/crc32c.h; TensorFlow, core/lib/hash/crc32c.h).
uint32_t MaskedCrc32c(absl::string_view bytes);

// 30 buckets of equal width from the smallest to the largest finite value, as TensorBoard makes its own; values that are not
// finite are left out. Where all values are equal they are in the last bucket, of width 0. No buckets without a finite value.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits;  // the right end of each bucket, the last one is max
  std::vector<double> counts;
};
Histogram MakeHistogram(absl::Span<const float> values);

using NamedValues = std::pair<absl::string_view, absl::Span<const float>>;

class TensorBoardWriter {
 public:
  // Writes into `folder`, which is made with the first record, a file after those that are there. `step`: the update after
  // which the session begins; a live TensorBoard forgets what it has read of later ones.
  TensorBoardWriter(std::string folder, int64_t step) : folder_(std::move(folder)), step_(step) {}

  // Keys as in metrics.jsonl: eval_x becomes the tag eval/x, any other y train/y. One record, so a step is there with all its
  // numbers or not at all. A scalar of an event is a float: NaN, infinities and what exceeds a float are written as NaN, which
  // TensorBoard marks without stretching the axis (metrics.jsonl has the number itself).
  absl::Status WriteScalars(int64_t step, absl::Span<const MetricPair> values);
  // Tags weights/NAME, also in one record.
  absl::Status WriteHistograms(int64_t step, absl::Span<const NamedValues> values);

 private:
  absl::Status Write(int64_t step, absl::string_view summary);

  std::string folder_;
  int64_t step_;
  std::optional<AppendFile> file_;
};

// Drops events of updates after `step` from every event file in `folder`, and records that a crash cut off or that are damaged
// with all that follows in that file; files are replaced atomically. A resumed run calls it first, so that no step appears
// twice. A missing folder has nothing to drop.
absl::Status DropEventsAfter(const std::string& folder, int64_t step);

// Whether a file in a run's tensorboard folder is one of these.
bool IsEventFileName(absl::string_view name);

}  // namespace weft

#endif  // WEFT_TRAIN_TENSORBOARD_H_
