#include "train/checkpoint.h"

#include <algorithm>
#include <array>
#include <cereal/archives/portable_binary.hpp>
#include <cstring>
#include <exception>
#include <set>
#include <sstream>
#include <streambuf>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/hash.h"

// Texts and lists as in cereal/types/string.hpp and vector.hpp, byte for byte, but for one thing: cereal sizes them by the
// number in the file before it reads what they hold, so eight forged bytes would take all memory. These grow as they read.
namespace cereal {

template <class Archive>
void save(Archive& archive, const std::string& text) {
  archive(make_size_tag(static_cast<size_type>(text.size())));
  archive(binary_data(text.data(), text.size()));
}

template <class Archive>
void load(Archive& archive, std::string& text) {
  constexpr size_type kPiece = 1 << 16;  // bytes
  size_type left;
  archive(make_size_tag(left));
  text.clear();
  while (left > 0) {
    const size_t piece = std::min(left, kPiece), old = text.size();
    text.resize(old + piece);
    archive(binary_data(text.data() + old, piece));
    left -= piece;
  }
}

template <class Archive, class T>
void save(Archive& archive, const std::vector<T>& items) {
  archive(make_size_tag(static_cast<size_type>(items.size())));
  for (const T& item : items) archive(item);
}

template <class Archive, class T>
void load(Archive& archive, std::vector<T>& items) {
  size_type size;
  archive(make_size_tag(size));
  items.clear();
  for (size_type i = 0; i < size; ++i) archive(items.emplace_back());
}

}  // namespace cereal

namespace weft {
namespace {

// As PNG's signature: the first byte is no text, and the line ends and the ^Z show damage by a transfer as text.
constexpr std::array<char, 8> kMagic = {'\x89', 'W', 'E', 'F', 'T', '\r', '\n', '\x1a'};
constexpr int64_t kAlignment = 64;
constexpr int64_t kHashChunk = 1 << 20;

struct Header {
  std::array<char, 8> magic = kMagic;
  uint64_t version = kCheckpointVersion;
  uint64_t file_size = 0;
  uint64_t archive_size = 0;
  uint64_t data_start = 0;
  uint64_t checksum = 0;
  std::array<uint64_t, 2> reserved{};
};
static_assert(sizeof(Header) == kAlignment && std::is_trivially_copyable_v<Header>);
constexpr int64_t kChecksumAt = offsetof(Header, checksum);

// A row of the table of tensors; `offset` counts from data_start.
struct TensorRecord {
  std::string name;
  std::string dtype;
  std::vector<int64_t> dims;
  int64_t offset = 0;
};

int64_t AlignUp(int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// The header as bytes, in two parts around its checksum.
void AddHeader(const Header& header, Hash64* hash) {
  const absl::string_view bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  hash->Add(bytes.substr(0, kChecksumAt));
  hash->Add(bytes.substr(kChecksumAt + sizeof(header.checksum)));
}

// A stream over bytes in memory, without a copy.
class MemoryBuffer : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string* bytes) { setg(bytes->data(), bytes->data(), bytes->data() + bytes->size()); }
  int64_t left() const { return egptr() - gptr(); }
};

template <class Archive>
void serialize(Archive& archive, TensorRecord& record, uint32_t /*version*/) {
  archive(record.name, record.dtype, record.dims, record.offset);
}

}  // namespace

template <class Archive>
void serialize(Archive& archive, Position& position, uint32_t /*version*/) {
  archive(position.epoch, position.sequence);
}

// A bool as the byte that cereal writes for it. Read as a bool, another byte than 0 and 1 would be undefined behaviour.
template <class Archive>
void Flag(Archive& archive, bool& flag) {
  uint8_t byte = flag ? 1 : 0;
  archive(byte);
  if constexpr (Archive::is_loading::value) flag = byte != 0;
}

template <class Archive>
void serialize(Archive& archive, SerializedTokenizer& tokenizer, uint32_t version) {
  archive(tokenizer.kind, tokenizer.symbols);
  Flag(archive, tokenizer.specials);
  Flag(archive, tokenizer.unknown);
  if (version < 1) return;  // before format 3
  archive(tokenizer.joiner, tokenizer.scores);
  Flag(archive, tokenizer.byte_fallback);
  archive(tokenizer.normalization);
}

template <class Archive>
void serialize(Archive& archive, MetricValue& metric, uint32_t /*version*/) {
  archive(metric.step, metric.name, metric.value);
}

template <class Archive>
void serialize(Archive& archive, BestMetric& best, uint32_t /*version*/) {
  archive(best.step, best.value, best.since_improved);
}

// A field that a later version adds goes last, under `if (version >= N)`, with CEREAL_CLASS_VERSION raised.
template <class Archive>
void serialize(Archive& archive, CheckpointMeta& meta, uint32_t version) {
  archive(meta.step, meta.optimizer_updates, meta.seed, meta.position, meta.tokens, meta.shards, meta.data_hash);
  archive(meta.config_toml, meta.source_tokenizer, meta.target_tokenizer, meta.class_names, meta.history, meta.best);
  if (version >= 2) archive(meta.skipped_in_row);
}

}  // namespace weft

