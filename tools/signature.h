// What a score needs beside it, so that someone else can compute the same number; in the words of sacreBLEU's signatures (Post,
// "A call for clarity in reporting BLEU scores", WMT 2018).
#ifndef WEFT_TOOLS_SIGNATURE_H_
#define WEFT_TOOLS_SIGNATURE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "data/scores/metric.h"

namespace weft {

// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-0.1.0". `references`: how many a line has, or "var"; `test`: how
// two outputs are compared ("|bs:1000|seed:12345"), or empty.
inline std::string ScoreSignature(const TextMetric& metric, absl::string_view references, absl::string_view test = "") {
  return absl::StrCat("nrefs:", references, test, "|", metric.Settings(), "|version:weft-", WEFT_VERSION);
}

}  // namespace weft

#endif  // WEFT_TOOLS_SIGNATURE_H_
