// Counts calls of operator new in this test program (allocation_count.cc replaces it).
#ifndef WEFT_TESTS_ALLOCATION_COUNT_H_
#define WEFT_TESTS_ALLOCATION_COUNT_H_

#include <cstdint>

namespace weft {

// Calls since the program started, on any thread.
int64_t AllocationCount();

}  // namespace weft

#endif  // WEFT_TESTS_ALLOCATION_COUNT_H_
