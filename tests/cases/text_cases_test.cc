// Cases about texts and tokenizers: long lines, NUL, round trips, unknown symbols, ties of merges, exchanged vocabularies.
#include <algorithm>
#include <ctime>
#include <functional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/base/random.h"
#include "data/load.h"
#include "data/text_file.h"
#include "data/tokenizer_file.h"
#include "gmock/gmock.h"
#include "tests/cases/job.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr const char* kLearned[] = {"bpe", "unigram"};

std::unique_ptr<Tokenizer> Learn(const char* kind, int64_t size, absl::Span<const absl::string_view> texts, bool bytes = true) {
  auto made = BuildTokenizer({.kind = kind, .vocab_size = size, .byte_fallback = bytes}, texts);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

std::string Words(uint64_t seed, int64_t bytes, char between) {
  constexpr absl::string_view kSyllables[] = {"ba", "ku", "ti", "la", "mo", "ren", "ster", "ing"};
  std::string text;
  const RandomKey key{seed};
  for (int64_t i = 0; static_cast<int64_t>(text.size()) < bytes; ++i) {
    absl::StrAppend(&text, kSyllables[key.Below(2 * i, 8)]);
    if (key.Below(2 * i + 1, 3) == 0) text.push_back(between);
  }
  return text;
}

// Of this thread, so that other programs do not count.
double CpuSeconds(const std::function<void()>& f) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  f();
  return now() - start;
}

// The words of a text on one line of 30 kB teach the same pieces as on many lines, so nothing of it was left out.
TEST(TextCase, B076_ALongLineIsLearnedFromLikeManyShortOnes) {
  const std::string text = Words(1, 30000, ' ');
  std::string lines = text;
  for (size_t i = 0; i < lines.size(); i += 1) {
    if (lines[i] == ' ' && i % 5 == 0) lines.insert(i++, 1, '\n');
  }
  for (const char* kind : kLearned) {
    EXPECT_EQ(Learn(kind, 300, {text})->Fingerprint(), Learn(kind, 300, {lines})->Fingerprint()) << kind;
  }
  std::string with_long_one = "short\n" + std::string(1000000, 'a') + "\nlines\n";
  const auto tokenizer = Learn("bpe", 275, {with_long_one});
  const auto ids = tokenizer->Encode(with_long_one);
  EXPECT_LT(ids->size(), 1000000u / 8);
  EXPECT_EQ(tokenizer->Decode(*ids), with_long_one);
}

// A text without any space, eight times as long: about eight times the time. Quadratic time would be 64 times; the bound leaves
// room for caches that no longer hold it (a factor of two, measured) and for a busy machine.
TEST(TextCase, B076_TimeIsNearLinearWithoutSpaces) {
  const std::string once = Words(2, 25000, 'z'), eight = Words(2, 200000, 'z');
  for (const char* kind : kLearned) {
    const auto tokenizer = Learn(kind, 300, {Words(1, 20000, ' ')});
    double best_once = 1e9, best_eight = 1e9;
    for (int i = 0; i < 3; ++i) {
      best_once = std::min(best_once, CpuSeconds([&] { EXPECT_TRUE(tokenizer->Encode(once).ok()); }));
      best_eight = std::min(best_eight, CpuSeconds([&] { EXPECT_TRUE(tokenizer->Encode(eight).ok()); }));
    }
    EXPECT_LT(best_eight, 30 * best_once) << kind;
  }
}

TEST(TextCase, B077_ControlCharactersAreOrdinarySymbols) {
  const std::string bytes("\x61\x00\x62\x0A\x01\x7F", 6);
  const std::string text = bytes + "abab ab\n";
  const TemporaryFolder folder;
  for (const char* kind : {"char", "byte", "bpe", "unigram"}) {
    for (const bool fallback : {true, false}) {
      TokenizerOptions options{.kind = kind, .byte_fallback = fallback};
      if (kind[0] == 'u' || kind == absl::string_view("bpe")) options.vocab_size = fallback ? 261 : 8;
      const auto tokenizer = BuildTokenizer(options, {text});
      ASSERT_TRUE(tokenizer.ok()) << kind << tokenizer.status();
      const auto ids = (*tokenizer)->Encode(bytes);
      ASSERT_TRUE(ids.ok()) << kind << ids.status();
      EXPECT_GE(ids->size(), 5u) << kind;
      EXPECT_EQ((*tokenizer)->Decode(*ids), bytes) << kind;
      // Through a file.
      PutBytes(folder.Path("t"), TokenizerFileBytes((*tokenizer)->Serialize()));
      options.file = folder.Path("t");
      const auto again = BuildTokenizer(options, {});
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ((*again)->Encode(bytes).value(), *ids);
    }
  }
}

TEST(TextCase, B080_DecodeOfEncodeIsTheTextByteForByte) {
  const std::vector<std::string> texts = {
      "", " ", "  a", "a  ", "a\n\nb\t", "Ġa", "▁a", "\xC3\xA9", "e\xCC\x81", std::string(300, ' '), "👩\u200D🚀"};
  for (const char* kind : kLearned) {
    const auto tokenizer = Learn(kind, 280, {Words(3, 3000, ' ')});
    for (const std::string& text : texts) EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text).value()), text) << kind;
    EXPECT_NE(tokenizer->Encode("\xC3\xA9").value(), tokenizer->Encode("e\xCC\x81").value());
  }
}

