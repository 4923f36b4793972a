#include "train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <locale>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/train/config_samples.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ConfigTest, ReadsSectionsAndFillsDefaults) {
  const Config config = LoadGood();
  EXPECT_EQ(config.run.seed, 3);
  EXPECT_EQ(config.train.steps, 2000);
  EXPECT_EQ(config.train.batch_size, 0);
  EXPECT_EQ(config.train.clip_norm, 1.0);
  EXPECT_EQ(config.optimizer.kind, "adamw");
  EXPECT_THAT(config.optimizer.betas, ElementsAre(0.9, 0.98));
  EXPECT_EQ(config.schedule.steps, 2000);
  EXPECT_EQ(config.data.source_tokenizer.kind, "char");
  EXPECT_EQ(config.data.target_tokenizer.kind, "word");
  EXPECT_EQ(std::get<int64_t>(config.model.Find("d_model")->value), 64);
  EXPECT_NE(config.model.Find("dropout"), nullptr);
  const DataOptions data = ToDataOptions(config);
  EXPECT_EQ(data.kind, "pairs");
  EXPECT_EQ(data.train, "/cfg/g2p/train.tsv");
  EXPECT_EQ(data.seed, 3u);
}

TEST(ConfigTest, PrintedConfigLoadsToItself) {
  std::vector<Config> configs = {
      LoadGood(),
      LoadGood({"train.epochs=3", "schedule.kind=constant"}),
      LoadGood({"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.nesterov=true"}),
      LoadGood({"optimizer.kind=lion", "optimizer.weight_decay=0.1", "train.gradient_noise=0.3"}),
      LoadGood({"optimizer.kind=adafactor",
                "optimizer.groups=[{ match = \"*norm*\", frozen = true }, { match = \"decoder.*\", "
                "lr_scale = 0.1, weight_decay = 0 }]"}),
      LoadGood({"optimizer.kind=muon", "optimizer.momentum=0.9", "optimizer.eps=1e-7"}),
      LoadGood({"schedule.kind=wsd", "schedule.decay_steps=200", "schedule.shape=sqrt"}),
      LoadGood({"schedule.kind=wsd", "train.epochs=2"}),
      LoadGood({"schedule.cycle_steps=100", "schedule.cycle_multiplier=2", "schedule.min_lr=1e-5"}),
      LoadGood({"run.dir=run ü 1#%20'x\"", "data.train=-x y\\.tsv"}),
      LoadGood({"data.tokenizer={ kind = \"char\", shared = true }"}),
      LoadGood({"data.tokenizer={ target = { kind = \"word\", unknown = true, max_size = 10 } }"}),
      LoadGood({"data.tokenizer={ kind = \"word\", joiner = \"@@\" }"}),
      LoadGood({"data.tokenizer={ kind = \"bpe\", vocab_size = 400, shared = true, sampling = { "
                "bpe_dropout = 0.1 } }"}),
      LoadGood({"data.tokenizer={ source = { kind = \"unigram\", vocab_size = 90, byte_fallback = false, "
                "unknown = true, character_coverage = 0.9995, normalization = \"nfkc\", sampling = { "
                "alpha = 0.2 } }, target = { kind = \"char\" } }"}),
      LoadGood({"data.tokenizer={ kind = \"bpe\", file = \"a b.tok\" }"}),
      LoadGood({"data.train=[\"a.en\", \"a.de\"]", "data.valid=[\"b\", \"c\", \"d\"]", "data.max_source_length=9",
                "data.max_target_length=8"}),
      LoadGood({"data.columns={ source = [1, 3], target = 2, references = 5 }",
                "valid.metrics=[\"loss\", \"bleu\", \"chrf++\"]", "valid.best=chrf++", "valid.lowercase=true",
                "valid.bleu={ tokenize = \"intl\" }"}),
      LoadTextConfig({"data.valid_fraction=0.1", "schedule.kind=linear", "valid.patience=2", "valid.every=5"})};
  const std::string task = "[data]\nkind = \"task\"\ntask = \"dates\"\ntrain_size = 100\n[train]\nepochs = 2\nbatch_size = 8\n";
  configs.push_back(LoadTextConfig({"data.cache=/caches/of/tokens"}));
  configs.push_back(LoadGood({"train.sort_pool=4096"}));
  configs.push_back(*Load(task));
  configs.push_back(*Load(task, {"data.tokenizer={ source = { kind = \"byte\" } }"}));
  for (const Config& config : configs) {
    const std::string printed = PrintConfig(config);
    const absl::StatusOr<Config> again =
        ParseConfig({.text = printed, .name = "other.toml", .folder = "/elsewhere"}, {}, CheckModel);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    EXPECT_EQ(PrintConfig(*again), printed);
    EXPECT_EQ(CanonicalConfig(*again), CanonicalConfig(config));
  }
}

