#include "data/sentencepiece_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/normalizer.h"
#include "data/text_file.h"
#include "data/utf8.h"

namespace weft {
namespace {

constexpr int32_t kBytes = 256;
constexpr size_t kMaxPieceBytes = 1024;  // the library's are of 16 characters at most
constexpr size_t kWholeWordBytes = 64;   // longer words are not remembered within a text
constexpr size_t kMaxRemembered = size_t{1} << 18;

absl::StatusOr<std::unique_ptr<Normalizer>> MakeNormalizer(const std::string& name) {
  if (name == "none") return std::unique_ptr<Normalizer>();
  std::unique_ptr<Normalizer> normalizer;
  for (const absl::string_view known : kNormalizations) {
    if (name == known) normalizer = Normalizer::Make(name);
  }
  if (normalizer != nullptr) return normalizer;
  return absl::InvalidArgumentError(
      absl::StrCat("normalization: found ", Quote(name), ", allowed none, nfkc, nfkc_cf, nmt_nfkc or nmt_nfkc_cf"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> SentencePieceTokenizer::Build(const TokenizerOptions& options, TextPieces texts,
                                                                         std::string* notes) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Normalizer> normalizer, MakeNormalizer(options.normalization));
  PieceTraining training;
  WEFT_RETURN_IF_ERROR(texts([&](absl::string_view text) -> absl::Status {
    WEFT_RETURN_IF_ERROR(ValidateUtf8(text, "training text"));
    for (const absl::string_view line : Lines(text)) {
      training.AddLine(normalizer == nullptr ? line : absl::string_view((*normalizer)(line)));
    }
    return absl::OkStatus();
  }));
  // Ids that are there without learning.
  std::vector<std::string> extra;
  if (!options.byte_fallback) {
    extra = training.ReservedSeen();
    extra.insert(extra.begin(), "\n");
  }
  const int64_t implied = options.byte_fallback ? kBytes : static_cast<int64_t>(extra.size());
  if (options.vocab_size <= implied) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocab_size: found ", options.vocab_size, ", allowed above ", implied,
                     options.byte_fallback ? ", which are bytes (byte_fallback)" : ", which are the newline and its like"));
  }
  WEFT_ASSIGN_OR_RETURN(LearnedPieces learned, training.Learn(options.kind == "bpe", options.vocab_size - implied,
                                                              options.character_coverage, implied));
  // They are words of their own, so their score decides nothing.
  const float lowest = *std::min_element(learned.scores.begin(), learned.scores.end());
  for (std::string& symbol : extra) {
    learned.pieces.push_back(std::move(symbol));
    learned.scores.push_back(lowest);
  }
  if (notes != nullptr && !training.Report().empty()) absl::StrAppend(notes, options.kind, ": ", training.Report(), "\n");
  SerializedTokenizer serialized;
  serialized.kind = options.kind;
  serialized.symbols = std::move(learned.pieces);
  serialized.scores = std::move(learned.scores);
  serialized.specials = options.specials;
  serialized.unknown = options.unknown;
  serialized.byte_fallback = options.byte_fallback;
  serialized.normalization = options.normalization;
  return Tokenizer::FromSerialized(serialized);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> SentencePieceTokenizer::FromSerialized(const SerializedTokenizer& serialized) {
  const auto broken = [&](auto... what) { return absl::DataLossError(absl::StrCat(serialized.kind, " tokenizer: ", what...)); };
  const std::vector<std::string>& pieces = serialized.symbols;
  if (pieces.empty()) return broken("has no pieces");
  if (serialized.scores.size() != pieces.size())
    return broken(serialized.scores.size(), " scores of ", pieces.size(), " pieces");
  if (serialized.byte_fallback && serialized.unknown) return broken("has an <unk>, but with bytes nothing is unknown");
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string& piece = pieces[i];
    const bool newline = piece == "\n" && !serialized.byte_fallback;
    if (piece.empty() || piece.size() > kMaxPieceBytes || FindInvalidUtf8(piece) >= 0 ||
        piece.find(' ', 1) != std::string::npos || (!newline && piece.find('\n') != std::string::npos)) {
      return broken("piece ", i, " is no part of a word: ", Quote(piece));
    }
    if (!std::isfinite(serialized.scores[i])) return broken("the score of piece ", i, " is ", serialized.scores[i]);
  }
  auto normalizer = MakeNormalizer(serialized.normalization);
  if (!normalizer.ok()) return broken(normalizer.status().message());
  return std::unique_ptr<Tokenizer>(new SentencePieceTokenizer(serialized, *std::move(normalizer)));
}

