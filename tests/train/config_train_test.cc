// Rules of [train] and [checkpoint] about time, skipped updates and fine-tuning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "train/config.h"
#include "train/session.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;

absl::StatusOr<Config> Load(const std::string& train, const std::vector<std::string>& set = {}, const std::string& more = "") {
  const std::string text =
      absl::StrCat("[data]\nkind = \"task\"\ntask = \"copy\"\n[model]\nfamily = \"encoder_decoder\"\n[train]\n",
                   "batch_size = 4\n", train, "\n", more);
  return ParseConfig({.text = text, .name = "x.toml", .folder = "/cfg"}, set, CheckModelTable);
}

std::string ErrorOf(const std::string& train, const std::string& more = "") {
  const auto config = Load(train, {}, more);
  EXPECT_FALSE(config.ok());
  return std::string(config.status().message());
}

TEST(ConfigTrain, MinutesStandAloneOrBesideALength) {
  for (const char* train : {"minutes = 1.5", "minutes = 30\nsteps = 10", "minutes = 0.5\nepochs = 3"}) {
    const auto config = Load(train);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_GT(config->train.minutes, 0);
  }
  EXPECT_THAT(ErrorOf(""), HasSubstr("train.steps: missing"));
  EXPECT_THAT(ErrorOf("minutes = 1\nsteps = 3\nepochs = 3"), HasSubstr("excludes train.steps"));
  EXPECT_THAT(ErrorOf("minutes = 0"), HasSubstr("x.toml:8:11: train.minutes: found 0 (an integer), allowed a number > 0"));
  EXPECT_THAT(ErrorOf("minutes = -1"), HasSubstr("train.minutes: found -1"));
}

TEST(ConfigTrain, AScheduleThatEndsNeedsAnEndBesideMinutes) {
  EXPECT_THAT(ErrorOf("minutes = 1", "[schedule]\nkind = \"cosine\"\n"), HasSubstr("schedule.steps: missing; schedule.kind"));
  EXPECT_TRUE(Load("minutes = 1", {}, "[schedule]\nkind = \"cosine\"\nsteps = 500\n").ok());
  EXPECT_TRUE(Load("minutes = 1\nsteps = 70", {}, "[schedule]\nkind = \"cosine\"\n").ok());
}

TEST(ConfigTrain, KeysWithoutMeaningAreRefused) {
  EXPECT_THAT(ErrorOf("steps = 1\nmax_skips = 3"), HasSubstr("train.max_skips: has no meaning with train.on_nonfinite"));
  EXPECT_THAT(ErrorOf("steps = 1\ninit_partial = true"),
              HasSubstr("train.init_partial: has no meaning without train.init_from"));
  EXPECT_THAT(ErrorOf("steps = 1\nema_decay = 1.0"), HasSubstr("train.ema_decay: found 1"));
  EXPECT_THAT(ErrorOf("steps = 1\non_nonfinite = \"ignore\""), HasSubstr("allowed \"stop\", \"skip\""));
}

TEST(ConfigTrain, InitFromFollowsTheRuleOfPathsAndIsNoPartOfTheCanonicalConfig) {
  const auto in_file = Load("steps = 1\ninit_from = \"runs/a\"");
  ASSERT_TRUE(in_file.ok()) << in_file.status();
  EXPECT_EQ(in_file->train.init_from, "/cfg/runs/a");
  EXPECT_THAT(PrintConfig(*in_file), HasSubstr("init_from = \"/cfg/runs/a\""));
  EXPECT_THAT(CanonicalConfig(*in_file), Not(HasSubstr("init_from")));
  const auto by_set = Load("steps = 1", {"train.init_from=runs/a"});
  ASSERT_TRUE(by_set.ok()) << by_set.status();
  EXPECT_NE(by_set->train.init_from, "/cfg/runs/a");
}

TEST(ConfigTrain, PrintsToTheSameConfig) {
  const auto config =
      Load("minutes = 2.5\nema_decay = 0.99\non_nonfinite = \"skip\"\nmax_skips = 4", {}, "[checkpoint]\nminutes = 10\n");
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string text = PrintConfig(*config);
  const auto again = ParseConfig({.text = text, .name = "y.toml", .folder = "/else"}, {}, CheckModelTable);
  ASSERT_TRUE(again.ok()) << again.status() << text;
  EXPECT_EQ(PrintConfig(*again), text);
  EXPECT_EQ(again->checkpoint.minutes, 10);
}

}  // namespace
}  // namespace weft