TEST(ConfigTest, CanonicalConfigKnowsNoPathsAndLoads) {
  const std::string canonical = CanonicalConfig(LoadGood());
  EXPECT_EQ(canonical, CanonicalConfig(LoadGood({"run.dir=/other", "data.train=/a.tsv", "data.valid=/b.tsv"})));
  EXPECT_NE(canonical, CanonicalConfig(LoadGood({"run.seed=4"})));
  EXPECT_NE(canonical, CanonicalConfig(LoadGood({"model.d_model=65"})));
  EXPECT_THAT(canonical, testing::Not(HasSubstr("/")));
  EXPECT_EQ(CanonicalConfig(LoadTextConfig({"data.cache=/c"})), CanonicalConfig(LoadTextConfig({})));
  const absl::StatusOr<Config> again =
      ParseConfig({.text = canonical, .name = "checkpoint", .needs_data_files = false}, {}, CheckModel);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(CanonicalConfig(*again), canonical);
}

TEST(ConfigTest, FiveMistakesGiveFiveLocatedErrorsInOrder) {
  const std::string text = absl::StrReplaceAll(kGood, {{"seed = 3", "sead = 3"},
                                                       {"kind = \"pairs\"", "kind = \"pairz\""},
                                                       {"d_model = 64", "d_model = 1.5"},
                                                       {"lr = 1e-3", "lr = -1"},
                                                       {"every = 500", "evry = 500"}});
  EXPECT_THAT(
      ErrorsOf(Load(text)),
      ElementsAre("x.toml:3:1: run.sead: unknown key; did you mean run.seed?",
                  "x.toml:6:8: data.kind: found \"pairz\" (a string), allowed \"pairs\", \"text\", \"labels\", \"task\"; did "
                  "you mean \"pairs\"?",
                  "x.toml:14:11: model.d_model: found 1.5 (a float), allowed an integer >= 1",
                  "x.toml:21:6: optimizer.lr: found -1 (an integer), allowed a number > 0",
                  "x.toml:29:1: valid.evry: unknown key; did you mean valid.every?"));
}

TEST(ConfigTest, MisplacedKeysNameTheirSection) {
  EXPECT_THAT(ErrorsWith("steps = 2000", "steps = 2000\ndropout = 0.1"),
              ElementsAre("x.toml:18:1: train.dropout: unknown key; dropout is a key of [model]"));
  EXPECT_THAT(ErrorsWith("d_model = 64", "d_model = 64\nlr = 0.1"),
              ElementsAre("x.toml:15:1: model.lr: unknown key; lr is a key of [optimizer]"));
  EXPECT_THAT(ErrorsWith("[run]", "epochs = 1\n[run]"),
              ElementsAre("x.toml:1:1: epochs: unknown key; epochs is a key of [train]"));
}

TEST(ConfigTest, MisspeltSectionsSuggestTheNearest) {
  EXPECT_THAT(ErrorsWith("[optimizer]", "[optimiser]"),
              ElementsAre("x.toml:20:2: optimiser: unknown table; did you mean optimizer?"));
  EXPECT_THAT(ErrorsWith("[run]", "train = 1\n[run]").front(), HasSubstr("not valid TOML"));
  EXPECT_THAT(ErrorsOf(Load("run = 1\n" + std::string(kText), {"model.family=decoder"})),
              ElementsAre("x.toml:1:7: run: found 1 (an integer), allowed a table: [run]"));
}

