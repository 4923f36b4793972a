// The text of tokens that come one by one, in pieces that never cut a character: bytes that may be the start of one wait for
// the rest, and so does a word that ends in a joiner. All pieces together are what Tokenizer::Decode says of all tokens at
// once; what is still incomplete at the end comes out as it is. Not thread-safe.
#ifndef WEFT_DATA_TEXT_STREAM_H_
#define WEFT_DATA_TEXT_STREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "data/tokenizer.h"

namespace weft {

class TextStream {
 public:
  // Continues `prompt`, which was printed: the first word after a word gets its space. `tokenizer` must outlive the stream.
  explicit TextStream(const Tokenizer& tokenizer, absl::Span<const int32_t> prompt = {});

  // The text that token `id` completes, often that of the token itself; empty while a character is incomplete.
  std::string Push(int32_t id);
  // What still waits. The stream is at its end.
  std::string Finish();

 private:
  std::string Waiting() const;

  const Tokenizer& tokenizer_;
  std::vector<int32_t> before_;   // the last tokens that printed something: what stands before decides about spaces
  std::vector<int32_t> waiting_;  // tokens that are not printed yet
};

// All pieces at once: the text of `ids` after that of `prompt`.
std::string ContinuationText(const Tokenizer& tokenizer, absl::Span<const int32_t> prompt, absl::Span<const int32_t> ids);

}  // namespace weft

#endif  // WEFT_DATA_TEXT_STREAM_H_
