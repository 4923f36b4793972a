#include "data/piece_training.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "data/sentencepiece_library.h"
#include "data/text_file.h"

namespace weft {
namespace {

constexpr absl::string_view kReserved[] = {absl::string_view("\0", 1), "\t", "\xE2\x96\x81", "\xE2\x96\x85"};
// Unigram seeds are substrings that occur twice in its rows, whose counts it ignores there: words come as often as they occur,
// as long as all rows together stay below so many bytes, and in proportion above.
constexpr double kUnigramRowBytes = 16e6;

// Which of kReserved `text` starts with, or -1.
int ReservedAt(absl::string_view text) {
  for (int i = 0; i < 4; ++i) {
    if (text.substr(0, kReserved[i].size()) == kReserved[i]) return i;
  }
  return -1;
}

bool MayBeReserved(char c) { return c == '\0' || c == '\t' || c == '\xE2'; }

// The number behind `before` in a message of the library, or -1.
int64_t NumberAfter(absl::string_view message, absl::string_view before) {
  size_t at = message.find(before);
  if (at == absl::string_view::npos) return -1;
  at += before.size();
  const size_t end = std::min(message.find_first_not_of("0123456789", at), message.size());
  int64_t number;
  return absl::SimpleAtoi(message.substr(at, end - at), &number) ? number : -1;
}

}  // namespace

void PieceTraining::AddLine(absl::string_view line) {
  for (size_t begin = 0; begin < line.size();) {
    const size_t word_end = WordEnd(line, begin);
    while (begin < word_end) {
      // The longest part without a reserved character, and not too long.
      size_t end = begin, reserved_bytes = 0;
      for (; end < word_end; ++end) {
        if (end - begin >= kMaxWordBytes && (line[end] & 0xC0) != 0x80) break;
        if (!MayBeReserved(line[end])) continue;
        const int reserved = ReservedAt(line.substr(end));
        if (reserved < 0) continue;
        reserved_[reserved] = true;
        reserved_bytes = kReserved[reserved].size();
        break;
      }
      if (end > begin) AddWord(line.substr(begin, end - begin));
      begin = end + reserved_bytes;
    }
  }
}

void PieceTraining::AddWord(absl::string_view word) {
  ++all_words_;
  const auto found = counts_.find(word);
  if (found != counts_.end()) {
    ++found->second;
    return;
  }
  if (level_ > 0 && !Kept(HashBytes(word))) return;
  counts_.emplace(word, 1);
  bytes_ += static_cast<int64_t>(word.size());
  while (bytes_ > cap_ && level_ < 40) {
    ++level_;
    absl::erase_if(counts_, [&](const auto& entry) {
      if (Kept(HashBytes(entry.first))) return false;
      bytes_ -= static_cast<int64_t>(entry.first.size());
      return true;
    });
  }
}

std::vector<std::string> PieceTraining::ReservedSeen() const {
  std::vector<std::string> seen;
  for (int i = 0; i < 4; ++i) {
    if (reserved_[i]) seen.emplace_back(kReserved[i]);
  }
  return seen;
}

absl::StatusOr<LearnedPieces> PieceTraining::Learn(bool bpe, int64_t count, double coverage, int64_t implied) const {
  std::vector<library::WeightedText> words(counts_.begin(), counts_.end());
  if (words.empty()) return absl::FailedPreconditionError("the training text has no symbols to learn pieces from");
  std::sort(words.begin(), words.end());
  if (!bpe) {
    double total = 0;
    for (const auto& [word, times] : words) total += static_cast<double>(word.size()) * static_cast<double>(times);
    const double part = std::min(1.0, kUnigramRowBytes / total);
    std::vector<library::WeightedText> rows;
    for (const auto& [word, times] : words) {
      const int64_t copies = std::max(std::min<int64_t>(times, 2), static_cast<int64_t>(static_cast<double>(times) * part));
      for (int64_t i = 0; i < copies; ++i) rows.emplace_back(word, times / copies + (i < times % copies ? 1 : 0));
    }
    words = std::move(rows);
  }
  library::TrainResult trained = library::TrainPieces(words, {bpe, count, coverage});
  if (!trained.ok) {
    const auto refuse = [&](const char* bound, int64_t pieces) {
      return absl::InvalidArgumentError(absl::StrCat("vocab_size: found ", count + implied, ", but the training text allows ",
                                                     bound, " ", pieces - 1 + implied));
    };
    const int64_t most = NumberAfter(trained.error, "set it to a value <= ");
    if (most > 0) return refuse("at most", most);
    const int64_t least = NumberAfter(trained.error, " vs ");
    if (least > 0) return refuse("no fewer than its characters:", least);
    return absl::FailedPreconditionError(absl::StrCat("no vocabulary of ", count + implied, ": ", trained.error));
  }
  LearnedPieces learned;
  learned.model = std::move(trained.model);
  for (auto& [piece, score] : trained.pieces) {
    learned.pieces.push_back(std::move(piece));
    learned.scores.push_back(score);
  }
  return learned;
}

std::string PieceTraining::Report() const {
  if (level_ == 0) return "";
  return absl::StrFormat(
      "learned from one of %d distinct words, %d bytes of them, chosen by their hash: the text has more than %d bytes of "
      "distinct words",
      int64_t{1} << level_, bytes_, cap_);
}

}  // namespace weft