TEST(ConfigTest, MissingKeysAreNamed) {
  EXPECT_THAT(ErrorsOf(Load("[data]\nkind = \"text\"\n", {"model.family=decoder"})),
              ElementsAre("x.toml:1:1: data.window: missing; data.kind = \"text\" needs the tokens of one training example",
                          "x.toml:1:1: data.train: missing; give the file to train on",
                          "x.toml: train.steps: missing; give it or train.epochs",
                          "x.toml: train.batch_size: missing; give it or train.batch_tokens"));
  EXPECT_THAT(ErrorsWith("kind = \"pairs\"\n", ""), ElementsAre(HasSubstr("data.kind: missing; allowed")));
}

TEST(ConfigTest, EmptyAndDuplicatesAreRefused) {
  EXPECT_THAT(ErrorsOf(Load("")), ElementsAre(HasSubstr("x.toml: the config is empty")));
  EXPECT_THAT(ErrorsOf(Load("# only a comment\n")), ElementsAre(HasSubstr("x.toml: the config is empty")));
  EXPECT_THAT(ErrorsWith("seed = 3", "seed = 3\nseed = 4"), ElementsAre(StartsWith("x.toml:4:")));
}

TEST(ConfigTest, UnreadableFilesAreRefusedByName) {
  EXPECT_THAT(ErrorsOf(LoadConfig("/nowhere/x.toml", {}, CheckModel)),
              ElementsAre("/nowhere/x.toml: cannot read the config: No such file or directory"));
  const std::string folder = testing::TempDir();
  EXPECT_THAT(ErrorsOf(LoadConfig(folder, {}, CheckModel)), ElementsAre(folder + ": cannot read the config: it is a folder"));
}

TEST(ConfigTest, CommandLineWinsAndTheLastOfAKey) {
  EXPECT_EQ(LoadGood({"optimizer.lr=0.5"}).optimizer.lr, 0.5);
  EXPECT_EQ(LoadGood({"optimizer.lr=0.5", "optimizer.lr=0.25"}).optimizer.lr, 0.25);
  EXPECT_EQ(LoadGood({"optimizer.lr=1"}).optimizer.lr, 1.0);
  EXPECT_THAT(ErrorsWithSet({"optimizer.lr=1e-3x"}),
              ElementsAre("--set optimizer.lr: found \"1e-3x\" (a string), allowed a number > 0"));
  EXPECT_THAT(ErrorsWithSet({"optimizer.lr="}), ElementsAre("--set optimizer.lr: found \"\" (a string), allowed a number > 0"));
  EXPECT_THAT(ErrorsWithSet({"train.stpes=5"}), ElementsAre("--set train.stpes: unknown key; did you mean train.steps?"));
  EXPECT_THAT(ErrorsWithSet({"train.steps"}), ElementsAre(StartsWith("--set train.steps: allowed KEY=VALUE")));
}

TEST(ConfigTest, CommandLineReplacesAKeyThatExcludesTheFiles) {
  const Config config = LoadGood({"train.epochs=3", "train.batch_size=16"});
  EXPECT_EQ(config.train.steps, 0);
  EXPECT_EQ(config.train.epochs, 3);
  EXPECT_EQ(config.train.batch_size, 16);
  EXPECT_EQ(config.train.batch_tokens, 0);
  EXPECT_EQ(config.schedule.steps, 0);  // the trainer knows the steps of an epoch
  EXPECT_THAT(ErrorsWithSet({"train.steps=1", "schedule.warmup_steps=0", "train.epochs=3"}),
              ElementsAre("--set train.epochs: excludes train.steps; allowed one of the two"));
  EXPECT_THAT(ErrorsWith("steps = 2000", "steps = 2000\nepochs = 2"),
              ElementsAre("x.toml:18:10: train.epochs: excludes train.steps; allowed one of the two"));
}

TEST(ConfigTest, TypesAreStrict) {
  for (const char* text : {"train.steps=10.0", "train.steps=\"10\"", "train.shuffle=1", "run.seed=1.0", "optimizer.betas=0.9",
                           "optimizer.kind=true", "valid.metrics=loss", "run.dir=5", "optimizer.lr=true"}) {
    const std::vector<std::string> errors = ErrorsWithSet({text});
    EXPECT_THAT(errors.front(), HasSubstr("found ")) << text;
  }
  for (const char* text : {"train.steps=1.5", "run.seed=1e4", "optimizer.lr=\"1e-4\"", "optimizer.betas=[\"0.9\", 0.99]"}) {
    EXPECT_THAT(ErrorsWithSet({text}), ElementsAre(HasSubstr("found "))) << text;
  }
  EXPECT_EQ(LoadGood({"train.clip_norm=2"}).train.clip_norm, 2.0);
  EXPECT_EQ(LoadGood({"optimizer.lr=1e-4"}).optimizer.lr, 1e-4);
}

