// Loading of [optimizer] with its groups, [schedule] and the beam of [valid].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/train/config_samples.h"
#include "train/config.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ConfigOptimizer, ReadsParameterGroupsWithTheirPlaces) {
  const std::string text = std::string(kGood) + R"(
[[optimizer.groups]]
match = "encoder.*"
lr_scale = 0.1
weight_decay = 0

[[optimizer.groups]]
match = "*norm*"
frozen = true
)";
  const absl::StatusOr<Config> config = Load(text);
  ASSERT_TRUE(config.ok()) << config.status();
  const std::vector<OptimizerGroup>& groups = config->optimizer.groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].match, "encoder.*");
  EXPECT_EQ(groups[0].lr_scale, 0.1);
  EXPECT_EQ(groups[0].weight_decay, 0);
  EXPECT_EQ(groups[0].where, "x.toml:34:9");
  EXPECT_TRUE(groups[1].frozen);
  EXPECT_LT(groups[1].weight_decay, 0);  // that of [optimizer]
  EXPECT_THAT(PrintConfig(*config), HasSubstr("{ match = \"*norm*\", frozen = true }"));
}

TEST(ConfigOptimizer, MistakesInParameterGroupsAreLocated) {
  EXPECT_THAT(ErrorsOf(Load(std::string(kGood) + "[[optimizer.groups]]\nmatch = \"a\"\nlr_scale = 0\nfrozn = true\n"
                                                 "[[optimizer.groups]]\nlr_scale = 2\nweight_decay = -1\n")),
              ElementsAre("x.toml:34:12: optimizer.groups.lr_scale: found 0 (an integer), allowed a number > 0",
                          "x.toml:35:1: optimizer.groups.frozn: unknown key; did you mean optimizer.groups.frozen?",
                          HasSubstr("optimizer.groups.match: missing; give the names it holds for"),
                          "x.toml:38:16: optimizer.groups.weight_decay: found -1 (an integer), allowed a number >= 0"));
  EXPECT_THAT(ErrorsOf(Load(std::string(kGood) + "[[optimizer.groups]]\nmatch = \"a\"\nlr_scale = 2\nfrozen = true\n")),
              ElementsAre("x.toml:34:12: optimizer.groups.lr_scale: has no meaning with frozen = true: nothing is updated"));
  EXPECT_THAT(ErrorsWithSet({"optimizer.groups=[1]"}),
              ElementsAre("--set optimizer.groups: found 1 (an integer), allowed tables: [[optimizer.groups]] with match = "
                          "\"PATTERN\""));
  EXPECT_THAT(ErrorsWithSet({"optimizer.groups={ match = \"a\" }"}), ElementsAre(HasSubstr("found a table, allowed tables")));
}

TEST(ConfigOptimizer, OptimizersHaveTheirDefaultsAndKeys) {
  const Config lion = *Load(absl::StrReplaceAll(kGood, {{"betas = [0.9, 0.98]", "kind = \"lion\""}}));
  EXPECT_THAT(lion.optimizer.betas, ElementsAre(0.9, 0.99));
  EXPECT_EQ(lion.optimizer.weight_decay, 0);
  EXPECT_EQ(LoadGood({"optimizer.kind=lion", "optimizer.betas=[0.8, 0.9]"}).optimizer.betas[0], 0.8);
  EXPECT_THAT(ErrorsWithSet({"optimizer.kind=lion", "optimizer.eps=1e-6"}),
              ElementsAre("--set optimizer.eps: has no meaning with optimizer.kind = \"lion\", only with \"adamw\", "
                          "\"adam\" and \"muon\""));
  EXPECT_THAT(ErrorsWithSet({"optimizer.kind=adafactor", "optimizer.betas=[0.9, 0.99]"}),
              ElementsAre(HasSubstr("only with \"adamw\", \"adam\", \"muon\" and \"lion\"")));
  const Config muon = LoadGood({"optimizer.kind=muon"});
  EXPECT_EQ(muon.optimizer.momentum, 0.95);
  EXPECT_EQ(muon.optimizer.weight_decay, 0.01);
  EXPECT_EQ(LoadGood({"optimizer.kind=muon", "optimizer.momentum=0"}).optimizer.momentum, 0);
  EXPECT_THAT(ErrorsWithSet({"optimizer.kind=muon", "optimizer.nesterov=true"}),
              ElementsAre(HasSubstr("has no meaning with optimizer.kind = \"muon\", only with \"sgd\"")));
}

