#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"
#include "data/text_data.h"
#include "data/text_file.h"

namespace weft {

absl::Status LoadText(const DataOptions& options, Dataset* data) {
  if (options.window < 1) {
    return absl::InvalidArgumentError(absl::StrCat("data.window: found ", options.window, ", allowed from 1 on (tokens)"));
  }
  // Checks the fraction alone, before any file is read.
  WEFT_RETURN_IF_ERROR(ValidationStart(int64_t{1} << 60, options.valid_fraction, "").status());
  if (options.valid_fraction > 0.0 && !options.valid.empty()) {
    return absl::InvalidArgumentError("data.valid and data.valid_fraction are both set; one of them says what to validate on");
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadNamed(options.train, "train"));
  const std::string name = FullPath(options.train);
  TokenizerOptions tokenizer_options = options.target_tokenizer;
  tokenizer_options.specials = false;
  // The vocabulary is that of the whole file, the part for validation included: both come from one text.
  WEFT_ASSIGN_OR_RETURN(data->target_tokenizer, BuildNamed(options.known_target, tokenizer_options, {text}, name));
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> stream, EncodeText(*data->target_tokenizer, text, name));
  const int64_t tokens = static_cast<int64_t>(stream.size());
  WEFT_ASSIGN_OR_RETURN(const int64_t start, ValidationStart(tokens, options.valid_fraction, name));
  std::vector<int32_t> valid_stream(stream.begin() + start, stream.end());
  std::string valid_name = name;
  data->content_hash = HashPart(text, kHashSeed);
  if (!options.valid.empty()) {
    valid_name = FullPath(options.valid);
    WEFT_ASSIGN_OR_RETURN(const std::string valid_text, ReadNamed(options.valid, "valid"));
    data->content_hash = HashPart(valid_text, data->content_hash);
    WEFT_ASSIGN_OR_RETURN(valid_stream, EncodeText(*data->target_tokenizer, valid_text, valid_name));
  }
  stream.resize(start);
  const int64_t valid_tokens = static_cast<int64_t>(valid_stream.size());
  const auto unknown = [&](const std::vector<int32_t>& ids) {
    return DescribeUnknown(data->target_tokenizer.get(), "", 1, [&](int64_t) { return absl::MakeConstSpan(ids); });
  };
  const std::string train_unknown = unknown(stream), valid_unknown = unknown(valid_stream);
  WEFT_ASSIGN_OR_RETURN(data->train, TrainingWindows(std::move(stream), options.window, name));
  Report(data, absl::StrCat("train: ", name, ": ", start, " tokens, ", DescribeSet(data->train), train_unknown));
  if (valid_tokens > 0 || !options.valid.empty()) {
    WEFT_ASSIGN_OR_RETURN(data->valid, ValidationWindows(std::move(valid_stream), options.window, valid_name));
    Report(data, absl::StrCat("valid: ", valid_name, ": ", valid_tokens, " tokens, ", DescribeSet(data->valid), valid_unknown));
  } else {
    Report(data, kNoValidation);
  }
  Report(data, DescribeVocabulary("text", *data->target_tokenizer));
  return absl::OkStatus();
}

absl::Status EvaluationText(const std::string& path, const EvaluationOptions& options, EvaluationData* data) {
  WEFT_CHECK(options.target_tokenizer != nullptr);
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadNamed(path, "valid"));
  const std::string name = FullPath(path);
  data->content_hash = HashPart(text, data->content_hash);
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> stream, EncodeText(*options.target_tokenizer, text, name));
  absl::StrAppend(&data->report, name, ": ", stream.size(), " tokens; ");
  WEFT_ASSIGN_OR_RETURN(data->examples, ValidationWindows(std::move(stream), options.window, name));
  return absl::OkStatus();
}

}  // namespace weft
