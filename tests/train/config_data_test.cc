// The section [data]: files, columns, tokenizers and their rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/train/config_samples.h"
#include "train/config.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ConfigDataTest, TokenizersOfBothSidesAndTheirRules) {
  const auto set = [](absl::string_view value) { return absl::StrCat("data.tokenizer=", value); };
  EXPECT_TRUE(LoadGood({set("{ kind = \"byte\", shared = true }")}).data.shared_tokenizer);
  EXPECT_EQ(LoadGood({set("{ kind = \"byte\" }")}).data.source_tokenizer.kind, "byte");
  EXPECT_EQ(LoadTextConfig({set("{ kind = \"byte\" }")}).data.target_tokenizer.kind, "byte");
  EXPECT_THAT(ErrorsWithSet({set("char")}), ElementsAre(HasSubstr("allowed a table like { kind = \"char\" }")));
  EXPECT_THAT(ErrorsWithSet({set("{ kind = \"chars\" }")}), ElementsAre(HasSubstr("did you mean \"char\"?")));
  EXPECT_THAT(
      ErrorsWithSet({set("{ source = { knd = \"char\" } }")}),
      ElementsAre(HasSubstr("data.tokenizer.source.kind: missing"), HasSubstr("did you mean data.tokenizer.source.kind?")));
  EXPECT_THAT(ErrorsWithSet({set("{ kind = \"char\", unknown = true }")}), ElementsAre(HasSubstr("only with \"word\"")));
  EXPECT_THAT(ErrorsWithSet({set("{ kind = \"word\", max_size = 5 }")}),
              ElementsAre(HasSubstr("needs data.tokenizer.unknown = true")));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", set("{ source = { kind = \"char\" } }")})),
              ElementsAre(HasSubstr("only pairs have two sides")));
}

TEST(ConfigDataTest, PiecesAndTheirRules) {
  const auto set = [](absl::string_view value) { return absl::StrCat("data.tokenizer=", value); };
  const Config config = LoadGood({set("{ kind = \"bpe\", vocab_size = 400, sampling = { bpe_dropout = 0.1 } }")});
  EXPECT_EQ(config.data.source_tokenizer.vocab_size, 400);
  EXPECT_TRUE(config.data.target_tokenizer.byte_fallback);
  EXPECT_EQ(config.data.target_tokenizer.sampling.bpe_dropout, 0.1);
  const auto refused = [&](absl::string_view table, absl::string_view message) {
    EXPECT_THAT(ErrorsWithSet({set(table)}), ElementsAre(HasSubstr(std::string(message)))) << table;
  };
  refused("{ kind = \"bpe\" }", "data.tokenizer.vocab_size: missing");
  refused("{ kind = \"char\", vocab_size = 4 }", "only with \"bpe\" and \"unigram\"");
  refused("{ kind = \"bpe\", vocab_size = 0 }", "vocab_size: found 0");
  refused("{ kind = \"bpe\", vocab_size = 400, unknown = true }", "needs byte_fallback = false");
  refused("{ kind = \"bpe\", vocab_size = 400, character_coverage = 0.979999999 }", "character_coverage: found 0.979999999");
  refused("{ kind = \"bpe\", vocab_size = 400, byte_fallback = false, character_coverage = 0.98 }",
          "below 1 needs byte_fallback");
  refused("{ kind = \"bpe\", vocab_size = 400, normalization = \"nfd\" }", "normalization: found \"nfd\"");
  refused("{ kind = \"bpe\", vocab_size = 400, joiner = \"@@\" }", "joiner: has no meaning");
  refused("{ kind = \"word\", joiner = \"@ @\" }", "has a space, tab or newline");
  refused("{ kind = \"bpe\", vocab_size = 400, sampling = { alpha = 0.1 } }", "sampling.alpha: has no meaning");
  refused("{ kind = \"bpe\", vocab_size = 400, sampling = { bpe_dropout = 1.5 } }", "bpe_dropout: found 1.5");
  refused("{ kind = \"bpe\", vocab_size = 400, sampling = {} }", "found an empty table, allowed { bpe_dropout = 0.1 }");
  refused("{ kind = \"unigram\", vocab_size = 400, sampling = 0.1 }", "allowed a table like { alpha = 0.1 }");
  refused("{ kind = \"word\", sampling = { alpha = 1.0 } }", "sampling: has no meaning with data.tokenizer.kind = \"word\"");
  refused("{ kind = \"bpe\", file = \"a.tok\", vocab_size = 400 }", "vocab_size: excludes data.tokenizer.file");
  refused("{ kind = \"bpe\", file = \"\" }", "file: found \"\"");
}