SentencePieceTokenizer::SentencePieceTokenizer(const SerializedTokenizer& serialized, std::unique_ptr<Normalizer> normalizer)
    : Tokenizer(static_cast<int64_t>(serialized.symbols.size()) + (serialized.byte_fallback ? kBytes : 0), serialized.specials,
                serialized.unknown),
      bpe_(serialized.kind == "bpe"),
      bytes_(serialized.byte_fallback ? kBytes : 0),
      normalization_(serialized.normalization),
      pieces_(serialized.symbols),
      scores_(serialized.scores),
      segmenter_(bpe_, pieces_, scores_),
      normalizer_(std::move(normalizer)) {
  newline_ = bytes_ > 0 ? '\n' : segmenter_.Find("\n");
  if (newline_ < 0) newline_ = unk();
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

template <class Cut>
int64_t SentencePieceTokenizer::EncodeLine(absl::string_view line, const Cut& cut, std::vector<PieceSpan>* spans,
                                           std::vector<int32_t>* ids) const {
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = WordEnd(line, begin);
    spans->clear();
    cut(line.substr(begin, end - begin), spans);
    for (const PieceSpan& span : *spans) {
      if (span.piece >= 0) {
        ids->push_back(bytes_ + span.piece);
      } else if (bytes_ > 0) {
        for (char c : line.substr(begin, span.bytes)) ids->push_back(static_cast<unsigned char>(c));
      } else if (unk() >= 0) {
        ids->push_back(unk());
      } else {
        return static_cast<int64_t>(begin);
      }
      begin += span.bytes;
    }
  }
  return -1;
}

template <class Cut>
int64_t SentencePieceTokenizer::EncodeLines(absl::string_view text, const Cut& cut, std::vector<int32_t>* ids) const {
  std::vector<PieceSpan> spans;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const absl::string_view line = text.substr(begin, end - begin);
    int64_t unknown;
    if (normalizer_ == nullptr) {
      unknown = EncodeLine(line, cut, &spans, ids);
    } else {
      const std::string normalized = (*normalizer_)(line);
      unknown = EncodeLine(normalized, cut, &spans, ids);
      if (unknown >= 0) unknown = UnknownBeforeNormalization(line);
    }
    if (unknown >= 0) return static_cast<int64_t>(begin) + unknown;
    if (end < text.size()) {
      if (newline_ < 0) return static_cast<int64_t>(end);
      ids->push_back(newline_);
    }
    begin = end + 1;
  }
  return -1;
}

int64_t SentencePieceTokenizer::UnknownBeforeNormalization(absl::string_view line) const {
  PieceSegmenter::Scratch scratch;
  std::vector<PieceSpan> spans;
  for (size_t begin = 0; begin < line.size();) {
    char32_t code_point;
    const size_t bytes = std::max<int64_t>(1, DecodeUtf8(line, static_cast<int64_t>(begin), &code_point));
    spans.clear();
    segmenter_.Segment((*normalizer_)(line.substr(begin, bytes)), &scratch, &spans);
    if (std::any_of(spans.begin(), spans.end(), [](const PieceSpan& span) { return span.piece < 0; })) {
      return static_cast<int64_t>(begin);
    }
    begin += bytes;
  }
  return 0;  // only several characters together give the unknown one
}

int64_t SentencePieceTokenizer::TryEncode(absl::string_view text, std::vector<int32_t>* ids) const {
  PieceSegmenter::Scratch scratch;
  // A text has few words that often come again: their pieces are kept for the rest of it. Without a normalisation the words are
  // views of `text`; with one, of a line that is gone, so none are kept.
  absl::flat_hash_map<absl::string_view, std::pair<int32_t, int32_t>> known;  // word -> its place in `kept`
  std::vector<PieceSpan> kept;
  const bool remember = normalizer_ == nullptr && text.size() > 4 * kWholeWordBytes;
  return EncodeLines(
      text,
      [&](absl::string_view word, std::vector<PieceSpan>* spans) {
        if (!remember || word.size() > kWholeWordBytes) return segmenter_.Segment(word, &scratch, spans);
        const auto found = known.find(word);
        if (found != known.end()) {
          const auto first = kept.begin() + found->second.first;
          spans->assign(first, first + found->second.second);
          return;
        }
        segmenter_.Segment(word, &scratch, spans);
        if (known.size() >= kMaxRemembered) return;
        known.emplace(word, std::make_pair(static_cast<int32_t>(kept.size()), static_cast<int32_t>(spans->size())));
        kept.insert(kept.end(), spans->begin(), spans->end());
      },
      ids);
}

int64_t SentencePieceTokenizer::TrySample(absl::string_view text, const SubwordSampling& sampling, RandomKey key,
                                          std::vector<int32_t>* ids) const {
  PieceSegmenter::Scratch scratch;
  UniformStream random(key);
  return EncodeLines(
      text,
      [&](absl::string_view word, std::vector<PieceSpan>* spans) {
        if (bpe_ && sampling.bpe_dropout > 0) {
          segmenter_.SampleBpe(word, sampling.bpe_dropout, &random, &scratch, spans);
        } else if (!bpe_ && sampling.alpha > 0) {
          segmenter_.SampleUnigram(word, sampling.alpha, &random, &scratch, spans);
        } else {
          segmenter_.Segment(word, &scratch, spans);
        }
      },
      ids);
}

std::string SentencePieceTokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  for (int32_t id : ids) {
    WEFT_CHECK(0 <= id && id < size()) << "id " << id << " of a vocabulary of " << size();
    if (id != bos() && id != eos()) text += TokenText(id);
  }
  return text;
}

std::string SentencePieceTokenizer::Symbol(int32_t id) const {
  return id < bytes_ ? std::string(1, static_cast<char>(id)) : pieces_[id - bytes_];
}

void SentencePieceTokenizer::AddSettings(SerializedTokenizer* serialized) const {
  serialized->scores = scores_;
  serialized->byte_fallback = bytes_ > 0;
  serialized->normalization = normalization_;
}

}  // namespace weft
