// A checkpoint file of any bytes: opened, its tensors read, and with mode & 2 a model restored from it. With mode & 1 the sizes
// and the checksum of the header are made right first, or no damage would get past them to the archive.
#include <cstring>
#include <vector>

#include "data/hash.h"
#include "tests/fuzz/fuzz.h"
#include "train/checkpoint.h"
#include "train/session.h"

namespace {

constexpr size_t kHeader = 64, kFileSizeAt = 16, kArchiveSizeAt = 24, kDataStartAt = 32, kChecksumAt = 40;

void Repair(std::string* bytes) {
  if (bytes->size() < kHeader) return;
  const auto put = [&](size_t at, uint64_t value) { std::memcpy(bytes->data() + at, &value, sizeof(value)); };
  uint64_t archive;
  std::memcpy(&archive, bytes->data() + kArchiveSizeAt, sizeof(archive));
  archive = std::min<uint64_t>(archive, bytes->size() - kHeader);
  put(kFileSizeAt, bytes->size());
  put(kArchiveSizeAt, archive);
  put(kDataStartAt, (kHeader + archive + 63) / 64 * 64);
  weft::Hash64 hash;
  hash.Add(absl::string_view(*bytes).substr(0, kChecksumAt));
  hash.Add(absl::string_view(*bytes).substr(kChecksumAt + 8));
  put(kChecksumAt, hash.Digest());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::FuzzFile file;
  const weft::FuzzInput input(data, size);
  std::string bytes(input.rest);
  if (input.mode & 1) Repair(&bytes);
  file.Put(bytes);
  const absl::StatusOr<weft::Checkpoint> checkpoint = weft::Checkpoint::Open(file.path());
  if (!checkpoint.ok()) {
    // Whatever is wrong, the message names the file.
    FUZZ_EXPECT(checkpoint.status().message().find(file.path()) != absl::string_view::npos);
    return 0;
  }
  for (const weft::StoredTensor& tensor : checkpoint->tensors()) {
    std::vector<char> copy(static_cast<size_t>(tensor.bytes));
    FUZZ_EXPECT(checkpoint->ReadInto(tensor.name, weft::Tensor(copy.data(), tensor.dtype, tensor.shape)).ok());
  }
  if (input.mode & 2) (void)weft::Session::FromCheckpoint(*checkpoint);
  return 0;
}