TEST(ConfigTest, AbsurdValuesAreRefusedWithTheirRange) {
  for (const char* text : {"train.batch_tokens=-1",
                           "train.batch_tokens=0",
                           "train.batch_size=1099511627776",
                           "train.steps=0",
                           "train.steps=9223372036854775807",
                           "train.accumulate=0",
                           "train.clip_norm=-1",
                           "train.clip_norm=nan",
                           "train.label_smoothing=1.0",
                           "train.label_smoothing=-0.1",
                           "train.shards=-1",
                           "train.gradient_noise=-0.1",
                           "optimizer.lr=0",
                           "optimizer.lr=-1",
                           "optimizer.lr=nan",
                           "optimizer.lr=inf",
                           "optimizer.betas=[0.9, 1.0]",
                           "optimizer.betas=[-0.1, 0.9]",
                           "optimizer.eps=0",
                           "optimizer.weight_decay=-1",
                           "schedule.warmup_steps=-1",
                           "schedule.min_lr=-1",
                           "valid.every=-1",
                           "valid.batch_size=0",
                           "checkpoint.keep_last=0",
                           "model.d_model=0"}) {
    const std::vector<std::string> errors = ErrorsWithSet({text});
    EXPECT_THAT(errors.front(), testing::AllOf(StartsWith("--set "), HasSubstr(", allowed "))) << text;
  }
  EXPECT_THAT(ErrorsWithSet({"optimizer.betas=[0.9]"}), ElementsAre("--set optimizer.betas: found 1 values, allowed 2"));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "data.window=0"})), ElementsAre(HasSubstr("data.window: found 0")));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "data.valid_fraction=1.0"})),
              ElementsAre(HasSubstr("allowed a number in [0, 1)")));
}

TEST(ConfigTest, SeedsKeepAllDigits) {
  for (const char* seed : {"0", "4294967296", "9007199254740992", "9007199254740993", "9223372036854775807"}) {
    const Config config = LoadGood({absl::StrCat("run.seed=", seed)});
    EXPECT_EQ(absl::StrCat(config.run.seed), seed);
    EXPECT_THAT(PrintConfig(config), HasSubstr(absl::StrCat("seed = ", seed, "\n")));
  }
  for (const char* seed : {"-1", "9223372036854775808", "1e3"}) {
    EXPECT_THAT(ErrorsWithSet({absl::StrCat("run.seed=", seed)}), ElementsAre(HasSubstr("allowed an integer >= 0"))) << seed;
  }
}

// A program that Weft is part of may have set a locale with a decimal comma and grouped digits.
TEST(ConfigTest, TheLocaleChangesNoNumber) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::vector<std::string> overrides = {"optimizer.lr=1.5e-4", "train.steps=1234567"};
  const std::string before = PrintConfig(LoadGood(overrides));
  ASSERT_THAT(before, HasSubstr("lr = 0.00015\n"));
  const std::locale old = std::locale::global(std::locale(std::locale(), new Comma));
  std::ostringstream probe;
  probe << 1234.5;
  const std::string after = PrintConfig(LoadGood(overrides));
  const std::vector<std::string> errors = ErrorsWithSet({"train.label_smoothing=1234.5"});
  std::locale::global(old);
  ASSERT_EQ(probe.str(), "1.234,5");
  EXPECT_EQ(after, before);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("found 1234.5 (a float), allowed a number in [0, 1)")));
}

