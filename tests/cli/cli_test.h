// Runs the built `weft` program as a user would: in a folder of its own, with captured output and exit code. The program's path
// is compiled in (WEFT_PROGRAM).
#ifndef WEFT_TESTS_CLI_CLI_TEST_H_
#define WEFT_TESTS_CLI_CLI_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/train/temporary_folder.h"

namespace weft {

struct Outcome {
  int code = -1;  // exit code; 128 + signal when a signal ended it
  std::string out, err;
};

struct RunSettings {
  std::string input = {};        // stdin
  std::string stdin_path = {};   // "": `input`
  std::string stdout_path = {};  // "": captured
  int64_t file_size_limit = -1;  // bytes a file may have, as on a full disk; -1: none
  bool obey_modes = false;       // the modes of files bind the program also where root runs it
};

// A tiny job that trains in a few milliseconds: dropout, shuffling and accumulation are on; an epoch is 8 updates.
inline constexpr char kReverse[] = R"([data]
kind = "task"
task = "reverse"
train_size = 60
valid_size = 20

[model]
family = "encoder_decoder"
d_model = 8
layers = 1
heads = 2
hidden = 16
dropout = 0.1

[train]
steps = 20
batch_size = 4
accumulate = 2
shards = 3
log_every = 5

[optimizer]
lr = 1e-2

[schedule]
kind = "cosine"
warmup_steps = 4
steps = 40

[valid]
every = 10
metrics = ["loss", "exact_match", "per"]

[checkpoint]
every = 10
)";

// Jobs on files data.txt, pairs.tsv and labels.tsv, which the test writes.
inline constexpr char kText[] = R"([data]
kind = "text"
train = "data.txt"
window = 8

[model]
family = "decoder"
d_model = 8
layers = 1
heads = 2
hidden = 16
positions = "learned"
max_positions = 8

[train]
steps = 4
batch_size = 2
)";

inline constexpr char kPairs[] = R"([data]
kind = "pairs"
train = "pairs.tsv"

[model]
family = "encoder_decoder"
d_model = 8
layers = 1
heads = 2
hidden = 16

[train]
steps = 4
batch_size = 2
)";

inline constexpr char kLabels[] = R"([data]
kind = "labels"
train = "labels.tsv"

[model]
family = "encoder"
d_model = 8
layers = 1
heads = 2
hidden = 16

[train]
steps = 4
batch_size = 2
)";

class CliTest : public testing::Test {
 protected:
  using Args = std::vector<std::string>;

  // Starts the program in the test's folder; Wait collects it.
  pid_t Start(const Args& args, const RunSettings& settings = {});
  Outcome Wait(pid_t pid);
  // Whether it has ended by itself; Wait collects it then too.
  bool HasEnded(pid_t pid);
  Outcome Weft(const Args& args, const RunSettings& settings = {}) { return Wait(Start(args, settings)); }
  // `weft train job.toml --quiet --set run.dir=RUN` and more.
  Outcome Train(const std::string& run, const Args& more = {});
  // Starts such a training of job.toml without end, validations and checkpoints, and waits until it has made updates.
  pid_t StartEndless(const std::string& run, const Args& more = {});

  void Write(const std::string& name, const std::string& bytes) { PutBytes(Path(name), bytes); }
  std::string Read(const std::string& name) { return BytesOf(Path(name)); }
  std::string Path(const std::string& name) { return folder_.Path(name); }
  bool Exists(const std::string& name);

 private:
  TemporaryFolder folder_;
  TemporaryFolder captured_;  // stdout and stderr, apart from the folder that tests look into
};

// Arguments that are `first` and then `more`.
inline std::vector<std::string> Join(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

MATCHER_P2(Fails, code, message, "") {
  *result_listener << "code " << arg.code << ", stdout \"" << arg.out << "\", stderr \"" << arg.err << "\"";
  return arg.code == code && testing::Value(arg.err, testing::HasSubstr(message));
}

MATCHER(Succeeds, "") {
  *result_listener << "code " << arg.code << ", stdout \"" << arg.out << "\", stderr \"" << arg.err << "\"";
  return arg.code == 0;
}

}  // namespace weft

#endif  // WEFT_TESTS_CLI_CLI_TEST_H_
