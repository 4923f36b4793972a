// Loading: text -> Options -> sections -> rules between keys -> paths -> errors in the order of the file. [data] has a file of
// its own, config_data.cc.
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
#include "train/config.h"
#include "train/config_sections.h"
#include "train/schedule.h"
#include "train/toml.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

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
    kind_known_ = ReadData(source_, &data, &config_, &errors_);
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

  void CheckRun(Section& run) {
    if (run.Has("dir") && config_.run.dir.empty()) return run.Error("dir", "found \"\" (a string), allowed a folder");
    if (!run.Has("dir")) config_.run.dir = absl::StrCat("runs/", fs::path(source_.name).stem().string());
    config_.run.dir = ResolvePath(run.reader(), "dir", config_.run.dir, "");
  }

  void CheckTrain(Section& train) {
    TrainConfig& c = config_.train;
    if (!train.Has("minutes") || train.Has("steps") || train.Has("epochs")) {
      train.ExactlyOne("steps", &c.steps, "epochs", &c.epochs);
    }
    if (c.on_nonfinite != "skip") train.Meaningless("max_skips", "on_nonfinite", c.on_nonfinite, "\"skip\"");
    if (c.init_partial && c.init_from.empty()) train.Error("init_partial", "has no meaning without train.init_from");
    if (!c.init_from.empty()) {
      c.init_from =
          ResolvePath(train.reader(), "init_from", c.init_from, train.FromCommandLine("init_from") ? "" : source_.folder);
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
      if (!HasBetas(c)) optimizer.Meaningless("betas", "kind", c.kind, "\"adamw\", \"adam\", \"muon\" and \"lion\"");
      if (!HasEps(c)) optimizer.Meaningless("eps", "kind", c.kind, "\"adamw\", \"adam\" and \"muon\"");
      if (!HasMomentum(c)) optimizer.Meaningless("momentum", "kind", c.kind, "\"sgd\" and \"muon\"");
      if (c.kind != "sgd") optimizer.Meaningless("nesterov", "kind", c.kind, "\"sgd\"");
    }
    if (c.kind == "muon" && !optimizer.Has("momentum")) c.momentum = 0.95;
    if (c.kind != "adamw" && c.kind != "muon" && !optimizer.Has("weight_decay")) c.weight_decay = 0;
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
    } else if (c.patience > 0 && c.every == 0 && config_.train.epochs == 0) {
      valid.Error("patience", "needs valid.every, or train.epochs: without either the only validation is that at the end");
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
    const std::string found = given != nullptr ? absl::StrCat("found \"", *family, "\", but ") : "missing; ";
    errors_.push_back(absl::StrCat(KeyPrefix(given != nullptr ? given->where : model.options().where, "model", "family"), found,
                                   data, " needs \"", needed, "\""));
  }

  const ConfigText& source_;
  const Options& root_options_;
  OptionsReader root_;
  Config config_;
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
