#include "data/stored_lines.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

constexpr int64_t kBlock = int64_t{1} << 16;  // ids read or written at once

struct Marks {
  explicit Marks(int64_t vocabulary) : end(static_cast<int32_t>(vocabulary)), blank(end + 1) {}
  int32_t end, blank;
};

}  // namespace

absl::StatusOr<TokenStream> CacheLines(const LineCache& cache, TokenCacheKey key, LineIdsSource lines) {
  const Marks marks(key.vocabulary);
  key.vocabulary += 2;
  const auto encode = [&](absl::FunctionRef<absl::Status(absl::Span<const int32_t>)> take) -> absl::Status {
    std::vector<int32_t> ids;
    WEFT_RETURN_IF_ERROR(lines([&](const LineIds& line) -> absl::Status {
      if (line.blank) {
        ids.push_back(marks.blank);
      } else {
        for (const std::vector<int32_t>* side : {&line.source, &line.target}) {
          ids.insert(ids.end(), side->begin(), side->end());
          ids.push_back(marks.end);
        }
      }
      if (static_cast<int64_t>(ids.size()) < kBlock) return absl::OkStatus();
      const absl::Status status = take(ids);
      ids.clear();
      return status;
    }));
    return take(ids);
  };
  WEFT_ASSIGN_OR_RETURN(TokenStream stream, CacheTokens(cache.folder, key, encode, cache.report));
  absl::StrAppend(cache.report, "\n");
  return stream;
}

absl::Status ForEachStoredLine(const TokenStream& stream, int64_t vocabulary,
                               absl::FunctionRef<absl::Status(int64_t start, const LineIds& line)> take) {
  const Marks marks(vocabulary);
  const auto damaged = [&](int64_t at, absl::string_view what) {
    return absl::DataLossError(absl::StrCat(stream.name(), ": found ", what, " at token ", at));
  };
  std::vector<int32_t> block(std::min(kBlock, stream.size()));
  LineIds line;
  std::vector<int32_t>* side = &line.source;
  int64_t start = 0;
  for (int64_t first = 0; first < stream.size(); first += static_cast<int64_t>(block.size())) {
    block.resize(std::min<int64_t>(kBlock, stream.size() - first));
    WEFT_RETURN_IF_ERROR(stream.Read(first, absl::MakeSpan(block)));
    for (int64_t i = 0; i < static_cast<int64_t>(block.size()); ++i) {
      const int64_t at = first + i;
      line.blank = block[i] == marks.blank;
      if (!line.blank && block[i] != marks.end) {
        side->push_back(block[i]);
        if (side->size() > size_t{std::numeric_limits<int32_t>::max()}) return damaged(at, "a line too long to be an example");
        continue;
      }
      if (line.blank && at != start) return damaged(at, "a blank line within another");
      if (!line.blank && side == &line.source) {
        side = &line.target;
        continue;
      }
      WEFT_RETURN_IF_ERROR(take(start, line));
      line.source.clear();
      line.target.clear();
      side = &line.source;
      start = at + 1;
    }
  }
  return start == stream.size() ? absl::OkStatus() : damaged(start, "a line without end");
}

}  // namespace weft