TEST(ConfigTest, KeysThatContradictAreRefusedWithBothNames) {
  EXPECT_THAT(
      ErrorsWithSet({"schedule.warmup_steps=2001"}),
      ElementsAre("--set schedule.warmup_steps: found 2001 warm-up steps, allowed an integer <= train.steps (the default of "
                  "schedule.steps) = 2000"));
  EXPECT_THAT(ErrorsWithSet({"schedule.steps=50"}), ElementsAre(HasSubstr("allowed an integer <= schedule.steps = 50")));
  EXPECT_THAT(ErrorsWithSet({"schedule.min_lr=0.5"}), ElementsAre(HasSubstr("allowed a number <= optimizer.lr = 0.001")));
  EXPECT_THAT(ErrorsWithSet({"optimizer.momentum=0.9"}),
              ElementsAre("--set optimizer.momentum: has no meaning with optimizer.kind = \"adamw\", only with \"sgd\" "
                          "and \"muon\""));
  EXPECT_THAT(ErrorsWithSet({"optimizer.kind=sgd", "optimizer.nesterov=true"}),
              ElementsAre(HasSubstr("needs optimizer.momentum > 0")));
  EXPECT_THAT(ErrorsWithSet({"data.window=64"}),
              ElementsAre(HasSubstr("has no meaning with data.kind = \"pairs\", only with \"text\"")));
  EXPECT_THAT(ErrorsWithSet({"train.sort_pool=100", "train.shuffle=false"}),
              ElementsAre("--set train.sort_pool: has no meaning with train.shuffle = false: nothing is reordered"));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "train.sort_pool=100"})),
              ElementsAre(HasSubstr("train.sort_pool: has no meaning with data.kind = \"text\"")));
  EXPECT_THAT(ErrorsWithSet({"model.family=decoder"}),
              ElementsAre("--set model.family: found \"decoder\", but data.kind = \"pairs\" needs \"encoder_decoder\""));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "valid.metrics=[\"per\"]"})),
              ElementsAre(HasSubstr("valid.metrics: found \"per\", which compares generated answers: data.kind = \"text\"")));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "valid.patience=3"})),
              ElementsAre("--set valid.patience: needs validation data: give data.valid or data.valid_fraction"));
  EXPECT_THAT(ErrorsWithSet({"valid.metrics=[\"los\"]", "valid.best=loss"}), ElementsAre(HasSubstr("did you mean \"loss\"?")));
  EXPECT_THAT(ErrorsWithSet({"valid.best=accuracy"}), ElementsAre(HasSubstr("not in valid.metrics")));
  EXPECT_THAT(ErrorsWithSet({"valid.metrics=[\"per\", \"per\"]"}), ElementsAre("--set valid.metrics: found \"per\" twice"));
}

TEST(ConfigTest, CommandLineChoiceLeavesOutWhatTheFileSaidForAnother) {
  const Config config = LoadGood({"optimizer.kind=sgd"});
  EXPECT_EQ(config.optimizer.kind, "sgd");
  EXPECT_EQ(config.optimizer.weight_decay, 0.0);
  EXPECT_THAT(PrintConfig(config), testing::Not(HasSubstr("betas")));
  EXPECT_THAT(ErrorsWith("lr = 1e-3", "kind = \"sgd\"\nlr = 1e-3"),
              ElementsAre(HasSubstr("optimizer.betas: has no meaning with")));
}

TEST(ConfigTest, MetricsOnTextHaveTheirKeys) {
  const Config config = LoadGood({"valid.metrics=[\"bleu\", \"wer\"]", "valid.best=bleu", "valid.bleu={ smooth = \"none\" }"});
  EXPECT_EQ(ToTextMetricOptions(config.valid).smoothing, BleuSmoothing::kNone);
  EXPECT_EQ(ToTextMetricOptions(config.valid).tokenizer, ScoreTokenizer::k13a);
  EXPECT_THAT(ErrorsWithSet({"valid.lowercase=true"}), ElementsAre(HasSubstr("has no meaning without bleu, chrf")));
  EXPECT_THAT(ErrorsWithSet({"valid.bleu={ smooth = \"none\" }"}), ElementsAre(HasSubstr("has no meaning without bleu in")));
  EXPECT_THAT(ErrorsWithSet({"valid.metrics=[\"bleu\"]", "valid.bleu={ tokenize = \"13b\" }"}),
              testing::Contains(HasSubstr("allowed \"13a\"")));
  EXPECT_THAT(ErrorsWithSet({"valid.metrics=[\"bits_per_byte\"]"}),
              testing::Contains(HasSubstr("which only data.kind = \"text\"")));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "valid.metrics=[\"bleu\"]"})),
              ElementsAre(HasSubstr("has none, allowed loss, accuracy, bits_per_byte")));
}

