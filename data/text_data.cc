#include "data/text_data.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

absl::Status CheckWindow(int64_t window) {
  if (window >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("data.window: found ", window, ", allowed from 1 on (tokens)"));
}

}  // namespace

absl::Status EncodeText(const Tokenizer& tokenizer, TextPieces text, absl::string_view name,
                        absl::FunctionRef<absl::Status(absl::Span<const int32_t>)> take) {
  int64_t lines = 0;  // before the piece
  std::vector<int32_t> ids;
  return text([&](absl::string_view piece) -> absl::Status {
    ids.clear();
    const int64_t offset = tokenizer.TryEncode(piece, &ids);
    if (offset < 0) {
      lines += std::count(piece.begin(), piece.end(), '\n');
      return take(ids);
    }
    const int64_t line = lines + std::count(piece.begin(), piece.begin() + offset, '\n') + 1;
    const size_t newline = offset == 0 ? absl::string_view::npos : piece.rfind('\n', offset - 1);
    const int64_t line_start = newline == absl::string_view::npos ? 0 : static_cast<int64_t>(newline) + 1;
    const absl::Status status = tokenizer.UnknownSymbol(piece.substr(line_start), offset - line_start);
    return absl::Status(status.code(), absl::StrCat(name, ":", line, ": ", status.message()));
  });
}

absl::StatusOr<int64_t> ValidationStart(int64_t tokens, double fraction, absl::string_view name) {
  if (!(fraction >= 0.0 && fraction < 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.valid_fraction: found ", fraction, ", allowed from 0 up to, but without, 1"));
  }
  if (fraction == 0.0) return tokens;
  // 1 - fraction is off by up to 2^-53 (half a last place of each of its two roundings), so a product that should be whole may
  // be below by that part of N. A fraction of few digits is nowhere else so close below a whole number.
  const double part = 1.0 - fraction + std::ldexp(1.0, -52);
  const int64_t start = static_cast<int64_t>(std::floor(static_cast<double>(tokens) * part));
  if (tokens - start >= 2) return start;
  return absl::FailedPreconditionError(
      absl::StrCat(name, ": valid_fraction ", fraction, " of ", tokens, " tokens leaves ", tokens - start,
                   " for validation, at least 2 are needed; raise it, or set it to 0 for none"));
}

absl::StatusOr<ExampleSet> TrainingWindows(TokenStream stream, int64_t window, absl::string_view name) {
  WEFT_RETURN_IF_ERROR(CheckWindow(window));
  const int64_t tokens = stream.size();
  if (tokens > window) return ExampleSet::OverlappingWindows(std::move(stream), window);
  return absl::FailedPreconditionError(absl::StrCat(name, ": ", tokens, " training tokens are too few for a window of ", window,
                                                    ", which needs ", window, " + 1; use more text or a smaller window"));
}

absl::StatusOr<ExampleSet> ValidationWindows(TokenStream stream, int64_t window, absl::string_view name) {
  WEFT_RETURN_IF_ERROR(CheckWindow(window));
  if (stream.size() >= 2) return ExampleSet::ConsecutiveWindows(std::move(stream), window);
  return absl::FailedPreconditionError(
      absl::StrCat(name, ": ", stream.size(), " validation tokens, at least 2 are needed (one to read, one to predict)"));
}

}  // namespace weft
