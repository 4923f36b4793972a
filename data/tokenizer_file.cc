#include "data/tokenizer_file.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "data/text_file.h"

namespace weft {
namespace {

// As PNG's signature: the first byte is no text, and the line ends and the ^Z show damage by a transfer as text.
constexpr absl::string_view kMagic = "\x89WT\r\nK\n\x1a";
constexpr uint64_t kVersion = 1;
constexpr size_t kHeader = 8 + 3 * 8;

void AddNumber(uint64_t number, std::string* bytes) {
  for (int i = 0; i < 8; ++i) bytes->push_back(static_cast<char>(number >> (8 * i)));
}

void AddText(absl::string_view text, std::string* bytes) {
  AddNumber(text.size(), bytes);
  bytes->append(text.data(), text.size());
}

// Takes parts from the front; `ok` is false once the bytes did not suffice.
struct Reader {
  absl::string_view left;
  bool ok = true;

  uint64_t Number() {
    if (left.size() < 8) ok = false;
    if (!ok) return 0;
    uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number |= static_cast<uint64_t>(static_cast<unsigned char>(left[i])) << (8 * i);
    left.remove_prefix(8);
    return number;
  }
  std::string Text() {
    const uint64_t size = Number();
    if (size > left.size()) ok = false;
    if (!ok) return "";
    std::string text(left.substr(0, size));
    left.remove_prefix(size);
    return text;
  }
  bool Flag() {
    const uint64_t number = Number();
    ok = ok && number <= 1;
    return number == 1;
  }
};

}  // namespace

std::string TokenizerFileBytes(const SerializedTokenizer& tokenizer) {
  std::string body;
  AddText(tokenizer.kind, &body);
  AddNumber(tokenizer.unknown, &body);
  AddText(tokenizer.joiner, &body);
  AddNumber(tokenizer.byte_fallback, &body);
  AddText(tokenizer.normalization, &body);
  AddNumber(tokenizer.symbols.size(), &body);
  for (const std::string& symbol : tokenizer.symbols) AddText(symbol, &body);
  AddNumber(tokenizer.scores.size(), &body);
  for (float score : tokenizer.scores) {
    uint32_t bits;
    std::memcpy(&bits, &score, sizeof(bits));
    AddNumber(bits, &body);
  }
  std::string bytes(kMagic);
  AddNumber(kVersion, &bytes);
  AddNumber(body.size(), &bytes);
  AddNumber(HashBytes(body), &bytes);
  return bytes + body;
}

bool IsTokenizerFile(absl::string_view bytes) { return absl::StartsWith(bytes, kMagic); }

absl::StatusOr<SerializedTokenizer> ParseTokenizerFile(absl::string_view bytes, absl::string_view name) {
  const auto damaged = [&](auto... what) { return absl::DataLossError(absl::StrCat(name, ": ", what...)); };
  if (bytes.empty()) return damaged("is empty, not a tokenizer file");
  if (!IsTokenizerFile(bytes)) {
    const bool ours = absl::StartsWith(bytes, kMagic.substr(0, 3));
    return damaged(ours ? "damaged: byte 3: its line ends were changed, as by a transfer as text"
                        : "not a tokenizer file as `weft tokenizer train` writes them (byte 0: wrong magic)");
  }
  if (bytes.size() < kHeader) return damaged("damaged: ends at byte ", bytes.size(), " inside the header");
  Reader reader{bytes.substr(kMagic.size())};
  const uint64_t version = reader.Number(), size = reader.Number(), checksum = reader.Number();
  if (version > kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": tokenizer format ", version, " is newer than this build, which reads up to format ", kVersion));
  }
  if (version == 0 || size != reader.left.size()) {
    return damaged("damaged: format ", version, ", ", reader.left.size(), " bytes after its header, which says ", size);
  }
  if (HashBytes(reader.left) != checksum) {
    return damaged(absl::StrFormat("damaged: the checksum of bytes %d to %d is %016x, byte 24 says %016x", kHeader,
                                   bytes.size(), HashBytes(reader.left), checksum));
  }
  SerializedTokenizer tokenizer;
  tokenizer.kind = reader.Text();
  tokenizer.unknown = reader.Flag();
  tokenizer.joiner = reader.Text();
  tokenizer.byte_fallback = reader.Flag();
  tokenizer.normalization = reader.Text();
  // The counts may be forged: the lists grow as they are read.
  for (uint64_t left = reader.Number(); reader.ok && left > 0; --left) tokenizer.symbols.push_back(reader.Text());
  for (uint64_t left = reader.Number(); reader.ok && left > 0; --left) {
    const uint64_t bits = reader.Number();
    const uint32_t low = static_cast<uint32_t>(bits);
    reader.ok = reader.ok && bits == low;
    std::memcpy(&tokenizer.scores.emplace_back(), &low, sizeof(low));
  }
  if (!reader.ok || !reader.left.empty()) return damaged("damaged: its parts do not fill its ", bytes.size(), " bytes");
  return tokenizer;
}

absl::StatusOr<SerializedTokenizer> LoadTokenizerFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(path));
  return ParseTokenizerFile(bytes, FullPath(path));
}

}  // namespace weft
