// How rows of an activation belong to sequences. An activation is [N, D]: the N real tokens of all sequences laid end to end,
// no padding. Rows between sequences (spare capacity of a cache) are allowed where an op says so.
#ifndef WEFT_AUTOGRAD_SEQUENCES_H_
#define WEFT_AUTOGRAD_SEQUENCES_H_

#include <cstdint>

#include "absl/types/span.h"

namespace weft {

struct Sequence {
  int32_t start = 0;     // its first row
  int32_t length = 0;    // rows
  int32_t position = 0;  // of its first row in time: > 0 when earlier tokens are in a cache
  uint64_t id = 0;       // its number within the update, the same for any split into shards: keys dropout
};

// Non-owning. Ops that need it in backward copy it to their tape.
using Sequences = absl::Span<const Sequence>;

// One past the last row that any sequence touches.
inline int64_t RowsOf(Sequences sequences) {
  int64_t rows = 0;
  for (const Sequence& s : sequences) rows = s.start + s.length > rows ? s.start + s.length : rows;
  return rows;
}

}  // namespace weft

#endif  // WEFT_AUTOGRAD_SEQUENCES_H_
