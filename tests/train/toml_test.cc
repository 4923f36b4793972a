#include "train/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Options Parse(absl::string_view text) {
  absl::StatusOr<Options> options = ParseToml(text, "x.toml");
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options();
}

std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<Options> options = ParseToml(text, "x.toml");
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(options.status().message());
}

// The value at root.key after the override, as TOML; or the error.
std::string Override(absl::string_view override_text, absl::string_view key, Options root = Options()) {
  const absl::Status status = ApplyOverride(override_text, &root);
  if (!status.ok()) return std::string(status.message());
  const OptionValue* value = root.Find(key);
  return value == nullptr ? "absent" : PrintTomlValue(*value);
}

TEST(ParseTomlTest, KeepsOrderTypesAndPlaces) {
  const Options root = Parse("z = 1\n[b]\nu = 1.5\n\n[a]\nt = [true, \"é\", 2]  # comment\nk = { y = 1, x = {} }\n");
  ASSERT_EQ(root.entries().size(), 3u);
  EXPECT_EQ(root.entries()[0].key, "z");
  EXPECT_EQ(root.entries()[1].key, "b");
  EXPECT_EQ(root.entries()[1].value.where, "x.toml:2:1");
  EXPECT_EQ(root.entries()[2].key, "a");
  const auto& a = std::get<OptionValue::Table>(root.entries()[2].value.value);
  EXPECT_EQ(a[0].where, "x.toml:6:1");
  EXPECT_EQ(a[0].value.where, "x.toml:6:5");
  const auto& list = std::get<OptionValue::List>(a[0].value.value);
  EXPECT_EQ(list[1].where, "x.toml:6:12");
  EXPECT_EQ(list[2].where, "x.toml:6:17");  // columns count characters, not bytes
  EXPECT_EQ(std::get<int64_t>(list[2].value), 2);
  const auto& k = std::get<OptionValue::Table>(a[1].value.value);
  EXPECT_EQ(k[0].key, "y");
  EXPECT_EQ(k[1].key, "x");
  EXPECT_EQ(k[0].value.where, "x.toml:7:11");
}

TEST(ParseTomlTest, DottedKeysAndSubtablesAreNestedTables) {
  const std::string dotted = PrintToml(Parse("[model]\ndecoder.sublayers = [{ type = \"a\" }]\n"));
  EXPECT_EQ(dotted, "[model]\ndecoder = { sublayers = [{ type = \"a\" }] }\n");
  EXPECT_EQ(PrintToml(Parse("[model.decoder]\nsublayers = [{ type = \"a\" }]\n")), dotted);
  EXPECT_EQ(PrintToml(Parse("[[model.decoder.sublayers]]\ntype = \"a\"\n")), dotted);
}

TEST(ParseTomlTest, MalformedTextIsRefusedWithItsPlace) {
  EXPECT_THAT(ErrorOf("a = 1\nb = = 2\n"), StartsWith("x.toml:2:5: not valid TOML: "));
  EXPECT_THAT(ErrorOf("[train]\nsteps = 1\nsteps = 2\n"), StartsWith("x.toml:3:"));
  EXPECT_THAT(ErrorOf("[train]\na = 1\n[train]\nb = 1\n"), StartsWith("x.toml:3:"));
  EXPECT_THAT(ErrorOf("seed = 9223372036854775808\n"), StartsWith("x.toml:1:"));
  EXPECT_THAT(ErrorOf("a = \"\xff\"\n"), StartsWith("x.toml:1:"));
  EXPECT_THAT(ErrorOf(absl::string_view("a = 1\0\n", 7)), StartsWith("x.toml:1:"));
  EXPECT_THAT(ErrorOf("a = \"open"), StartsWith("x.toml:1:"));
  EXPECT_THAT(ErrorOf("[t]\nday = 2024-05-06\n"),
              "x.toml:2:7: dates and times are not used in a config; put a text into quotes");
  EXPECT_THAT(ErrorOf("t = [07:30:00]"), StartsWith("x.toml:1:6: dates"));
  EXPECT_THAT(ErrorOf("a = " + std::string(100000, '[')), StartsWith("x.toml:1:"));
}

// In a build with assertions, toml++ itself would end the program on some of these.
TEST(ParseTomlTest, MalformedKeysAreErrorsInEveryBuild) {
  for (const char* text : {"[=]", "[= t = 1]", "[[=", "[a.=]", "a. = 1", "= 1", "[\x01]", "x = \u0247", "\u00e9 = 1"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("not valid TOML")) << text;
  }
}

// A key of 100,000 parts makes as many tables in each other; walking them must not overflow the stack.
TEST(ParseTomlTest, EndlessDottedKeysAreRefusedAndCommentsAreNotCounted) {
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_THAT(ErrorOf("x = 1\n" + deep + " = 1\n"), StartsWith("x.toml:2:1: found more than 1000 dots"));
  EXPECT_THAT(ErrorOf("[" + deep + "]\n"), StartsWith("x.toml:1:1: found more than 1000 dots"));
  EXPECT_THAT(Override(deep + "=1", "a"), HasSubstr("allowed KEY=VALUE"));
  EXPECT_EQ(Parse("  # " + std::string(5000, '.') + "\nx = 1.5\n").entries().size(), 1u);
}

