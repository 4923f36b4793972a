// Loading: text -> Options -> sections -> rules between keys -> paths -> errors in the order of the file.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/status.h"
#include "data/tasks/task.h"
#include "train/config.h"
#include "train/config_sections.h"
#include "train/schedule.h"
#include "train/toml.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// An absolute form of `path`, tidied where that still names the same file ("a/../b" may not, if a is a symbolic link).
std::string Absolute(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path tidy = absolute.lexically_normal();
  const fs::path real = fs::weakly_canonical(absolute, error);
  return (!error && real == fs::weakly_canonical(tidy, error) ? tidy : absolute).string();
}

class Loader {
 public:
  Loader(const ConfigText& source, const Options& root) : source_(source), root_options_(root), root_("", root) {}

  absl::StatusOr<Config> Load(ModelCheck check_model) {
    Section run("run", &root_, source_.name), data("data", &root_, source_.name), model("model", &root_, source_.name),
        train("train", &root_, source_.name), optimizer("optimizer", &root_, source_.name),
        schedule("schedule", &root_, source_.name), valid("valid", &root_, source_.name),
        checkpoint("checkpoint", &root_, source_.name);
    config_.run.Fields(run.reader());
    config_.data.Fields(data.reader());
    config_.train.Fields(train.reader());
    config_.optimizer.Fields(optimizer.reader());
    config_.schedule.Fields(schedule.reader());
    config_.valid.Fields(valid.reader());
    config_.checkpoint.Fields(checkpoint.reader());

    CheckRun(run);
    CheckData(data);
    CheckTrain(train);
    CheckOptimizer(optimizer);
    CheckSchedule(schedule, train);
    CheckValid(valid);

    Add(check_model(model.options(), config_, &config_.model));
    CheckFamily(model);
    for (Section* section : {&run, &data, &train, &optimizer, &schedule, &valid, &checkpoint}) Add(section->reader().Finish());
    Add(root_.Finish());
    HintAtOtherSections(root_options_, config_.model, &errors_);
    SortErrors(source_.name, &errors_);
    WEFT_RETURN_IF_ERROR(ErrorsToStatus(errors_));
    return std::move(config_);
  }

 private:
  void Add(std::vector<std::string> errors) {
    for (std::string& error : errors) errors_.push_back(std::move(error));
  }

  // `path` below `base`, absolute. The error is recorded, and the result empty, for a text that can be no path or could not be
  // printed into the resolved config.
  template <class Reader>
  std::string Resolve(Reader& section, absl::string_view key, const std::string& path, const fs::path& base) {
    const std::string resolved = path.find('\0') == std::string::npos ? Absolute(base / path) : "";
    if (resolved.empty()) {
      section.Error(key, "has a character of code 0, which no path can have");
    } else if (!ParseToml(absl::StrCat("v = ", PrintTomlValue({resolved, ""})), "").ok()) {
      section.Error(key, "lies in a folder whose name is not valid UTF-8");
    }
    return resolved;
  }

  void CheckRun(Section& run) {
    if (run.Has("dir") && config_.run.dir.empty()) return run.Error("dir", "found \"\" (a string), allowed a folder");
    if (!run.Has("dir")) config_.run.dir = absl::StrCat("runs/", fs::path(source_.name).stem().string());
    config_.run.dir = Resolve(run, "dir", config_.run.dir, "");
  }

