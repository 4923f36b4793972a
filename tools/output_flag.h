// What the verbs that make a file check of its name, before the work.
#ifndef WEFT_TOOLS_OUTPUT_FLAG_H_
#define WEFT_TOOLS_OUTPUT_FLAG_H_

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "data/file.h"

namespace weft {

// InvalidArgument if `path`, the value of -o, is a file that is not to be overwritten; errors of CheckOutput.
inline absl::Status CheckOutputFlag(const std::string& path, bool overwrite) {
  std::error_code error;
  if (!overwrite && std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat("-o: ", path, " exists; choose another name, or --overwrite it"));
  }
  return CheckOutput(path);
}

}  // namespace weft

#endif  // WEFT_TOOLS_OUTPUT_FLAG_H_
