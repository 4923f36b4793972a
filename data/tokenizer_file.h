// A tokenizer in a file of its own: what `weft tokenizer train` writes and a config names by data.tokenizer.file. Eight bytes
// of magic that any transfer as text damages, then as little-endian 64-bit numbers the format version, the size of what follows
// the checksum and its checksum (FNV-1a), then the parts of a SerializedTokenizer with their lengths. Special tokens are not
// stored: the data decides about them. Pure functions apart from the file itself; thread-safe.
#ifndef WEFT_DATA_TOKENIZER_FILE_H_
#define WEFT_DATA_TOKENIZER_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/tokenizer.h"

namespace weft {

// The bytes of the file.
std::string TokenizerFileBytes(const SerializedTokenizer& tokenizer);
// Whether `bytes` start as such a file does.
bool IsTokenizerFile(absl::string_view bytes);
// DataLoss, naming `name` and the byte, for anything but what TokenizerFileBytes made; FailedPrecondition for a newer format.
// Not yet checked by Tokenizer::FromSerialized.
absl::StatusOr<SerializedTokenizer> ParseTokenizerFile(absl::string_view bytes, absl::string_view name);
// The same of a file; errors of ReadBytes.
absl::StatusOr<SerializedTokenizer> LoadTokenizerFile(const std::string& path);

}  // namespace weft

#endif  // WEFT_DATA_TOKENIZER_FILE_H_
