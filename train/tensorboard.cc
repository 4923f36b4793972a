#include "train/tensorboard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

constexpr absl::string_view kPrefix = "events.out.tfevents.";
constexpr int64_t kBuckets = 30;

// Remainders of each byte, reflected.
constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

template <class T>
std::string LittleEndian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

template <class T>
T ReadLittleEndian(absl::string_view bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

// A message of Protocol Buffers, field by field (protobuf.dev, "Encoding": a key is field << 3 | wire type; wire types 0
// varint, 1 eight bytes, 2 length and bytes, 5 four bytes).
class Message {
 public:
  Message& Integer(int field, uint64_t value) { return Key(field, 0).Varint(value); }
  Message& Double(int field, double value) { return Key(field, 1).Append(LittleEndian(std::bit_cast<uint64_t>(value))); }
  Message& Float(int field, float value) { return Key(field, 5).Append(LittleEndian(std::bit_cast<uint32_t>(value))); }
  Message& Bytes(int field, absl::string_view value) { return Key(field, 2).Varint(value.size()).Append(value); }
  Message& Doubles(int field, absl::Span<const double> values) {
    std::string packed;
    for (const double value : values) packed += LittleEndian(std::bit_cast<uint64_t>(value));
    return Bytes(field, packed);
  }
  const std::string& text() const { return text_; }

 private:
  Message& Key(int field, int wire_type) { return Varint(static_cast<uint64_t>(field << 3 | wire_type)); }
  Message& Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
    return *this;
  }
  Message& Append(absl::string_view bytes) {
    absl::StrAppend(&text_, bytes);
    return *this;
  }

  std::string text_;
};

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog session_log = 7; }
Message Event(int64_t step) {
  Message event;
  event.Double(1, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event.Integer(2, static_cast<uint64_t>(step));
}

std::string Record(absl::string_view data) {
  const std::string length = LittleEndian<uint64_t>(data.size());
  return absl::StrCat(length, LittleEndian(MaskedCrc32c(length)), data, LittleEndian(MaskedCrc32c(data)));
}

// Takes the first record off `bytes`; false if there is no whole and undamaged one.
bool ConsumeRecord(absl::string_view* bytes, absl::string_view* data) {
  constexpr size_t kHead = 12, kTail = 4;
  if (bytes->size() < kHead + kTail) return false;
  const auto length = ReadLittleEndian<uint64_t>(*bytes);
  if (ReadLittleEndian<uint32_t>(bytes->substr(8)) != MaskedCrc32c(bytes->substr(0, 8))) return false;
  if (length > bytes->size() - kHead - kTail) return false;
  *data = bytes->substr(kHead, length);
  if (ReadLittleEndian<uint32_t>(bytes->substr(kHead + length)) != MaskedCrc32c(*data)) return false;
  bytes->remove_prefix(kHead + length + kTail);
  return true;
}

bool ConsumeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The step of an Event: 0 where it has none, -1 if the bytes are no message.
int64_t StepOf(absl::string_view event) {
  int64_t step = 0;
  while (!event.empty()) {
    uint64_t key, value;
    if (!ConsumeVarint(&event, &key)) return -1;
    size_t skip = 0;
    switch (key & 7) {
      case 0:
        if (!ConsumeVarint(&event, &value)) return -1;
        if (key >> 3 == 2) step = static_cast<int64_t>(value);
        break;
      case 1:
        skip = 8;
        break;
      case 2:
        if (!ConsumeVarint(&event, &value) || value > event.size()) return -1;
        skip = value;
        break;
      case 5:
        skip = 4;
        break;
      default:
        return -1;
    }
    if (skip > event.size()) return -1;
    event.remove_prefix(skip);
  }
  return step;
}

// Event files of a folder, sorted; none if it does not exist.
absl::StatusOr<std::vector<std::string>> ListEventFiles(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    std::string name = it->path().filename().string();
    if (IsEventFileName(name)) names.push_back(std::move(name));
  }
  if (error) return FileError(folder, "cannot list", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

float ScalarOf(double value) {
  const bool fits = std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());  // false for NaN
  return fits ? static_cast<float>(value) : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

uint32_t MaskedCrc32c(absl::string_view bytes) { return std::rotr(Crc32c(bytes), 15) + 0xa282ead8u; }

Histogram MakeHistogram(absl::Span<const float> values) {
  Histogram h;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    h.min = h.count == 0 ? value : std::min<double>(h.min, value);
    h.max = h.count == 0 ? value : std::max<double>(h.max, value);
    h.sum += value;
    h.sum_of_squares += static_cast<double>(value) * value;
    h.count += 1;
  }
  if (h.count == 0) return h;
  const double width = (h.max - h.min) / kBuckets;
  for (int64_t i = 1; i < kBuckets; ++i) h.limits.push_back(h.min + width * static_cast<double>(i));
  h.limits.push_back(h.max);
  h.counts.resize(kBuckets);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const int64_t bucket = width > 0 ? static_cast<int64_t>((value - h.min) / width) : kBuckets - 1;
    h.counts[std::min(bucket, kBuckets - 1)] += 1;
  }
  return h;
}

