// A long list of token ids, read in stretches: in memory, or in a file that may be larger than memory. An id takes 1, 2 or 4
// bytes, by the size of the vocabulary. A file is read by pread and not mapped: what was read does not count as memory of the
// process, and a file that somebody cuts short is an error and not the end of the process.
// Immutable; Read is thread-safe.
#ifndef WEFT_DATA_TOKEN_STREAM_H_
#define WEFT_DATA_TOKEN_STREAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/file.h"

namespace weft {

// Bytes of an id below `vocabulary`.
int64_t TokenWidth(int64_t vocabulary);
// Appends `ids`, `width` bytes each, in the machine's order. REQUIRES: ids of that width, not negative.
void PackTokens(absl::Span<const int32_t> ids, int64_t width, std::string* out);

class TokenStream {
 public:
  // Without tokens.
  TokenStream() = default;
  // In memory. REQUIRES: ids that are not negative. Not explicit: a list is the plainest stream.
  TokenStream(absl::Span<const int32_t> ids);   // NOLINT(google-explicit-constructor)
  TokenStream(const std::vector<int32_t>& ids)  // NOLINT(google-explicit-constructor)
      : TokenStream(absl::MakeConstSpan(ids)) {}
  // The ids below `vocabulary` that PackTokens wrote to `packed`.
  static TokenStream FromPacked(std::string packed, int64_t vocabulary);
  // Those in `file` from byte `offset` on. REQUIRES: the file has `tokens` of them there.
  static TokenStream FromFile(InputFile file, int64_t offset, int64_t tokens, int64_t vocabulary);

  // Number of tokens.
  int64_t size() const { return size_; }
  bool in_file() const { return file_.has_value(); }
  // For messages: the path of the file.
  std::string name() const { return file_.has_value() ? file_->path() : "token ids in memory"; }
  // Tokens first .. first + out.size() - 1. Never fails in memory. Of a file: DataLoss if it ends before or holds an id outside
  // of the vocabulary, errors of reading. REQUIRES: 0 <= first, first + out.size() <= size().
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const;
  // How many tokens are `id`. Goes through all of them.
  absl::StatusOr<int64_t> Count(int32_t id) const;
  // Tokens first .. first + count - 1 as a stream of their own, which copies memory but shares the file.
  // REQUIRES: 0 <= first, 0 <= count, first + count <= size(). Unavailable if the system has no descriptor left.
  absl::StatusOr<TokenStream> Slice(int64_t first, int64_t count) const;

 private:
  int64_t width_ = 1;
  int64_t size_ = 0;
  int64_t vocabulary_ = 0;
  std::string packed_;  // unless in a file
  std::optional<InputFile> file_;
  int64_t offset_ = 0;  // in the file, of the first token
};

}  // namespace weft

#endif  // WEFT_DATA_TOKEN_STREAM_H_
