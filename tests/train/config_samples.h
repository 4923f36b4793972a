// Texts of configs for the tests of their loading, and what to expect of them: a model of three keys stands for the layers.
#ifndef WEFT_TESTS_TRAIN_CONFIG_SAMPLES_H_
#define WEFT_TESTS_TRAIN_CONFIG_SAMPLES_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "train/config.h"

namespace weft {

inline constexpr char kGood[] = R"([run]
dir = "runs/g2p"
seed = 3

[data]
kind = "pairs"
dir = "g2p"
train = "train.tsv"
valid = "valid.tsv"
tokenizer = { source = { kind = "char" }, target = { kind = "word" } }

[model]
family = "encoder_decoder"
d_model = 64

[train]
steps = 2000
batch_tokens = 4096

[optimizer]
lr = 1e-3
betas = [0.9, 0.98]

[schedule]
kind = "cosine"
warmup_steps = 100

[valid]
every = 500
metrics = ["loss", "exact_match", "per"]
best = "per"
)";

inline constexpr char kText[] =
    "[data]\nkind = \"text\"\ntrain = \"a.txt\"\nwindow = 64\n[train]\nsteps = 10\nbatch_size = 4\n";

// A model of three keys, in place of the layers'.
inline std::vector<std::string> CheckModel(const Options& model, const Config&, Options* resolved) {
  std::string family = "encoder_decoder";
  int64_t d_model = 128;
  double dropout = 0;
  const auto fields = [&](FieldVisitor& v) {
    v.Choice("family", family, {"encoder_decoder", "decoder", "encoder"}, "");
    v.Visit("d_model", d_model, {.min = 1}, "");
    v.Visit("dropout", dropout, {.min = 0, .max = 1, .max_open = true}, "");
  };
  OptionsReader reader("model", model);
  fields(reader);
  OptionsWriter writer;
  fields(writer);
  *resolved = writer.options;
  return reader.Finish();
}

inline absl::StatusOr<Config> Load(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return ParseConfig({.text = text, .name = "x.toml", .folder = "/cfg"}, overrides, CheckModel);
}

inline Config LoadGood(const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<Config> config = Load(kGood, overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : Config();
}

inline Config LoadTextConfig(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = overrides;
  all.push_back("model.family=decoder");
  absl::StatusOr<Config> config = Load(kText, all);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : Config();
}

inline std::vector<std::string> ErrorsOf(const absl::StatusOr<Config>& config) {
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return absl::StrSplit(config.status().message(), '\n');
}

// The errors of kGood with one text replaced.
inline std::vector<std::string> ErrorsWith(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kGood, {{from, to}});
  EXPECT_NE(text, kGood) << from;
  return ErrorsOf(Load(text));
}

inline std::vector<std::string> ErrorsWithSet(const std::vector<std::string>& overrides) {
  return ErrorsOf(Load(kGood, overrides));
}

}  // namespace weft

#endif  // WEFT_TESTS_TRAIN_CONFIG_SAMPLES_H_
