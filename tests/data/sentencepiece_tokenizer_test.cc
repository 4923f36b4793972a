#include "data/sentencepiece_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/random.h"
#include "data/text_file.h"
#include "data/text_stream.h"
#include "data/tokenizer_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr char kText[] =
    "the cat sat on the mat\nthe rat sat on the hat\na cat and a rat and a hat\nthat fat cat sat there\n"
    "the café had a naïve 日本 mat\nthat other brother has another hat than the mother\nthe weather gathers there rather\n"
    "another feather for the other hat\na mother and a father gather\nthe brothers rather matter to the others\n";

TokenizerOptions Options(const char* kind, int64_t vocab_size, bool bytes = true) {
  return {.kind = kind, .vocab_size = vocab_size, .byte_fallback = bytes};
}

std::unique_ptr<Tokenizer> Build(const TokenizerOptions& options, const std::vector<absl::string_view>& texts = {kText}) {
  auto tokenizer = BuildTokenizer(options, texts);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<std::string> HardTexts() {
  return {"",
          " ",
          "  a",
          "a  ",
          "a\n\nb\t",
          "\n",
          "\n\n",
          " \n ",
          "Ġa",
          "▁a▁ ▁",
          "▅",
          "\xC3\xA9 e\xCC\x81",
          std::string(300, ' '),
          "👩\u200D🚀",
          std::string("a\0b\n", 4),
          std::string("\0", 1),
          "\x01\x7F",
          "<eos><bos><unk><s></s><0x41><pad>",
          "\r\n\u2028\u00A0\u3000\uFEFF\uFFFD",
          kText};
}

TEST(SentencePieceTokenizerTest, EveryTextComesBackByteForByte) {
  for (const char* kind : {"bpe", "unigram"}) {
    TokenizerOptions options = Options(kind, 300);
    options.specials = true;
    const auto tokenizer = Build(options);
    EXPECT_EQ(tokenizer->kind(), kind);
    EXPECT_EQ(tokenizer->size(), 302);
    for (const std::string& text : HardTexts()) {
      const auto ids = tokenizer->Encode(text);
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_EQ(tokenizer->Decode(*ids), text) << kind;
      for (int32_t id : *ids) EXPECT_TRUE(id != tokenizer->bos() && id != tokenizer->eos()) << text;
    }
  }
}

TEST(SentencePieceTokenizerTest, WithoutBytesTheTrainingTextComesBackToo) {
  std::string text(kText);
  for (const std::string& hard : HardTexts()) absl::StrAppend(&text, hard, "\n");
  for (const char* kind : {"bpe", "unigram"}) {
    const auto tokenizer = Build(Options(kind, 75, false), {text});
    EXPECT_EQ(tokenizer->size(), 75);
    const auto ids = tokenizer->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(tokenizer->Decode(*ids), text);
  }
}

TEST(SentencePieceTokenizerTest, RandomTextsComeBack) {
  const auto bpe = Build(Options("bpe", 300)), unigram = Build(Options("unigram", 300));
  for (uint64_t t = 0; t < 200; ++t) {
    const RandomKey key = RandomKey{11}.Fold(t);
    constexpr absl::string_view kParts[] = {"a", "the ", " ", "\n", "▁", "cat", "é", "日", "\t", "\U0001F680", "<0x0A>", "  "};
    std::string text;
    for (int64_t i = 0; i < key.Below(0, 30); ++i) absl::StrAppend(&text, kParts[key.Below(1 + i, 12)]);
    EXPECT_EQ(bpe->Decode(bpe->Encode(text).value()), text);
    EXPECT_EQ(unigram->Decode(unigram->Encode(text).value()), text);
  }
}

TEST(SentencePieceTokenizerTest, ALineIsEncodedAsIfItStoodAlone) {
  for (const char* kind : {"bpe", "unigram"}) {
    for (const bool bytes : {true, false}) {
      const auto tokenizer = Build(Options(kind, bytes ? 300 : 45, bytes));
      std::vector<int32_t> joined;
      const std::vector<int32_t> newline = tokenizer->Encode("\n").value();
      ASSERT_EQ(newline.size(), 1u);
      for (absl::string_view line : Lines(kText)) {
        const std::vector<int32_t> ids = tokenizer->Encode(line).value();
        joined.insert(joined.end(), ids.begin(), ids.end());
        joined.push_back(newline[0]);
      }
      EXPECT_EQ(tokenizer->Encode(kText).value(), joined) << kind;
    }
  }
}

TEST(SentencePieceTokenizerTest, FrequentWordsAreOnePiece) {
  for (const char* kind : {"bpe", "unigram"}) {
    const auto tokenizer = Build(Options(kind, 300));
    const std::vector<int32_t> ids = tokenizer->Encode(" the the").value();
    ASSERT_EQ(ids.size(), 2u) << kind;
    EXPECT_EQ(tokenizer->TokenText(ids[0]), " the");
  }
}

TEST(SentencePieceTokenizerTest, AnUnknownCharacterIsNamedOrUnk) {
  for (const char* kind : {"bpe", "unigram"}) {
    TokenizerOptions options = Options(kind, 45, false);
    const auto refused = Build(options)->Encode("the cat\nthe €");
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("unknown character \"€\" (U+20AC) at character 13, byte offset 12"));
    options.unknown = true;
    const auto tokenizer = Build(options);
    const std::vector<int32_t> ids = tokenizer->Encode("the €€").value();
    EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->unk()), 2);
    EXPECT_EQ(tokenizer->Decode(ids), "the <unk><unk>");
    // The text "<unk>" is five characters of which some are unknown, never the id by its name.
    EXPECT_GT(tokenizer->Encode("<unk>").value().size(), 1u);
  }
}

