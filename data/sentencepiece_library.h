// The SentencePiece library behind plain std types. Its header brings an absl::string_view of its own, which clashes with
// Abseil's, so it is included in sentencepiece_library.cc alone, and Abseil is not included here.
// Two things come from it: the training of pieces, and the rules of the named normalisations. Encoding is ours
// (data/piece_segmenter.h), and so is the use of the rules (data/normalizer.h).
// Trained models are read from its own output only, never from a file. Functions are thread-safe but for TrainPieces, which
// sets the library's log level.
#ifndef WEFT_DATA_SENTENCEPIECE_LIBRARY_H_
#define WEFT_DATA_SENTENCEPIECE_LIBRARY_H_

#include <cstdint>
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

// The rules of a named normalisation, nfkc, nfkc_cf, nmt_nfkc or nmt_nfkc_cf, in the library's own form (data/normalizer.h);
// "" for a name that it does not have.
std::string NormalizationRules(const std::string& name);

// References that tests compare with: the library's own segmentation by a model of TrainPieces, as texts with real spaces, and
// its own normalisation of texts without U+2581 and "<TAB>".
std::vector<std::string> EncodeByLibrary(const std::string& model, std::string_view text);
std::vector<std::string> NormalizeByLibrary(const std::string& name, const std::vector<std::string>& texts);

}  // namespace weft::library

#endif  // WEFT_DATA_SENTENCEPIECE_LIBRARY_H_
