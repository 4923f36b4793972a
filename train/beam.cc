#include "train/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "autograd/base/check.h"

namespace weft {
namespace {

struct Candidate {
  double log_probability;
  int32_t token;
  int64_t parent;
};

bool Before(const Candidate& a, const Candidate& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.token != b.token ? a.token < b.token : a.parent < b.parent;
}

// The best `limit` of all candidates that were added. A heap whose top is the worst one kept.
class BestCandidates {
 public:
  explicit BestCandidates(int64_t limit) : limit_(static_cast<size_t>(limit)) {}

  void Add(const Candidate& candidate) {
    if (!(candidate.log_probability > -std::numeric_limits<double>::infinity())) return;
    if (kept_.size() == limit_) {
      if (!Before(candidate, kept_.front())) return;
      std::pop_heap(kept_.begin(), kept_.end(), Before);
      kept_.pop_back();
    }
    kept_.push_back(candidate);
    std::push_heap(kept_.begin(), kept_.end(), Before);
  }

  std::vector<Candidate> Sorted() && {
    std::sort_heap(kept_.begin(), kept_.end(), Before);
    return std::move(kept_);
  }

 private:
  const size_t limit_;
  std::vector<Candidate> kept_;
};

}  // namespace

BeamSearch::BeamSearch(const BeamOptions& options, int32_t eos) : options_(options), eos_(std::max(eos, -1)), running_(1) {
  WEFT_CHECK_GE(options.beam, 1) << "beam";
  WEFT_CHECK_GE(options.n_best, 1) << "n_best";
  WEFT_CHECK_GE(options.max_length, 1) << "max_length";
  WEFT_CHECK_LE(options.min_length, options.max_length) << "min_length";
  WEFT_CHECK(options.length_penalty >= 0 && std::isfinite(options.length_penalty)) << "length_penalty";
}

double BeamSearch::Score(double log_probability, int64_t length) const {
  return log_probability / std::pow(static_cast<double>(length), options_.length_penalty);
}

bool BeamSearch::done() const {
  if (running_.empty()) return true;
  if (static_cast<int64_t>(finished_.size()) < options_.n_best) return false;
  // A log-probability only falls, and a negative one weighs least over the longest length.
  return Score(running_[0].log_probability, options_.max_length + 1) <= finished_.back().score;
}

void BeamSearch::Finish(Hypothesis hypothesis) {
  const auto worse = [](double score, const Hypothesis& other) { return score > other.score; };
  finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), hypothesis.score, worse), std::move(hypothesis));
  if (static_cast<int64_t>(finished_.size()) > options_.n_best) finished_.pop_back();
}

void BeamSearch::Step(absl::Span<const double> log_probabilities) {
  WEFT_CHECK(!done()) << "a step of a beam search that is done";
  const auto vocabulary = static_cast<int64_t>(log_probabilities.size()) / width();
  WEFT_CHECK(vocabulary * width() == static_cast<int64_t>(log_probabilities.size()) && eos_ < vocabulary)
      << log_probabilities.size() << " log-probabilities for " << width() << " hypotheses, <eos> is " << eos_;
  const bool must_end = length_ == options_.max_length, may_end = length_ >= options_.min_length;
  BestCandidates best(options_.beam);
  for (int64_t i = 0; i < width(); ++i) {
    const double* row = log_probabilities.data() + i * vocabulary;
    const double before = running_[i].log_probability;
    const auto add = [&](int64_t first, int64_t end) {
      for (int64_t token = first; token < end; ++token) best.Add({before + row[token], static_cast<int32_t>(token), i});
    };
    if (!must_end) add(0, eos_);
    if (may_end && eos_ >= 0) add(eos_, eos_ + 1);
    if (!must_end) add(eos_ + 1, vocabulary);
  }
  std::vector<Running> next;
  for (const Candidate& candidate : std::move(best).Sorted()) {
    const std::vector<int32_t>& prefix = running_[candidate.parent].tokens;
    if (candidate.token == eos_) {
      Finish({prefix, candidate.log_probability, Score(candidate.log_probability, length_ + 1), true});
    } else {
      next.push_back({prefix, candidate.log_probability, candidate.parent});
      next.back().tokens.push_back(candidate.token);
    }
  }
  if (!must_end) {
    running_ = std::move(next);
    ++length_;
  }
  if (must_end || (eos_ < 0 && length_ == options_.max_length)) {
    if (finished_.empty()) {
      for (Running& cut : running_) {
        Finish({std::move(cut.tokens), cut.log_probability, Score(cut.log_probability, length_), false});
      }
    }
    running_.clear();
  }
}

std::vector<Hypothesis> SearchBeams(absl::FunctionRef<std::vector<double>(absl::Span<const int32_t> prefix)> scorer,
                                    int32_t eos, const BeamOptions& options) {
  BeamSearch search(options, eos);
  std::vector<double> rows;
  while (!search.done()) {
    rows.clear();
    for (int64_t i = 0; i < search.width(); ++i) {
      const std::vector<double> row = scorer(search.tokens(i));
      rows.insert(rows.end(), row.begin(), row.end());
    }
    search.Step(rows);
  }
  return search.best();
}

}  // namespace weft
