// A serialized tokenizer as a foreign checkpoint could hold it, and a text to encode. After the mode byte (kind in its two low
// bits, then specials, unknown): symbols, each a length byte and so many bytes, up to a length of 0; the rest is the text. With
// mode & 16 the tokenizer is built from that text. With mode & 32 the kinds are others: bpe, unigram (both with scores by
// place; bytes unless mode & 64), a joiner of words, and a tokenizer file that is the rest.
#include <algorithm>
#include <memory>

#include "data/text_file.h"
#include "data/tokenizer.h"
#include "data/tokenizer_file.h"
#include "tests/fuzz/fuzz.h"

namespace {

weft::SerializedTokenizer ReadSerialized(unsigned mode, absl::string_view* rest) {
  constexpr absl::string_view kKinds[] = {"char", "byte", "word", "other", "bpe", "unigram", "word", "file"};
  weft::SerializedTokenizer serialized;
  serialized.kind = std::string(kKinds[(mode & 3) + (mode & 32 ? 4 : 0)]);
  serialized.specials = (mode & 4) != 0;
  serialized.unknown = (mode & 8) != 0;
  while (!rest->empty()) {
    const size_t length = static_cast<unsigned char>(rest->front());
    rest->remove_prefix(1);
    if (length == 0) break;
    serialized.symbols.emplace_back(rest->substr(0, length));
    rest->remove_prefix(std::min(length, rest->size()));
  }
  if (serialized.kind == "bpe" || serialized.kind == "unigram") {
    for (size_t i = 0; i < serialized.symbols.size(); ++i) serialized.scores.push_back(-static_cast<float>(i * 7 % 5));
    serialized.byte_fallback = (mode & 64) == 0;
    serialized.normalization = (mode & 128) == 0 ? "none" : "nmt_nfkc";
  } else if ((mode & 32) != 0) {
    serialized.joiner = "@@";
  }
  return serialized;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::FuzzInput input(data, size);
  if ((input.mode & 35) == 35) {  // a tokenizer file: as it is, and with the checksum set right
    std::string bytes(input.rest);
    for (int round = 0; round < 2; ++round) {
      const auto parsed = weft::ParseTokenizerFile(bytes, "input");
      if (parsed.ok()) {
        FUZZ_EXPECT(weft::TokenizerFileBytes(*parsed) == bytes);
        const auto made = weft::Tokenizer::FromSerialized(*parsed);
        if (made.ok()) FUZZ_EXPECT((*made)->Encode("a b").ok() || (*made)->unk() < 0);
      }
      if (bytes.size() < 32) return 0;
      const uint64_t hash = weft::HashBytes(absl::string_view(bytes).substr(32));
      for (int i = 0; i < 8; ++i) bytes[24 + i] = static_cast<char>(hash >> (8 * i));
    }
    return 0;
  }
  const weft::SerializedTokenizer serialized = ReadSerialized(input.mode, &input.rest);
  const absl::string_view text = input.rest;
  const bool build = (input.mode & 16) != 0;
  const absl::StatusOr<std::unique_ptr<weft::Tokenizer>> made =
      build
          ? weft::BuildTokenizer({.kind = serialized.kind,
                                  .specials = serialized.specials,
                                  .unknown = serialized.unknown,
                                  .joiner = serialized.joiner,
                                  .vocab_size = serialized.scores.empty() ? 0 : 250 + static_cast<int64_t>(input.mode & 15) * 2,
                                  .byte_fallback = serialized.byte_fallback},
                                 {text})
          : weft::Tokenizer::FromSerialized(serialized);
  if (!made.ok()) return 0;
  const weft::Tokenizer& tokenizer = **made;
  const weft::SerializedTokenizer back = tokenizer.Serialize();
  FUZZ_EXPECT(build ||
              (back.kind == serialized.kind && back.symbols == serialized.symbols && back.scores == serialized.scores &&
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
  const bool exact = tokenizer.kind() != "word" && (back.normalization.empty() || back.normalization == "none");
  const bool unknown = tokenizer.unk() >= 0 && std::count(ids->begin(), ids->end(), tokenizer.unk()) > 0;
  if (exact && !unknown) FUZZ_EXPECT(decoded == text);
  std::vector<int32_t> drawn;
  const weft::SubwordSampling sampling{.bpe_dropout = 0.5, .alpha = 0.1};
  if (tokenizer.TrySample(text, sampling, weft::RandomKey{input.mode}, &drawn) < 0 && exact && tokenizer.unk() < 0) {
    FUZZ_EXPECT(tokenizer.Decode(drawn) == text);
  }
  return 0;
}
