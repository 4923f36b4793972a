#include "autograd/base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sample {
  bool bias = true;
  int64_t hidden = 64;
  double dropout = 0.1;
  std::string name = "n";
  std::string activation = "gelu";
  std::vector<std::string> tied = {"source"};
  std::vector<double> betas = {0.9, 0.98};
  void Fields(FieldVisitor& v) {
    v.Visit("bias", bias, "adds a bias");
    v.Visit("hidden", hidden, {.min = 1, .max = 1e12}, "width");
    v.Visit("dropout", dropout, {.min = 0, .max = 1, .max_open = true}, "probability");
    v.Visit("name", name, "any text");
    v.Choice("activation", activation, {"relu", "gelu"}, "non-linearity");
    v.Visit("tied", tied, "tied sides");
    v.Visit("betas", betas, {.min = 0}, "decays");
  }
};

std::vector<std::string> Read(const Options& options, Sample* sample, const Options* defaults = nullptr) {
  OptionsReader reader("model", options, defaults);
  sample->Fields(reader);
  return reader.Finish();
}

// The errors of a table with the one key.
std::vector<std::string> ReadOne(absl::string_view key, OptionValue value) {
  Sample sample;
  return Read(Options({{key, std::move(value)}}), &sample);
}

TEST(OptionsReaderTest, ReadsEveryKindOfField) {
  const Options options({{"bias", {false, ""}},
                         {"hidden", {int64_t{7}, ""}},
                         {"dropout", {0.25, ""}},
                         {"name", {std::string("x"), ""}},
                         {"activation", {std::string("relu"), ""}},
                         {"tied", {OptionValue::List{{std::string("a"), ""}, {std::string("b"), ""}}, ""}},
                         {"betas", {OptionValue::List{{0.5, ""}, {int64_t{1}, ""}}, ""}}});
  Sample sample;
  EXPECT_THAT(Read(options, &sample), IsEmpty());
  EXPECT_FALSE(sample.bias);
  EXPECT_EQ(sample.hidden, 7);
  EXPECT_EQ(sample.dropout, 0.25);
  EXPECT_EQ(sample.name, "x");
  EXPECT_EQ(sample.activation, "relu");
  EXPECT_THAT(sample.tied, ElementsAre("a", "b"));
  EXPECT_THAT(sample.betas, ElementsAre(0.5, 1.0));
}

TEST(OptionsReaderTest, AbsentKeysKeepDefaults) {
  Sample sample;
  EXPECT_THAT(Read(Options(), &sample), IsEmpty());
  EXPECT_EQ(sample.hidden, 64);
  EXPECT_THAT(sample.tied, ElementsAre("source"));
}

TEST(OptionsReaderTest, InheritsFromDefaultsWhatTheTableLacks) {
  const Options outer({{"hidden", {int64_t{5}, ""}}, {"name", {std::string("outer"), ""}}, {"unrelated", {true, ""}}});
  Sample sample;
  EXPECT_THAT(Read(Options({{"hidden", {int64_t{6}, ""}}}), &sample, &outer), IsEmpty());
  EXPECT_EQ(sample.hidden, 6);
  EXPECT_EQ(sample.name, "outer");
}

TEST(OptionsReaderTest, MismatchNamesPlaceKeyFoundAndAllowed) {
  EXPECT_THAT(ReadOne("hidden", {1.5, "x.toml:12:8"}),
              ElementsAre("x.toml:12:8: model.hidden: found 1.5 (a float), allowed an integer in [1, 1000000000000]"));
  EXPECT_THAT(ReadOne("dropout", {std::string("1e-3x"), "--set model.dropout"}),
              ElementsAre("--set model.dropout: found \"1e-3x\" (a string), allowed a number in [0, 1)"));
  EXPECT_THAT(ReadOne("bias", {int64_t{1}, "x:1:1"}),
              ElementsAre("x:1:1: model.bias: found 1 (an integer), allowed true or false"));
  EXPECT_THAT(ReadOne("name", {true, ""}), ElementsAre("model.name: found true (a boolean), allowed a string"));
  EXPECT_THAT(ReadOne("tied", {std::string("source"), "x:1:1"}),
              ElementsAre("x:1:1: model.tied: found \"source\" (a string), allowed a list of strings"));
  EXPECT_THAT(ReadOne("tied", {OptionValue::List{{int64_t{3}, "x:1:9"}}, "x:1:8"}),
              ElementsAre("x:1:9: model.tied: found 3 (an integer), allowed a list of strings"));
  EXPECT_THAT(ReadOne("betas", {OptionValue::List{{-0.5, "x:1:9"}}, "x:1:8"}),
              ElementsAre("x:1:9: model.betas: found -0.5 (a float), allowed a list, each of it a number >= 0"));
  EXPECT_THAT(ReadOne("hidden", {OptionValue::Table{}, "x:1:1"}).front(),
              testing::HasSubstr("found a table, allowed an integer"));
}

