// Beam search over one answer, apart from any model: it sees log-probabilities of next tokens and nothing else. At each step
// the `beam` best continuations of all running hypotheses are kept; those that end with <eos> are set aside, the others run on.
// So a beam of 1 is greedy decoding, and a beam as wide as there are prefixes is full enumeration. The score of a hypothesis is
// its log-probability / length^length_penalty, where the length counts its tokens and its <eos>: with a penalty of 1 that is
// the mean log-probability of a token, with 0 the log-probability itself. (Wu et al. 2016, section 7, have ((5 + length) /
// 6)^alpha, which is near to 1 for short answers; the plain power is what the exponent says.) Ties go to the lower token id,
// then to the earlier hypothesis; among scores, to the one that ended first. Not thread-safe.
#ifndef WEFT_TRAIN_BEAM_H_
#define WEFT_TRAIN_BEAM_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace weft {

// What the command line and configs allow.
inline constexpr int64_t kMaxBeam = 1000;
inline constexpr double kMaxLengthPenalty = 10;

struct BeamOptions {
  int64_t beam = 1;           // continuations kept at each step; REQUIRES: >= 1
  double length_penalty = 1;  // REQUIRES: >= 0, finite
  int64_t min_length = 0;     // tokens, <eos> not counted: it is barred before; REQUIRES: <= max_length
  int64_t max_length = 0;     // tokens, <eos> not counted: then a hypothesis can only end; REQUIRES: >= 1
  int64_t n_best = 1;         // hypotheses to return, fewer if there are no more; REQUIRES: >= 1
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without <eos>
  double log_probability = 0;   // the sum over the tokens, and <eos> if it ended
  double score = 0;
  bool ended = true;  // by <eos>; else cut at max_length, which happens only where no hypothesis could end
};

class BeamSearch {
 public:
  // `eos` < 0: nothing ends before max_length, and hypotheses are cut there.
  BeamSearch(const BeamOptions& options, int32_t eos);

  // Nothing runs any more, or what runs cannot enter the n best: its score, at the most forgiving length, is not above theirs.
  bool done() const;
  // The running hypotheses, best first; before the first step one that is empty. All have the same length.
  int64_t width() const { return static_cast<int64_t>(running_.size()); }
  absl::Span<const int32_t> tokens(int64_t i) const { return running_[i].tokens; }
  // Which of the hypotheses that ran before the last step running hypothesis i continues.
  int64_t parent(int64_t i) const { return running_[i].parent; }

  // Goes one token on, given [width(), vocabulary] natural log-probabilities, each <= 0. -infinity (and NaN) is never chosen.
  // REQUIRES: not done().
  void Step(absl::Span<const double> log_probabilities);

  // The best hypotheses, best first, all different: those that ended, and only if none could, those cut. REQUIRES: done().
  const std::vector<Hypothesis>& best() const { return finished_; }

 private:
  struct Running {
    std::vector<int32_t> tokens;
    double log_probability = 0;
    int64_t parent = 0;
  };
  double Score(double log_probability, int64_t length) const;
  void Finish(Hypothesis hypothesis);

  const BeamOptions options_;
  const int32_t eos_;
  int64_t length_ = 0;  // of what runs
  std::vector<Running> running_;
  std::vector<Hypothesis> finished_;  // the best so far, best first, at most n_best
};

// The same with a plain function from a prefix to the log-probabilities of the next token.
std::vector<Hypothesis> SearchBeams(absl::FunctionRef<std::vector<double>(absl::Span<const int32_t> prefix)> scorer,
                                    int32_t eos, const BeamOptions& options);

}  // namespace weft

#endif  // WEFT_TRAIN_BEAM_H_
