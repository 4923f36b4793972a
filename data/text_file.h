// Text as it comes from files and prompts. One rule for both, so that prepared and typed text give the same tokens: bytes must
// be valid UTF-8, one leading byte-order mark is dropped, and CRLF and a lone CR become \n. Everything else stays as it is,
// NUL and other control characters too. Pure functions apart from the file itself; thread-safe.
#ifndef WEFT_DATA_TEXT_FILE_H_
#define WEFT_DATA_TEXT_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// The text of a file after CleanText. Errors of ReadBytes, and DataLoss (invalid UTF-8).
absl::StatusOr<std::string> ReadTextFile(const std::string& path);
// The bytes of a file, or of a pipe, as they are. Errors are those of FileError (data/file.h) and name the full path.
absl::StatusOr<std::string> ReadBytes(const std::string& path);

// Checks and normalises raw bytes; `name` stands for them in errors. DataLoss as from ValidateUtf8, with a hint for UTF-16.
absl::StatusOr<std::string> CleanText(std::string bytes, absl::string_view name);

// All of stdin after CleanText, by the name "stdin". Unavailable when it cannot be read.
absl::StatusOr<std::string> ReadTextStdin();

// Generated text as one line of such a file: newlines and carriage returns become spaces, each byte that is no UTF-8 U+FFFD.
std::string OneLine(absl::string_view text);

// CRLF and lone CR become \n.
std::string NormalizeNewlines(std::string text);

// DataLoss naming the line, the byte offset (from 0) and the bytes of the first invalid sequence: "name:line: ...".
absl::Status ValidateUtf8(absl::string_view text, absl::string_view name);
// The error for the sequence at `offset` of `text`, a part of a file that starts at byte `bytes_before`, after `lines_before`
// whole lines.
absl::Status InvalidUtf8(absl::string_view text, int64_t offset, absl::string_view name, int64_t bytes_before = 0,
                         int64_t lines_before = 0);
// DataLoss, with what to do, for bytes that start with the mark of UTF-16.
absl::Status RefuseUtf16(absl::string_view bytes, absl::string_view name);

// The lines of a text, split at \n only (U+2028 and form feed break no line). A final \n makes no extra line; "" has none.
std::vector<absl::string_view> Lines(absl::string_view text);

// Full path of `path` for messages; `path` itself where the system cannot say.
std::string FullPath(const std::string& path);

// FNV-1a, 64 bits (Fowler, Noll, Vo): the same on every machine. Chain with the previous hash as `seed` to hash several parts.
inline constexpr uint64_t kHashSeed = 14695981039346656037ull;
uint64_t HashBytes(absl::string_view bytes, uint64_t seed = kHashSeed);

}  // namespace weft

#endif  // WEFT_DATA_TEXT_FILE_H_