TEST(OptionsReaderTest, RangesAreChecked) {
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(ReadOne("hidden", {bad, ""}).size(), 1u) << bad;
  for (const double bad : {-1e-9, 1.0, 2.0, kInfinity, -kInfinity, std::nan("")}) {
    EXPECT_EQ(ReadOne("dropout", {bad, ""}).size(), 1u) << bad;
  }
  for (const double good : {0.0, 0.999}) EXPECT_THAT(ReadOne("dropout", {good, ""}), IsEmpty()) << good;
  EXPECT_EQ(ReadOne("betas", {OptionValue::List{{kInfinity, ""}}, ""}).size(), 1u);
  EXPECT_EQ(ReadOne("betas", {OptionValue::List{{std::nan(""), ""}}, ""}).size(), 1u);
}

TEST(OptionsReaderTest, RefusedValuesLeaveTheDefault) {
  Sample sample;
  Read(Options({{"hidden", {int64_t{-4}, ""}}, {"tied", {OptionValue::List{{std::string("a"), ""}, {true, ""}}, ""}}}),
       &sample);
  EXPECT_EQ(sample.hidden, 64);
  EXPECT_THAT(sample.tied, ElementsAre("source"));
}

TEST(OptionsReaderTest, IntegersKeepAll64Bits) {
  int64_t seed = 0;
  for (const int64_t value : {int64_t{9007199254740993}, INT64_MAX}) {
    const Options options({{"seed", {value, ""}}});
    OptionsReader reader("run", options);
    reader.Visit("seed", seed, {.min = 0}, "");
    EXPECT_THAT(reader.Finish(), IsEmpty());
    EXPECT_EQ(seed, value);
  }
}

TEST(OptionsReaderTest, UnknownKeysAndChoicesSuggestTheNearest) {
  EXPECT_THAT(ReadOne("drop_out", {0.1, "x:3:1"}),
              ElementsAre("x:3:1: model.drop_out: unknown key; did you mean model.dropout?"));
  EXPECT_THAT(ReadOne("zzz", {0.1, "x:3:1"}), ElementsAre("x:3:1: model.zzz: unknown key"));
  EXPECT_THAT(
      ReadOne("activation", {std::string("gelo"), "x:3:1"}),
      ElementsAre("x:3:1: model.activation: found \"gelo\" (a string), allowed \"relu\", \"gelu\"; did you mean \"gelu\"?"));
}

TEST(OptionsReaderTest, CollectsAllErrorsAndTheCallersOwn) {
  Options options({{"hidden", {true, "x:1:1"}}, {"nam", {true, "x:2:1"}}, {"nested", {OptionValue::Table{}, "x:3:1"}}});
  options.where = "x:0:1";
  OptionsReader reader("model", options);
  Sample sample;
  sample.Fields(reader);
  ASSERT_NE(reader.Take("nested"), nullptr);
  EXPECT_EQ(reader.Take("other"), nullptr);
  EXPECT_TRUE(reader.Has("nested"));
  EXPECT_FALSE(reader.Has("name"));
  reader.Error("nested", "must not be empty");
  reader.Error("name", "missing");
  EXPECT_THAT(reader.Finish(),
              ElementsAre("x:1:1: model.hidden: found true (a boolean), allowed an integer in [1, 1000000000000]",
                          "x:3:1: model.nested: must not be empty", "x:0:1: model.name: missing",
                          "x:2:1: model.nam: unknown key; did you mean model.name?"));
}

