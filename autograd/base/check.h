// Assertions for broken invariants of the C++ API: a failed check is a bug in the calling code, never something that a file,
// a config or a command line can cause (those return absl::Status). A failure prints file:line, the condition, both values and
// the message to stderr, then aborts. Checks stay on in every build type. Thread-safe.
#ifndef WEFT_AUTOGRAD_BASE_CHECK_H_
#define WEFT_AUTOGRAD_BASE_CHECK_H_

#include <sstream>

namespace weft::internal {

// Collects the message of one failed check; its destructor prints it and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

}  // namespace weft::internal

// WEFT_CHECK(rows > 0) << "softmax: " << shape;
#define WEFT_CHECK(condition)               \
  if (__builtin_expect(!!(condition), 1)) { \
  } else                                    \
    ::weft::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#define WEFT_CHECK_OP(a, op, b) WEFT_CHECK((a)op(b)) << "(" << (a) << " against " << (b) << ") "
#define WEFT_CHECK_EQ(a, b) WEFT_CHECK_OP(a, ==, b)
#define WEFT_CHECK_NE(a, b) WEFT_CHECK_OP(a, !=, b)
#define WEFT_CHECK_LT(a, b) WEFT_CHECK_OP(a, <, b)
#define WEFT_CHECK_LE(a, b) WEFT_CHECK_OP(a, <=, b)
#define WEFT_CHECK_GT(a, b) WEFT_CHECK_OP(a, >, b)
#define WEFT_CHECK_GE(a, b) WEFT_CHECK_OP(a, >=, b)

#endif  // WEFT_AUTOGRAD_BASE_CHECK_H_
