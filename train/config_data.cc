// Loading of [data]: rules between its keys, paths, columns, and the tables of tokenizers.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "data/tasks/task.h"
#include "train/config.h"
#include "train/config_sections.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

class DataLoader {
 public:
  DataLoader(const ConfigText& source, Section* data, Config* config, std::vector<std::string>* errors)
      : source_(source), data_(*data), config_(*config), errors_(*errors) {}

  // Whether data.kind, and data.task, are valid.
  bool Load() {
    DataConfig& c = config_.data;
    const OptionValue* tokenizer = data_.reader().Take("tokenizer");
    const OptionValue* columns = data_.reader().Take("columns");
    if (!data_.Has("kind")) data_.Error("kind", "missing; allowed \"pairs\", \"text\", \"labels\", \"task\"");
    bool kind_known = data_.Was("kind", c.kind);
    if (!kind_known) return false;  // the rules below would speak of a kind that nobody chose
    const bool text = c.kind == "text", task = c.kind == "task";
    if (task) {
      for (const char* key : {"dir", "train", "valid", "cache"}) data_.Meaningless(key, "kind", c.kind, "data in files");
      std::vector<std::string> names;
      for (const TaskInfo& info : Tasks()) names.emplace_back(info.name);
      if (c.task.empty()) {
        data_.Error("task", absl::StrCat("missing; allowed ", absl::StrJoin(names, ", ")));
      } else if (std::find(names.begin(), names.end(), c.task) == names.end()) {
        const std::string nearest = Nearest(c.task, names);
        data_.Error("task", absl::StrCat("found \"", c.task, "\", allowed ", absl::StrJoin(names, ", "),
                                         nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
      }
      kind_known = std::find(names.begin(), names.end(), c.task) != names.end();
    } else {
      for (const char* key : {"task", "train_size", "valid_size"}) data_.Meaningless(key, "kind", c.kind, "\"task\"");
    }
    if (text) {
      if (!data_.Has("window")) data_.Error("window", "missing; data.kind = \"text\" needs the tokens of one training example");
      if (!c.valid.empty() && c.valid_fraction > 0) {
        if (data_.FromCommandLine("valid") == data_.FromCommandLine("valid_fraction")) {
          data_.Error("valid_fraction", "excludes data.valid; allowed one of the two");
        } else if (data_.FromCommandLine("valid")) {
          c.valid_fraction = 0;
        } else {
          c.valid.clear();
        }
      }
    } else {
      for (const char* key : {"window", "valid_fraction"}) data_.Meaningless(key, "kind", c.kind, "\"text\"");
    }
    data_folder_ = fs::path(source_.folder);
    if (!task) ResolveDataPaths();
    if (kind_known) CheckPairKeys();
    if (columns != nullptr) ReadColumns(*columns);
    if (kind_known) ReadTokenizer(tokenizer);
    return kind_known;
  }

 private:
  void Add(std::vector<std::string> errors) {
    for (std::string& error : errors) errors_.push_back(std::move(error));
  }

  void ResolveDataPaths() {
    DataConfig& c = config_.data;
    fs::path base = fs::path(source_.folder);
    if (!c.dir.empty()) base = ResolvePath(data_.reader(), "dir", c.dir, data_.FromCommandLine("dir") ? fs::path() : base);
    c.dir.clear();
    data_folder_ = base;
    if (c.train.empty() && (source_.needs_data_files || data_.Has("train")))
      data_.Error("train", "missing; give the file to train on");
    if (!c.cache.empty())
      c.cache = ResolvePath(data_.reader(), "cache", c.cache, data_.FromCommandLine("cache") ? "" : source_.folder);
    ResolveFiles("train", base, &c.train);
    ResolveFiles("valid", base, &c.valid);
    const auto fit = [&](const char* key, size_t files, size_t most, absl::string_view allowed) {
      if (files <= most) return;
      data_.Error(key, absl::StrCat("found ", files, " files, allowed ", allowed, " with data.kind = \"", c.kind, "\""));
    };
    const bool pairs = c.kind == "pairs";
    fit("train", c.train.size(), pairs ? 2 : 1, pairs ? "one, or two (sources and targets)" : "one");
    if (!pairs) fit("valid", c.valid.size(), 1, "one");
  }

  void ResolveFiles(const char* key, const fs::path& base, std::vector<std::string>* files) {
    for (std::string& file : *files) {
      if (file.empty()) return data_.Error(key, "found \"\" in a list of files, allowed their names");
      file = ResolvePath(data_.reader(), key, file, data_.FromCommandLine(key) ? fs::path() : base);
      if (file.empty()) return files->clear();  // said already
    }
  }

  // Keys that pairs alone have.
  void CheckPairKeys() {
    if (DataKindOf(config_) == DataKind::kPairs) return;
    for (const char* key : {"max_source_length", "max_target_length"}) {
      data_.Meaningless(key, "kind", config_.data.kind, "pairs");
    }
  }

  void ReadColumns(const OptionValue& value) {
    DataConfig& c = config_.data;
    if (c.kind != "pairs" && c.kind != "labels") {
      data_.Meaningless("columns", "kind", c.kind, "\"pairs\" and \"labels\"");
    } else if (c.train.size() > 1 || c.valid.size() > 1) {
      data_.Error("columns", "names columns of tab-separated files, but data.train or data.valid has a file for each side");
    } else {
      Add(weft::ReadColumns(value, c.kind, &c.columns));
    }
  }

  void ReadTokenizer(const OptionValue* value) {
    DataConfig& c = config_.data;
    // A task suggests what suits it; files default to characters.
    if (c.kind == "task") c.source_tokenizer.kind = c.target_tokenizer.kind = "";
    if (value == nullptr) return;
    if (!std::holds_alternative<OptionValue::Table>(value->value)) {
      return data_.Error("tokenizer", absl::StrCat("found ", value->Describe(), ", allowed a table like { kind = \"char\" }"));
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
    options->file = ResolvePath(reader, "file", options->file, reader.FromCommandLine("file") ? fs::path() : data_folder_);
  }

  const ConfigText& source_;
  Section& data_;
  Config& config_;
  std::vector<std::string>& errors_;
  fs::path data_folder_;  // what paths in [data] are relative to
};

}  // namespace

bool ReadData(const ConfigText& source, Section* data, Config* config, std::vector<std::string>* errors) {
  return DataLoader(source, data, config, errors).Load();
}

}  // namespace weft