CEREAL_CLASS_VERSION(weft::CheckpointMeta, 2)
CEREAL_CLASS_VERSION(weft::SerializedTokenizer, 1)
CEREAL_CLASS_VERSION(weft::TensorRecord, 1)

namespace weft {
namespace {

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kBF16}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  return absl::DataLossError(absl::StrCat("unknown dtype \"", name, "\""));
}

// The header of an opened file, with all its sizes checked against the file's.
absl::StatusOr<Header> ReadHeader(const InputFile& file) {
  const auto damaged = [&](auto... what) { return absl::DataLossError(absl::StrCat(file.path(), ": ", what...)); };
  if (file.size() == 0) return damaged("is empty, not a Weft checkpoint");
  Header header;
  const int64_t there = std::min<int64_t>(file.size(), sizeof(header));
  WEFT_RETURN_IF_ERROR(file.ReadAt(0, &header, there));
  if (there < static_cast<int64_t>(kMagic.size()) || header.magic != kMagic) {
    return damaged("not a Weft checkpoint (byte 0: wrong magic)");
  }
  if (there < static_cast<int64_t>(sizeof(header))) {
    return damaged("damaged: ends at byte ", file.size(), " inside the header of ", sizeof(header), " bytes");
  }
  if (header.version > kCheckpointVersion) {
    return absl::FailedPreconditionError(absl::StrCat(file.path(), ": checkpoint format ", header.version,
                                                      " is newer than this build, which reads up to format ",
                                                      kCheckpointVersion));
  }
  if (header.version == 0) return damaged("damaged: byte 8: format version 0");
  const uint64_t size = static_cast<uint64_t>(file.size());
  if (header.file_size != size) {
    return damaged("damaged: ", size < header.file_size ? "cut off" : "longer than written", ": the file has ", size,
                   " bytes, its header (byte 16) says ", header.file_size);
  }
  if (header.archive_size > size - sizeof(header)) {
    return damaged("damaged: byte 24: archive of ", header.archive_size, " bytes in a file of ", size);
  }
  if (header.data_start != static_cast<uint64_t>(AlignUp(static_cast<int64_t>(sizeof(header) + header.archive_size))) ||
      header.data_start > size) {
    return damaged("damaged: byte 32: tensors start at ", header.data_start, " after an archive of ", header.archive_size,
                   " bytes in a file of ", size);
  }
  return header;
}

absl::Status VerifyChecksum(const InputFile& file, const Header& header) {
  Hash64 hash;
  AddHeader(header, &hash);
  std::string chunk(static_cast<size_t>(std::min(kHashChunk, file.size())), '\0');
  for (int64_t at = sizeof(header); at < file.size(); at += kHashChunk) {
    const int64_t size = std::min(kHashChunk, file.size() - at);
    WEFT_RETURN_IF_ERROR(file.ReadAt(at, chunk.data(), size));
    hash.Add(absl::string_view(chunk).substr(0, static_cast<size_t>(size)));
  }
  if (hash.Digest() == header.checksum) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.path(), ": damaged: checksum of bytes 0 to ", file.size(), " is ",
                                          absl::Hex(hash.Digest(), absl::kZeroPad16), ", byte ", kChecksumAt, " says ",
                                          absl::Hex(header.checksum, absl::kZeroPad16)));
}

// Decodes the archive. cereal throws on anything it cannot read.
absl::Status ReadArchive(std::string* bytes, CheckpointMeta* meta, std::vector<TensorRecord>* records) {
  MemoryBuffer buffer(bytes);
  try {
    std::istream stream(&buffer);
    cereal::PortableBinaryInputArchive archive(stream);
    archive(*meta, *records);
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat("damaged: archive after byte ", sizeof(Header), ": ", error.what()));
  }
  if (buffer.left() != 0) return absl::DataLossError(absl::StrCat("damaged: ", buffer.left(), " unread bytes in the archive"));
  return absl::OkStatus();
}

// The place of one tensor, which must start at `start` and end by `file_size`.
absl::StatusOr<StoredTensor> Place(const TensorRecord& record, int64_t data_start, int64_t start, int64_t file_size) {
  StoredTensor stored;
  WEFT_ASSIGN_OR_RETURN(stored.dtype, ParseDType(record.dtype));
  if (record.dims.size() > Shape::kMaxRank) return absl::DataLossError(absl::StrCat("rank ", record.dims.size()));
  int64_t bytes = DTypeSize(stored.dtype);
  for (int64_t n : record.dims) {
    if (n < 0 || __builtin_mul_overflow(bytes, n, &bytes)) return absl::DataLossError(absl::StrCat("dimension ", n));
  }
  if (record.offset != start - data_start || bytes > file_size - start) {
    return absl::DataLossError(absl::StrCat(bytes, " bytes at ", record.offset, " after byte ", data_start,
                                            ", expected at byte ", start, " of ", file_size));
  }
  stored.name = record.name;
  stored.shape = Shape(record.dims);
  stored.offset = start;
  stored.bytes = bytes;
  return stored;
}

