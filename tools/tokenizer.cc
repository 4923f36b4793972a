#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "autograd/base/status.h"
#include "data/columns.h"
#include "data/file.h"
#include "data/text_file.h"
#include "data/tokenizer_file.h"
#include "data/utf8.h"
#include "tools/output_flag.h"
#include "tools/verbs.h"
#include "train/checkpoint.h"
#include "train/run_dir.h"
#include "train/session.h"

namespace weft {
namespace {

constexpr int32_t kFirstPieces = 20;  // that `inspect` shows

// A tokenizer, and how many columns with tabs between a line that it encodes has.
struct Loaded {
  std::unique_ptr<Tokenizer> tokenizer;
  int64_t columns = 1;
};

// That of one side of a checkpoint: without `side` that of its sources, or of its text.
absl::StatusOr<Loaded> FromRun(const std::string& run, const std::string& side) {
  WEFT_ASSIGN_OR_RETURN(const std::string path, ResolveCheckpoint(run));
  WEFT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  WEFT_ASSIGN_OR_RETURN(const Config config, ConfigOf(checkpoint));
  WEFT_ASSIGN_OR_RETURN(SideTokenizers sides, RestoreTokenizers(checkpoint.meta(), config.data));
  if (side.empty() && sides.source != nullptr && sides.target != nullptr &&
      sides.source->Fingerprint() != sides.target->Fingerprint()) {
    return absl::InvalidArgumentError(absl::StrCat("--side: missing; ", path, " has two tokenizers, allowed source or target"));
  }
  const bool of_source = side.empty() ? sides.source != nullptr : side == "source";
  std::unique_ptr<Tokenizer>& chosen = of_source ? sides.source : sides.target;
  if (chosen == nullptr) return absl::InvalidArgumentError(absl::StrCat("--side: ", path, " has no ", side, " tokenizer"));
  return Loaded{std::move(chosen), of_source ? static_cast<int64_t>(config.data.columns.source.size()) : 1};
}

absl::StatusOr<Loaded> Load(const TokenizerFlags& flags) {
  std::error_code error;
  if (!std::filesystem::is_directory(flags.input, error)) {
    WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(flags.input));
    // Anything but a checkpoint is reported as a broken tokenizer file.
    if (IsTokenizerFile(bytes) || bytes.substr(0, 5) != "\x89WEFT") {
      WEFT_ASSIGN_OR_RETURN(const SerializedTokenizer stored, ParseTokenizerFile(bytes, FullPath(flags.input)));
      if (!flags.side.empty()) return absl::InvalidArgumentError("--side: is for runs; a tokenizer file has one tokenizer");
      Loaded loaded;
      WEFT_ASSIGN_OR_RETURN(loaded.tokenizer, Tokenizer::FromSerialized(stored));
      return loaded;
    }
  }
  return FromRun(flags.input, flags.side);
}

// A token as one word of printable text: a space as U+2581, what else would garble a line or a column as \xNN.
std::string Printable(absl::string_view text) {
  const std::string words = absl::StrReplaceAll(text, {{" ", "▁"}, {"▁", "\\xE2\\x96\\x81"}, {"\\", "\\x5C"}});
  return EscapeControls(words);
}

void PrintRow(const Tokenizer& tokenizer, const SerializedTokenizer& stored, int32_t id) {
  const int64_t place = id - tokenizer.implied_symbols();
  const bool scored = place >= 0 && place < static_cast<int64_t>(stored.scores.size());
  absl::PrintF("%d\t%s%s\n", id, Printable(tokenizer.TokenText(id)),
               scored ? absl::StrFormat("\t%.9g", stored.scores[place]) : "");
}

}  // namespace