TEST(SentencePieceTokenizerTest, ImpossibleSizesNameTheLargestPossibleOne) {
  for (const char* kind : {"bpe", "unigram"}) {
    const auto high = BuildTokenizer(Options(kind, 100000), {kText});
    ASSERT_FALSE(high.ok());
    const std::string message(high.status().message());
    EXPECT_EQ(high.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(message, HasSubstr("vocab_size: found 100000, but the training text allows at most "));
    // What it names works, and one more does not.
    const int64_t most = std::stoll(message.substr(message.rfind(' ') + 1));
    EXPECT_EQ(Build(Options(kind, most))->size(), most);
    EXPECT_FALSE(BuildTokenizer(Options(kind, most + 1), {kText}).ok());
    const auto low = BuildTokenizer(Options(kind, 258), {kText});
    ASSERT_FALSE(low.ok());
    const std::string low_message(low.status().message());
    EXPECT_THAT(low_message, HasSubstr("vocab_size: found 258, but the training text allows no fewer than its characters: "));
    const int64_t least = std::stoll(low_message.substr(low_message.rfind(' ') + 1));
    EXPECT_EQ(Build(Options(kind, least))->size(), least);
    EXPECT_FALSE(BuildTokenizer(Options(kind, least - 1), {kText}).ok());
    EXPECT_THAT(std::string(BuildTokenizer(Options(kind, 256), {kText}).status().message()), HasSubstr("allowed above 256"));
    for (const char* empty : {"", "\n\n", "\t"}) {
      const auto none = BuildTokenizer(Options(kind, 300), {empty});
      EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition) << none.status();
    }
  }
}

TEST(SentencePieceTokenizerTest, SmallTextsOfAnyFormAreLearnedOrRefused) {
  // Whatever the text, the library never ends the process.
  int64_t learned = 0;
  for (uint64_t t = 0; t < 150; ++t) {
    const RandomKey key = RandomKey{12}.Fold(t);
    constexpr absl::string_view kParts[] = {"a", "b", " ", "\n", "▁", "aa", "日", "c"};
    std::string text;
    for (int64_t i = 0; i < key.Below(0, 30); ++i) absl::StrAppend(&text, kParts[key.Below(1 + i, 8)]);
    const auto made = BuildTokenizer(Options(t % 2 == 0 ? "bpe" : "unigram", 257 + key.Below(99, 12)), {text});
    if (!made.ok()) continue;
    ++learned;
    EXPECT_EQ((*made)->Decode((*made)->Encode(text).value()), text);
  }
  EXPECT_GT(learned, 30);
}

