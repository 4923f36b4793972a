#include "train/config.h"

#include "absl/strings/str_cat.h"
#include "data/tasks/task.h"
#include "train/config_sections.h"
#include "train/schedule.h"
#include "train/toml.h"

namespace weft {
namespace {

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

  Options optimizer = Write(config.optimizer);
  RemoveIf(!HasBetas(config.optimizer), "betas", &optimizer);
  RemoveIf(!HasEps(config.optimizer), "eps", &optimizer);
  RemoveIf(!HasMomentum(config.optimizer), "momentum", &optimizer);
  RemoveIf(config.optimizer.kind != "sgd", "nesterov", &optimizer);
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

absl::Span<const absl::string_view> MetricNames() {
  static constexpr absl::string_view kNames[] = {"loss", "accuracy", "exact_match", "per", "bleu",
                                                 "chrf", "chrf++",   "wer",         "cer", "bits_per_byte"};
  return kNames;
}

bool HasBetas(const OptimizerConfig& optimizer) { return HasEps(optimizer) || optimizer.kind == "lion"; }

bool HasEps(const OptimizerConfig& optimizer) {
  return optimizer.kind == "adamw" || optimizer.kind == "adam" || optimizer.kind == "muon";
}

bool HasMomentum(const OptimizerConfig& optimizer) { return optimizer.kind == "sgd" || optimizer.kind == "muon"; }

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
