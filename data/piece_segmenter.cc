#include "data/piece_segmenter.h"

#include <algorithm>
#include <cmath>

#include "autograd/base/check.h"
#include "data/utf8.h"

namespace weft {
namespace {

constexpr float kUnknownPenalty = 10.0f;  // below the worst score, SentencePiece's kUnkPenalty

// Bytes of the character at `begin`; an invalid byte is one of its own.
int32_t CharacterBytes(absl::string_view word, int32_t begin) {
  char32_t code_point;
  return static_cast<int32_t>(std::max<int64_t>(1, DecodeUtf8(word, begin, &code_point)));
}

// Heap order: the best join on top, of equal ones the leftmost.
bool Worse(const PieceSegmenter::Scratch::Join& a, const PieceSegmenter::Scratch::Join& b) {
  return a.score != b.score ? a.score < b.score : a.left > b.left;
}

}  // namespace

PieceSegmenter::PieceSegmenter(bool bpe, absl::Span<const std::string> pieces, absl::Span<const float> scores)
    : bpe_(bpe), scores_(scores.begin(), scores.end()) {
  WEFT_CHECK_EQ(pieces.size(), scores.size());
  unknown_score_ = (scores_.empty() ? 0.0f : *std::min_element(scores_.begin(), scores_.end())) - kUnknownPenalty;
  for (size_t i = 0; i < pieces.size(); ++i) ids_.emplace(pieces[i], static_cast<int32_t>(i));
  if (bpe) return;
  piece_at_.push_back(-1);
  for (size_t i = 0; i < pieces.size(); ++i) {
    int32_t node = 0;
    for (char c : pieces[i]) {
      const uint64_t edge = static_cast<uint64_t>(node) * 256 + static_cast<unsigned char>(c);
      const auto [place, added] = edges_.try_emplace(edge, static_cast<int32_t>(piece_at_.size()));
      if (added) piece_at_.push_back(-1);
      node = place->second;
    }
    piece_at_[node] = static_cast<int32_t>(i);
  }
}

int32_t PieceSegmenter::Find(absl::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? -1 : found->second;
}

void PieceSegmenter::Segment(absl::string_view word, Scratch* scratch, std::vector<PieceSpan>* out) const {
  if (bpe_) {
    Join(word, 0, nullptr, scratch, out);
  } else {
    Viterbi(word, scratch, out);
  }
}

void PieceSegmenter::SampleBpe(absl::string_view word, double dropout, UniformStream* random, Scratch* scratch,
                               std::vector<PieceSpan>* out) const {
  WEFT_CHECK(bpe_ && 0 <= dropout && dropout <= 1) << "dropout " << dropout;
  Join(word, dropout, random, scratch, out);
}

void PieceSegmenter::Join(absl::string_view word, double dropout, UniformStream* random, Scratch* scratch,
                          std::vector<PieceSpan>* out) const {
  std::vector<Scratch::Symbol>& symbols = scratch->symbols;
  std::vector<Scratch::Join>& heap = scratch->heap;
  std::vector<Scratch::Join>& dropped = scratch->dropped;
  symbols.clear();
  heap.clear();
  dropped.clear();
  const int32_t size = static_cast<int32_t>(word.size());
  for (int32_t begin = 0; begin < size;) {
    const int32_t bytes = CharacterBytes(word, begin), index = static_cast<int32_t>(symbols.size());
    symbols.push_back({index - 1, begin + bytes < size ? index + 1 : -1, begin, bytes});
    begin += bytes;
  }
  const auto push = [&](const Scratch::Join& join) {
    heap.push_back(join);
    std::push_heap(heap.begin(), heap.end(), Worse);
  };
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const int32_t bytes = symbols[left].bytes + symbols[right].bytes;
    const int32_t piece = Find(word.substr(symbols[left].begin, bytes));
    if (piece >= 0) push({scores_[piece], left, right, bytes});
  };
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i) consider(i, i + 1);
  while (!heap.empty()) {
    const Scratch::Join join = heap.front();
    std::pop_heap(heap.begin(), heap.end(), Worse);
    heap.pop_back();
    Scratch::Symbol& left = symbols[join.left];
    Scratch::Symbol& right = symbols[join.right];
    // One of the two was joined to another since: the pair is gone.
    if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != join.bytes) continue;
    if (random != nullptr && random->Next() < dropout) {
      dropped.push_back(join);
      continue;
    }
    left.bytes = join.bytes;
    left.next = right.next;
    if (right.next >= 0) symbols[right.next].previous = join.left;
    right.bytes = 0;
    // The next step draws anew for every candidate.
    for (const Scratch::Join& again : dropped) push(again);
    dropped.clear();
    consider(left.previous, join.left);
    consider(join.left, left.next);
  }
  for (int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = symbols[i].next) {
    out->push_back({Find(word.substr(symbols[i].begin, symbols[i].bytes)), symbols[i].bytes});
  }
}

