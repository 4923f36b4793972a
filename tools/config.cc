#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "tools/verbs.h"
#include "train/session.h"

namespace weft {

absl::Status RunPrintConfig(const ConfigFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Config config, LoadTrainingConfig(flags.config, flags.set));
  absl::PrintF("%s", PrintConfig(config));
  return absl::OkStatus();
}

}  // namespace weft