absl::StatusOr<std::vector<StoredTensor>> PlaceAll(const std::vector<TensorRecord>& records, int64_t data_start,
                                                   int64_t file_size) {
  std::vector<StoredTensor> tensors;
  std::set<absl::string_view> names;
  int64_t end = data_start;
  for (const TensorRecord& record : records) {
    const absl::StatusOr<StoredTensor> stored = Place(record, data_start, AlignUp(end), file_size);
    if (!stored.ok() || record.name.empty() || !names.insert(record.name).second) {
      return absl::DataLossError(absl::StrCat("damaged: tensor \"", record.name,
                                              "\": ", stored.ok() ? "empty or repeated name" : stored.status().message()));
    }
    end = stored->offset + stored->bytes;
    tensors.push_back(*stored);
  }
  if (end != file_size) return absl::DataLossError(absl::StrCat("damaged: tensors end at byte ", end, " of ", file_size));
  return tensors;
}

}  // namespace

absl::Status SaveCheckpoint(const std::string& path, const CheckpointMeta& meta, absl::Span<const NamedTensor> tensors,
                            FileWriter write) {
  std::vector<TensorRecord> records;
  std::set<absl::string_view> names;
  int64_t end = 0;  // from data_start
  for (const NamedTensor& named : tensors) {
    WEFT_CHECK(!named.name.empty() && names.insert(named.name).second)
        << "SaveCheckpoint: name \"" << named.name << "\" is empty or repeated";
    const absl::Span<const int64_t> dims = named.value.shape().dims();
    records.push_back({named.name, std::string(DTypeName(named.value.dtype())), {dims.begin(), dims.end()}, AlignUp(end)});
    end = AlignUp(end) + named.value.bytes();
  }
  std::ostringstream stream;
  {
    cereal::PortableBinaryOutputArchive archive(stream, cereal::PortableBinaryOutputArchive::Options::LittleEndian());
    archive(meta, records);
  }
  const std::string archive = stream.str();

  Header header;
  header.archive_size = archive.size();
  header.data_start = static_cast<uint64_t>(AlignUp(static_cast<int64_t>(sizeof(header) + archive.size())));
  header.file_size = header.data_start + static_cast<uint64_t>(end);

  static constexpr char kZeros[kAlignment] = {};
  std::vector<absl::string_view> pieces = {{reinterpret_cast<const char*>(&header), sizeof(header)}, archive};
  int64_t at = static_cast<int64_t>(sizeof(header) + archive.size());
  const auto align = [&] {
    pieces.emplace_back(kZeros, static_cast<size_t>(AlignUp(at) - at));
    at = AlignUp(at);
  };
  align();
  for (const NamedTensor& named : tensors) {
    align();
    pieces.emplace_back(static_cast<const char*>(named.value.raw()), static_cast<size_t>(named.value.bytes()));
    at += named.value.bytes();
  }
  Hash64 hash;
  AddHeader(header, &hash);
  for (size_t i = 1; i < pieces.size(); ++i) hash.Add(pieces[i]);
  header.checksum = hash.Digest();
  return write(path, pieces);
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  WEFT_ASSIGN_OR_RETURN(const Header header, ReadHeader(file));
  WEFT_RETURN_IF_ERROR(VerifyChecksum(file, header));
  std::string bytes(header.archive_size, '\0');
  WEFT_RETURN_IF_ERROR(file.ReadAt(sizeof(header), bytes.data(), static_cast<int64_t>(bytes.size())));
  CheckpointMeta meta;
  std::vector<TensorRecord> records;
  absl::Status status = ReadArchive(&bytes, &meta, &records);
  if (!status.ok()) return absl::DataLossError(absl::StrCat(path, ": ", status.message()));
  absl::StatusOr<std::vector<StoredTensor>> tensors = PlaceAll(records, static_cast<int64_t>(header.data_start), file.size());
  if (!tensors.ok()) return absl::DataLossError(absl::StrCat(path, ": ", tensors.status().message()));
  return Checkpoint(std::move(file), std::move(meta), *std::move(tensors));
}

const StoredTensor* Checkpoint::Find(absl::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const StoredTensor& t) { return t.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

absl::Status Checkpoint::ReadInto(absl::string_view name, const Tensor& tensor) const {
  const StoredTensor* stored = Find(name);
  if (stored == nullptr) return absl::NotFoundError(absl::StrCat(path(), ": has no tensor \"", name, "\""));
  if (!(stored->shape == tensor.shape()) || stored->dtype != tensor.dtype()) {
    return absl::FailedPreconditionError(absl::StrCat(path(), ": tensor \"", name, "\" is ", DTypeName(stored->dtype),
                                                      stored->shape.ToString(), ", needed is ", DTypeName(tensor.dtype()),
                                                      tensor.shape().ToString()));
  }
  return file_.ReadAt(stored->offset, tensor.raw(), stored->bytes);
}

}  // namespace weft