absl::Status RunTokenizerTrain(const TokenizerTrainFlags& flags) {
  WEFT_RETURN_IF_ERROR(CheckTokenizerOptions(flags.options));
  WEFT_RETURN_IF_ERROR(CheckOutputFlag(flags.output, flags.overwrite));
  std::vector<std::string> texts;
  std::string names;
  for (const std::string& path : flags.texts) {
    WEFT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
    absl::StrAppend(&names, names.empty() ? "" : " and ", FullPath(path));
    if (text.empty()) return absl::FailedPreconditionError(absl::StrCat(FullPath(path), ": is empty"));
    texts.push_back(std::move(text));
  }
  std::string notes;
  const std::vector<absl::string_view> views(texts.begin(), texts.end());
  absl::StatusOr<std::unique_ptr<Tokenizer>> built = BuildTokenizer(flags.options, views, &notes);
  // A size that cannot be is an error of the flags, any other one of the texts.
  if (!built.ok() && !absl::IsInvalidArgument(built.status())) {
    return absl::Status(built.status().code(), absl::StrCat(names, ": ", built.status().message()));
  }
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, std::move(built));
  WEFT_RETURN_IF_ERROR(WriteOutput(flags.output, TokenizerFileBytes(tokenizer->Serialize())));
  std::fputs(notes.c_str(), stderr);
  absl::PrintF("%s: %s, %d ids, hash %016x\n", flags.output, tokenizer->kind(), tokenizer->size(), tokenizer->Fingerprint());
  return absl::OkStatus();
}

absl::Status RunTokenizerEncode(const TokenizerFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Loaded loaded, Load(flags));
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadTextStdin());
  int64_t number = 0;
  for (const absl::string_view line : Lines(text)) {
    ++number;
    const absl::StatusOr<std::vector<int32_t>> ids = EncodePrompt(*loaded.tokenizer, line, loaded.columns);
    if (!ids.ok()) return absl::Status(ids.status().code(), absl::StrCat("stdin:", number, ": ", ids.status().message()));
    std::string out;
    for (const int32_t id : *ids) {
      absl::StrAppend(&out, out.empty() ? "" : " ",
                      flags.pieces ? Printable(loaded.tokenizer->TokenText(id)) : absl::StrCat(id));
    }
    absl::PrintF("%s\n", out);
  }
  return absl::OkStatus();
}

absl::Status RunTokenizerDecode(const TokenizerFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Loaded loaded, Load(flags));
  const Tokenizer* tokenizer = loaded.tokenizer.get();
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadTextStdin());
  int64_t number = 0;
  for (const absl::string_view line : Lines(text)) {
    ++number;
    std::vector<int32_t> ids;
    for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      int32_t id;
      if (!absl::SimpleAtoi(word, &id) || id < 0 || id >= tokenizer->size()) {
        return absl::FailedPreconditionError(
            absl::StrCat("stdin:", number, ": found ", Quote(word), ", allowed ids from 0 to ", tokenizer->size() - 1));
      }
      ids.push_back(id);
    }
    const std::string decoded = tokenizer->Decode(ids);
    std::fwrite(decoded.data(), 1, decoded.size(), stdout);
    std::fputc('\n', stdout);
  }
  return absl::OkStatus();
}

absl::Status RunTokenizerInspect(const TokenizerFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const Loaded loaded, Load(flags));
  const Tokenizer& tokenizer = *loaded.tokenizer;
  const SerializedTokenizer stored = tokenizer.Serialize();
  const int32_t size = static_cast<int32_t>(tokenizer.size());
  if (flags.all) {
    for (int32_t id = 0; id < size; ++id) PrintRow(tokenizer, stored, id);
    return absl::OkStatus();
  }
  const auto special = [](const char* name, int32_t id) { return id < 0 ? "" : absl::StrCat(" ", name, " ", id); };
  const std::string specials = special("<bos>", tokenizer.bos()) + special("<eos>", tokenizer.eos()) +
                               special("<unk>", tokenizer.unk()) + special("<sep>", tokenizer.sep());
  absl::PrintF("kind      %s\nids       %d\nhash      %016x\nspecials %s\n", tokenizer.kind(), size, tokenizer.Fingerprint(),
               specials.empty() ? " none" : specials);
  if (!stored.joiner.empty()) absl::PrintF("joiner    %s\n", Printable(stored.joiner));
  if (!stored.scores.empty()) {
    absl::PrintF("bytes     %s\nnormalization %s\n", stored.byte_fallback ? "ids 0 to 255" : "none", stored.normalization);
  }
  // Behind the bytes, which every such tokenizer has, unless it has nothing else.
  const int32_t first = stored.symbols.empty() ? 0 : static_cast<int32_t>(tokenizer.implied_symbols());
  absl::PrintF("first pieces (--all for every one):\n");
  for (int32_t id = first; id < std::min(size, first + kFirstPieces); ++id) PrintRow(tokenizer, stored, id);
  return absl::OkStatus();
}

}  // namespace weft
