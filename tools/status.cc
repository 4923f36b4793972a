// `weft status`: what a run's folder tells of it. The files may grow while they are read: a last line without its newline is
// left out. Nothing in the folder is changed.
#include "autograd/base/status.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "data/file.h"
#include "tools/verbs.h"
#include "train/evaluate.h"
#include "train/progress.h"
#include "train/run_dir.h"
#include "train/toml.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// The whole lines of a file; none if it does not exist. The views are of `text`.
absl::StatusOr<std::vector<absl::string_view>> ReadLines(const std::string& path, std::string* text) {
  const absl::StatusOr<std::string> read = ReadFile(path);
  if (!read.ok() && !absl::IsNotFound(read.status())) return read.status();
  *text = read.ok() ? *read : "";
  std::vector<absl::string_view> lines = absl::StrSplit(*text, '\n');
  lines.pop_back();  // empty, or being written
  return lines;
}

// What the log says.
struct LogFacts {
  std::string ending;  // the line with which the last session ended; empty while it lives, or if it was killed
  std::string state = "killed";
  int64_t steps = 0;  // of the whole run; 0: not known
  std::optional<absl::Time> started;
  int64_t first_step = 0;  // the update after which the last session began
};

LogFacts ReadLog(absl::Span<const absl::string_view> lines) {
  LogFacts facts;
  for (absl::string_view line : lines) {
    int64_t number;
    if (const size_t at = line.rfind(", in all: ");
        absl::StartsWith(line, "shards of a batch: ") && at != absl::string_view::npos) {
      if (absl::SimpleAtoi(line.substr(at + 10), &number)) facts.steps = number;
    }
    for (absl::string_view state : {"finished", "interrupted", "diverged", "failed"}) {
      if (!absl::StartsWith(line, absl::StrCat(state, " a"))) continue;  // "at step", "after step"
      facts.state = std::string(state);
      facts.ending = std::string(line);
    }
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "started ")) continue;
    facts.state = "killed";  // until the session says how it ended
    facts.ending.clear();
    const std::vector<absl::string_view> words = absl::StrSplit(rest, ' ');  // TIME after step N
    absl::Time time;
    std::string ignored;
    if (words.size() != 4 || !absl::ParseTime(absl::RFC3339_full, words[0], &time, &ignored)) continue;
    facts.started = time;
    if (absl::SimpleAtoi(words[3], &number)) facts.first_step = number;
  }
  return facts;
}

// What the metrics say: lines as JSON objects, null where there are none.
struct MetricFacts {
  Json last, last_loss, last_eval, best;
};

// The number of a metric, which is a string where it is not finite.
double NumberOf(const Json& value) {
  double number = 0;
  if (value.is_number()) return value.get<double>();
  return value.is_string() && absl::SimpleAtod(value.get<std::string>(), &number) ? number : std::nan("");
}

// `best_step` is that of the pointer `best`; without one the best of the validations on the grid of `every` steps is looked
// for, 0 being that of epochs; with neither, a run that validates at its end only, there is none.
MetricFacts ReadMetrics(absl::Span<const absl::string_view> lines, const std::string& best_key, bool larger_is_better,
                        std::optional<int64_t> best_step, std::optional<int64_t> every) {
  const auto parse = [](absl::string_view text) {
    const Json line = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    return line.is_object() && line.contains("step") && line["step"].is_number_integer() ? line : Json();
  };
  MetricFacts facts;
  // Parsing is slow and files are long: most lines are of no interest.
  for (size_t i = lines.size(); i > 0 && facts.last_loss.is_null(); --i) {
    const Json line = parse(lines[i - 1]);
    if (facts.last.is_null()) facts.last = line;
    if (line.contains("loss")) facts.last_loss = line;
  }
  double best = std::nan("");
  for (absl::string_view text : lines) {
    if (!absl::StrContains(text, "\"eval_")) continue;
    const Json line = parse(text);
    if (line.is_null()) continue;
    if (line.contains(best_key)) {
      const int64_t step = line["step"];
      const double value = NumberOf(line[best_key]);
      const bool better = std::isnan(best) || (larger_is_better ? value > best : value < best);
      const bool counts = every.has_value() && (*every == 0 || step % *every == 0) && !std::isnan(value);
      if (best_step.has_value() ? step == *best_step : counts && better) {
        best = value;
        facts.best = {{"metric", best_key.substr(5)}, {"value", line[best_key]}, {"step", step}};
      }
    }
    facts.last_eval = line;
  }
  return facts;
}

template <class T>
T ConfigValue(const Options& root, absl::string_view section, absl::string_view key, T otherwise) {
  const OptionValue* table = root.Find(section);
  const auto* entries = table != nullptr ? std::get_if<OptionValue::Table>(&table->value) : nullptr;
  if (entries == nullptr) return otherwise;
  const Options options(*entries);
  const OptionValue* value = options.Find(key);
  const T* found = value != nullptr ? std::get_if<T>(&value->value) : nullptr;
  return found != nullptr ? *found : otherwise;
}

// Seconds that are left at the mean pace of the session so far, its validations included; -1 if not known.
double SecondsLeftOf(const std::string& metrics_path, const LogFacts& log, int64_t last_step) {
  struct stat info;
  if (!log.started.has_value() || log.steps == 0 || ::stat(metrics_path.c_str(), &info) != 0) return -1;
  const absl::Time written = absl::TimeFromTimespec(info.st_mtim);
  const double left =
      SecondsLeft(last_step - log.first_step, absl::ToDoubleSeconds(written - *log.started), log.steps - last_step);
  return left < 0 ? -1 : std::max(0.0, left - absl::ToDoubleSeconds(absl::Now() - written));
}

