// A training job as plain structs: what a config file says, checked and completed. Each section is a struct with one Fields
// list, which the loader, the printer and DescribeConfig share. Values of one section, or of several, that contradict each
// other are refused with both keys named. Command line wins over file wins over default, also between keys that exclude each
// other:
// `--set train.steps=10` replaces a file's train.epochs.
// Paths: data.dir in a file is relative to the file's folder; data.cache and train.init_from too; those of data.train and
// data.valid to data.dir if given, else to the file's folder; all of them, given by --set, to the working directory; run.dir
// always to the working directory. "~" is not expanded. Config is a value: copy it freely; the functions are thread-safe.
#ifndef WEFT_TRAIN_CONFIG_H_
#define WEFT_TRAIN_CONFIG_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/base/fields.h"
#include "data/examples.h"
#include "data/load.h"
#include "data/scores/metric.h"
#include "data/tokenizer.h"

namespace weft {

struct RunConfig {
  std::string dir;  // absolute; default runs/NAME for a config file NAME.toml
  int64_t seed = 1;
  void Fields(FieldVisitor& v);
};

struct DataConfig {
  std::string kind = "pairs";  // required in a file
  std::string task;
  std::string dir;                 // only while loading: empty in a loaded Config, whose `train` and `valid` are absolute
  std::vector<std::string> train;  // one file, or two of pairs: sources and targets
  std::vector<std::string> valid;  // the same, or none; further files are further references
  double valid_fraction = 0;
  int64_t window = 0;
  std::string cache;  // absolute, or "" for the default places
  int64_t train_size = 0;
  int64_t valid_size = 0;
  int64_t max_source_length = 0;  // pairs to train on, in tokens without <eos>; 0: no limit
  int64_t max_target_length = 0;
  void Fields(FieldVisitor& v);  // all but `columns` and `tokenizer`

  // columns = { source = [1, 3], target = 2, references = 4 }, the last optional.
  TableColumns columns;

  // tokenizer = { kind = "char" } or { source = { kind = "char" }, target = { kind = "word" } }, with shared = true for one
  // vocabulary of both sides. A text uses `target`, labels `source`. Kind "" in a task: the task's own suggestion.
  TokenizerOptions source_tokenizer;
  TokenizerOptions target_tokenizer;
  bool shared_tokenizer = false;
};

struct TrainConfig {
  // At most one of steps and epochs is positive, none of them only with minutes; exactly one of batch_size and batch_tokens is.
  // The others are 0.
  int64_t steps = 0;
  int64_t epochs = 0;
  double minutes = 0;  // of one call of `weft train`, whichever comes first; 0: no limit
  int64_t batch_size = 0;
  int64_t batch_tokens = 0;
  int64_t accumulate = 1;
  double clip_norm = 1.0;  // 0: no clipping
  double label_smoothing = 0.0;
  int64_t shards =
      0;  // 0: chosen by a rule on work and parameters; the trainer writes its choice here before it prints the config
  bool shuffle = true;
  int64_t sort_pool = 0;        // examples of BatcherOptions::sort_pool, 0: none
  double gradient_noise = 0.0;  // eta of AddGradientNoise, 0: none
  int64_t log_every = 10;
  double ema_decay = 0;  // of the moving average of the weights, which is then what is validated; 0: none
  std::string on_nonfinite = "stop";
  int64_t max_skips = 10;  // in a row, with on_nonfinite = "skip"
  std::string init_from;   // absolute; a run or a checkpoint to take the initial weights and the tokenizers from
  bool init_partial = false;
  bool tensorboard = true;
  int64_t histograms = 0;  // 0: none
  void Fields(FieldVisitor& v);
};

// One table of [[optimizer.groups]].
struct OptimizerGroup {
  std::string match = {};  // of parameter names; required
  double lr_scale = 1.0;
  double weight_decay = -1.0;  // -1: not given, so that of [optimizer]
  bool frozen = false;
  std::string where = {};  // place in the file; for messages only
  void Fields(FieldVisitor& v);
};

struct OptimizerConfig {
  std::string kind = "adamw";
  double lr = 1e-3;                          // 0 is refused: nothing would train
  std::vector<double> betas = {0.9, 0.999};  // lion: 0.9, 0.99 unless given
  double eps = 1e-8;
  double weight_decay = 0.01;      // 0 unless given for all but adamw and muon
  std::string decay = "matrices";  // what weight_decay applies to: parameters of rank >= 2, or "all"
  double momentum = 0.0;           // muon: the loader gives it 0.95 unless given
  bool nesterov = false;
  std::vector<OptimizerGroup> groups;  // of several that fit a parameter, the last holds
  void Fields(FieldVisitor& v);        // all but `groups`
};

struct ScheduleConfig {
  std::string kind = "constant";
  int64_t warmup_steps = 0;
  int64_t steps = 0;  // of kinds with a horizon: 0 only while unknown, with train.epochs; the trainer fills it in
  double min_lr = 0.0;
  int64_t decay_steps = 0;       // wsd: 0 = a fifth of steps
  std::string shape = "linear";  // wsd: linear | cosine | sqrt
  int64_t cycle_steps = 0;       // cosine: 0 = one period until steps; else the horizon means nothing
  int64_t cycle_multiplier = 1;  // cosine
  void Fields(FieldVisitor& v);
};

struct ValidConfig {
  int64_t every = 0;  // 0: after each epoch if train.epochs is given, and at the end of the run
  int64_t batch_size = 64;
  std::vector<std::string> metrics = {"loss"};
  std::string best = "loss";
  int64_t patience = 0;  // 0: never stop early
  int64_t beam = 1;      // of the answers that metrics compare; 1: greedy
  double length_penalty = 1;
  bool lowercase = false;        // of metrics on text
  void Fields(FieldVisitor& v);  // all but `bleu`

