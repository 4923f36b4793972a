// A serialized tokenizer as a foreign checkpoint could hold it, and a text to encode. After the mode byte (kind in its two low
// bits, then specials, unknown): symbols, each a length byte and so many bytes, up to a length of 0; the rest is the text. With
// mode & 16 the tokenizer is built from that text.
#include <algorithm>
#include <memory>

#include "data/tokenizer.h"
#include "tests/fuzz/fuzz.h"

namespace {

weft::SerializedTokenizer ReadSerialized(unsigned mode, absl::string_view* rest) {
  constexpr absl::string_view kKinds[] = {"char", "byte", "word", "other"};
  weft::SerializedTokenizer serialized;
  serialized.kind = std::string(kKinds[mode & 3]);
  serialized.specials = (mode & 4) != 0;
  serialized.unknown = (mode & 8) != 0;
  while (!rest->empty()) {
    const size_t length = static_cast<unsigned char>(rest->front());
    rest->remove_prefix(1);
    if (length == 0) break;
    serialized.symbols.emplace_back(rest->substr(0, length));
    rest->remove_prefix(std::min(length, rest->size()));
  }
  return serialized;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::FuzzInput input(data, size);
  const weft::SerializedTokenizer serialized = ReadSerialized(input.mode, &input.rest);
  const absl::string_view text = input.rest;
  const bool build = (input.mode & 16) != 0;
  const absl::StatusOr<std::unique_ptr<weft::Tokenizer>> made =
      build ? weft::BuildTokenizer({.kind = serialized.kind, .specials = serialized.specials, .unknown = serialized.unknown},
                                   {text})
            : weft::Tokenizer::FromSerialized(serialized);
  if (!made.ok()) return 0;
  const weft::Tokenizer& tokenizer = **made;
  const weft::SerializedTokenizer back = tokenizer.Serialize();
  FUZZ_EXPECT(build || (back.kind == serialized.kind && back.symbols == serialized.symbols &&
                        back.specials == serialized.specials && back.unknown == serialized.unknown));
  const auto again = weft::Tokenizer::FromSerialized(back);
  FUZZ_EXPECT(again.ok() && (*again)->Fingerprint() == tokenizer.Fingerprint());
  for (int32_t id = 0; id < tokenizer.size(); ++id) FUZZ_EXPECT(!tokenizer.TokenText(id).empty());
  const absl::StatusOr<std::vector<int32_t>> ids = tokenizer.Encode(text);
  if (!ids.ok()) {
    FUZZ_EXPECT(!build);  // it knows the symbols of its own text
    return 0;
  }
  for (int32_t id : *ids) FUZZ_EXPECT(0 <= id && id < tokenizer.size());
  const std::string decoded = tokenizer.Decode(*ids);
  if (tokenizer.kind() != "word") FUZZ_EXPECT(decoded == text);
  return 0;
}
