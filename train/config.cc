#include "train/config.h"

#include "absl/strings/str_cat.h"
#include "data/tasks/task.h"
#include "train/beam.h"
#include "train/config_sections.h"
#include "train/schedule.h"
#include "train/toml.h"

namespace weft {
namespace {

// Above any real run, and far from where steps x tokens would overflow 64 bits.
constexpr double kMaxSteps = 1e12;
constexpr double kMaxCount = 2147483647;  // lengths and counts of one batch stay 32-bit safe

template <class Section>
Options Write(const Section& section) {
  OptionsWriter writer;
  Section copy = section;  // Fields visits by reference, for readers and writers alike
  copy.Fields(writer);
  return std::move(writer.options);
}

// Keys whose value 0 or "" means "not given", and which no file may give as such.
void RemoveIf(bool absent, absl::string_view key, Options* options) {
  if (absent) options->Remove(key);
}

OptionValue WriteTokenizer(const DataConfig& data, DataKind kind) {
  const auto write = [](const TokenizerOptions& options) {
    OptionsWriter writer;
    TokenizerOptions copy = options;
    TokenizerFields(writer, copy);
    const bool word = options.kind == "word", pieces = options.kind == "bpe" || options.kind == "unigram";
    const bool built = options.file.empty();
    RemoveIf(!built || (!word && (!pieces || options.byte_fallback)), "unknown", &writer.options);
    for (const char* key : {"min_count", "max_size"}) RemoveIf(!built || !word, key, &writer.options);
    RemoveIf(!built || options.joiner.empty(), "joiner", &writer.options);
    RemoveIf(!built || options.vocab_size == 0, "vocab_size", &writer.options);
    for (const char* key : {"byte_fallback", "character_coverage", "normalization"}) {
      RemoveIf(!built || !pieces, key, &writer.options);
    }
    RemoveIf(built, "file", &writer.options);
    if (options.sampling.on()) {
      OptionsWriter sampling;
      SamplingFields(sampling, copy.sampling);
      RemoveIf(copy.sampling.bpe_dropout == 0, "bpe_dropout", &sampling.options);
      RemoveIf(copy.sampling.alpha == 0, "alpha", &sampling.options);
      writer.options.Set("sampling", {sampling.options.entries(), ""});
    }
    return OptionValue{writer.options.entries(), ""};
  };
  const OptionValue source = write(data.source_tokenizer), target = write(data.target_tokenizer);
  if (kind == DataKind::kLabels) return source;
  if (kind == DataKind::kText) return target;
  Options both;
  if (!data.source_tokenizer.kind.empty()) both.Set("source", source);
  if (!data.target_tokenizer.kind.empty()) both.Set("target", target);
  if (PrintTomlValue(source) == PrintTomlValue(target)) both = Options(std::get<OptionValue::Table>(target.value));
  if (data.shared_tokenizer) both.Set("shared", {true, ""});
  return {both.entries(), ""};
}

OptionValue WriteColumns(const TableColumns& columns) {
  const auto write = [](const std::vector<int64_t>& numbers) {
    if (numbers.size() == 1) return OptionValue{numbers[0], ""};
    OptionValue::List list;
    for (const int64_t number : numbers) list.push_back({number, ""});
    return OptionValue{std::move(list), ""};
  };
  Options options({{"source", write(columns.source)}, {"target", {columns.target, ""}}});
  if (!columns.references.empty()) options.Set("references", write(columns.references));
  return {options.entries(), ""};
}

Options WriteData(const Config& config) {
  const DataConfig& data = config.data;
  const bool text = data.kind == "text", task = data.kind == "task";
  Options options = Write(data);
  RemoveIf(!task, "task", &options);
  RemoveIf(true, "dir", &options);
  RemoveIf(task || data.train.empty(), "train", &options);
  RemoveIf(task || data.valid.empty(), "valid", &options);
  RemoveIf(!text || data.valid_fraction == 0, "valid_fraction", &options);
  RemoveIf(!text, "window", &options);
  RemoveIf(task || data.cache.empty(), "cache", &options);
  RemoveIf(!task || data.train_size == 0, "train_size", &options);
  RemoveIf(!task || data.valid_size == 0, "valid_size", &options);
  RemoveIf(data.max_source_length == 0, "max_source_length", &options);
  RemoveIf(data.max_target_length == 0, "max_target_length", &options);
  if (data.columns.named) options.Set("columns", WriteColumns(data.columns));
  const bool has_tokenizer = !data.source_tokenizer.kind.empty() || !data.target_tokenizer.kind.empty();
  if (has_tokenizer) options.Set("tokenizer", WriteTokenizer(data, DataKindOf(config)));
  return options;
}

OptionValue WriteGroups(const std::vector<OptimizerGroup>& groups) {
  OptionValue::List list;
  for (const OptimizerGroup& group : groups) {
    Options options = Write(group);
    RemoveIf(group.frozen, "lr_scale", &options);
    RemoveIf(group.weight_decay < 0, "weight_decay", &options);
    list.push_back({options.entries(), ""});
  }
  return {std::move(list), ""};
}

}  // namespace

Options ConfigOptions(const Config& config) {
  Options root;
  const auto add = [&](absl::string_view name, const Options& section) { root.Set(name, {section.entries(), ""}); };
  add("run", Write(config.run));
  add("data", WriteData(config));
  add("model", config.model);

  Options train = Write(config.train);
  RemoveIf(config.train.steps == 0, "steps", &train);
  RemoveIf(config.train.epochs == 0, "epochs", &train);
  RemoveIf(config.train.batch_size == 0, "batch_size", &train);
  RemoveIf(config.train.batch_tokens == 0, "batch_tokens", &train);
  RemoveIf(config.train.minutes == 0, "minutes", &train);
  RemoveIf(config.train.on_nonfinite != "skip", "max_skips", &train);
  RemoveIf(config.train.init_from.empty(), "init_from", &train);
  RemoveIf(config.train.init_from.empty(), "init_partial", &train);
  RemoveIf(config.train.sort_pool == 0, "sort_pool", &train);
  RemoveIf(config.train.gradient_noise == 0, "gradient_noise", &train);
  add("train", train);

  const bool sgd = config.optimizer.kind == "sgd";
  Options optimizer = Write(config.optimizer);
  RemoveIf(!HasBetas(config.optimizer), "betas", &optimizer);
  RemoveIf(!HasEps(config.optimizer), "eps", &optimizer);
  RemoveIf(!sgd, "momentum", &optimizer);
  RemoveIf(!sgd, "nesterov", &optimizer);
  if (!config.optimizer.groups.empty()) optimizer.Set("groups", WriteGroups(config.optimizer.groups));
  add("optimizer", optimizer);

  const bool wsd = config.schedule.kind == "wsd", cycles = HasCycles(config.schedule);
  Options schedule = Write(config.schedule);
  RemoveIf(config.schedule.steps == 0, "steps", &schedule);
  RemoveIf(!HasHorizon(config.schedule) && !cycles, "min_lr", &schedule);
  RemoveIf(!wsd || config.schedule.decay_steps == 0, "decay_steps", &schedule);
  RemoveIf(!wsd, "shape", &schedule);
  RemoveIf(!cycles, "cycle_steps", &schedule);
  RemoveIf(!cycles, "cycle_multiplier", &schedule);
  add("schedule", schedule);

  Options valid = Write(config.valid);
  RemoveIf(config.valid.beam == 1, "beam", &valid);
  RemoveIf(config.valid.beam == 1, "length_penalty", &valid);
  RemoveIf(!config.valid.lowercase, "lowercase", &valid);
  const ValidConfig usual;
  if (config.valid.bleu_tokenize != usual.bleu_tokenize || config.valid.bleu_smooth != usual.bleu_smooth) {
    OptionsWriter bleu;
    ValidConfig copy = config.valid;
    copy.BleuFields(bleu);
    valid.Set("bleu", {bleu.options.entries(), ""});
  }
  add("valid", valid);
  Options checkpoint = Write(config.checkpoint);
  RemoveIf(config.checkpoint.minutes == 0, "minutes", &checkpoint);
  add("checkpoint", checkpoint);
  return root;
}

void RunConfig::Fields(FieldVisitor& v) {
  v.Visit("dir", dir, "folder of the run, relative to the working directory");
  v.Visit("seed", seed, {.min = 0}, "decides initial weights, data order and dropout");
}

void DataConfig::Fields(FieldVisitor& v) {
  v.Choice("kind", kind, {"pairs", "text", "labels", "task"}, "form of the data files, or a rule-made task");
  v.Visit("task", task, "name of the rule-made task");
  v.Visit("dir", dir, "folder of train and valid");
  v.OneOrMore("train", train, "file to train on; pairs may be in two, sources and targets, line for line");
  v.OneOrMore("valid", valid, "file to validate on; pairs may be in two or more: sources, targets, further references");
  v.Visit("valid_fraction", valid_fraction, {.min = 0, .max = 1, .max_open = true},
          "text: last part of train that is kept for validation");
  v.Visit("window", window, {.min = 1, .max = kMaxCount}, "text: tokens of one training example");
  v.Visit("cache", cache, "folder for the token ids of large files; default a folder of the user's caches");
  v.Visit("train_size", train_size, {.min = 1, .max = kMaxCount}, "task: examples to train on");
  v.Visit("valid_size", valid_size, {.min = 1, .max = kMaxCount}, "task: held-out examples");
  v.Visit("max_source_length", max_source_length, {.min = 1, .max = kMaxCount},
          "pairs: longest source to train on, in tokens; longer pairs are left out");
  v.Visit("max_target_length", max_target_length, {.min = 1, .max = kMaxCount},
          "pairs: longest target to train on, in tokens without <eos>; longer pairs are left out");
}

void TokenizerFields(FieldVisitor& v, TokenizerOptions& options) {
  v.Choice("kind", options.kind, {"char", "byte", "word", "bpe", "unigram"}, "what a token is");
  v.Visit("unknown", options.unknown,
          "word, and bpe and unigram with byte_fallback = false: read what is outside the vocabulary as <unk>");
  v.Visit("min_count", options.min_count, {.min = 1, .max = kMaxCount}, "word: drop rarer words");
  v.Visit("max_size", options.max_size, {.min = 0, .max = kMaxCount}, "word: keep the most frequent words, 0 = all");
  v.Visit("joiner", options.joiner, "word: a word that ends in this is printed joined to the next one, as \"@@\"");
  v.Visit("vocab_size", options.vocab_size, {.min = 1, .max = kMaxCount},
          "bpe, unigram: size of the vocabulary to learn, without special tokens");
  v.Visit("byte_fallback", options.byte_fallback, "bpe, unigram: 256 bytes stand for characters without a piece");
  v.Visit("character_coverage", options.character_coverage, {.min = 0, .max = 1, .min_open = true},
          "bpe, unigram: part of the characters, by frequency, that get a piece");
  v.Choice("normalization", options.normalization, {"none", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"},
           "bpe, unigram: what every text goes through first; only none gives it back exactly");
  v.Visit("file", options.file, "tokenizer file of this kind, by `weft tokenizer train`, to use in place of building one");
}

void SamplingFields(FieldVisitor& v, SubwordSampling& sampling) {
  v.Visit("bpe_dropout", sampling.bpe_dropout, {.min = 0, .max = 1, .min_open = true},
          "bpe: probability that a merge is left out at a step");
  v.Visit("alpha", sampling.alpha, {.min = 0, .max = 1e6, .min_open = true},
          "unigram: a segmentation is drawn with its probability to the power of alpha");
}

void TrainConfig::Fields(FieldVisitor& v) {
  v.Visit("steps", steps, {.min = 1, .max = kMaxSteps}, "updates to train; or epochs, or minutes");
  v.Visit("epochs", epochs, {.min = 1, .max = 100000}, "passes over the data to train; or steps");
  v.Visit("minutes", minutes, {.min = 0, .min_open = true}, "stop after so much time, also before steps or epochs are done");
  v.Visit("batch_size", batch_size, {.min = 1, .max = kMaxCount}, "sequences of a batch; or batch_tokens");
  v.Visit("batch_tokens", batch_tokens, {.min = 1, .max = kMaxCount}, "target tokens of a batch; or batch_size");
  v.Visit("accumulate", accumulate, {.min = 1, .max = 1 << 20}, "batches of one update");
  v.Visit("clip_norm", clip_norm, {.min = 0}, "largest global norm of the gradient, 0 = no clipping");
  v.Visit("label_smoothing", label_smoothing, {.min = 0, .max = 1, .max_open = true}, "weight of the uniform distribution");
  v.Visit("shards", shards, {.min = 0, .max = 4096}, "parts of a batch whose gradients are summed, 0 = automatic");
  v.Visit("shuffle", shuffle, "a new order of the examples in each epoch");
  v.Visit("sort_pool", sort_pool, {.min = 0, .max = kMaxCount},
          "batches of about equal lengths: so many examples at a time are sorted, then their batches shuffled; 0 = none");
  v.Visit("gradient_noise", gradient_noise, {.min = 0, .max = 1e6},
          "eta of noise of variance eta / (1 + t)^0.55 on the gradient before clipping, 0 = none");
  v.Visit("log_every", log_every, {.min = 1, .max = kMaxSteps}, "steps between lines of the log");
  v.Visit("ema_decay", ema_decay, {.min = 0, .max = 1, .max_open = true},
          "decay of the moving average of the weights, which is what is validated and decoded with; 0 = none");
  v.Choice("on_nonfinite", on_nonfinite, {"stop", "skip"}, "what a NaN or infinite loss or gradient does to the run");
  v.Visit("max_skips", max_skips, {.min = 1, .max = kMaxCount}, "skip: updates left out in a row before the run stops");
  v.Visit("init_from", init_from, "run or checkpoint to take initial weights and tokenizers from");
  v.Visit("init_partial", init_partial, "init_from: allow parameters that are missing there or have another shape");
  v.Visit("tensorboard", tensorboard, "write event files for TensorBoard into the run folder");
  v.Visit("histograms", histograms, {.min = 0, .max = kMaxSteps},
          "steps between histograms of weights for TensorBoard, 0 = none");
}

void OptimizerConfig::Fields(FieldVisitor& v) {
  v.Choice("kind", kind, {"adamw", "adam", "sgd", "lion", "adafactor"}, "the update rule");
  v.Visit("lr", lr, {.min = 0, .min_open = true}, "largest learning rate");
  v.Visit("betas", betas, {.min = 0, .max = 1, .max_open = true},
          "adam, adamw: decay of the two moments; lion: of the step's blend and of the moment, [0.9, 0.99] unless given");
  v.Visit("eps", eps, {.min = 0, .min_open = true}, "adam, adamw: added to the root of the second moment");
  v.Visit("weight_decay", weight_decay, {.min = 0},
          "added to the gradient for adam and sgd, decoupled for the others; 0 unless given for all but adamw");
  v.Choice("decay", decay, {"matrices", "all"}, "what decays: parameters of rank 2 and above, or all");
  v.Visit("momentum", momentum, {.min = 0, .max = 1, .max_open = true}, "sgd: decay of the velocity");
  v.Visit("nesterov", nesterov, "sgd: look ahead along the velocity");
}

void OptimizerGroup::Fields(FieldVisitor& v) {
  v.Visit("match", match, "names of parameters; * stands for any run of characters, ? for one");
  v.Visit("lr_scale", lr_scale, {.min = 0, .min_open = true}, "multiplies the learning rate of these parameters");
  v.Visit("weight_decay", weight_decay, {.min = 0}, "of all these parameters, instead of optimizer.weight_decay");
  v.Visit("frozen", frozen, "leave these parameters as they are");
}

void ScheduleConfig::Fields(FieldVisitor& v) {
  v.Choice("kind", kind, {"constant", "linear", "cosine", "inverse_sqrt", "wsd"},
           "course of the learning rate after the warm-up; wsd: stable, then a decay");
  v.Visit("warmup_steps", warmup_steps, {.min = 0, .max = kMaxSteps}, "updates in which the rate rises from 0");
  v.Visit("steps", steps, {.min = 1, .max = kMaxSteps}, "update at which min_lr is reached; default train.steps");
  v.Visit("min_lr", min_lr, {.min = 0}, "linear, cosine, wsd: the last learning rate");
  v.Visit("decay_steps", decay_steps, {.min = 1, .max = kMaxSteps}, "wsd: updates of the decay; default a fifth of steps");
  v.Choice("shape", shape, {"linear", "cosine", "sqrt"}, "wsd: course of the decay; sqrt: 1 - sqrt of the part that is done");
  v.Visit("cycle_steps", cycle_steps, {.min = 1, .max = kMaxSteps},
          "cosine: updates of the first cycle, each of which starts at lr again, without end; not with steps");
  v.Visit("cycle_multiplier", cycle_multiplier, {.min = 1, .max = 1000},
          "cosine: each cycle is so many times as long as the last");
}

void ValidConfig::Fields(FieldVisitor& v) {
  v.Visit("every", every, {.min = 0, .max = kMaxSteps},
          "steps between validations, 0 = after each epoch with train.epochs, and at the end");
  v.Visit("batch_size", batch_size, {.min = 1, .max = kMaxCount}, "sequences of a validation batch; changes no result");
  v.Visit("metrics", metrics,
          "loss, accuracy; text: bits_per_byte; pairs, by decoding: exact_match, per, bleu, chrf, chrf++, wer, cer");
  v.Choice("best", best, MetricNames(), "the metric that decides best and patience");
  v.Visit("patience", patience, {.min = 0, .max = kMaxCount}, "stop after so many validations without a new best, 0 = never");
  v.Visit("beam", beam, {.min = 1, .max = kMaxBeam}, "width of the beam that finds the answers for metrics, 1 = greedy");
  v.Visit("length_penalty", length_penalty, {.min = 0, .max = kMaxLengthPenalty},
          "with a beam: answers are ranked by log-probability / length^length_penalty");
  v.Visit("lowercase", lowercase, "bleu, chrf, chrf++, wer, cer: ignore case");
}

void ValidConfig::BleuFields(FieldVisitor& v) {
  v.Choice("tokenize", bleu_tokenize, {"13a", "intl", "char", "none"}, "what a word is to BLEU");
  v.Choice("smooth", bleu_smooth, {"exp", "floor", "add-k", "none"}, "n-gram orders without a match");
}

void CheckpointConfig::Fields(FieldVisitor& v) {
  v.Visit("every", every, {.min = 0, .max = kMaxSteps}, "steps between checkpoints, 0 = only at the end");
  v.Visit("minutes", minutes, {.min = 0, .min_open = true}, "the same by time");
  v.Visit("keep_last", keep_last, {.min = 1, .max = kMaxCount}, "newest checkpoints to keep");
  v.Visit("keep_best", keep_best, {.min = 0, .max = kMaxCount}, "best checkpoints to keep");
}

absl::Span<const absl::string_view> MetricNames() {
  static constexpr absl::string_view kNames[] = {"loss", "accuracy", "exact_match", "per", "bleu",
                                                 "chrf", "chrf++",   "wer",         "cer", "bits_per_byte"};
  return kNames;
}

bool HasBetas(const OptimizerConfig& optimizer) { return HasEps(optimizer) || optimizer.kind == "lion"; }

bool HasEps(const OptimizerConfig& optimizer) { return optimizer.kind == "adamw" || optimizer.kind == "adam"; }

std::string PrintConfig(const Config& config) { return PrintToml(ConfigOptions(config)); }

std::string CanonicalConfig(const Config& config) {
  Options root;
  // A tokenizer's file is a path too; what was in it is in the checkpoint.
  Config plain = config;
  plain.data.source_tokenizer.file.clear();
  plain.data.target_tokenizer.file.clear();
  const Options resolved = ConfigOptions(plain);
  for (const Option& section : resolved.entries()) {
    Options options(std::get<OptionValue::Table>(section.value.value));
    if (section.key == "run") options.Remove("dir");
    if (section.key == "data") {
      options.Remove("train");
      options.Remove("valid");
      options.Remove("cache");
    }
    if (section.key == "train") {
      for (const char* key : {"init_from", "init_partial"}) options.Remove(key);
    }
    root.Set(section.key, {options.entries(), ""});
  }
  return PrintToml(root);
}

DataKind DataKindOf(const Config& config) {
  if (config.data.kind == "text") return DataKind::kText;
  if (config.data.kind == "labels") return DataKind::kLabels;
  for (const TaskInfo& task : Tasks()) {
    if (config.data.kind == "task" && task.name == config.data.task) return task.kind;
  }
  return DataKind::kPairs;
}

DataOptions ToDataOptions(const Config& config) {
  const DataConfig& data = config.data;
  DataOptions options;
  options.kind = data.kind;
  options.task = data.task;
  const auto split = [](const std::vector<std::string>& files, std::string* first, std::vector<std::string>* targets) {
    if (files.empty()) return;
    *first = files[0];
    targets->assign(files.begin() + 1, files.end());
  };
  split(data.train, &options.train, &options.train_targets);
  split(data.valid, &options.valid, &options.valid_targets);
  options.columns = data.columns;
  options.max_source_length = data.max_source_length;
  options.max_target_length = data.max_target_length;
  options.valid_fraction = data.valid_fraction;
  options.window = data.window;
  options.source_tokenizer = data.source_tokenizer;
  options.target_tokenizer = data.target_tokenizer;
  options.shared_tokenizer = data.shared_tokenizer;
  options.storage.cache = data.cache;
  options.train_size = data.train_size;
  options.valid_size = data.valid_size;
  options.seed = static_cast<uint64_t>(config.run.seed);
  return options;
}

TextMetricOptions ToTextMetricOptions(const ValidConfig& valid) {
  // A loaded config has none but known names.
  return {.tokenizer = ParseScoreTokenizer(valid.bleu_tokenize).value(),
          .smoothing = ParseBleuSmoothing(valid.bleu_smooth).value(),
          .lowercase = valid.lowercase};
}

std::vector<std::pair<std::string, std::vector<FieldDescription>>> DescribeConfig() {
  std::vector<std::pair<std::string, std::vector<FieldDescription>>> sections;
  ForEachSection([&](absl::string_view name, auto section) {
    FieldDescriber describer;
    section.Fields(describer);
    if (name == "valid") {
      describer.fields.push_back({"bleu", "table", "{ tokenize = \"13a\", smooth = \"exp\" }",
                                  "tokenize: 13a, intl, char, none; smooth: exp, floor, add-k, none", kBleuDoc});
    }
    if (name == "data") {
      describer.fields.push_back({"columns", "table", "{ source = 1, target = 2 }",
                                  "{ source = [1, 3], target = 2, references = [4] }, the last optional", kColumnsDoc});
      describer.fields.push_back({"tokenizer", "table", "{ kind = \"char\" }",
                                  "{ kind = ... }, or { source = { kind = ... }, target = { kind = ... } }, with shared = true",
                                  kTokenizerDoc});
    }
    sections.emplace_back(std::string(name), std::move(describer.fields));
    if (name != "optimizer") return;
    FieldDescriber group;
    OptimizerGroup().Fields(group);
    for (FieldDescription& field : group.fields) {
      field.name = absl::StrCat("groups.", field.name);
      if (field.name == "groups.weight_decay") field.default_value = "optimizer.weight_decay";
      sections.back().second.push_back(std::move(field));
    }
  });
  return sections;
}

}  // namespace weft
