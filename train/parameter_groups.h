// Groups of parameters by name: what [[optimizer.groups]] says of rate, decay and freezing, resolved for each parameter of a
// model. Pure functions, thread-safe.
#ifndef WEFT_TRAIN_PARAMETER_GROUPS_H_
#define WEFT_TRAIN_PARAMETER_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "layers/parameters.h"
#include "train/config.h"

namespace weft {

// How far `name` is from matching `pattern`, where '*' stands for any run of characters (dots too, none too) and '?' for one:
// the least number of characters to insert, delete or replace (Levenshtein 1966); 0: it matches, as a whole.
int64_t DistanceToPattern(absl::string_view pattern, absl::string_view name);

// What the optimizer does with one parameter.
struct ParameterRule {
  int group = -1;       // index in config.groups, -1: in none
  double lr_scale = 1;  // multiplies the scheduled rate
  double weight_decay = 0;
  bool frozen = false;
};

// The rule of each parameter, in order of declaration. The last group whose `match` fits a name holds for it, alone: earlier
// ones do not add to it. A group's weight_decay holds for all its parameters; what no group decides is as in [optimizer]
// (weight_decay of rank >= 2 only, unless decay = "all").
std::vector<ParameterRule> ParameterRules(const OptimizerConfig& config, const Parameters& parameters);

// InvalidArgument, with the pattern's place and the nearest names, for each pattern that fits no parameter; and when all
// parameters are frozen.
absl::Status CheckGroups(const OptimizerConfig& config, const Parameters& parameters);

// A line for each group: its settings, the number of its parameters and of their elements, their names.
std::vector<std::string> DescribeGroups(const OptimizerConfig& config, const Parameters& parameters);

}  // namespace weft

#endif  // WEFT_TRAIN_PARAMETER_GROUPS_H_