TEST(ConfigDataTest, TokenizerFilesAreRelativeToTheDataAndInNoCheckpoint) {
  const std::string with_file = ", file = \"a.tok\"";
  const auto load = [&](const std::string& file) {
    return *Load(absl::StrReplaceAll(kGood, {{"{ kind = \"word\" }", absl::StrCat("{ kind = \"bpe\"", file, " }")}}));
  };
  const Config config = load(with_file);
  EXPECT_THAT(config.data.target_tokenizer.file, testing::EndsWith("/g2p/a.tok"));
  EXPECT_THAT(PrintConfig(config), HasSubstr("/g2p/a.tok"));
  const std::string canonical = CanonicalConfig(config);
  EXPECT_THAT(canonical, testing::Not(HasSubstr("a.tok")));
  // As a checkpoint's config it loads, without the vocab_size that the file had.
  const auto again = ParseConfig({.text = canonical, .name = "c", .needs_data_files = false}, {}, CheckModel);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(CanonicalConfig(*again), canonical);
}

TEST(ConfigDataTest, TasksNeedNoFiles) {
  const std::string text = "[data]\nkind = \"task\"\ntask = \"dates\"\n[train]\nsteps = 1\nbatch_size = 8\n";
  const absl::StatusOr<Config> config = Load(text, {"valid.metrics=[\"exact_match\"]", "valid.patience=1", "valid.every=1"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(DataKindOf(*config), DataKind::kPairs);
  EXPECT_EQ(config->data.source_tokenizer.kind, "");
  EXPECT_THAT(ErrorsOf(Load(text, {"data.task=date"})), ElementsAre(HasSubstr("did you mean \"dates\"?")));
  for (const char* key : {"data.train=x", "data.cache=x"}) {
    EXPECT_THAT(ErrorsOf(Load(text, {key})), ElementsAre(HasSubstr("only with data in files"))) << key;
  }
  EXPECT_THAT(ErrorsOf(Load(text, {"data.task=brackets"})),
              ElementsAre(HasSubstr("model.family: missing; data.task = \"brackets\" needs \"encoder\"")));
}

TEST(ConfigDataTest, PairsMayBeInTwoFilesAndMoreForValidation) {
  const std::string here = fs::current_path().string();
  const Config config = LoadGood({"data.train=[\"a.en\", \"/x/a.de\"]", "data.valid=[\"v.en\", \"v.de\", \"v.de2\"]"});
  EXPECT_THAT(config.data.train, ElementsAre(here + "/a.en", "/x/a.de"));
  const DataOptions data = ToDataOptions(config);
  EXPECT_EQ(data.train, here + "/a.en");
  EXPECT_THAT(data.train_targets, ElementsAre("/x/a.de"));
  EXPECT_EQ(data.valid, here + "/v.en");
  EXPECT_THAT(data.valid_targets, ElementsAre(here + "/v.de", here + "/v.de2"));
  EXPECT_EQ(CanonicalConfig(config), CanonicalConfig(LoadGood()));  // where the data lie decides no number
  EXPECT_THAT(ErrorsWithSet({"data.train=[\"a\", \"b\", \"c\"]"}),
              ElementsAre(HasSubstr("found 3 files, allowed one, or two")));
  EXPECT_THAT(ErrorsWithSet({"data.train=[\"a\", \"\"]"}), ElementsAre(HasSubstr("--set data.train: found \"\" in a list")));
  EXPECT_THAT(ErrorsWithSet({"data.train=[]"}), ElementsAre(HasSubstr("data.train: missing")));
  EXPECT_THAT(ErrorsWithSet({"data.train=[1]"}), testing::Contains(HasSubstr("allowed a string or a list of strings")));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "data.train=[\"a\", \"b\"]"})),
              ElementsAre(HasSubstr("found 2 files, allowed one with data.kind = \"text\"")));
}

TEST(ConfigDataTest, ColumnsAreNumbersThatDiffer) {
  const Config config = LoadGood({"data.columns={ source = [3, 1], target = 2 }"});
  EXPECT_TRUE(config.data.columns.named);
  EXPECT_THAT(config.data.columns.source, ElementsAre(3, 1));
  EXPECT_NE(CanonicalConfig(config), CanonicalConfig(LoadGood()));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{ source = 1 }", "data.columns.target: missing"},
      {"{ source = 0, target = 2 }", "data.columns.source: found 0 (an integer), allowed a column in [1, 1000]"},
      {"{ source = [1, \"b\"], target = 2 }", "data.columns.source: found "},
      {"{ source = [1, 2], target = 2 }", "found column 2 twice"},
      {"{ source = 1, target = [2, 3] }", "found 2 columns, allowed one"},
      {"{ source = 1, target = 2, label = 3 }", "data.columns.label: unknown key"},
      {"[1, 2]", "allowed a table like"},
  };
  for (const auto& [value, message] : cases) {
    EXPECT_THAT(ErrorsWithSet({"data.columns=" + value}), ElementsAre(HasSubstr(message))) << value;
  }
  EXPECT_THAT(ErrorsWithSet({"data.columns={ source = 1, target = 2 }", "data.train=[\"a\", \"b\"]"}),
              ElementsAre(HasSubstr("has a file for each side")));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "data.columns={ source = 1, target = 2 }"})),
              ElementsAre(HasSubstr("data.columns: has no meaning with data.kind = \"text\"")));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "data.max_source_length=3"})),
              ElementsAre(HasSubstr("data.max_source_length: has no meaning with data.kind = \"text\", only with pairs")));
}

}  // namespace
}  // namespace weft
