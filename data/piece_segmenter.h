// Cuts a word into pieces of a vocabulary. Two algorithms, the same results as SentencePiece's for the same pieces and scores:
//   bpe      joins neighbours, at each step the pair whose piece has the best score, of equal ones the leftmost
//   unigram  the segmentation whose scores (log-probabilities) have the largest sum (Viterbi; sums as floats from the left)
// and their random forms, from counter-based numbers, so that a draw is a function of its key alone:
//   bpe      dropout (Provilkov, Emelianenko, Voita, "BPE-Dropout", ACL 2020, algorithm 1): at each step each candidate is left
//            out with probability p; it ends when none is left
//   unigram  one segmentation x of all with P(x)^alpha / Z (Kudo, "Subword Regularization", ACL 2018, section 3.2), by forward
//            filtering and backward sampling over the full lattice
// Immutable, so thread-safe; the scratch belongs to the caller.
#ifndef WEFT_DATA_PIECE_SEGMENTER_H_
#define WEFT_DATA_PIECE_SEGMENTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/base/random.h"

namespace weft {

// Uniform numbers in [0, 1) of one key, one after the other.
class UniformStream {
 public:
  explicit UniformStream(RandomKey key) : key_(key) {}
  double Next() { return key_.Uniform(next_++); }

 private:
  RandomKey key_;
  uint64_t next_ = 0;
};

// A piece of a word: its index in the vocabulary, or -1 for a character that has none.
struct PieceSpan {
  int32_t piece = -1;
  int32_t bytes = 0;
  friend bool operator==(const PieceSpan&, const PieceSpan&) = default;
};

class PieceSegmenter {
 public:
  // Memory that calls reuse. Not to be shared by threads.
  struct Scratch {
    struct Symbol {
      int32_t previous, next, begin, bytes;  // next -1: last; bytes 0: joined to another
    };
    struct Join {
      float score;
      int32_t left, right, bytes;
    };
    struct Arc {
      int32_t begin, piece, next;  // next: another arc with the same end, or -1
      double weight;
    };
    struct Best {
      float score;
      int32_t begin, piece;  // begin -1: not reached
    };
    std::vector<Symbol> symbols;
    std::vector<Join> heap, dropped;
    std::vector<Arc> arcs;
    std::vector<Best> best;
    std::vector<double> forward;
    std::vector<int32_t> last_arc;
  };

  // REQUIRES: as many scores as pieces, pieces distinct and not empty.
  PieceSegmenter(bool bpe, absl::Span<const std::string> pieces, absl::Span<const float> scores);

  // Index of the piece with this text, or -1.
  int32_t Find(absl::string_view text) const;

  // Appends the pieces of `word`, from the left. REQUIRES: below 2^31 bytes.
  void Segment(absl::string_view word, Scratch* scratch, std::vector<PieceSpan>* out) const;
  // bpe: with `dropout` in [0, 1]. REQUIRES: a bpe vocabulary.
  void SampleBpe(absl::string_view word, double dropout, UniformStream* random, Scratch* scratch,
                 std::vector<PieceSpan>* out) const;
  // unigram: with `alpha` > 0. REQUIRES: a unigram vocabulary.
  void SampleUnigram(absl::string_view word, double alpha, UniformStream* random, Scratch* scratch,
                     std::vector<PieceSpan>* out) const;

 private:
  // `random` null: nothing is dropped.
  void Join(absl::string_view word, double dropout, UniformStream* random, Scratch* scratch, std::vector<PieceSpan>* out) const;
  void Viterbi(absl::string_view word, Scratch* scratch, std::vector<PieceSpan>* out) const;
  // Calls f(end, piece, score) for each piece that starts at `begin`, shortest first, and for the character there as unknown
  // (piece -1) if it is no piece itself. Returns the end of the character.
  template <class F>
  int32_t ForPiecesAt(absl::string_view word, int32_t begin, const F& f) const;

  const bool bpe_;
  std::vector<float> scores_;
  float unknown_score_;  // of a character without a piece, as the library has it
  absl::flat_hash_map<std::string, int32_t> ids_;
  // unigram: a trie; node 0 is the root, an edge is node * 256 + byte.
  absl::flat_hash_map<uint64_t, int32_t> edges_;
  std::vector<int32_t> piece_at_;  // by node, -1: none ends there
};

}  // namespace weft

#endif  // WEFT_DATA_PIECE_SEGMENTER_H_