TEST(SentencePieceTokenizerTest, SavedAndRestoredTheVocabularyIsTheSame) {
  for (const char* kind : {"bpe", "unigram"}) {
    for (const bool bytes : {true, false}) {
      TokenizerOptions options = Options(kind, bytes ? 300 : 45, bytes);
      options.specials = true;
      options.unknown = !bytes;
      const auto tokenizer = Build(options);
      const auto restored = Tokenizer::FromSerialized(tokenizer->Serialize());
      ASSERT_TRUE(restored.ok()) << restored.status();
      EXPECT_EQ((*restored)->Fingerprint(), tokenizer->Fingerprint());
      EXPECT_EQ((*restored)->Encode("the hat▁").ok(), tokenizer->Encode("the hat▁").ok());
      EXPECT_EQ((*restored)->Encode("the hat").value(), tokenizer->Encode("the hat").value());
    }
  }
}

TEST(SentencePieceTokenizerTest, TheFingerprintCoversPiecesOrderScoresAndSettings) {
  const auto tokenizer = Build(Options("unigram", 300));
  const SerializedTokenizer stored = tokenizer->Serialize();
  const auto differs = [&](auto change) {
    SerializedTokenizer changed = stored;
    change(changed);
    const auto other = Tokenizer::FromSerialized(changed);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_NE((*other)->Fingerprint(), tokenizer->Fingerprint());
    EXPECT_THAT(DescribeMismatch(**other, *tokenizer), HasSubstr("expected unigram of 300 ids, hash "));
  };
  differs([](auto& s) { std::swap(s.symbols[3], s.symbols[4]); });
  differs([](auto& s) { s.symbols.push_back("zz"), s.scores.push_back(-3); });
  differs([](auto& s) { s.scores[5] += 0.25f; });
  differs([](auto& s) { s.kind = "bpe"; });
  differs([](auto& s) { s.normalization = "nfkc"; });
  differs([](auto& s) { s.byte_fallback = false; });
  differs([](auto& s) { s.specials = true; });
}

TEST(SentencePieceTokenizerTest, ForgedSettingsAreDataLoss) {
  const SerializedTokenizer stored = Build(Options("bpe", 300))->Serialize();
  const auto refused = [&](const char* message, auto change) {
    SerializedTokenizer changed = stored;
    change(changed);
    const auto made = Tokenizer::FromSerialized(changed);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kDataLoss) << message;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr(message));
  };
  refused("appears twice", [](auto& s) { s.symbols[1] = s.symbols[2]; });
  refused("has no pieces", [](auto& s) { s.symbols.clear(), s.scores.clear(); });
  refused("scores of", [](auto& s) { s.scores.pop_back(); });
  refused("the score of piece 2 is", [](auto& s) { s.scores[2] = std::nanf(""); });
  refused("piece 0 is no part of a word", [](auto& s) { s.symbols[0] = ""; });
  refused("piece 0 is no part of a word", [](auto& s) { s.symbols[0] = "a b"; });
  refused("piece 0 is no part of a word", [](auto& s) { s.symbols[0] = "\n"; });
  refused("piece 0 is no part of a word", [](auto& s) { s.symbols[0] = "\xFF"; });
  refused("piece 0 is no part of a word", [](auto& s) { s.symbols[0] = std::string(100000, 'a'); });
  refused("normalization: found \"nfd\"", [](auto& s) { s.normalization = "nfd"; });
  refused("has an <unk>", [](auto& s) { s.unknown = true; });
  refused("which its kind cannot have", [](auto& s) { s = {.kind = "char", .symbols = {"a"}, .joiner = "@@"}; });
  refused("settings of the kinds bpe", [](auto& s) { s.kind = "word"; });
}

TEST(SentencePieceTokenizerTest, ANamedNormalizationHoldsForTrainingAndEncoding) {
  TokenizerOptions options = Options("bpe", 300);
  options.normalization = "nfkc_cf";
  const auto tokenizer = Build(options);
  EXPECT_EQ(tokenizer->Encode("THE ﬁ").value(), tokenizer->Encode("the fi").value());
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("  THE  Cat\n\nＡ ▁ ").value()), "  the  cat\n\na ▁ ");
  options.normalization = "nmt_nfkc";
  EXPECT_EQ(Build(options)->Decode(Build(options)->Encode("a\tb\u00A0c ① \x01").value()), "a b c 1 ");
  // Without bytes the unknown character is looked for in the text as it was.
  options.byte_fallback = false;
  options.vocab_size = 45;
  EXPECT_THAT(std::string(Build(options)->Encode("ｔｈｅ ㎞").status().message()), HasSubstr("at character 5, byte offset 10"));
}

