#include "data/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "data/file.h"
#include "data/utf8.h"

namespace weft {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// What `file` holds from here on, or up to an error of reading.
std::string ReadToEnd(std::FILE* file) {
  std::string bytes;
  size_t length = 0;
  constexpr size_t kBlock = size_t{1} << 20;
  while (true) {
    bytes.resize(length + kBlock);
    const size_t count = std::fread(&bytes[length], 1, kBlock, file);
    length += count;
    if (count < kBlock) break;
  }
  bytes.resize(length);
  return bytes;
}

// Lines before byte `offset`, plus one, by the newline rule of this file.
int64_t LineOf(absl::string_view text, int64_t offset) {
  int64_t line = 1;
  for (int64_t i = 0; i < offset; ++i) {
    const bool crlf = text[i] == '\r' && i + 1 < static_cast<int64_t>(text.size()) && text[i + 1] == '\n';
    if (text[i] == '\n' || (text[i] == '\r' && !crlf)) ++line;
  }
  return line;
}

}  // namespace

std::string FullPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::string bytes, ReadBytes(path));
  return CleanText(std::move(bytes), FullPath(path));
}

absl::StatusOr<std::string> ReadBytes(const std::string& path) {
  if (path.empty()) return absl::NotFoundError("no file named: the path is empty");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::FailedPreconditionError(absl::StrCat(FullPath(path), ": is a folder, expected a file"));
  }
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError(FullPath(path), "cannot read", errno);
  std::string bytes = ReadToEnd(file.get());
  if (std::ferror(file.get())) return FileError(FullPath(path), "cannot read", errno);
  return bytes;
}

absl::StatusOr<std::string> ReadTextStdin() {
  std::string bytes = ReadToEnd(stdin);
  if (std::ferror(stdin)) return absl::UnavailableError(absl::StrCat("stdin: cannot read: ", std::strerror(errno)));
  return CleanText(std::move(bytes), "stdin");
}

absl::StatusOr<std::string> CleanText(std::string bytes, absl::string_view name) {
  WEFT_RETURN_IF_ERROR(RefuseUtf16(bytes, name));
  WEFT_RETURN_IF_ERROR(ValidateUtf8(bytes, name));
  if (absl::StartsWith(bytes, "\xEF\xBB\xBF")) bytes.erase(0, 3);
  return NormalizeNewlines(std::move(bytes));
}

std::string OneLine(absl::string_view text) {
  std::string line;
  for (int64_t i = 0; i < static_cast<int64_t>(text.size());) {
    char32_t code_point;
    const int64_t bytes = DecodeUtf8(text, i, &code_point);
    if (bytes == 0) {
      absl::StrAppend(&line, "\xEF\xBF\xBD");
    } else if (code_point == '\n' || code_point == '\r') {
      line.push_back(' ');
    } else {
      absl::StrAppend(&line, text.substr(i, bytes));
    }
    i += std::max<int64_t>(1, bytes);
  }
  return line;
}

std::string NormalizeNewlines(std::string text) {
  if (text.find('\r') == std::string::npos) return text;
  size_t out = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      text[out++] = text[i];
      continue;
    }
    text[out++] = '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  text.resize(out);
  return text;
}

absl::Status RefuseUtf16(absl::string_view bytes, absl::string_view name) {
  if (!absl::StartsWith(bytes, "\xFF\xFE") && !absl::StartsWith(bytes, "\xFE\xFF")) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      name, ":1: found a UTF-16 byte-order mark at byte offset 0, expected UTF-8; convert it with: iconv -f UTF-16 -t UTF-8"));
}

absl::Status ValidateUtf8(absl::string_view text, absl::string_view name) {
  const int64_t offset = FindInvalidUtf8(text);
  return offset < 0 ? absl::OkStatus() : InvalidUtf8(text, offset, name);
}

absl::Status InvalidUtf8(absl::string_view text, int64_t offset, absl::string_view name, int64_t bytes_before,
                         int64_t lines_before) {
  std::string found;
  for (int64_t i = offset; i < std::min<int64_t>(offset + 4, text.size()); ++i) {
    absl::StrAppendFormat(&found, " %02X", static_cast<unsigned char>(text[i]));
  }
  return absl::DataLossError(absl::StrCat(name, ":", lines_before + LineOf(text, offset), ": invalid UTF-8 at byte offset ",
                                          bytes_before + offset, ": found the bytes", found));
}

std::vector<absl::string_view> Lines(absl::string_view text) {
  std::vector<absl::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == absl::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

uint64_t HashBytes(absl::string_view bytes, uint64_t seed) {
  uint64_t hash = seed;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace weft