TEST(TextCase, B082_ACharacterOutsideTheTrainingTextIsNamed) {
  for (const char* kind : kLearned) {
    const auto tokenizer = Learn(kind, 4, {"abc\n"}, /*bytes=*/false);
    const auto refused = tokenizer->Encode("a?c");
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("unknown character \"?\" (U+003F) at character 2"));
    const auto kanji = tokenizer->Encode("日");
    EXPECT_THAT(std::string(kanji.status().message()), HasSubstr("(U+65E5)"));
    auto reserved = BuildTokenizer({.kind = kind, .unknown = true, .vocab_size = 4, .byte_fallback = false}, {"abc\n"});
    ASSERT_TRUE(reserved.ok());
    const std::vector<int32_t> ids = (*reserved)->Encode("?\n").value();
    ASSERT_EQ(ids.size(), 2u);
    EXPECT_EQ(ids[0], (*reserved)->unk());
    EXPECT_NE(ids[1], ids[0]);
  }
}

// Equal counts: the shorter piece, then the smaller by code points; the same from any order of documents, always.
TEST(TextCase, B083_TiesGiveOneVocabulary) {
  const auto tokenizer = Learn("bpe", 9, {"bbbaaaddddcccc\n"}, /*bytes=*/false);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Learn("bpe", 9, {"bbbaaaddddcccc\n"}, false)->Fingerprint(), tokenizer->Fingerprint());
  }
  // "cc" and "dd" occur three times each by position, so their order is that of their letters; "aa" is next.
  EXPECT_EQ(tokenizer->TokenText(0), "cc");
  EXPECT_EQ(tokenizer->TokenText(1), "dd");
  // Joined from the left: "aaa" is "aa" and "a".
  const auto overlap = Learn("bpe", 3, {"aaaa\n"}, false);
  std::vector<std::string> pieces;
  const std::vector<int32_t> ids = overlap->Encode("aaaaa").value();
  for (int32_t id : ids) pieces.push_back(overlap->TokenText(id));
  EXPECT_THAT(pieces, testing::ElementsAre("aa", "aa", "a"));

  const std::string text = Words(4, 20000, '\n');
  std::vector<absl::string_view> documents = absl::StrSplit(text, '\n');
  for (const char* kind : kLearned) {
    const uint64_t expected = Learn(kind, 330, documents)->Fingerprint();
    for (uint64_t order = 0; order < 3; ++order) {
      const Permutation permutation(RandomKey{order}, static_cast<int64_t>(documents.size()));
      std::vector<absl::string_view> permuted;
      for (int64_t i = 0; i < permutation.size(); ++i) permuted.push_back(documents[permutation[i]]);
      EXPECT_EQ(Learn(kind, 330, permuted)->Fingerprint(), expected) << kind;
    }
  }
}

constexpr char kFileJob[] = R"([data]
kind = "pairs"
train = "train.tsv"
valid = "train.tsv"
tokenizer = { source = { kind = "word", file = "a.tok" }, target = { kind = "word", file = "b.tok" } }

[model]
family = "encoder_decoder"
d_model = 8
layers = 1
heads = 2
hidden = 16

[train]
steps = 2
batch_size = 2
)";

class MismatchCase : public testing::Test {
 protected:
  MismatchCase() : job_(kFileJob, "x y\ty x\nx\ty\nz w\tw\n") {
    Put("a.tok", {"x", "y", "z", "w"});
    Put("b.tok", {"w", "z", "y", "x"});
  }
  void Put(const std::string& name, const std::vector<std::string>& words) {
    job_.Write(name, TokenizerFileBytes({.kind = "word", .symbols = words}));
  }
  absl::Status TryTrain(const Job::Set& set, const std::string& run, RunDir::Mode mode) {
    return weft::Train(job_.Load(set, run), {.mode = mode, .stop = nullptr, .quiet = true}).status();
  }
  // That both hashes are in the message.
  static void ExpectHashes(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), testing::ContainsRegex("hash [0-9a-f]{16}, expected .*hash [0-9a-f]{16}"));
  }
  Job job_;
};

