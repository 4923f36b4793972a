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

// Where a piece ends of a text that starts with `text` and goes on. REQUIRES: not empty.
size_t PieceEnd(absl::string_view text) {
  const size_t newline = text.rfind('\n');
  if (newline != absl::string_view::npos) return newline + 1;
  for (const char blank : {' ', '\t'}) {
    const size_t at = text.rfind(blank);
    if (at != absl::string_view::npos && at > 0) return at;
  }
  return text.size();
}

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
  const size_t cut = offset_ < file_.size() ? PieceEnd(clean_) : clean_.size();
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

ContentHash ContentHash::Of(int64_t size, uint64_t seed) { return {0, HashBytes(absl::StrCat(size, ":"), seed), seed}; }

void ContentHash::Add(absl::string_view piece) {
  bytes += static_cast<int64_t>(piece.size());
  hash = HashBytes(piece, hash);
}

TextSource TextSource::FromText(std::string name, std::string text) {
  TextSource source;
  source.name_ = std::move(name);
  source.text_ = std::move(text);
  source.file_size_ = static_cast<int64_t>(source.text_.size());
  return source;
}

absl::StatusOr<TextSource> TextSource::Open(const std::string& path, int64_t in_memory, int64_t piece_bytes) {
  TextSource source;
  source.piece_bytes_ = piece_bytes;
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
  WEFT_ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(path_, piece_bytes_));
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const absl::string_view piece, reader.Next());
    if (piece.empty()) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(take(piece));
  }
}

absl::Status TextSource::ForEachOf(const ContentHash& content, TakePiece take) const {
  ContentHash found = ContentHash::Of(content.bytes, content.seed);
  WEFT_RETURN_IF_ERROR(ForEach([&](absl::string_view piece) {
    found.Add(piece);
    return take(piece);
  }));
  return found == content ? absl::OkStatus() : Changed();
}

absl::Status TextSource::Changed() const {
  return absl::FailedPreconditionError(absl::StrCat(name_, ": changed while it was read; start again when it is complete"));
}

ContentPass::ContentPass(const TextSource& source, uint64_t seed)
    : source_(source), content_(ContentHash::Of(source.file_size_, seed)) {}

absl::Status ContentPass::ForEach(TextSource::TakePiece take) {
  return source_.ForEach([&](absl::string_view piece) {
    content_.Add(piece);
    newlines_ += std::count(piece.begin(), piece.end(), '\n');
    ends_in_line_ = !piece.empty() && piece.back() != '\n';
    return take(piece);
  });
}

absl::StatusOr<ContentHash> ContentPass::Finish() {
  if (content_.bytes == 0) return absl::FailedPreconditionError(absl::StrCat(source_.name(), ": is empty"));
  if (content_.bytes == source_.file_size_) return content_;
  content_ = ContentHash::Of(content_.bytes, content_.seed);
  WEFT_RETURN_IF_ERROR(source_.ForEach([&](absl::string_view piece) {
    content_.Add(piece);
    return absl::OkStatus();
  }));
  return content_;
}

LineReader::LineReader(const TextSource& source, const ContentHash& content)
    : source_(&source), content_(content), found_(ContentHash::Of(content.bytes, content.seed)), held_(source.text_) {}

absl::StatusOr<LineReader> LineReader::Open(const TextSource& source, const ContentHash& content) {
  LineReader lines(source, content);
  if (source.is_streamed()) {
    WEFT_ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(source.path_, source.piece_bytes_));
    lines.reader_ = std::make_unique<TextReader>(std::move(reader));
  }
  return lines;
}

absl::StatusOr<bool> LineReader::Next(absl::string_view* line) {
  joined_.clear();
  while (true) {
    if (rest_.empty()) {
      WEFT_ASSIGN_OR_RETURN(rest_, NextPiece());
      if (rest_.empty()) break;
    }
    const size_t end = rest_.find('\n');
    *line = rest_.substr(0, end);
    rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end + 1);
    if (end != absl::string_view::npos && joined_.empty()) return true;
    absl::StrAppend(&joined_, *line);
    if (end != absl::string_view::npos) break;
  }
  *line = joined_;
  return !joined_.empty();
}

absl::StatusOr<absl::string_view> LineReader::NextPiece() {
  if (reader_ == nullptr) return std::exchange(held_, {});
  WEFT_ASSIGN_OR_RETURN(const absl::string_view piece, reader_->Next());
  found_.Add(piece);
  if (piece.empty() && !(found_ == content_)) return source_->Changed();
  return piece;
}

}  // namespace weft