template <class F>
int32_t PieceSegmenter::ForPiecesAt(absl::string_view word, int32_t begin, const F& f) const {
  const int32_t size = static_cast<int32_t>(word.size());
  const int32_t character_end = begin + CharacterBytes(word, begin);
  bool has_character = false;
  int32_t node = 0;
  for (int32_t at = begin; at < size; ++at) {
    const auto edge = edges_.find(static_cast<uint64_t>(node) * 256 + static_cast<unsigned char>(word[at]));
    if (edge == edges_.end()) break;
    node = edge->second;
    const int32_t piece = piece_at_[node];
    if (piece < 0) continue;
    has_character |= at + 1 == character_end;
    f(at + 1, piece, scores_[piece]);
  }
  if (!has_character) f(character_end, -1, unknown_score_);
  return character_end;
}

void PieceSegmenter::Viterbi(absl::string_view word, Scratch* scratch, std::vector<PieceSpan>* out) const {
  const int32_t size = static_cast<int32_t>(word.size());
  std::vector<Scratch::Best>& best = scratch->best;
  best.assign(size + 1, {0, -1, -1});
  for (int32_t begin = 0; begin < size;) {
    const float here = best[begin].score;
    const int32_t at = begin;
    begin = ForPiecesAt(word, at, [&](int32_t end, int32_t piece, float score) {
      Scratch::Best& target = best[end];
      // As the library rounds: the sum as a double is compared with a float, then kept as a float.
      const double candidate = static_cast<double>(score) + here;
      if (target.begin < 0 || candidate > target.score) target = {static_cast<float>(candidate), at, piece};
    });
  }
  const size_t first = out->size();
  for (int32_t end = size; end > 0; end = best[end].begin) out->push_back({best[end].piece, end - best[end].begin});
  std::reverse(out->begin() + static_cast<ptrdiff_t>(first), out->end());
}

void PieceSegmenter::SampleUnigram(absl::string_view word, double alpha, UniformStream* random, Scratch* scratch,
                                   std::vector<PieceSpan>* out) const {
  WEFT_CHECK(!bpe_ && alpha > 0) << "alpha " << alpha;
  const int32_t size = static_cast<int32_t>(word.size());
  std::vector<double>& forward = scratch->forward;  // log of the summed weights of all ways to a place
  std::vector<int32_t>& last_arc = scratch->last_arc;
  std::vector<Scratch::Arc>& arcs = scratch->arcs;
  forward.assign(size + 1, -INFINITY);
  last_arc.assign(size + 1, -1);
  arcs.clear();
  forward[0] = 0;
  for (int32_t begin = 0; begin < size;) {
    const int32_t at = begin;
    begin = ForPiecesAt(word, at, [&](int32_t end, int32_t piece, float score) {
      const double weight = forward[at] + alpha * score;
      arcs.push_back({at, piece, last_arc[end], weight});
      last_arc[end] = static_cast<int32_t>(arcs.size()) - 1;
      const double high = std::max(forward[end], weight), low = std::min(forward[end], weight);
      forward[end] = high + std::log1p(std::exp(low - high));
    });
  }
  const size_t first = out->size();
  for (int32_t end = size; end > 0;) {
    double left = random->Next();
    int32_t chosen = last_arc[end];
    for (int32_t arc = chosen; arc >= 0; arc = arcs[arc].next) {
      chosen = arc;  // the last one also takes what rounding leaves over
      left -= std::exp(arcs[arc].weight - forward[end]);
      if (left < 0) break;
    }
    out->push_back({arcs[chosen].piece, end - arcs[chosen].begin});
    end = arcs[chosen].begin;
  }
  std::reverse(out->begin() + static_cast<ptrdiff_t>(first), out->end());
}

}  // namespace weft