TEST_F(MismatchCase, B085_AnotherVocabularyIsRefusedOnResumeAndInitFrom) {
  job_.Train({}, "run");
  const std::vector<std::pair<const char*, std::function<void()>>> changes = {{"two lines swapped",
                                                                               [&] {
                                                                                 Put("a.tok", {"y", "x", "z", "w"});
                                                                               }},
                                                                              {"one added",
                                                                               [&] {
                                                                                 Put("a.tok", {"x", "y", "z", "w", "v"});
                                                                               }},
                                                                              {"source and target exchanged", [&] {
                                                                                 Put("a.tok", {"w", "z", "y", "x"});
                                                                                 Put("b.tok", {"x", "y", "z", "w"});
                                                                               }}};
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    Put("b.tok", {"w", "z", "y", "x"});
    change();
    ExpectHashes(TryTrain({"train.steps=3"}, "run", RunDir::Mode::kResume));
    ExpectHashes(TryTrain({"train.init_from=" + job_.Path("run")}, "tuned", RunDir::Mode::kFresh));
  }
  // As they were, both go on.
  Put("a.tok", {"x", "y", "z", "w"});
  Put("b.tok", {"w", "z", "y", "x"});
  EXPECT_EQ(TryTrain({"train.steps=3"}, "run", RunDir::Mode::kResume), absl::OkStatus());
  EXPECT_EQ(TryTrain({"train.init_from=" + job_.Path("run")}, "tuned", RunDir::Mode::kFresh), absl::OkStatus());
}

TEST_F(MismatchCase, B085_BrokenFilesAreRefused) {
  const std::string good = BytesOf(job_.Path("a.tok"));
  const auto refused = [&](const std::string& bytes, const char* message) {
    job_.Write("a.tok", bytes);
    const absl::Status status = TryTrain({}, "run", RunDir::Mode::kOverwrite);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("a.tok: "));
  };
  std::string crlf;
  for (char c : good) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  refused(crlf, "its line ends were changed");
  std::string no_cr = good;
  no_cr.erase(std::remove(no_cr.begin(), no_cr.end(), '\r'), no_cr.end());
  refused(no_cr, "its line ends were changed");
  refused("x\ny\nz\nw\n", "not a tokenizer file");
  refused("", "is empty");
  refused(good.substr(0, good.size() - 3), "damaged");
  std::string flipped = good;
  flipped.back() ^= 1;
  refused(flipped, "checksum");
  job_.Write("a.tok", TokenizerFileBytes({.kind = "word", .symbols = {"x", "y", "x"}}));
  EXPECT_EQ(TryTrain({}, "run", RunDir::Mode::kOverwrite).code(), absl::StatusCode::kDataLoss);
  job_.Write("a.tok", TokenizerFileBytes({.kind = "char", .symbols = {"x", "y"}}));
  EXPECT_THAT(std::string(TryTrain({}, "run", RunDir::Mode::kOverwrite).message()), HasSubstr("kind char, expected word"));
}

constexpr char kSubwordJob[] = R"([data]
kind = "pairs"
train = "train.tsv"
valid = "train.tsv"
tokenizer = { kind = "bpe", vocab_size = 280, shared = true, sampling = { bpe_dropout = 0.2 } }

[model]
family = "encoder_decoder"
d_model = 8
layers = 1
heads = 2
hidden = 16
tied = ["source", "target", "output"]

[train]
steps = 12
batch_tokens = 40
shards = 3

[checkpoint]
every = 5
)";

std::string WordPairs() {
  const std::string words = Words(5, 900, '\n');
  std::string pairs;
  for (absl::string_view line : Lines(words)) absl::StrAppend(&pairs, line, " ku\tti ", line, "\n");
  return pairs;
}

TEST(SubwordCase, ASharedSampledVocabularyTrainsToTheSameBitsOnThreadsAndResume) {
  const Job job(kSubwordJob, WordPairs());
  const auto bits = [&](const std::string& run) { return BytesOf(job.Path(run) + "/checkpoints/step-12.weft"); };
  job.Train({}, "one");
  job.Train({}, "two", RunDir::Mode::kFresh, 2);
  EXPECT_EQ(bits("one"), bits("two"));
  job.Train({"train.steps=5"}, "parts");
  job.Train({}, "parts", RunDir::Mode::kResume, 2);
  const auto one = LoadSession(job.Path("one")), parts = LoadSession(job.Path("parts"));
  EXPECT_EQ(Values(*one->parameters), Values(*parts->parameters));
  // Sampling is part of what was computed.
  job.Train({"data.tokenizer.sampling.bpe_dropout=1e-9"}, "plain");
  EXPECT_NE(Values(*LoadSession(job.Path("plain"))->parameters), Values(*one->parameters));
  // The restored vocabulary is that of the training.
  EXPECT_EQ(one->source_tokenizer->Fingerprint(), one->target_tokenizer->Fingerprint());
  EXPECT_EQ(one->target_tokenizer->kind(), "bpe");
}

TEST(SubwordCase, SamplingOfATextIsRefused) {
  const Job job(
      "[data]\nkind = \"text\"\nwindow = 4\ntrain = \"train.tsv\"\n"
      "tokenizer = { kind = \"bpe\", vocab_size = 280, sampling = { bpe_dropout = 0.1 } }\n"
      "[model]\nfamily = \"decoder\"\n[train]\nsteps = 1\nbatch_size = 1\n",
      Words(5, 900, '\n'));
  const auto config = LoadTrainingConfig(job.Path("job.toml"), {});
  EXPECT_THAT(std::string(config.status().message()),
              HasSubstr("data.tokenizer.sampling: has no meaning with data.kind = \"text\""));
}

}  // namespace
}  // namespace weft
