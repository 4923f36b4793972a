// What loading and printing a config share: facts about sections, and the rules that every section's loading uses. Internal to
// train/config*.cc.
#ifndef WEFT_TRAIN_CONFIG_SECTIONS_H_
#define WEFT_TRAIN_CONFIG_SECTIONS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/base/fields.h"
#include "data/tokenizer.h"
#include "train/config.h"

namespace weft {

// The keys of one tokenizer table.
void TokenizerFields(FieldVisitor& v, TokenizerOptions& options);
// Those of its table `sampling`.
void SamplingFields(FieldVisitor& v, SubwordSampling& sampling);
inline constexpr char kSamplingDoc[] = "of training texts of pairs and labels: another segmentation in each epoch";
inline constexpr char kTokenizerDoc[] = "how text becomes tokens, on one side or both";
// data.columns, and what valid.bleu is.
inline constexpr char kColumnsDoc[] =
    "columns of tab-separated files that are read, from 1; several sources are joined by <sep>";
inline constexpr char kBleuDoc[] = "how BLEU counts: tokens of the text, and n-gram orders without a match";
inline constexpr int64_t kMaxColumn = 1000;
// The resolved config as a table a section, as PrintConfig prints it.
Options ConfigOptions(const Config& config);
// Metrics of a validation that a config may ask for.
absl::Span<const absl::string_view> MetricNames();
// Whether these keys mean something to the kind of optimizer.
bool HasBetas(const OptimizerConfig& optimizer);
bool HasEps(const OptimizerConfig& optimizer);
bool HasMomentum(const OptimizerConfig& optimizer);

// Calls f(name, section) with each section but [model], with its defaults, in the order in which they are printed.
template <class F>
void ForEachSection(F f) {
  f("run", RunConfig());
  f("data", DataConfig());
  f("train", TrainConfig());
  f("optimizer", OptimizerConfig());
  f("schedule", ScheduleConfig());
  f("valid", ValidConfig());
  f("checkpoint", CheckpointConfig());
}

// The entries of the table `value`, with its place; none, placed at `where_without`, for null or anything that is no table.
Options TableOf(const OptionValue* value, absl::string_view where_without);

// One [section] of a file and its reader.
class Section {
 public:
  // Takes `name` out of `root`, and records an error there if it is no table. `file` is the place of a section that is missing.
  Section(absl::string_view name, OptionsReader* root, absl::string_view file);
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  OptionsReader& reader() { return reader_; }
  const Options& options() const { return options_; }
  bool Has(absl::string_view key) const { return options_.Find(key) != nullptr; }
  // Whether `key` was given as the text `value`: false also when what was given had been refused.
  bool Was(absl::string_view key, absl::string_view value) const;
  bool FromCommandLine(absl::string_view key) const;
  void Error(absl::string_view key, absl::string_view message) { reader_.Error(key, message); }

  // Of two keys for the same thing, 0 when absent, exactly one must be there. One from the command line replaces the other in
  // the file.
  void ExactlyOne(absl::string_view a, int64_t* a_value, absl::string_view b, int64_t* b_value);
  // Refuses `key` if it is given: with `chosen` = `chosen_value` it would be ignored in silence. Where the command line made
  // that choice over the file's head, the key is left out instead.
  void Meaningless(absl::string_view key, absl::string_view chosen, absl::string_view chosen_value,
                   absl::string_view meant_for);

 private:
  const std::string name_;
  const Options options_;
  OptionsReader reader_;
};

// `path` below `base`, absolute. The error is recorded with `reader`, and the result empty, for a text that can be no path or
// could not be printed into the resolved config.
std::string ResolvePath(OptionsReader& reader, absl::string_view key, const std::string& path,
                        const std::filesystem::path& base);

// Checks [data], whose plain keys `config` has already, and reads the rest of it. Whether data.kind and data.task are valid;
// rules that depend on them make no sense otherwise.
bool ReadData(const ConfigText& source, Section* data, Config* config, std::vector<std::string>* errors);

// Reads data.columns; its errors. `kind` is data.kind.
std::vector<std::string> ReadColumns(const OptionValue& value, absl::string_view kind, TableColumns* columns);

// Checks valid.metrics against what the kind of data has, if that is known; `kind_name` is data.kind.
void CheckMetricNames(absl::Span<const std::string> metrics, std::optional<DataKind> kind, absl::string_view kind_name,
                      Section* valid);
// Reads valid.bleu, whose errors it returns, and checks that it and valid.lowercase mean something to c->metrics.
std::vector<std::string> ReadTextMetrics(Section* valid, ValidConfig* c);

// A key that one section lacks and another has was most likely put into the wrong one: says so in its error. `model` has the
// keys of [model].
void HintAtOtherSections(const Options& root, const Options& model, std::vector<std::string>* errors);

// Orders errors by line and column of the file; then errors about the file as a whole, then those of the command line. An error
// told twice stays once.
void SortErrors(absl::string_view file, std::vector<std::string>* errors);

}  // namespace weft

#endif  // WEFT_TRAIN_CONFIG_SECTIONS_H_
