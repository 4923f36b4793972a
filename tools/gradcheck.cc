#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autograd/base/status.h"
#include "autograd/op_checks.h"
#include "layers/layer_check.h"
#include "tools/verbs.h"
#include "train/session.h"

namespace weft {
namespace {

// A check of what stands under `name` in its group: "op", "layer" or "model". Some ops and layers share a name.
struct Check {
  absl::string_view group;
  NamedCheck check;
};

void Print(const Check& check, const GradCheckReport& report, bool json) {
  if (!json) {
    absl::PrintF("%s %s %s\n%s", report.passed ? "ok    " : "FAILED", check.group, check.check.name, report.ToString());
    return;
  }
  for (const GradCheckEntry& entry : report.entries) {
    const nlohmann::ordered_json line = {{"group", std::string(check.group)},
                                         {"check", check.check.name},
                                         {"name", entry.name},
                                         {"passed", entry.passed},
                                         {"max_error", entry.max_error},
                                         {"index", entry.index},
                                         {"analytic", entry.analytic},
                                         {"numeric", entry.numeric},
                                         {"elements", entry.elements},
                                         {"checked", entry.checked},
                                         {"kinks", entry.kinks},
                                         {"received_gradient", entry.received_gradient}};
    absl::PrintF("%s\n", line.dump());
  }
}

// Every op and every layer, under one signature.
std::vector<Check> AllChecks() {
  std::vector<Check> checks;
  for (OpCheck& op : OpChecks()) {
    const auto run = [run = std::move(op.run)](const GradCheckOptions& options) -> absl::StatusOr<GradCheckReport> {
      return run(options);
    };
    checks.push_back({"op", {op.name, run}});
  }
  for (NamedCheck& layer : LayerChecks()) checks.push_back({"layer", std::move(layer)});
  return checks;
}

}  // namespace

absl::Status RunGradcheck(const GradcheckFlags& flags) {
  std::vector<Check> checks;
  if (!flags.config.empty()) {
    if (!flags.names.empty()) return absl::InvalidArgumentError("gradcheck: give names, or --config, not both");
    WEFT_ASSIGN_OR_RETURN(const Config config, LoadTrainingConfig(flags.config, flags.set));
    std::vector<std::string> errors;
    const TransformerConfig model = TransformerConfig::Read(config.model, &errors);
    WEFT_RETURN_IF_ERROR(ErrorsToStatus(errors));
    checks.push_back(
        {"model", {flags.config, [model](const GradCheckOptions& options) { return CheckModel(model, options); }}});
  } else {
    std::vector<std::string> names;
    for (Check& check : AllChecks()) {
      names.push_back(check.check.name);
      if (flags.names.empty() || std::count(flags.names.begin(), flags.names.end(), names.back()) > 0)
        checks.push_back(std::move(check));
    }
    for (const std::string& name : flags.names) {
      if (std::count(names.begin(), names.end(), name) > 0) continue;
      const std::string nearest = Nearest(name, names);
      return absl::InvalidArgumentError(absl::StrCat("gradcheck: no op or layer \"", name, "\"",
                                                     nearest.empty() ? absl::StrCat("; allowed: ", absl::StrJoin(names, " "))
                                                                     : absl::StrCat("; did you mean \"", nearest, "\"?")));
    }
  }
  std::vector<std::string> failed;
  for (const Check& check : checks) {
    WEFT_ASSIGN_OR_RETURN(const GradCheckReport report, check.check.run({}));
    Print(check, report, flags.json);
    if (!report.passed) failed.push_back(absl::StrCat(check.group, " ", check.check.name));
  }
  if (!flags.json) absl::PrintF("%d checks, %d failed\n", checks.size(), failed.size());
  if (!failed.empty()) return absl::InternalError(absl::StrCat("gradcheck: failed: ", absl::StrJoin(failed, " ")));
  return absl::OkStatus();
}

}  // namespace weft
