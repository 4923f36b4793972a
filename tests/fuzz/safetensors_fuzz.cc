// A safetensors file of any bytes: opened, and each tensor read in every way. With mode & 1 the input is the header without its
// length, up to the last closing brace, and then the data.
#include "tests/fuzz/fuzz.h"
#include "train/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::FuzzFile file;
  const weft::FuzzInput input(data, size);
  std::string bytes(input.rest);
  if (input.mode & 1) {
    const size_t brace = bytes.rfind('}');
    const uint64_t length = brace == std::string::npos ? bytes.size() : brace + 1;
    bytes.insert(0, reinterpret_cast<const char*>(&length), sizeof(length));
  }
  file.Put(bytes);
  const absl::StatusOr<weft::SafeTensors> tensors = weft::SafeTensors::Open(file.path());
  if (!tensors.ok()) {
    FUZZ_EXPECT(tensors.status().message().find(file.path()) != absl::string_view::npos);
    return 0;
  }
  for (const std::string& name : tensors->names()) {
    const weft::SafeTensors::Entry* entry = tensors->Find(name);
    FUZZ_EXPECT(entry != nullptr && entry->offset + entry->bytes <= static_cast<int64_t>(bytes.size()));
    const size_t elements = static_cast<size_t>(entry->elements());
    const auto doubles = tensors->ReadAsDouble(name);
    FUZZ_EXPECT(!doubles.ok() || doubles->size() == elements);
    const auto floats = tensors->ReadFloat(name);
    FUZZ_EXPECT(!floats.ok() || floats->size() == elements);
    const auto integers = tensors->ReadInt64(name);
    FUZZ_EXPECT(!integers.ok() || integers->size() == elements);
  }
  return 0;
}
