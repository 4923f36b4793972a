// A small training that can be stopped in the middle by kill -9, a full disk or a folder that turns read-only, and what must
// hold for its run folder afterwards.
#ifndef WEFT_TESTS_CRASH_CRASH_TEST_H_
#define WEFT_TESTS_CRASH_CRASH_TEST_H_

#include <string>

#include "tests/cli/cli_test.h"

namespace weft {

class CrashTest : public CliTest {
 protected:
  CrashTest() { Write("job.toml", kReverse); }

  // Arguments after "train job.toml --quiet" for a run that logs and saves after each update, and validates after
  // every fifth.
  static Args Steps(int64_t steps, const Args& more = {});
  pid_t StartTraining(const std::string& run, const Args& more, const RunSettings& settings = {});
  // Waits until the run's `last` names a checkpoint of at least this step, or `pid` has ended. The step, -1 without any.
  int64_t WaitForStep(pid_t pid, const std::string& run, int64_t step);

  // The step that the pointer `name` of a run names; -1 without one.
  int64_t Pointer(const std::string& run, const std::string& name);
  // Every checkpoint of the run loads, the pointers that are there name one of them, and nothing half written is left, except
  // `temporaries` where that is true.
  void ExpectSound(const std::string& run, bool temporaries);
  // Both runs end at `step` with the same bytes, and the same best.
  void ExpectSameEnd(const std::string& run, const std::string& other, int64_t step);
  std::string CheckpointBytes(const std::string& run, int64_t step);
};

}  // namespace weft

#endif  // WEFT_TESTS_CRASH_CRASH_TEST_H_
