#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "tools/verbs.h"
#include "train/config_text.h"
#include "train/session.h"

namespace weft {

absl::Status RunPrintConfig(const ConfigFlags& flags) {
  if (flags.schema) {
    absl::PrintF("%s", ConfigSchema());
    return absl::OkStatus();
  }
  if (flags.config.empty()) return absl::InvalidArgumentError("config: CONFIG is required: give a TOML file, or --schema");
  WEFT_ASSIGN_OR_RETURN(const Config config, LoadTrainingConfig(flags.config, flags.set));
  std::string text = flags.full ? FullConfig(config) : PrintConfig(config);
  if (flags.minimal) {
    WEFT_ASSIGN_OR_RETURN(text, MinimalConfig(config, CheckModelTable));
  }
  absl::PrintF("%s", text);
  return absl::OkStatus();
}

}  // namespace weft
