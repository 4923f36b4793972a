#include "train/average.h"

#include <filesystem>

#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "tools/output_flag.h"
#include "tools/verbs.h"
#include "train/run_dir.h"

namespace weft {

absl::Status RunAverage(const AverageFlags& flags) {
  WEFT_RETURN_IF_ERROR(CheckOutputFlag(flags.output, flags.overwrite));
  std::vector<std::string> paths;
  for (const std::string& input : flags.inputs) {
    std::error_code error;
    if (std::filesystem::is_directory(input, error)) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> newest, NewestCheckpoints(input, flags.last));
      paths.insert(paths.end(), newest.begin(), newest.end());
    } else {
      paths.push_back(input);
    }
  }
  WEFT_RETURN_IF_ERROR(MeanOfCheckpoints(paths, flags.output));
  absl::PrintF("mean of %d checkpoints: %s\n", paths.size(), flags.output);
  for (const std::string& path : paths) absl::PrintF("  %s\n", path);
  return absl::OkStatus();
}

}  // namespace weft