TEST(PrintTomlTest, ReadsBackToTheSameValues) {
  const std::string text =
      "name = \"quote \\\" slash \\\\ line \\n tab \\t bell \\u0007 del \\u007f ü 🙂 #\"\n"
      "\"odd key\" = 1\n"
      "\n"
      "[numbers]\n"
      "big = 9223372036854775807\n"
      "small = -9223372036854775808\n"
      "exact = 9007199254740993\n"
      "third = 0.3333333333333333\n"
      "tiny = 5e-324\n"
      "huge = 1.7976931348623157e+308\n"
      "whole = 2.0\n"
      "zero = -0.0\n"
      "\n"
      "[empty]\n"
      "\n"
      "[lists]\n"
      "none = []\n"
      "table = {}\n"
      "mixed = [1, 2.5, \"x\", true, [1], { a = 1, b = { c = [] } }]\n";
  EXPECT_EQ(PrintToml(Parse(text)), text);
}

TEST(PrintTomlTest, BreaksLongListsAndStillReadsBack) {
  OptionValue::List items;
  for (int64_t i = 0; i < 10; ++i) {
    items.push_back({Options({{"type", {std::string("self_attention"), ""}}, {"hidden", {i, ""}}}).entries(), ""});
  }
  const OptionValue decoder{Options({{"sublayers", {items, ""}}, {"layers", {int64_t{2}, ""}}}).entries(), ""};
  const Options root({{"model", {Options({{"decoder", decoder}}).entries(), ""}}});
  const std::string text = PrintToml(root);
  EXPECT_THAT(text, HasSubstr("[\n  { type = \"self_attention\", hidden = 0 },\n"));
  EXPECT_EQ(PrintToml(Parse(text)), text);
}

TEST(PrintTomlTest, RootValuesComeBeforeSections) {
  const Options root({{"a", {OptionValue::Table{}, ""}}, {"b", {int64_t{1}, ""}}});
  EXPECT_EQ(PrintToml(root), "b = 1\n\n[a]\n");
}

TEST(ApplyOverrideTest, ReadsTomlValues) {
  EXPECT_EQ(Override("a=64", "a"), "64");
  EXPECT_EQ(Override("a=1e-3", "a"), "0.001");
  EXPECT_EQ(Override("a=-1", "a"), "-1");
  EXPECT_EQ(Override("a=true", "a"), "true");
  EXPECT_EQ(Override("a=\"x = y\"", "a"), "\"x = y\"");
  EXPECT_EQ(Override("a='lit\\'", "a"), "\"lit\\\\\"");
  EXPECT_EQ(Override("a=[1, 2]", "a"), "[1, 2]");
  EXPECT_EQ(Override("a={ kind = \"char\" }", "a"), "{ kind = \"char\" }");
  EXPECT_EQ(Override("a=9007199254740993", "a"), "9007199254740993");
}

TEST(ApplyOverrideTest, TakesBareWordsAndPathsAsStrings) {
  for (const std::string text :
       {"../x.txt", "sgd", "1e-3x", "run ü 1#%20'x", "-", "", "a=b", "1 # no comment", "1,", "2024-05-06",
        "9223372036854775808", "tru", "C:\\x", "line\nbreak = 2", "1\nb = 2", "1]#", "1], [2"}) {
    EXPECT_EQ(Override("a=" + text, "a"), PrintTomlValue({text, ""})) << text;
  }
}

TEST(ApplyOverrideTest, SetsNestedKeysAndKeepsTheOthers) {
  const Options root = Parse("[model]\nd_model = 32\nnorm = { kind = \"layer\", place = \"pre\" }\n");
  EXPECT_EQ(Override("model.d_model=64", "model", root), "{ d_model = 64, norm = { kind = \"layer\", place = \"pre\" } }");
  EXPECT_EQ(Override("model.norm.place=post", "model", root),
            "{ d_model = 32, norm = { kind = \"layer\", place = \"post\" } }");
  EXPECT_EQ(Override("train.steps=5", "train", root), "{ steps = 5 }");
}

TEST(ApplyOverrideTest, PlacesAreTheOverride) {
  Options root = Parse("[model]\nd_model = 32\n");
  ASSERT_TRUE(ApplyOverride("model.x=[{ a = 1 }]", &root).ok());
  const Options model(std::get<OptionValue::Table>(root.Find("model")->value));
  const auto& list = std::get<OptionValue::List>(model.Find("x")->value);
  EXPECT_EQ(model.Find("x")->where, "--set model.x");
  EXPECT_EQ(std::get<OptionValue::Table>(list[0].value)[0].where, "--set model.x");
  EXPECT_EQ(model.Find("d_model")->where, "x.toml:2:11");
  EXPECT_EQ(root.Find("model")->where, "x.toml:1:1");
}

TEST(ApplyOverrideTest, MalformedOverridesAreRefusedByName) {
  const Options root = Parse("[model]\nd_model = 32\n");
  EXPECT_EQ(Override("model", "a"), "--set model: allowed KEY=VALUE with a dotted key, for example train.steps=100");
  for (const std::string text : {"=1", ".a=1", "a.=1", "a..b=1", "a b=1", "a[0]=1", ""}) {
    EXPECT_THAT(Override(text, "a"), StartsWith("--set " + text + ": allowed KEY=VALUE")) << text;
  }
  for (const std::string text : {"a=\"open", "a=[1", "a={", "a='x", "a=[1] # c", "a=\"x\" y"}) {
    EXPECT_THAT(Override(text, "a"), StartsWith("--set " + text + ": ")) << text;
  }
  EXPECT_EQ(Override("model.d_model.x=1", "a", root), "--set model.d_model.x: model.d_model is 32 (an integer), not a table");
  EXPECT_EQ(Override("a=\xff", "a"), "--set a: the value is not valid UTF-8");
}

}  // namespace
}  // namespace weft
