#include "data/text_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "data/utf8.h"

namespace weft {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

uint64_t HashOfSize(int64_t bytes, uint64_t seed) { return HashBytes(absl::StrCat(bytes, ":"), seed); }

}  // namespace

absl::StatusOr<TextReader> TextReader::Open(const std::string& path, int64_t piece_bytes) {
  WEFT_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  return TextReader(std::move(file), piece_bytes);
}

TextReader::TextReader(InputFile file, int64_t piece_bytes)
    : file_(std::move(file)), name_(FullPath(file_.path())), piece_bytes_(piece_bytes) {}

absl::StatusOr<absl::string_view> TextReader::Next() {
  clean_.erase(0, handed_out_);
  while (static_cast<int64_t>(clean_.size()) < piece_bytes_ && offset_ < file_.size()) WEFT_RETURN_IF_ERROR(Refill());
  size_t cut = clean_.size();
  if (offset_ < file_.size()) {
    size_t mark = clean_.rfind('\n');
    if (mark == std::string::npos) mark = clean_.find_last_of(" \t");
    if (mark != std::string::npos) cut = mark + 1;
  }
  handed_out_ = static_cast<int64_t>(cut);
  return absl::string_view(clean_).substr(0, cut);
}

// Reads one block and appends what is clean of it.
absl::Status TextReader::Refill() {
  const bool first = offset_ == 0;
  const auto kept = static_cast<int64_t>(raw_.size());
  const int64_t block = std::min(piece_bytes_, file_.size() - offset_);
  raw_.resize(kept + block);
  WEFT_RETURN_IF_ERROR(file_.ReadAt(offset_, raw_.data() + kept, block));
  offset_ += block;
  if (first) WEFT_RETURN_IF_ERROR(RefuseUtf16(raw_, name_));

  auto usable = static_cast<int64_t>(raw_.size());
  if (offset_ < file_.size()) {
    usable -= IncompleteUtf8Tail(raw_);
    if (usable > 0 && raw_[usable - 1] == '\r') --usable;
  }
  absl::string_view text = absl::string_view(raw_).substr(0, usable);
  if (const int64_t invalid = FindInvalidUtf8(text); invalid >= 0) return InvalidAt(invalid);
  const size_t before = clean_.size();
  if (first && absl::StartsWith(text, kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  absl::StrAppend(&clean_, absl::StrContains(text, '\r') ? NormalizeNewlines(std::string(text)) : text);
  lines_ += std::count(clean_.begin() + static_cast<int64_t>(before), clean_.end(), '\n');
  raw_.erase(0, usable);
  return absl::OkStatus();
}

// The error for the sequence at raw_[offset]. Shows as many bytes as ValidateUtf8 would with the whole file.
absl::Status TextReader::InvalidAt(int64_t offset) {
  const int64_t start = offset_ - static_cast<int64_t>(raw_.size());
  const int64_t more = std::min<int64_t>(4, file_.size() - offset_);
  raw_.resize(raw_.size() + more);
  WEFT_RETURN_IF_ERROR(file_.ReadAt(offset_, raw_.data() + raw_.size() - more, more));
  return InvalidUtf8(raw_, offset, name_, start, lines_);
}

absl::StatusOr<TextSource> TextSource::Open(const std::string& path, int64_t in_memory) {
  TextSource source;
  source.path_ = path;
  source.name_ = FullPath(path);
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    source.file_size_ = static_cast<int64_t>(std::filesystem::file_size(path, error));
    source.is_streamed_ = !error && source.file_size_ > in_memory;
  }
  if (source.is_streamed_) return source;
  WEFT_ASSIGN_OR_RETURN(source.text_, ReadTextFile(path));
  source.file_size_ = static_cast<int64_t>(source.text_.size());
  if (source.text_.empty()) return absl::FailedPreconditionError(absl::StrCat(source.name_, ": is empty"));
  return source;
}

absl::Status TextSource::ForEach(TakePiece take) const {
  if (!is_streamed_) return take(text_);
  WEFT_ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(path_));
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const absl::string_view piece, reader.Next());
    if (piece.empty()) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(take(piece));
  }
}

absl::Status TextSource::ForEachOf(const ContentHash& content, TakePiece take) const {
  ContentHash found{0, HashOfSize(content.bytes, content.seed), content.seed};
  WEFT_RETURN_IF_ERROR(ForEach([&](absl::string_view piece) {
    found.bytes += static_cast<int64_t>(piece.size());
    found.hash = HashBytes(piece, found.hash);
    return take(piece);
  }));
  if (found.bytes == content.bytes && found.hash == content.hash) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(name_, ": changed while it was read; start again when it is complete"));
}

ContentPass::ContentPass(const TextSource& source, uint64_t seed)
    : source_(source), content_{0, HashOfSize(source.file_size_, seed), seed} {}

absl::Status ContentPass::ForEach(TextSource::TakePiece take) {
  return source_.ForEach([&](absl::string_view piece) {
    content_.bytes += static_cast<int64_t>(piece.size());
    content_.hash = HashBytes(piece, content_.hash);
    return take(piece);
  });
}

absl::StatusOr<ContentHash> ContentPass::Finish() {
  if (content_.bytes == 0) return absl::FailedPreconditionError(absl::StrCat(source_.name(), ": is empty"));
  if (content_.bytes == source_.file_size_) return content_;
  content_.hash = HashOfSize(content_.bytes, content_.seed);
  WEFT_RETURN_IF_ERROR(source_.ForEach([&](absl::string_view piece) {
    content_.hash = HashBytes(piece, content_.hash);
    return absl::OkStatus();
  }));
  return content_;
}

}  // namespace weft
