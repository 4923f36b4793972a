// A text file as a sequence of clean pieces, so that a text may be larger than memory. The rules are those of CleanText: valid
// UTF-8, one leading byte-order mark dropped, CRLF and a lone CR become \n, also where a piece ends between the two.
// A piece ends behind a newline. A line that does not fit into one is cut before its last space, else its last tab: to bpe and
// unigram a space is the start of the word after it (WordEnd), to the other kinds it is the same on either side. A run of more
// than kPieceBytes without newline, space or tab is cut between two characters. So no piece ends inside a word, unless a word
// is longer than that, and the pieces depend on the content alone.
#ifndef WEFT_DATA_TEXT_SOURCE_H_
#define WEFT_DATA_TEXT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/file.h"
#include "data/text_file.h"

namespace weft {

// Bytes of a piece, about: one may have nearly twice as many.
inline constexpr int64_t kPieceBytes = int64_t{1} << 20;

// One pass over a regular file. Owns the open file and its buffers; not thread-safe.
class TextReader {
 public:
  // Errors as of ReadTextFile.
  static absl::StatusOr<TextReader> Open(const std::string& path, int64_t piece_bytes = kPieceBytes);
  // The next piece, valid until the next call; empty at the end. DataLoss for invalid UTF-8, as from ValidateUtf8, with line
  // and byte offset counted from the start of the file, and for a file that was cut short meanwhile.
  absl::StatusOr<absl::string_view> Next();

 private:
  TextReader(InputFile file, int64_t piece_bytes);
  absl::Status Refill();
  absl::Status InvalidAt(int64_t offset);

  InputFile file_;
  std::string name_;
  int64_t piece_bytes_;
  int64_t offset_ = 0;  // in the file, of the next byte to read
  std::string raw_;     // read but not clean yet: the start of a character, or a CR whose \n may follow
  int64_t lines_ = 0;   // newlines before raw_
  std::string clean_;   // not handed out yet, but for the first handed_out_ bytes
  int64_t handed_out_ = 0;
};

// Identifies a clean text: HashBytes of "BYTES:" and then the text, from `seed` on.
struct ContentHash {
  // That of no text yet, of which `size` bytes shall be added.
  static ContentHash Of(int64_t size, uint64_t seed);
  void Add(absl::string_view piece);
  friend bool operator==(const ContentHash&, const ContentHash&) = default;

  int64_t bytes = 0;
  uint64_t hash = 0;
  uint64_t seed = 0;
};

// A text to go through several times.
class TextSource {
 public:
  using TakePiece = absl::FunctionRef<absl::Status(absl::string_view piece)>;

  // Reads the file whole, as one piece, if it has at most `in_memory` bytes or is not a regular file (a pipe can be read only
  // once); any other is read anew in each pass. Errors of ReadTextFile, or FailedPrecondition for an empty text.
  static absl::StatusOr<TextSource> Open(const std::string& path, int64_t in_memory, int64_t piece_bytes = kPieceBytes);
  // A clean text that is there already, under a name for messages.
  static TextSource FromText(std::string name, std::string text);

  // Full path.
  const std::string& name() const { return name_; }
  bool is_streamed() const { return is_streamed_; }
  // Calls take(piece) with each piece in order and stops at the first error, its own or that of reading.
  absl::Status ForEach(TakePiece take) const;
  // The same, with FailedPrecondition at the end if the text is not, or no longer, `content`.
  absl::Status ForEachOf(const ContentHash& content, TakePiece take) const;

 private:
  friend class ContentPass;
  friend class LineReader;
  absl::Status Changed() const;

  std::string path_, name_;
  bool is_streamed_ = false;
  int64_t piece_bytes_ = kPieceBytes;  // if streamed
  std::string text_;                   // unless streamed
  int64_t file_size_ = 0;              // of text_ or of the file, before cleaning
};

// A pass that also computes the hash. The number of bytes comes first in it but is known last: where carriage returns or a
// byte-order mark were dropped from a streamed file, Finish takes a second pass.
class ContentPass {
 public:
  ContentPass(const TextSource& source, uint64_t seed);
  // TextSource::ForEach. Once.
  absl::Status ForEach(TextSource::TakePiece take);
  // After ForEach. FailedPrecondition for a text without bytes.
  absl::StatusOr<ContentHash> Finish();
  // After ForEach: how many lines the text has.
  int64_t lines() const { return newlines_ + (ends_in_line_ ? 1 : 0); }

 private:
  const TextSource& source_;
  ContentHash content_;
  int64_t newlines_ = 0;
  bool ends_in_line_ = false;  // one without a newline
};

// A pass over the lines, which are those of Lines(text), one at a time. Holds views of `source`, which must outlive it.
class LineReader {
 public:
  // A text that is not held is read anew and must be `content`, else Next ends with FailedPrecondition.
  static absl::StatusOr<LineReader> Open(const TextSource& source, const ContentHash& content);
  // The next line in `line`, valid until the next call; false at the end. Errors of TextReader::Next.
  absl::StatusOr<bool> Next(absl::string_view* line);

 private:
  LineReader(const TextSource& source, const ContentHash& content);
  absl::StatusOr<absl::string_view> NextPiece();

  const TextSource* source_;
  ContentHash content_;
  std::unique_ptr<TextReader> reader_;  // null for a text that is held
  ContentHash found_;
  absl::string_view held_;
  absl::string_view rest_;  // of the piece
  std::string joined_;      // a line of which a part was in the piece before
};

}  // namespace weft

#endif  // WEFT_DATA_TEXT_SOURCE_H_
