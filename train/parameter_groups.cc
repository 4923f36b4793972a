#include "train/parameter_groups.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/fields.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

constexpr size_t kNearest = 3;  // names that an error suggests

std::vector<std::string> NearestNames(absl::string_view pattern, const Parameters& parameters) {
  std::vector<std::pair<int64_t, std::string>> names;
  for (const ParameterInfo& info : parameters.list()) names.emplace_back(DistanceToPattern(pattern, info.name), info.name);
  std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(kNearest, names.size()); ++i) nearest.push_back(names[i].second);
  return nearest;
}

}  // namespace

int64_t DistanceToPattern(absl::string_view pattern, absl::string_view name) {
  // row[j]: the distance between the pattern so far and the first j characters of the name.
  std::vector<int64_t> row(name.size() + 1), next(name.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (const char c : pattern) {
    next[0] = row[0] + (c == '*' ? 0 : 1);
    for (size_t j = 1; j <= name.size(); ++j) {
      const bool fits = c == '?' || c == name[j - 1];
      next[j] = c == '*' ? std::min(row[j], next[j - 1]) : std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (fits ? 0 : 1)});
    }
    std::swap(row, next);
  }
  return row.back();
}

std::vector<ParameterRule> ParameterRules(const OptimizerConfig& config, const Parameters& parameters) {
  std::vector<ParameterRule> rules;
  for (const ParameterInfo& info : parameters.list()) {
    ParameterRule rule;
    if (config.decay == "all" || info.shape.rank() >= 2) rule.weight_decay = config.weight_decay;
    for (size_t i = 0; i < config.groups.size(); ++i) {
      if (DistanceToPattern(config.groups[i].match, info.name) == 0) rule.group = static_cast<int>(i);
    }
    if (rule.group >= 0) {
      const OptimizerGroup& group = config.groups[rule.group];
      rule.lr_scale = group.lr_scale;
      rule.frozen = group.frozen;
      if (group.weight_decay >= 0) rule.weight_decay = group.weight_decay;
    }
    rules.push_back(rule);
  }
  return rules;
}

absl::Status CheckGroups(const OptimizerConfig& config, const Parameters& parameters) {
  std::vector<std::string> errors;
  for (const OptimizerGroup& group : config.groups) {
    const auto fits = [&](const ParameterInfo& info) { return DistanceToPattern(group.match, info.name) == 0; };
    if (std::any_of(parameters.list().begin(), parameters.list().end(), fits)) continue;
    errors.push_back(absl::StrCat(KeyPrefix(group.where, "optimizer.groups", "match"), "found \"", group.match,
                                  "\", which is the name of no parameter; the nearest names are ",
                                  absl::StrJoin(NearestNames(group.match, parameters), ", ")));
  }
  const std::vector<ParameterRule> rules = ParameterRules(config, parameters);
  if (!rules.empty() && std::all_of(rules.begin(), rules.end(), [](const ParameterRule& rule) { return rule.frozen; })) {
    // Not push_back, of which GCC 12 falsely warns (array-bounds).
    errors.emplace_back("optimizer.groups: all parameters are frozen, so nothing would train; leave some out of frozen = true");
  }
  return ErrorsToStatus(errors);
}

std::vector<std::string> DescribeGroups(const OptimizerConfig& config, const Parameters& parameters) {
  const std::vector<ParameterRule> rules = ParameterRules(config, parameters);
  std::vector<std::string> lines;
  for (size_t i = 0; i < config.groups.size(); ++i) {
    const OptimizerGroup& group = config.groups[i];
    std::vector<std::string> names;
    int64_t elements = 0;
    for (size_t p = 0; p < rules.size(); ++p) {
      if (rules[p].group != static_cast<int>(i)) continue;
      names.push_back(parameters.list()[p].name);
      elements += parameters.list()[p].shape.elements();
    }
    std::string settings = group.frozen ? "frozen" : absl::StrCat("lr_scale ", FormatDouble(group.lr_scale));
    if (!group.frozen && group.weight_decay >= 0) {
      absl::StrAppend(&settings, ", weight_decay ", FormatDouble(group.weight_decay));
    }
    lines.push_back(absl::StrCat("parameter group \"", group.match, "\" (", settings, "): ", names.size(), " parameters, ",
                                 elements, " numbers", names.empty() ? "; later groups hold for all it fits" : ": ",
                                 absl::StrJoin(names, ", ")));
  }
  return lines;
}

}  // namespace weft