TEST(ConfigTest, PathsAreRelativeToTheirStatedFolder) {
  const std::string here = fs::current_path().string();
  const Config file = LoadGood();
  EXPECT_THAT(file.data.train, ElementsAre("/cfg/g2p/train.tsv"));
  EXPECT_THAT(file.data.valid, ElementsAre("/cfg/g2p/valid.tsv"));
  EXPECT_EQ(file.run.dir, here + "/runs/g2p");
  const Config set = LoadGood({"data.train=t.tsv", "run.dir=r"});
  EXPECT_THAT(set.data.train, ElementsAre(here + "/t.tsv"));
  EXPECT_THAT(set.data.valid, ElementsAre("/cfg/g2p/valid.tsv"));
  EXPECT_EQ(set.run.dir, here + "/r");
  EXPECT_THAT(LoadGood({"data.dir=d"}).data.train, ElementsAre(here + "/d/train.tsv"));
  EXPECT_THAT(LoadGood({"data.dir=/d/../e"}).data.train, ElementsAre("/e/train.tsv"));
  EXPECT_THAT(LoadGood({"data.train=~/x"}).data.train, ElementsAre(here + "/~/x"));
  EXPECT_THAT(LoadGood({"data.valid="}).data.valid, testing::IsEmpty());
  EXPECT_THAT(LoadTextConfig({}).data.train, ElementsAre("/cfg/a.txt"));
  EXPECT_EQ(LoadTextConfig({}).run.dir, here + "/runs/x");
  EXPECT_EQ(LoadTextConfig({}).data.cache, "");
  EXPECT_EQ(LoadTextConfig({"data.cache=c"}).data.cache, here + "/c");
  EXPECT_EQ(ToDataOptions(LoadGood({"data.cache=c"})).storage.cache, here + "/c");
  EXPECT_THAT(ErrorsWithSet({"run.dir="}), ElementsAre(HasSubstr("allowed a folder")));
  EXPECT_THAT(ErrorsWithSet({"data.train=\"a\\u0000b\""}), ElementsAre(HasSubstr("a character of code 0")));
}

TEST(ConfigTest, FoldersWithOddNamesAndLinksWork) {
  const fs::path base = fs::path(testing::TempDir()) / absl::StrCat("weft_config_", getpid());
  const fs::path folder = base / "run ü 1#%20'x\"";
  fs::create_directories(folder / "deep");
  fs::create_directories(base / "elsewhere");
  std::ofstream(folder / "deep" / "my job.toml") << absl::StrReplaceAll(kText, {{"a.txt", "../a b#.txt"}});
  const std::vector<std::string> overrides = {"model.family=decoder"};
  const absl::StatusOr<Config> config = LoadConfig((folder / "deep" / "my job.toml").string(), overrides, CheckModel);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->data.train, ElementsAre((folder / "a b#.txt").string()));
  EXPECT_EQ(fs::path(config->run.dir).filename(), "my job");
  // Behind a link, "link/.." is the parent of the link's target, and must not be shortened away.
  fs::create_directory_symlink(folder / "deep", base / "elsewhere" / "link");
  const absl::StatusOr<Config> linked = LoadConfig((base / "elsewhere/link/my job.toml").string(), overrides, CheckModel);
  ASSERT_TRUE(linked.ok()) << linked.status();
  EXPECT_EQ(fs::weakly_canonical(linked->data.train.at(0)), fs::weakly_canonical(folder / "a b#.txt"));
  fs::remove_all(base);
}

TEST(ConfigTest, DescribesEachKeyOnce) {
  std::vector<std::string> sections;
  for (const auto& [section, fields] : DescribeConfig()) {
    sections.push_back(section);
    for (const FieldDescription& field : fields) EXPECT_FALSE(field.doc.empty()) << field.name;
  }
  EXPECT_THAT(sections, ElementsAre("run", "data", "train", "optimizer", "schedule", "valid", "checkpoint"));
}

}  // namespace
}  // namespace weft