  void CheckData(Section& data) {
    DataConfig& c = config_.data;
    const OptionValue* tokenizer = data.reader().Take("tokenizer");
    const OptionValue* columns = data.reader().Take("columns");
    if (!data.Has("kind")) data.Error("kind", "missing; allowed \"pairs\", \"text\", \"labels\", \"task\"");
    kind_known_ = data.Was("kind", c.kind);
    if (!kind_known_) return;  // the rules below would speak of a kind that nobody chose
    const bool text = c.kind == "text", task = c.kind == "task";
    if (task) {
      for (const char* key : {"dir", "train", "valid"}) data.Meaningless(key, "kind", c.kind, "data in files");
      std::vector<std::string> names;
      for (const TaskInfo& info : Tasks()) names.emplace_back(info.name);
      if (c.task.empty()) {
        data.Error("task", absl::StrCat("missing; allowed ", absl::StrJoin(names, ", ")));
      } else if (std::find(names.begin(), names.end(), c.task) == names.end()) {
        const std::string nearest = Nearest(c.task, names);
        data.Error("task", absl::StrCat("found \"", c.task, "\", allowed ", absl::StrJoin(names, ", "),
                                        nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
      }
      kind_known_ = std::find(names.begin(), names.end(), c.task) != names.end();
    } else {
      for (const char* key : {"task", "train_size", "valid_size"}) data.Meaningless(key, "kind", c.kind, "\"task\"");
    }
    if (text) {
      if (!data.Has("window")) data.Error("window", "missing; data.kind = \"text\" needs the tokens of one training example");
      if (!c.valid.empty() && c.valid_fraction > 0) {
        if (data.FromCommandLine("valid") == data.FromCommandLine("valid_fraction")) {
          data.Error("valid_fraction", "excludes data.valid; allowed one of the two");
        } else if (data.FromCommandLine("valid")) {
          c.valid_fraction = 0;
        } else {
          c.valid.clear();
        }
      }
    } else {
      for (const char* key : {"window", "valid_fraction", "cache"}) data.Meaningless(key, "kind", c.kind, "\"text\"");
    }
    data_folder_ = fs::path(source_.folder);
    if (!task) ResolveDataPaths(data);
    if (kind_known_) CheckPairKeys(data);
    if (columns != nullptr) ReadColumns(data, *columns);
    if (kind_known_) ReadTokenizer(data, tokenizer);
  }

  void ResolveDataPaths(Section& data) {
    DataConfig& c = config_.data;
    fs::path base = fs::path(source_.folder);
    if (!c.dir.empty()) base = Resolve(data, "dir", c.dir, data.FromCommandLine("dir") ? fs::path() : base);
    c.dir.clear();
    data_folder_ = base;
    if (c.train.empty() && (source_.needs_data_files || data.Has("train")))
      data.Error("train", "missing; give the file to train on");
    if (!c.cache.empty()) c.cache = Resolve(data, "cache", c.cache, data.FromCommandLine("cache") ? "" : source_.folder);
    ResolveFiles(data, "train", base, &c.train);
    ResolveFiles(data, "valid", base, &c.valid);
    const auto fit = [&](const char* key, size_t files, size_t most, absl::string_view allowed) {
      if (files <= most) return;
      data.Error(key, absl::StrCat("found ", files, " files, allowed ", allowed, " with data.kind = \"", c.kind, "\""));
    };
    const bool pairs = c.kind == "pairs";
    fit("train", c.train.size(), pairs ? 2 : 1, pairs ? "one, or two (sources and targets)" : "one");
    if (!pairs) fit("valid", c.valid.size(), 1, "one");
  }

  void ResolveFiles(Section& data, const char* key, const fs::path& base, std::vector<std::string>* files) {
    for (std::string& file : *files) {
      if (file.empty()) return data.Error(key, "found \"\" in a list of files, allowed their names");
      file = Resolve(data, key, file, data.FromCommandLine(key) ? fs::path() : base);
      if (file.empty()) return files->clear();  // said already
    }
  }

  // Keys that pairs alone have.
  void CheckPairKeys(Section& data) {
    if (DataKindOf(config_) == DataKind::kPairs) return;
    for (const char* key : {"max_source_length", "max_target_length"}) {
      data.Meaningless(key, "kind", config_.data.kind, "pairs");
    }
  }

  void ReadColumns(Section& data, const OptionValue& value) {
    DataConfig& c = config_.data;
    if (c.kind != "pairs" && c.kind != "labels") {
      data.Meaningless("columns", "kind", c.kind, "\"pairs\" and \"labels\"");
    } else if (c.train.size() > 1 || c.valid.size() > 1) {
      data.Error("columns", "names columns of tab-separated files, but data.train or data.valid has a file for each side");
    } else {
      Add(weft::ReadColumns(value, c.kind, &c.columns));
    }
  }

  void ReadTokenizer(Section& data, const OptionValue* value) {
    DataConfig& c = config_.data;
    // A task suggests what suits it; files default to characters.
    if (c.kind == "task") c.source_tokenizer.kind = c.target_tokenizer.kind = "";
    if (value == nullptr) return;
    if (!std::holds_alternative<OptionValue::Table>(value->value)) {
      return data.Error("tokenizer", absl::StrCat("found ", value->Describe(), ", allowed a table like { kind = \"char\" }"));
    }
    const Options table = TableOf(value, "");
    OptionsReader reader("data.tokenizer", table);
    const bool pairs = DataKindOf(config_) == DataKind::kPairs;
    const OptionValue* source = reader.Take("source");
    const OptionValue* target = reader.Take("target");
    if (source != nullptr || target != nullptr) {
      if (!pairs) reader.Error(source != nullptr ? "source" : "target", "only pairs have two sides; allowed { kind = ... }");
      if (source != nullptr) ReadTokenizerSide(reader, "source", *source, &c.source_tokenizer);
      if (target != nullptr) ReadTokenizerSide(reader, "target", *target, &c.target_tokenizer);
    } else {
      ReadTokenizerKeys(reader, "data.tokenizer", &c.target_tokenizer);
      c.source_tokenizer = c.target_tokenizer;
    }
    if (pairs) {
      reader.Visit("shared", c.shared_tokenizer, "");
      if (c.shared_tokenizer && source != nullptr) {
        reader.Error("shared", "one vocabulary for both sides is described once: allowed { kind = ..., shared = true }");
      }
    } else if (reader.Take("shared") != nullptr) {
      reader.Error("shared", absl::StrCat("has no meaning with data.kind = \"", c.kind, "\", only with pairs"));
    }
    Add(reader.Finish());
  }

  void ReadTokenizerSide(OptionsReader& reader, absl::string_view side, const OptionValue& value, TokenizerOptions* options) {
    if (!std::holds_alternative<OptionValue::Table>(value.value)) {
      return reader.Error(side, absl::StrCat("found ", value.Describe(), ", allowed a table like { kind = \"char\" }"));
    }
    const Options table = TableOf(&value, "");
    const std::string name = absl::StrCat("data.tokenizer.", side);
    OptionsReader side_reader(name, table);
    ReadTokenizerKeys(side_reader, name, options);
    Add(side_reader.Finish());
  }

  void ReadTokenizerKeys(OptionsReader& reader, absl::string_view name, TokenizerOptions* options) {
    if (!reader.Has("kind")) {
      reader.Error("kind", "missing; allowed \"char\", \"byte\", \"word\", \"bpe\", \"unigram\"");
    }
    TokenizerFields(reader, *options);
    ReadSampling(reader, name, options);
    const bool word = options->kind == "word", pieces = options->kind == "bpe" || options->kind == "unigram";
    const auto meaningless = [&](const char* key, absl::string_view meant_for) {
      if (!reader.Has(key)) return;
      reader.Error(key, absl::StrCat("has no meaning with ", name, ".kind = \"", options->kind, "\", only with ", meant_for));
    };
    if (!word && !pieces) meaningless("unknown", "\"word\", \"bpe\" and \"unigram\"");
    for (const char* key : {"min_count", "max_size", "joiner"}) {
      if (!word) meaningless(key, "\"word\"");
    }
    for (const char* key : {"vocab_size", "byte_fallback", "character_coverage", "normalization"}) {
      if (!pieces) meaningless(key, "\"bpe\" and \"unigram\"");
    }
    if (reader.Has("file")) return ReadTokenizerFile(reader, name, options);
    if (pieces) {
      // A checkpoint's config, which needs no data, does not name the file that its tokenizer came from.
      if (options->vocab_size == 0 && !reader.Has("vocab_size") && source_.needs_data_files) {
        reader.Error("vocab_size", absl::StrCat("missing; ", name, ".kind = \"", options->kind, "\" needs it, or a file"));
      }
      if (options->unknown && options->byte_fallback) {
        reader.Error("unknown", "needs byte_fallback = false; with bytes nothing is unknown");
      }
      if (options->character_coverage < 1 && !options->byte_fallback && !options->unknown) {
        reader.Error("character_coverage", "below 1 needs byte_fallback = true or unknown = true for what it leaves out");
      }
    }
    if (options->joiner.find_first_of(" \t\n") != std::string::npos) {
      reader.Error("joiner", "has a space, tab or newline, which no word has");
    }
    if (!word || options->unknown) return;
    if (options->min_count > 1) reader.Error("min_count", absl::StrCat("above 1 needs ", name, ".unknown = true"));
    if (options->max_size > 0) reader.Error("max_size", absl::StrCat("above 0 needs ", name, ".unknown = true"));
  }

  void ReadSampling(OptionsReader& reader, absl::string_view name, TokenizerOptions* options) {
    const OptionValue* value = reader.Take("sampling");
    if (value == nullptr) return;
    const bool bpe = options->kind == "bpe", unigram = options->kind == "unigram";
    const absl::string_view key = bpe ? "bpe_dropout" : "alpha";
    if (!bpe && !unigram) {
      return reader.Error("sampling", absl::StrCat("has no meaning with ", name, ".kind = \"", options->kind,
                                                   "\", only with \"bpe\" and \"unigram\""));
    }
    if (config_.data.kind == "text") {
      return reader.Error("sampling", "has no meaning with data.kind = \"text\", only with pairs and labels");
    }
    if (!std::holds_alternative<OptionValue::Table>(value->value)) {
      return reader.Error("sampling", absl::StrCat("found ", value->Describe(), ", allowed a table like { ", key, " = 0.1 }"));
    }
    const Options table = TableOf(value, "");
    OptionsReader sampling(absl::StrCat(name, ".sampling"), table);
    SamplingFields(sampling, options->sampling);
    const absl::string_view other = bpe ? "alpha" : "bpe_dropout";
    if (sampling.Has(other)) {
      sampling.Error(other, absl::StrCat("has no meaning with ", name, ".kind = \"", options->kind, "\"; allowed ", key));
    } else if (!sampling.Has(key)) {
      reader.Error("sampling", absl::StrCat("found an empty table, allowed { ", key, " = 0.1 }"));
    }
    Add(sampling.Finish());
  }

  // The file says all but its kind, which is named so that another one is refused.
  void ReadTokenizerFile(OptionsReader& reader, absl::string_view name, TokenizerOptions* options) {
    for (const char* key :
         {"unknown", "min_count", "max_size", "joiner", "vocab_size", "byte_fallback", "character_coverage", "normalization"}) {
      if (reader.Has(key)) reader.Error(key, absl::StrCat("excludes ", name, ".file, which says it already"));
    }
    if (options->file.empty()) return reader.Error("file", "found \"\" (a string), allowed the path of a tokenizer file");
    options->file = Resolve(reader, "file", options->file, reader.FromCommandLine("file") ? fs::path() : data_folder_);
  }

  void CheckTrain(Section& train) {
    TrainConfig& c = config_.train;
    if (!train.Has("minutes") || train.Has("steps") || train.Has("epochs")) {
      train.ExactlyOne("steps", &c.steps, "epochs", &c.epochs);
    }
    if (c.on_nonfinite != "skip") train.Meaningless("max_skips", "on_nonfinite", c.on_nonfinite, "\"skip\"");
    if (c.init_partial && c.init_from.empty()) train.Error("init_partial", "has no meaning without train.init_from");
    if (!c.init_from.empty()) {
      c.init_from = Resolve(train, "init_from", c.init_from, train.FromCommandLine("init_from") ? "" : source_.folder);
    }
    train.ExactlyOne("batch_size", &c.batch_size, "batch_tokens", &c.batch_tokens);
    if (c.sort_pool > 0 && !c.shuffle)
      train.Error("sort_pool", "has no meaning with train.shuffle = false: nothing is reordered");
    if (c.sort_pool > 0 && config_.data.kind == "text") {
      train.Error("sort_pool", "has no meaning with data.kind = \"text\", whose windows are equally long");
    }
  }

  void CheckOptimizer(Section& optimizer) {
    OptimizerConfig& c = config_.optimizer;
    if (optimizer.Has("kind") && !optimizer.Was("kind", c.kind)) {
      // Refused already; which keys go with it is anyone's guess.
    } else {
      if (!HasBetas(c)) optimizer.Meaningless("betas", "kind", c.kind, "\"adamw\", \"adam\" and \"lion\"");
      if (!HasEps(c)) optimizer.Meaningless("eps", "kind", c.kind, "\"adamw\" and \"adam\"");
      for (const char* key : {"momentum", "nesterov"}) {
        if (c.kind != "sgd") optimizer.Meaningless(key, "kind", c.kind, "\"sgd\"");
      }
    }
    if (c.kind != "adamw" && !optimizer.Has("weight_decay")) c.weight_decay = 0;
    if (c.kind == "lion" && !optimizer.Has("betas")) c.betas = {0.9, 0.99};
    if (c.betas.size() != 2) optimizer.Error("betas", absl::StrCat("found ", c.betas.size(), " values, allowed 2"));
    if (c.kind == "sgd" && c.nesterov && c.momentum == 0) {
      optimizer.Error("nesterov", "true needs optimizer.momentum > 0, found 0");
    }
    if (const OptionValue* groups = optimizer.reader().Take("groups")) ReadGroups(optimizer, *groups);
  }

  void ReadGroups(Section& optimizer, const OptionValue& value) {
    constexpr char kAllowed[] = ", allowed tables: [[optimizer.groups]] with match = \"PATTERN\"";
    const auto* list = std::get_if<OptionValue::List>(&value.value);
    if (list == nullptr) return optimizer.Error("groups", absl::StrCat("found ", value.Describe(), kAllowed));
    for (const OptionValue& entry : *list) {
      if (!std::holds_alternative<OptionValue::Table>(entry.value)) {
        Add({absl::StrCat(KeyPrefix(entry.where, "optimizer", "groups"), "found ", entry.Describe(), kAllowed)});
        continue;
      }
      const Options table = TableOf(&entry, "");
      OptionsReader reader("optimizer.groups", table);
      OptimizerGroup group;
      group.Fields(reader);
      if (!reader.Has("match"))
        reader.Error("match", "missing; give the names it holds for, for example match = \"encoder.*\"");
      for (const char* key : {"lr_scale", "weight_decay"}) {
        if (group.frozen && reader.Has(key)) reader.Error(key, "has no meaning with frozen = true: nothing is updated");
      }
      const OptionValue* match = table.Find("match");
      group.where = match != nullptr ? match->where : entry.where;
      config_.optimizer.groups.push_back(std::move(group));
      Add(reader.Finish());
    }
  }

  void CheckSchedule(Section& schedule, Section& train) {
    ScheduleConfig& c = config_.schedule;
    const bool kind_is_good = !schedule.Has("kind") || schedule.Was("kind", c.kind);
    for (const char* key : {"decay_steps", "shape"}) {
      if (kind_is_good && c.kind != "wsd") schedule.Meaningless(key, "kind", c.kind, "\"wsd\"");
    }
    for (const char* key : {"cycle_steps", "cycle_multiplier"}) {
      if (kind_is_good && c.kind != "cosine") schedule.Meaningless(key, "kind", c.kind, "\"cosine\"");
    }
    if (kind_is_good && c.kind == "cosine" && schedule.Has("cycle_multiplier") && !schedule.Has("cycle_steps")) {
      schedule.Error("cycle_multiplier", "needs schedule.cycle_steps, the length of the first cycle");
    }
    if (HasCycles(c) && schedule.Has("steps")) schedule.ExactlyOne("cycle_steps", &c.cycle_steps, "steps", &c.steps);
    const bool stated = schedule.Has("steps");
    if (HasHorizon(c) && !stated) {
      c.steps = config_.train.steps;
      if (train.Has("minutes") && !train.Has("steps") && !train.Has("epochs")) {
        schedule.Error("steps", absl::StrCat("missing; schedule.kind = \"", c.kind,
                                             "\" needs the update at which it ends, which train.minutes alone does not say"));
      }
    }
    if (HasHorizon(c) || HasCycles(c)) {
      if (c.min_lr > config_.optimizer.lr) {
        schedule.Error("min_lr", absl::StrCat("found ", FormatDouble(c.min_lr),
                                              ", allowed a number <= optimizer.lr = ", FormatDouble(config_.optimizer.lr)));
      }
    } else if (kind_is_good) {
      schedule.Meaningless("min_lr", "kind", c.kind, "\"linear\", \"cosine\" and \"wsd\"");
    }
    const absl::string_view horizon =
        stated || !train.Has("steps") ? "schedule.steps" : "train.steps (the default of schedule.steps)";
    if (c.steps > 0 && c.warmup_steps > c.steps) {
      schedule.Error(schedule.Has("warmup_steps") ? "warmup_steps" : "steps",
                     absl::StrCat("found ", c.warmup_steps, " warm-up steps, allowed an integer <= ", horizon, " = ", c.steps));
    } else if (c.steps > 0 && c.kind == "wsd" && c.warmup_steps + c.decay_steps > c.steps) {
      schedule.Error("decay_steps", absl::StrCat("found ", c.warmup_steps, " warm-up and ", c.decay_steps,
                                                 " decay steps, allowed a sum <= ", horizon, " = ", c.steps));
    }
  }

  void CheckValid(Section& valid) {
    ValidConfig& c = config_.valid;
    const DataConfig& data = config_.data;
    const DataKind kind = DataKindOf(config_);
    const std::optional<DataKind> known = kind_known_ ? std::optional(kind) : std::nullopt;
    CheckMetricNames(c.metrics, known, data.kind, &valid);
    Add(ReadTextMetrics(&valid, &c));
    if (c.best != "loss" && std::find(c.metrics.begin(), c.metrics.end(), c.best) == c.metrics.end()) {
      valid.Error("best", absl::StrCat("found \"", c.best, "\", which is not in valid.metrics = [",
                                       absl::StrJoin(c.metrics, ", "), "]"));
    }
    if (kind_known_ && c.beam > 1 && kind != DataKind::kPairs) {
      valid.Error("beam",
                  absl::StrCat("found ", c.beam, ", but data.kind = \"", data.kind, "\" has no generated answers, allowed 1"));
    }
    const bool beam_overrides = valid.FromCommandLine("beam") && !valid.FromCommandLine("length_penalty");
    if (c.beam == 1 && valid.Has("length_penalty") && !beam_overrides) {
      valid.Error("length_penalty", "has no meaning with valid.beam = 1, which is greedy; allowed with valid.beam > 1");
    }
    const bool has_data = data.kind == "task" || !data.valid.empty() || data.valid_fraction > 0;
    if (kind_known_ && c.patience > 0 && !has_data && source_.needs_data_files) {
      valid.Error("patience",
                  absl::StrCat("needs validation data: give data.valid", data.kind == "text" ? " or data.valid_fraction" : ""));
    }
  }

  // The three families answer to the three forms of data.
  void CheckFamily(Section& model) {
    const OptionValue* value = config_.model.Find("family");
    const auto* family = value != nullptr ? std::get_if<std::string>(&value->value) : nullptr;
    if (family == nullptr || !kind_known_) return;
    const DataKind kind = DataKindOf(config_);
    const absl::string_view needed = kind == DataKind::kText    ? "decoder"
                                     : kind == DataKind::kPairs ? "encoder_decoder"
                                                                : "encoder";
    if (*family == needed) return;
    const std::string data = config_.data.kind == "task" ? absl::StrCat("data.task = \"", config_.data.task, "\"")
                                                         : absl::StrCat("data.kind = \"", config_.data.kind, "\"");
    const OptionValue* given = model.options().Find("family");
    errors_.push_back(absl::StrCat(KeyPrefix(given != nullptr ? given->where : model.options().where, "model", "family"),
                                   "found \"", *family, "\", but ", data, " needs \"", needed, "\""));
  }

  const ConfigText& source_;
  const Options& root_options_;
  OptionsReader root_;
  Config config_;
  fs::path data_folder_;     // what paths in [data] are relative to
  bool kind_known_ = false;  // data.kind, and data.task, are valid
  std::vector<std::string> errors_;
};

absl::Status Unreadable(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": cannot read the config: ", why));
}

}  // namespace

absl::StatusOr<Config> ParseConfig(const ConfigText& source, absl::Span<const std::string> overrides, ModelCheck check_model) {
  WEFT_ASSIGN_OR_RETURN(Options root, ParseToml(source.text, source.name));
  for (const std::string& override_text : overrides) WEFT_RETURN_IF_ERROR(ApplyOverride(override_text, &root));
  if (root.entries().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.name, ": the config is empty; it needs at least [data], [model] and [train]"));
  }
  return Loader(source, root).Load(check_model);
}

absl::StatusOr<Config> LoadConfig(const std::string& path, absl::Span<const std::string> overrides, ModelCheck check_model) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return Unreadable(path, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return Unreadable(path, "it is a folder");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in) return Unreadable(path, std::strerror(errno));
  if (info.st_size > 0) text << in.rdbuf();
  if (!in || !text) return Unreadable(path, std::strerror(errno));
  const fs::path folder = fs::path(path).parent_path();
  return ParseConfig({.text = text.str(), .name = path, .folder = folder.empty() ? "." : folder.string()}, overrides,
                     check_model);
}

}  // namespace weft