TEST(ConfigOptimizer, SchedulesHaveTheirKeys) {
  EXPECT_EQ(LoadGood({"schedule.kind=wsd"}).schedule.steps, 2000);
  EXPECT_THAT(ErrorsWithSet({"schedule.decay_steps=5"}),
              ElementsAre("--set schedule.decay_steps: has no meaning with schedule.kind = \"cosine\", only with \"wsd\""));
  EXPECT_THAT(
      ErrorsWithSet({"schedule.kind=wsd", "schedule.decay_steps=1901"}),
      ElementsAre("--set schedule.decay_steps: found 100 warm-up and 1901 decay steps, allowed a sum <= train.steps (the "
                  "default of schedule.steps) = 2000"));
  EXPECT_THAT(ErrorsWithSet({"schedule.kind=wsd", "schedule.shape=root"}), ElementsAre(HasSubstr("\"sqrt\"")));
  EXPECT_THAT(ErrorsWithSet({"schedule.kind=wsd", "schedule.cycle_steps=5"}), ElementsAre(HasSubstr("only with \"cosine\"")));
  EXPECT_EQ(LoadGood({"schedule.cycle_steps=50"}).schedule.steps, 0);
  EXPECT_THAT(ErrorsWithSet({"schedule.cycle_multiplier=2"}), ElementsAre(HasSubstr("needs schedule.cycle_steps")));
  EXPECT_THAT(ErrorsWithSet({"schedule.cycle_steps=50", "schedule.steps=2000"}),
              ElementsAre("--set schedule.steps: excludes schedule.cycle_steps; allowed one of the two"));
  // The command line's choice between the two wins over the file's.
  const std::string stated = absl::StrReplaceAll(kGood, {{"warmup_steps = 100", "warmup_steps = 100\nsteps = 1500"}});
  const Config cycles = *Load(stated, {"schedule.cycle_steps=50"});
  EXPECT_EQ(cycles.schedule.steps, 0);
  EXPECT_EQ(cycles.schedule.cycle_steps, 50);
}

TEST(ConfigOptimizer, ABeamIsForGeneratedAnswersAndPrintedOnlyThere) {
  const Config config = LoadGood({"valid.beam=4", "valid.length_penalty=0.6"});
  EXPECT_EQ(config.valid.beam, 4);
  EXPECT_THAT(PrintConfig(config), testing::AllOf(HasSubstr("beam = 4\n"), HasSubstr("length_penalty = 0.6\n")));
  EXPECT_THAT(PrintConfig(LoadGood({})), testing::Not(HasSubstr("beam")));
  EXPECT_THAT(ErrorsOf(Load(kText, {"model.family=decoder", "valid.beam=4"})),
              ElementsAre(HasSubstr("valid.beam: found 4, but data.kind = \"text\" has no generated answers")));
  EXPECT_THAT(ErrorsWithSet({"valid.length_penalty=0.6"}), ElementsAre(HasSubstr("has no meaning with valid.beam = 1")));
  EXPECT_THAT(ErrorsWithSet({"valid.beam=0"}), ElementsAre(HasSubstr("valid.beam: found 0")));
  EXPECT_THAT(ErrorsWithSet({"valid.beam=2", "valid.length_penalty=-1"}),
              ElementsAre(HasSubstr("valid.length_penalty: found -1")));
}

TEST(ConfigOptimizer, ShorterRunsKeepAStatedHorizon) {
  EXPECT_EQ(LoadGood({"schedule.steps=2000", "train.steps=17"}).schedule.steps, 2000);
  EXPECT_EQ(LoadGood({"schedule.kind=constant", "train.steps=17"}).schedule.warmup_steps, 100);
}

}  // namespace
}  // namespace weft
