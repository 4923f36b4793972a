// TOML 1.0 text <-> Options. Reading keeps file:line:column of every value (columns count characters, from 1) and the order of
// the file; printing is canonical: the same Options always give the same text, and ParseToml(PrintToml(x)) has the values of x,
// bit for bit. The only user of toml++. Pure functions, thread-safe.
#ifndef WEFT_TRAIN_TOML_H_
#define WEFT_TRAIN_TOML_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autograd/base/fields.h"

namespace weft {

// `name` stands for the file in places and messages. InvalidArgument with the place for text that is not TOML (a key given
// twice and an integer beyond 64 bits included) and for dates and times, which no config uses.
absl::StatusOr<Options> ParseToml(absl::string_view text, absl::string_view name);

// Values of the root first, then one [section] a table, in the order of `root`; tables inside of sections are inline. Doubles
// in the shortest form that reads back to the same bits. REQUIRES: strings and keys are UTF-8.
std::string PrintToml(const Options& root);
// One value as it stands behind "key = ".
std::string PrintTomlValue(const OptionValue& value);

// Applies a command line's "--set KEY=VALUE", for example "model.d_model=64": KEY is a dotted path, whose missing tables are
// made. VALUE is read as a TOML value; a bare word or path that is none is a string (data.train=../x.txt), an empty VALUE the
// empty string. A text that opens like a string, list or table must be one. The new value's place is "--set KEY".
// InvalidArgument, naming the override, for anything else.
absl::Status ApplyOverride(absl::string_view override_text, Options* root);

}  // namespace weft

#endif  // WEFT_TRAIN_TOML_H_
