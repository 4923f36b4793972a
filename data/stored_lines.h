// Pairs and labelled texts in the token cache: the ids of every line of a split as one long list, so that a split may exceed
// memory. A line is its source, an end mark, its target (or its class as one id) and an end mark; a blank line is a mark of its
// own. So lengths, line numbers and what was skipped follow from the list alone, and a list that is found in the cache saves
// encoding. The marks are the two ids behind the vocabulary. Pure functions apart from files; thread-safe.
#ifndef WEFT_DATA_STORED_LINES_H_
#define WEFT_DATA_STORED_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/token_cache.h"
#include "data/token_stream.h"

namespace weft {

// The ids of a line, both sides empty for a blank one.
struct LineIds {
  bool blank = false;
  std::vector<int32_t> source = {};
  std::vector<int32_t> target = {};  // of a label: {class}
};

// Where a loader may put lists, and the report that says on a line where they are.
struct LineCache {
  std::string folder;  // see CacheTokens
  std::string* report = nullptr;
};

// Calls take(line) for each line in order until it returns an error. May be called several times.
using LineIdsSource = absl::FunctionRef<absl::Status(absl::FunctionRef<absl::Status(const LineIds& line)> take)>;

// The list of `lines`, made or found in the cache. `key.vocabulary`: all ids are below it. Errors of CacheTokens.
absl::StatusOr<TokenStream> CacheLines(const LineCache& cache, TokenCacheKey key, LineIdsSource lines);

// Goes through the list: calls take(start, line) with the place of the line's source; that of its target is one behind the end
// of the source. Errors of reading; DataLoss for a list that is cut or has a side of more than 2^31 - 1 ids.
absl::Status ForEachStoredLine(const TokenStream& stream, int64_t vocabulary,
                               absl::FunctionRef<absl::Status(int64_t start, const LineIds& line)> take);

}  // namespace weft

#endif  // WEFT_DATA_STORED_LINES_H_
