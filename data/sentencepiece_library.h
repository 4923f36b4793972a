// The SentencePiece library behind plain std types. Its header brings an absl::string_view of its own, which clashes with
// Abseil's, so it is included in sentencepiece_library.cc alone, and Abseil is not included here.
// Two things come from it: the training of pieces, and the named normalisations. Encoding is ours (data/piece_segmenter.h).
// Trained models are read from its own output only, never from a file. Functions are thread-safe but for TrainPieces, which
// sets the library's log level.
#ifndef WEFT_DATA_SENTENCEPIECE_LIBRARY_H_
#define WEFT_DATA_SENTENCEPIECE_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::library {

// A row to train on and how often it occurs. No tab, newline, NUL, U+2581 or U+2585 in it, which the library gives a meaning;
// at most 65535 code points.
using WeightedText = std::pair<std::string, int64_t>;

struct TrainOptions {
  bool bpe = true;        // else unigram
  int64_t pieces = 0;     // how many to learn, all single characters included, >= 1
  double coverage = 1.0;  // part of the characters, by frequency, that get a piece
};

struct TrainResult {
  bool ok = false;
  std::string error = {};                                  // what the library says
  std::string model = {};                                  // its serialized model
  std::vector<std::pair<std::string, float>> pieces = {};  // text (with real spaces) and score, in order of id, no specials
};

// Learns pieces, in one thread, so that equal rows in equal order give equal pieces.
TrainResult TrainPieces(const std::vector<WeightedText>& rows, const TrainOptions& options);

// A named normalisation of the library: nfkc, nfkc_cf, nmt_nfkc, nmt_nfkc_cf. Thread-safe.
class Normalizer {
 public:
  // Null for a name that the library does not have.
  static std::unique_ptr<Normalizer> Make(const std::string& name);
  ~Normalizer();
  std::string operator()(std::string_view text) const;

 private:
  struct Impl;
  explicit Normalizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The library's own segmentation by a model of TrainPieces, as texts with real spaces. The reference that tests compare with.
std::vector<std::string> EncodeByLibrary(const std::string& model, std::string_view text);

}  // namespace weft::library

#endif  // WEFT_DATA_SENTENCEPIECE_LIBRARY_H_
