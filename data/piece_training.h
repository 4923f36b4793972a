// Learns the pieces of a bpe or unigram vocabulary. Text comes in parts, whole lines each; what is kept of it is its distinct
// words with their counts, so memory follows the vocabulary of the text and not its size. A word is a space and what follows it
// up to the next space or the end of the line. Words are learned from in an order by content, so the order of lines and parts
// changes nothing. In the library's ties (equal counts) the shorter piece wins, then the smaller by code points.
//   Words longer than kMaxWordBytes (text without spaces) count as several, cut at a character.
//   U+2581 and U+2585, tab and NUL, which the library reserves, end a word too and are in no piece that is learned.
//   Above the cap of distinct words in bytes, only the words whose hash starts with 1, then 2, ... zero bits are kept: a choice
//   by content, and reported.
// Not thread-safe.
#ifndef WEFT_DATA_PIECE_TRAINING_H_
#define WEFT_DATA_PIECE_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// The end of the word that starts at `begin`: the next space after it, or the end of `line`.
inline size_t WordEnd(absl::string_view line, size_t begin) {
  const size_t space = line.find(' ', begin + 1);
  return space == absl::string_view::npos ? line.size() : space;
}

struct LearnedPieces {
  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::string model;  // the library's own form of it, for tests
};

class PieceTraining {
 public:
  static constexpr size_t kMaxWordBytes = 4096;
  static constexpr int64_t kDefaultCap = int64_t{200} << 20;

  explicit PieceTraining(int64_t cap = kDefaultCap) : cap_(cap) {}

  // Counts the words of one line, which has no newline. REQUIRES: valid UTF-8.
  void AddLine(absl::string_view line);

  // The characters that the library reserves and the text has, in order: they need ids of their own where no bytes stand in.
  std::vector<std::string> ReservedSeen() const;

  // Learns exactly `count` pieces, among them each character of the text (by `coverage`, the most frequent ones).
  // InvalidArgument for a count that the text is too small for, or that its characters exceed, with the nearest one that
  // works; `implied` is added to the counts in messages. FailedPrecondition for a text without words.
  absl::StatusOr<LearnedPieces> Learn(bool bpe, int64_t count, double coverage, int64_t implied) const;

  // What the log shall say of words that were left out; empty for none.
  std::string Report() const;

 private:
  void AddWord(absl::string_view word);
  bool Kept(uint64_t hash) const { return level_ == 0 || hash >> (64 - level_) == 0; }

  const int64_t cap_;
  absl::flat_hash_map<std::string, int64_t> counts_;
  int64_t bytes_ = 0;      // of the distinct words
  int level_ = 0;          // words whose hash starts with so many zero bits are kept
  int64_t all_words_ = 0;  // words of the text
  bool reserved_[4] = {};
};

}  // namespace weft

#endif  // WEFT_DATA_PIECE_TRAINING_H_
