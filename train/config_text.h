// Other ways to write a config than PrintConfig: with everything said of each key, with nothing that goes without saying, and
// what may stand in one at all. Pure functions, thread-safe.
#ifndef WEFT_TRAIN_CONFIG_TEXT_H_
#define WEFT_TRAIN_CONFIG_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "train/config.h"

namespace weft {

// Every key with its value, below a comment of what it does and what it may be. A key that has no value under this config's
// kinds (the momentum of adamw) is in a comment only. Loads to the same config.
std::string FullConfig(const Config& config);

// The fewest keys that load to the same config, checked by loading; run.dir, whose default depends on the name of the file, is
// always among them. REQUIRES: `config` was loaded with `check_model`.
absl::StatusOr<std::string> MinimalConfig(const Config& config, ModelCheck check_model);

// A JSON Schema (draft 2020-12, json-schema.org) of config files, indented, for editors that complete and check TOML by one:
// all keys of all kinds and families and of every registered layer, with types, ranges, words, defaults and descriptions. Rules
// between keys are not in it, nor that a float is no integer: 10.0 is one to a schema, and refused by LoadConfig.
std::string ConfigSchema();

}  // namespace weft

#endif  // WEFT_TRAIN_CONFIG_TEXT_H_
