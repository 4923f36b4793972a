// Is the difference between two outputs more than chance? Paired bootstrap resampling (Koehn, "Statistical significance tests
// for machine translation evaluation", EMNLP 2004). Pure functions of the lines and the key, thread-safe.
#ifndef WEFT_DATA_SCORES_BOOTSTRAP_H_
#define WEFT_DATA_SCORES_BOOTSTRAP_H_

#include <cstdint>

#include "absl/types/span.h"
#include "autograd/base/random.h"
#include "data/scores/metric.h"

namespace weft {

inline constexpr int64_t kBootstrapResamples = 1000;
inline constexpr uint64_t kBootstrapSeed = 12345;

// Scores of the resamples: their mean, and the bounds between which the middle 95 % of them lie.
struct ScoreInterval {
  double mean = 0, low = 0, high = 0;
};

struct PairedBootstrap {
  ScoreInterval first, second;
  // How often a difference as large as the observed one comes up if there were none: the part of the resamples whose
  // |difference|, less the mean of those, is at least |observed|, both counts plus 1 (as sacreBLEU's --paired-bs, but an equal
  // difference counts, as Noreen 1989 has it, so that two equal outputs have 1).
  double p_value = 1;
};

// Draws as many lines as there are, with repetition, `resamples` times; the same ones for both outputs. REQUIRES: as many lines
// in both, at least one; resamples >= 1.
PairedBootstrap ComparePaired(const TextMetric& metric, absl::Span<const TextMetric::Numbers> first,
                              absl::Span<const TextMetric::Numbers> second, int64_t resamples = kBootstrapResamples,
                              RandomKey key = {kBootstrapSeed});

}  // namespace weft

#endif  // WEFT_DATA_SCORES_BOOTSTRAP_H_