  // bleu = { tokenize = "13a", smooth = "exp" }
  std::string bleu_tokenize = "13a";
  std::string bleu_smooth = "exp";
  void BleuFields(FieldVisitor& v);
};

struct CheckpointConfig {
  int64_t every = 0;   // 0: only at the end of the run
  double minutes = 0;  // 0: by steps only
  int64_t keep_last = 3;
  int64_t keep_best = 1;
  void Fields(FieldVisitor& v);
};

struct Config {
  RunConfig run;
  DataConfig data;
  Options model;  // as resolved by the ModelCheck
  TrainConfig train;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  ValidConfig valid;
  CheckpointConfig checkpoint;
};

// Reads the table [model], whose values keep their places: returns its errors (OptionsReader::Finish), and fills `resolved`
// with every key it knows, defaults included, as far as it can also when there are errors. `config` has all other sections as
// read, for rules like data.window <= model.max_positions.
using ModelCheck = absl::FunctionRef<std::vector<std::string>(const Options& model, const Config& config, Options* resolved)>;

// Reads and checks the file at `path` with the overrides (each "KEY=VALUE", see ApplyOverride) on top; the last one of a key
// wins. Opens no data. InvalidArgument with all errors, one a line in the order of the file: "file:line:column: key: found X,
// allowed Y".
absl::StatusOr<Config> LoadConfig(const std::string& path, absl::Span<const std::string> overrides, ModelCheck check_model);

// The same from text that is in memory.
struct ConfigText {
  std::string text;
  std::string name;              // stands for the file in messages
  std::string folder = ".";      // what paths in the text are relative to
  bool needs_data_files = true;  // false: data.train may be missing, as in a checkpoint's config
};
absl::StatusOr<Config> ParseConfig(const ConfigText& source, absl::Span<const std::string> overrides, ModelCheck check_model);

// The resolved config as TOML: loads to the same Config, from any folder. Keys that mean nothing under the chosen kinds are
// left out.
std::string PrintConfig(const Config& config);
// What decides the numbers of a run: the resolved config without run.dir and data paths. For checkpoints.
std::string CanonicalConfig(const Config& config);

// What the data is by its form: pairs, text or labels, also for a task. REQUIRES: a loaded config.
DataKind DataKindOf(const Config& config);
DataOptions ToDataOptions(const Config& config);
// How metrics on text count.
TextMetricOptions ToTextMetricOptions(const ValidConfig& valid);

// Each section but [model] with its keys, for help texts.
std::vector<std::pair<std::string, std::vector<FieldDescription>>> DescribeConfig();

}  // namespace weft

#endif  // WEFT_TRAIN_CONFIG_H_