TEST(SentencePieceTokenizerTest, CharacterCoverageHoldsFromItsSmallestValueOnAndToTheLastDigit) {
  const auto has = [](const TokenizerOptions& options, absl::string_view text, const char* piece) {
    const std::vector<std::string> symbols = Build(options, {text})->Serialize().symbols;
    return std::find(symbols.begin(), symbols.end(), piece) != symbols.end();
  };
  for (const char* kind : {"bpe", "unigram"}) {
    TokenizerOptions options = Options(kind, 290);
    EXPECT_TRUE(has(options, kText, "本")) << kind;
    options.character_coverage = 0.98;
    EXPECT_FALSE(has(options, kText, "本")) << kind;
    EXPECT_TRUE(has(options, kText, "t")) << kind;
  }
  // The last one of 1.25 million characters: those before it are 0.9999992 of all. Six places would make it 0.999999.
  std::string rare = kText;
  for (int64_t i = 0; i < 312500; ++i) rare += " the";
  TokenizerOptions options = Options("bpe", 290);
  options.character_coverage = 0.9999994;
  EXPECT_TRUE(has(options, rare, "本"));
  options.character_coverage = 0.999999;
  EXPECT_FALSE(has(options, rare, "本"));
}

TEST(SentencePieceTokenizerTest, OptionsThatContradictEachOtherAreRefused) {
  const auto refused = [](const TokenizerOptions& options, const char* message) {
    const absl::Status status = CheckTokenizerOptions(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_EQ(BuildTokenizer(options, {kText}).status().code(), absl::StatusCode::kInvalidArgument);
  };
  refused({.kind = "bpe"}, "vocab_size is missing");
  refused({.kind = "char", .vocab_size = 3}, "vocab_size belongs to bpe and unigram");
  refused({.kind = "bpe", .unknown = true, .vocab_size = 300}, "without byte_fallback = false");
  refused({.kind = "bpe", .vocab_size = 300, .character_coverage = 0}, "character_coverage = 0");
  refused({.kind = "bpe", .vocab_size = 300, .character_coverage = 0.97999999},
          "character_coverage = 0.97999999, allowed from 0.98");
  refused({.kind = "bpe", .vocab_size = 300, .character_coverage = 1.000001}, "character_coverage = 1.000001, allowed");
  refused({.kind = "bpe", .vocab_size = 300, .byte_fallback = false, .character_coverage = 0.99}, "needs byte_fallback");
  refused({.kind = "bpe", .vocab_size = 300, .sampling = {.alpha = 1}}, "by alpha to unigram");
  refused({.kind = "word", .sampling = {.bpe_dropout = 0.1}}, "bpe_dropout belongs to the kind bpe");
  refused({.kind = "bpe", .vocab_size = 300, .sampling = {.bpe_dropout = 1.5}}, "allowed from 0 to 1");
  refused({.kind = "char", .joiner = "@@"}, "belong to the kind word");
  refused({.kind = "word", .joiner = "@ @"}, "found a space");
  EXPECT_EQ(BuildTokenizer({.kind = "bpe", .vocab_size = 300, .normalization = "nfd"}, {kText}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SentencePieceTokenizerTest, WordsAboveTheCapAreChosenByContentAndReported) {
  const auto learn = [](bool reversed) {
    PieceTraining training(/*cap=*/2000);
    for (int i = 0; i < 1000; ++i) training.AddLine(absl::StrCat("w", reversed ? 999 - i : i, " and"));
    EXPECT_THAT(training.Report(), testing::ContainsRegex("learned from one of [248] distinct words"));
    return training.Learn(true, 30, 1.0, 0).value().pieces;
  };
  EXPECT_EQ(learn(false), learn(true));
  PieceTraining all;
  all.AddLine("w1 and");
  EXPECT_EQ(all.Report(), "");
}

TEST(SentencePieceTokenizerTest, AStreamOfTokensNeverCutsACharacter) {
  const auto tokenizer = Build(Options("bpe", 300));
  const std::string text = "the 🚀 mat ☃ 日";
  TextStream stream(*tokenizer);
  std::string streamed;
  const std::vector<int32_t> ids = tokenizer->Encode(text).value();
  for (int32_t id : ids) {
    const std::string piece = stream.Push(id);
    EXPECT_TRUE(ValidateUtf8(piece, "piece").ok());
    streamed += piece;
  }
  EXPECT_EQ(streamed + stream.Finish(), text);
}

TEST(WordJoinerTest, WordsAreJoinedInDecodeDetokenizeAndStreams) {
  const auto tokenizer = Build({.kind = "word", .joiner = "@@"}, {"viel@@ er St@@ aub@@ x @@ e\n"});
  const auto plain = Build({.kind = "word"}, {"viel@@ er St@@ aub@@ x @@ e\n"});
  const std::vector<std::pair<std::string, std::string>> cases = {{"viel@@ er x", "vieler x"},
                                                                  {"St@@ aub@@ er", "Stauber"},
                                                                  {"viel@@", "viel@@"},
                                                                  {"viel@@\ner", "viel@@\ner"},
                                                                  {"x viel@@", "x viel@@"},
                                                                  {"St@@ aub@@\nx e", "Staub@@\nx e"},
                                                                  {"", ""},
                                                                  {"@@ e", "e"}};
  for (const auto& [text, joined] : cases) {
    const std::vector<int32_t> ids = tokenizer->Encode(text).value();
    EXPECT_EQ(ids, plain->Encode(text).value());
    EXPECT_EQ(tokenizer->Decode(ids), joined);
    EXPECT_EQ(tokenizer->Detokenize(text), joined);
    EXPECT_EQ(plain->Detokenize(text), text);
    EXPECT_EQ(ContinuationText(*tokenizer, {}, ids), joined);
  }
  EXPECT_NE(tokenizer->Fingerprint(), plain->Fingerprint());
  EXPECT_EQ(Tokenizer::FromSerialized(tokenizer->Serialize()).value()->Fingerprint(), tokenizer->Fingerprint());
  // A prompt that ends in the joiner stands printed; what follows has no space.
  EXPECT_EQ(ContinuationText(*tokenizer, tokenizer->Encode("viel@@").value(), tokenizer->Encode("er x").value()), "er x");
}

TEST(TokenizerFileTest, EveryKindComesBack) {
  const std::vector<TokenizerOptions> all = {{.kind = "char"},
                                             {.kind = "byte"},
                                             {.kind = "word", .unknown = true, .joiner = "@@"},
                                             Options("bpe", 300),
                                             Options("unigram", 45, false)};
  for (const TokenizerOptions& options : all) {
    const auto tokenizer = Build(options);
    const auto parsed = ParseTokenizerFile(TokenizerFileBytes(tokenizer->Serialize()), "f");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(Tokenizer::FromSerialized(*parsed).value()->Fingerprint(), tokenizer->Fingerprint()) << options.kind;
  }
}

TEST(TokenizerFileTest, EveryDamageIsDataLoss) {
  const std::string bytes = TokenizerFileBytes(Build(Options("bpe", 290))->Serialize());
  for (size_t at = 0; at < bytes.size(); at += at < 200 ? 1 : 37) {
    std::string changed = bytes;
    changed[at] ^= 1;
    EXPECT_FALSE(ParseTokenizerFile(changed, "f").ok()) << at;
    EXPECT_EQ(ParseTokenizerFile(bytes.substr(0, at), "f").status().code(), absl::StatusCode::kDataLoss) << at;
  }
  EXPECT_FALSE(ParseTokenizerFile(bytes + "x", "f").ok());
  // A body that its checksum covers but that lies about its sizes.
  const std::string header = bytes.substr(0, 16);
  const auto forged = [&](std::string body) {
    std::string made = header;
    for (const uint64_t number : {static_cast<uint64_t>(body.size()), HashBytes(body)}) {
      for (int i = 0; i < 8; ++i) made.push_back(static_cast<char>(number >> (8 * i)));
    }
    return ParseTokenizerFile(made + body, "f").status();
  };
  std::string body = bytes.substr(32);
  EXPECT_TRUE(forged(body).ok());
  for (size_t at = 0; at < body.size(); at += 8) {
    std::string changed = body;
    for (size_t i = at; i < std::min(at + 8, body.size()); ++i) changed[i] = '\xFF';
    const absl::Status status = forged(changed);
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
  }
}

}  // namespace
}  // namespace weft
