#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/load_kinds.h"
#include "data/text_data.h"
#include "data/text_file.h"
#include "data/text_source.h"
#include "data/token_cache.h"

namespace weft {
namespace {

// Goes through the text once for its hash and, unless there is a known one, its tokenizer.
absl::StatusOr<ContentHash> ScanText(const TextSource& source, uint64_t seed, const Tokenizer* known,
                                     const TokenizerOptions& options, std::unique_ptr<Tokenizer>* tokenizer,
                                     std::string* report) {
  ContentPass pass(source, seed);
  bool first = true;  // a kind may ask for the text several times, or not at all
  if (known == nullptr) {
    const auto pieces = [&](TextSource::TakePiece take) {
      return std::exchange(first, false) ? pass.ForEach(take) : source.ForEach(take);
    };
    WEFT_ASSIGN_OR_RETURN(*tokenizer, BuildNamed(nullptr, options, pieces, source.name(), report));
  }
  if (first) WEFT_RETURN_IF_ERROR(pass.ForEach([](absl::string_view) { return absl::OkStatus(); }));
  return pass.Finish();
}

// The ids of a text: of one that is read in pieces in the token cache, which `report` then says on a line.
absl::StatusOr<TokenStream> TokensOf(const TextSource& source, const ContentHash& content, const Tokenizer& tokenizer,
                                     const TextStorage& storage, std::string* report) {
  const auto encode = [&](absl::FunctionRef<absl::Status(absl::Span<const int32_t>)> take) {
    const auto pieces = [&](TextSource::TakePiece take_piece) {
      return source.is_streamed() ? source.ForEachOf(content, take_piece) : source.ForEach(take_piece);
    };
    return EncodeText(tokenizer, pieces, source.name(), take);
  };
  if (!source.is_streamed()) return HoldTokens(tokenizer.size(), encode);
  const TokenCacheKey key{content.hash, tokenizer.Fingerprint(), tokenizer.size()};
  WEFT_ASSIGN_OR_RETURN(TokenStream stream, CacheTokens(storage.cache, key, encode, report));
  absl::StrAppend(report, "\n");
  return stream;
}

absl::StatusOr<std::string> DescribeUnknownIn(const TokenStream& stream, const Tokenizer& tokenizer) {
  if (tokenizer.unk() < 0) return "";
  WEFT_ASSIGN_OR_RETURN(const int64_t unknown, stream.Count(tokenizer.unk()));
  return DescribeUnknown(tokenizer, unknown, stream.size(), "");
}

}  // namespace

absl::Status LoadText(const DataOptions& options, Dataset* data) {
  if (options.window < 1) {
    return absl::InvalidArgumentError(absl::StrCat("data.window: found ", options.window, ", allowed from 1 on (tokens)"));
  }
  // Checks the fraction alone, before any file is read.
  WEFT_RETURN_IF_ERROR(ValidationStart(int64_t{1} << 60, options.valid_fraction, "").status());
  if (options.valid_fraction > 0.0 && !options.valid.empty()) {
    return absl::InvalidArgumentError("data.valid and data.valid_fraction are both set; one of them says what to validate on");
  }
  WEFT_ASSIGN_OR_RETURN(const TextSource source, OpenNamed(options.train, "train", options.storage));
  TokenizerOptions tokenizer_options = options.target_tokenizer;
  if (tokenizer_options.sampling.on()) {
    return absl::InvalidArgumentError(
        "data.tokenizer.sampling: is for pairs and labels; the windows of a text have one encoding");
  }
  tokenizer_options.specials = false;
  // The vocabulary is that of the whole file, the part for validation included: both come from one text.
  if (options.known_target != nullptr) {
    const auto no_pieces = [](TextSource::TakePiece) { return absl::OkStatus(); };
    WEFT_ASSIGN_OR_RETURN(data->target_tokenizer,
                          BuildNamed(options.known_target, tokenizer_options, no_pieces, source.name(), &data->report));
  }
  WEFT_ASSIGN_OR_RETURN(const ContentHash content, ScanText(source, kHashSeed, data->target_tokenizer.get(), tokenizer_options,
                                                            &data->target_tokenizer, &data->report));
  const Tokenizer& tokenizer = *data->target_tokenizer;
  WEFT_ASSIGN_OR_RETURN(const TokenStream all, TokensOf(source, content, tokenizer, options.storage, &data->report));
  WEFT_ASSIGN_OR_RETURN(const int64_t start, ValidationStart(all.size(), options.valid_fraction, source.name()));
  WEFT_ASSIGN_OR_RETURN(TokenStream train, all.Slice(0, start));
  WEFT_ASSIGN_OR_RETURN(TokenStream valid, all.Slice(start, all.size() - start));
  std::string valid_name = source.name();
  data->content_hash = content.hash;
  if (!options.valid.empty()) {
    WEFT_ASSIGN_OR_RETURN(const TextSource valid_source, OpenNamed(options.valid, "valid", options.storage));
    WEFT_ASSIGN_OR_RETURN(const ContentHash valid_content,
                          ScanText(valid_source, content.hash, &tokenizer, {}, nullptr, nullptr));
    WEFT_ASSIGN_OR_RETURN(valid, TokensOf(valid_source, valid_content, tokenizer, options.storage, &data->report));
    valid_name = valid_source.name();
    data->content_hash = valid_content.hash;
  }
  const int64_t valid_tokens = valid.size();
  WEFT_ASSIGN_OR_RETURN(const std::string train_unknown, DescribeUnknownIn(train, tokenizer));
  WEFT_ASSIGN_OR_RETURN(const std::string valid_unknown, DescribeUnknownIn(valid, tokenizer));
  WEFT_ASSIGN_OR_RETURN(data->train, TrainingWindows(std::move(train), options.window, source.name()));
  Report(data, absl::StrCat("train: ", source.name(), ": ", start, " tokens, ", DescribeSet(data->train), train_unknown));
  if (valid_tokens > 0 || !options.valid.empty()) {
    WEFT_ASSIGN_OR_RETURN(data->valid, ValidationWindows(std::move(valid), options.window, valid_name));
    Report(data, absl::StrCat("valid: ", valid_name, ": ", valid_tokens, " tokens, ", DescribeSet(data->valid), valid_unknown));
  } else {
    Report(data, kNoValidation);
  }
  Report(data, DescribeVocabulary("text", tokenizer));
  return absl::OkStatus();
}

absl::Status EvaluationText(const std::string& path, const EvaluationOptions& options, EvaluationData* data) {
  WEFT_CHECK(options.target_tokenizer != nullptr);
  WEFT_ASSIGN_OR_RETURN(const TextSource source, OpenNamed(path, "valid", options.storage));
  WEFT_ASSIGN_OR_RETURN(const ContentHash content,
                        ScanText(source, data->content_hash, options.target_tokenizer, {}, nullptr, nullptr));
  data->content_hash = content.hash;
  std::string cached;
  WEFT_ASSIGN_OR_RETURN(TokenStream stream, TokensOf(source, content, *options.target_tokenizer, options.storage, &cached));
  data->report = absl::StrCat(cached, data->report, source.name(), ": ", stream.size(), " tokens; ");
  WEFT_ASSIGN_OR_RETURN(data->examples, ValidationWindows(std::move(stream), options.window, source.name()));
  return absl::OkStatus();
}

}  // namespace weft
