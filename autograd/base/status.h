// absl::Status helpers. Whatever a user, a file or a config can get wrong travels as a Status up to `main`, which prints it and
// picks the exit code by ExitCode(). Message style: "file:line:column: key: found X, allowed Y; what to do".
// Codes: InvalidArgument = usage or config (exit 2); everything else = run-time failure (exit 1); kDivergedCode = diverged
// (exit 3).
#ifndef WEFT_AUTOGRAD_BASE_STATUS_H_
#define WEFT_AUTOGRAD_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

// The code of a run that stopped since its loss, gradient or weights became non-finite.
inline constexpr absl::StatusCode kDivergedCode = absl::StatusCode::kOutOfRange;

// Exit code of a program that ends with `status`: 0 ok, 1 run-time failure, 2 usage or config, 3 diverged.
int ExitCode(const absl::Status& status);

}  // namespace weft

#define WEFT_RETURN_IF_ERROR(expression)         \
  do {                                           \
    ::absl::Status weft_status_ = (expression);  \
    if (!weft_status_.ok()) return weft_status_; \
  } while (false)

#define WEFT_CONCAT_(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_(a, b)
#define WEFT_ASSIGN_OR_RETURN_(temporary, target, expression) \
  auto temporary = (expression);                              \
  if (!temporary.ok()) return std::move(temporary).status();  \
  target = *std::move(temporary)
// WEFT_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
#define WEFT_ASSIGN_OR_RETURN(target, expression) \
  WEFT_ASSIGN_OR_RETURN_(WEFT_CONCAT(weft_statusor_, __LINE__), target, expression)

#endif  // WEFT_AUTOGRAD_BASE_STATUS_H_
