// A training job of a test: config text and data files in a folder of its own, loaded as the program would, trained with the
// library.
#ifndef WEFT_TESTS_CASES_JOB_H_
#define WEFT_TESTS_CASES_JOB_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/base/parallel.h"
#include "tests/train/temporary_folder.h"
#include "train/session.h"
#include "train/trainer.h"

namespace weft {

inline constexpr char kPairsJob[] = R"([data]
kind = "pairs"
train = "train.tsv"

[model]
family = "encoder_decoder"
d_model = 8
layers = 1
heads = 2
hidden = 16

[train]
steps = 1
batch_size = 2
shards = 1
log_every = 1

[optimizer]
kind = "sgd"
lr = 0.1
)";

// n pairs of letters whose target tokens, <eos> among them, are 2, 3, 4, 5, 2, ..
inline std::string UnequalPairs(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    const char letter = static_cast<char>('a' + i % 7);
    absl::StrAppend(&text, std::string(1 + i % 3, letter), "\t", std::string(1 + i % 4, static_cast<char>(letter + 1)), "\n");
  }
  return text;
}

class Job {
 public:
  using Set = std::vector<std::string>;

  Job(const std::string& toml, const std::string& train) {
    PutBytes(folder_.Path("job.toml"), toml);
    PutBytes(folder_.Path("train.tsv"), train);
  }

  void Write(const std::string& name, const std::string& bytes) const { PutBytes(folder_.Path(name), bytes); }
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  Config Load(Set set = {}, const std::string& run = "run") const {
    set.push_back("run.dir=" + Path(run));
    const auto config = LoadTrainingConfig(Path("job.toml"), set);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? *config : Config();
  }

  TrainResult Train(const Set& set, const std::string& run, RunDir::Mode mode = RunDir::Mode::kFresh, int threads = 1) const {
    absl::StatusOr<TrainResult> result;
    Workers(threads).Run([&] { result = weft::Train(Load(set, run), {.mode = mode, .stop = nullptr, .quiet = true}); });
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : TrainResult();
  }

 private:
  TemporaryFolder folder_;
};

// Data and fresh model of a config.
struct Fresh {
  explicit Fresh(const Config& config) {
    auto loaded = LoadData(ToDataOptions(config));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    data = *std::move(loaded);
    auto created = Session::Create(config, data.get());
    EXPECT_TRUE(created.ok()) << created.status();
    session = *std::move(created);
    session->parameters->Allocate(DType::kF32, static_cast<uint64_t>(config.run.seed));
  }
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Session> session;
};

inline std::unique_ptr<Session> LoadSession(const std::string& path) {
  auto session = Session::Load(path);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

inline std::vector<float> Values(const Parameters& parameters) {
  const Tensor slab = parameters.slab();
  return {slab.data<float>(), slab.data<float>() + slab.elements()};
}

}  // namespace weft

#endif  // WEFT_TESTS_CASES_JOB_H_
