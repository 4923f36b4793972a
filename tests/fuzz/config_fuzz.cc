// A config: TOML text up to the first NUL byte, then overrides as of --set, one a line. What loads must print as a config that
// loads to the same one; what does not must say why.
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/fuzz/fuzz.h"
#include "train/config.h"
#include "train/session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  std::vector<std::string> overrides;
  if (end < input.size()) overrides = absl::StrSplit(input.substr(end + 1), '\n', absl::SkipEmpty());
  const weft::ConfigText text{.text = std::string(input.substr(0, end)), .name = "job.toml", .needs_data_files = false};
  const absl::StatusOr<weft::Config> config = weft::ParseConfig(text, overrides, weft::CheckModelTable);
  if (!config.ok()) {
    FUZZ_EXPECT(!config.status().message().empty());
    return 0;
  }
  for (const bool canonical : {false, true}) {
    const std::string printed = canonical ? weft::CanonicalConfig(*config) : weft::PrintConfig(*config);
    const absl::StatusOr<weft::Config> again =
        weft::ParseConfig({.text = printed, .name = "printed", .needs_data_files = false}, {}, weft::CheckModelTable);
    if (!again.ok()) std::fprintf(stderr, "%s\n%s\n", printed.c_str(), again.status().ToString().c_str());
    FUZZ_EXPECT(again.ok());
    FUZZ_EXPECT((canonical ? weft::CanonicalConfig(*again) : weft::PrintConfig(*again)) == printed);
  }
  return 0;
}