TEST(OptionsWriterTest, WritesWhatAReaderReadsBack) {
  Sample sample;
  sample.hidden = 900719925474;
  sample.dropout = 0.1 + 0.2;
  sample.tied = {};
  OptionsWriter writer;
  sample.Fields(writer);
  std::vector<std::string> keys;
  for (const Option& option : writer.options.entries()) keys.push_back(option.key);
  EXPECT_THAT(keys, ElementsAre("bias", "hidden", "dropout", "name", "activation", "tied", "betas"));
  Sample copy;
  EXPECT_THAT(Read(writer.options, &copy), IsEmpty());
  EXPECT_EQ(copy.hidden, sample.hidden);
  EXPECT_EQ(copy.dropout, sample.dropout);
  EXPECT_THAT(copy.tied, IsEmpty());
}

TEST(FieldDescriberTest, DescribesTypesDefaultsAndRanges) {
  FieldDescriber describer;
  Sample().Fields(describer);
  ASSERT_EQ(describer.fields.size(), 7u);
  EXPECT_EQ(describer.fields[2].name, "dropout");
  EXPECT_EQ(describer.fields[2].type, "float");
  EXPECT_EQ(describer.fields[2].default_value, "0.1");
  EXPECT_EQ(describer.fields[2].allowed, "a number in [0, 1)");
  EXPECT_EQ(describer.fields[2].doc, "probability");
  EXPECT_EQ(describer.fields[4].allowed, "\"relu\", \"gelu\"");
  EXPECT_EQ(describer.fields[5].default_value, "[\"source\"]");
  EXPECT_EQ(describer.fields[6].default_value, "[0.9, 0.98]");
}

TEST(OptionsTest, SetReplacesInPlaceAndRemoveForgets) {
  Options options({{"a", {int64_t{1}, ""}}, {"b", {int64_t{2}, ""}}});
  options.Set("a", {int64_t{3}, "w"});
  ASSERT_EQ(options.entries().size(), 2u);
  EXPECT_EQ(options.entries()[0].key, "a");
  EXPECT_EQ(std::get<int64_t>(options.Find("a")->value), 3);
  EXPECT_EQ(options.entries()[0].where, "w");
  EXPECT_TRUE(options.Remove("a"));
  EXPECT_FALSE(options.Remove("a"));
  EXPECT_EQ(options.Find("a"), nullptr);
}

TEST(NearestTest, FindsSlipsAndNothingElse) {
  const std::vector<std::string> keys = {"learning_rate", "lr", "dropout", "d_model", "layers", "heads"};
  EXPECT_EQ(Nearest("learning_rat", keys), "learning_rate");
  EXPECT_EQ(Nearest("laeyrs", keys), "layers");
  EXPECT_EQ(Nearest("D-Model", keys), "d_model");
  EXPECT_EQ(Nearest("haeds", keys), "heads");
  EXPECT_EQ(Nearest("kv", keys), "");
  EXPECT_EQ(Nearest("banana", keys), "");
  EXPECT_EQ(Nearest("", keys), "");
  EXPECT_EQ(Nearest("x", {}), "");
}

TEST(FormatDoubleTest, IsShortestAndStaysAFloat) {
  EXPECT_EQ(FormatDouble(1), "1.0");
  EXPECT_EQ(FormatDouble(-0.0), "-0.0");
  EXPECT_EQ(FormatDouble(0.001), "0.001");
  EXPECT_EQ(FormatDouble(1e-8), "1e-08");
  EXPECT_EQ(FormatDouble(kInfinity), "inf");
  EXPECT_EQ(FormatDouble(std::nan("")), "nan");
  for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324, 123456789.123, 1e22}) {
    EXPECT_EQ(std::strtod(FormatDouble(value).c_str(), nullptr), value);
  }
}

TEST(ErrorsToStatusTest, JoinsLines) {
  EXPECT_TRUE(ErrorsToStatus({}).ok());
  EXPECT_EQ(ErrorsToStatus({"a", "b"}), absl::InvalidArgumentError("a\nb"));
}

}  // namespace
}  // namespace weft