absl::Status TensorBoardWriter::Write(int64_t step, absl::string_view summary) {
  std::string records;
  if (!file_.has_value()) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return FileError(folder_, "cannot make the folder", error.value());
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListEventFiles(folder_));
    int64_t number = 0;
    for (const std::string& name : names) {
      int64_t old;
      if (absl::SimpleAtoi(name.substr(kPrefix.size()), &old)) number = std::max(number, old);
    }
    const std::string path = absl::StrFormat("%s/%s%08d", folder_, kPrefix, number + 1);
    WEFT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(path, /*truncate=*/true));
    file_ = std::move(file);
    records = Record(Event(0).Bytes(3, "brain.Event:2").text());
    // SessionLog { Status status = 1; } with START = 1: readers that follow the run drop what they have of this step and later.
    if (!names.empty()) records += Record(Event(step_ + 1).Bytes(7, Message().Integer(1, 1).text()).text());
  }
  absl::StrAppend(&records, Record(Event(step).Bytes(5, summary).text()));
  return file_->Append(records);
}

// Summary { repeated Value value = 1; }, Value { string tag = 1; float simple_value = 2; HistogramProto histo = 5; }
absl::Status TensorBoardWriter::WriteScalars(int64_t step, absl::Span<const MetricPair> values) {
  Message summary;
  for (const auto& [key, value] : values) {
    absl::string_view name = key;
    const bool eval = absl::ConsumePrefix(&name, "eval_");
    const std::string tag = absl::StrCat(eval ? "eval/" : "train/", name);
    summary.Bytes(1, Message().Bytes(1, tag).Float(2, ScalarOf(value)).text());
  }
  return Write(step, summary.text());
}

// HistogramProto { double min = 1, max = 2, num = 3, sum = 4, sum_squares = 5; repeated double bucket_limit = 6, bucket = 7; }
absl::Status TensorBoardWriter::WriteHistograms(int64_t step, absl::Span<const NamedValues> values) {
  Message summary;
  for (const auto& [name, numbers] : values) {
    const Histogram h = MakeHistogram(numbers);
    Message histogram;
    histogram.Double(1, h.min).Double(2, h.max).Double(3, h.count).Double(4, h.sum).Double(5, h.sum_of_squares);
    histogram.Doubles(6, h.limits).Doubles(7, h.counts);
    summary.Bytes(1, Message().Bytes(1, absl::StrCat("weights/", name)).Bytes(5, histogram.text()).text());
  }
  return Write(step, summary.text());
}

absl::Status DropEventsAfter(const std::string& folder, int64_t step) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListEventFiles(folder));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    WEFT_ASSIGN_OR_RETURN(const std::string old, ReadFile(path));
    std::string kept;
    absl::string_view rest = old, data;
    for (absl::string_view before = rest; ConsumeRecord(&rest, &data); before = rest) {
      const int64_t at = StepOf(data);
      if (0 <= at && at <= step) absl::StrAppend(&kept, before.substr(0, before.size() - rest.size()));
    }
    if (kept != old) WEFT_RETURN_IF_ERROR(AtomicWrite(path, kept));
  }
  return absl::OkStatus();
}

bool IsEventFileName(absl::string_view name) { return absl::StartsWith(name, kPrefix) && !IsTemporaryName(name); }

}  // namespace weft