// Everything known of a run, with null for what is not.
absl::StatusOr<Json> Look(std::string run) {
  while (run.size() > 1 && run.back() == '/') run.pop_back();
  WEFT_ASSIGN_OR_RETURN(const RunGlance glance, GlanceAtRun(run));
  WEFT_ASSIGN_OR_RETURN(const std::string config_text, ReadFile(run + "/config.toml"));
  WEFT_ASSIGN_OR_RETURN(const Options config, ParseToml(config_text, run + "/config.toml"));
  std::string log_text, metrics_text;
  WEFT_ASSIGN_OR_RETURN(const std::vector<absl::string_view> log_lines, ReadLines(run + "/log.txt", &log_text));
  WEFT_ASSIGN_OR_RETURN(const std::vector<absl::string_view> lines, ReadLines(run + "/metrics.jsonl", &metrics_text));
  LogFacts log = ReadLog(log_lines);
  if (log.steps == 0) log.steps = ConfigValue<int64_t>(config, "train", "steps", 0);
  const auto best_metric = ConfigValue<std::string>(config, "valid", "best", "loss");
  std::optional<int64_t> every = ConfigValue<int64_t>(config, "valid", "every", 0);
  if (every == 0 && ConfigValue<int64_t>(config, "train", "epochs", 0) == 0) every.reset();
  const MetricFacts metrics =
      ReadMetrics(lines, absl::StrCat("eval_", best_metric), LargerIsBetter(best_metric), glance.best, every);
  const int64_t metric_step = metrics.last.is_null() ? 0 : metrics.last["step"].get<int64_t>();

  const auto get = [](const Json& line, const char* key) {
    return line.is_object() && line.contains(key) ? line[key] : Json();
  };
  Json status;
  status["run"] = run;
  status["state"] = glance.live ? "running" : log.state;
  // Metrics are written now and then, a checkpoint also in between.
  status["step"] = std::max(metric_step, glance.last.value_or(0));
  status["steps"] = log.steps > 0 ? Json(log.steps) : Json();
  for (const char* key : {"epoch", "loss", "learning_rate", "tokens_per_second"}) status[key] = get(metrics.last_loss, key);
  Json eval;
  if (metrics.last_eval.is_object()) {
    eval["step"] = metrics.last_eval["step"];
    for (const auto& [key, value] : metrics.last_eval.items()) {
      if (absl::StartsWith(key, "eval_")) eval[key.substr(5)] = value;
    }
  }
  status["eval"] = eval;
  status["best"] = metrics.best;
  const double left = glance.live ? SecondsLeftOf(run + "/metrics.jsonl", log, metric_step) : -1;
  status["seconds_left"] = left >= 0 ? Json(left) : Json();
  status["checkpoint"] = glance.last.has_value() ? Json(CheckpointPathIn(run, *glance.last)) : Json();
  status["message"] = glance.live || log.ending.empty() ? Json() : Json(log.ending);
  return status;
}

std::string Shown(const Json& value) {
  if (value.is_number_integer()) return absl::StrCat(value.get<int64_t>());
  return value.is_number() ? absl::StrFormat("%.6g", value.get<double>()) : value.get<std::string>();
}

void Print(const Json& status) {
  const auto row = [](absl::string_view name, absl::string_view value) { absl::PrintF("%-14s %s\n", name, value); };
  row("run", status["run"].get<std::string>());
  row("state", status["state"].get<std::string>());
  std::string step = Shown(status["step"]);
  if (!status["steps"].is_null()) absl::StrAppend(&step, " of ", Shown(status["steps"]));
  if (!status["epoch"].is_null()) absl::StrAppend(&step, ", epoch ", Shown(status["epoch"]));
  row("step", step);
  if (!status["loss"].is_null()) row("loss", Shown(status["loss"]));
  if (!status["learning_rate"].is_null()) row("learning rate", Shown(status["learning_rate"]));
  if (!status["tokens_per_second"].is_null()) row("speed", FormatCount(NumberOf(status["tokens_per_second"])) + " tokens/s");
  if (!status["eval"].is_null()) {
    std::string scores;
    for (const auto& [key, value] : status["eval"].items())
      absl::StrAppend(&scores, scores.empty() ? "" : "  ", key, " ", Shown(value));
    row("valid", scores);
  }
  if (const Json& best = status["best"]; !best.is_null()) {
    row("best", absl::StrCat(Shown(best["metric"]), " ", Shown(best["value"]), " at step ", Shown(best["step"])));
  }
  if (!status["seconds_left"].is_null()) row("time left", FormatDuration(status["seconds_left"].get<double>()));
  row("checkpoint", status["checkpoint"].is_null() ? "none yet" : status["checkpoint"].get<std::string>());
  if (!status["message"].is_null()) row("log", status["message"].get<std::string>());
}

}  // namespace

absl::Status RunStatus(const StatusFlags& flags) {
  absl::Status result;
  bool first = true;
  for (const std::string& run : flags.runs) {
    const absl::StatusOr<Json> status = Look(run);
    if (!status.ok()) {
      // The others are shown all the same. What is wrong with a folder is no error of usage.
      std::string message = result.ok() ? "" : absl::StrCat(result.message(), "\n");
      result = absl::FailedPreconditionError(absl::StrCat(message, status.status().message()));
      continue;
    }
    if (flags.json) {
      // The path may be no UTF-8.
      absl::PrintF("%s\n", status->dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      if (!first) absl::PrintF("\n");
      Print(*status);
    }
    first = false;
  }
  return result;
}

}  // namespace weft
