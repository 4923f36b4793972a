#include "layers/transformer_config.h"

#include "gmock/gmock.h"
#include "layers/transformer.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

OptionValue Int(int64_t value, const char* where = "") { return {value, where}; }
OptionValue Text(const char* value, const char* where = "") { return {std::string(value), where}; }
OptionValue Words(std::vector<std::string> words) {
  OptionValue::List list;
  for (std::string& word : words) list.push_back({std::move(word), ""});
  return {std::move(list), ""};
}
OptionValue Table(Options options, const char* where = "") { return {options.entries(), where}; }
// { sublayers = [...] }
OptionValue Sublayers(std::vector<OptionValue> tables) {
  return Table(Options({{"sublayers", {OptionValue::List(tables.begin(), tables.end()), ""}}}));
}

std::vector<std::string> Errors(const Options& model) {
  std::vector<std::string> errors;
  TransformerConfig::Read(model, &errors);
  return errors;
}

TEST(TransformerConfig, ReadsBackWhatItWrites) {
  std::vector<std::string> errors;
  const Options model({{"family", Text("encoder_decoder")},
                       {"d_model", Int(24)},
                       {"layers", Int(3)},
                       {"decoder_layers", Int(2)},
                       {"heads", Int(6)},
                       {"kv_heads", Int(2)},
                       {"hidden", Int(50)},
                       {"activation", Text("silu")},
                       {"norm", Table(Options({{"kind", Text("rms")}, {"place", Text("post")}, {"eps", {1e-6, ""}}}))},
                       {"positions", Text("learned")},
                       {"max_positions", Int(77)},
                       {"dropout", {0.1, ""}},
                       {"hidden_dropout", {0.0, ""}},
                       {"bias", {false, ""}},
                       {"tied", Words({"target", "output"})},
                       {"embedding_scale", {true, ""}},
                       {"init", Text("gpt2")},
                       {"decoder", Sublayers({Table(Options({{"type", Text("self_attention")}, {"heads", Int(4)}})),
                                              Table(Options({{"type", Text("cross_attention")}})),
                                              Table(Options({{"type", Text("feed_forward")}, {"hidden", Int(7)}}))})}});
  const TransformerConfig c = TransformerConfig::Read(model, &errors);
  ASSERT_THAT(errors, IsEmpty());
  EXPECT_EQ(c.encoder_layers, 3);
  EXPECT_EQ(c.decoder_layers, 2);
  EXPECT_EQ(c.attention_dropout, 0.1);  // from dropout
  EXPECT_EQ(c.hidden_dropout, 0.0);
  EXPECT_EQ(c.norm_eps, 1e-6);

  const TransformerConfig again = TransformerConfig::Read(c.Write(), &errors);
  ASSERT_THAT(errors, IsEmpty());
  // Every field once more, by the same list that the loader uses.
  OptionsWriter first, second;
  TransformerConfig copy = c, copy_again = again;
  copy.Fields(first);
  copy_again.Fields(second);
  ASSERT_EQ(first.options.entries().size(), second.options.entries().size());
  for (size_t i = 0; i < first.options.entries().size(); ++i) {
    EXPECT_EQ(first.options.entries()[i].key, second.options.entries()[i].key);
    EXPECT_EQ(first.options.entries()[i].value.Describe(), second.options.entries()[i].value.Describe());
  }
  EXPECT_EQ(again.norm_kind, "rms");
  EXPECT_EQ(again.norm_place, "post");
  EXPECT_EQ(again.norm_eps, 1e-6);
  EXPECT_EQ(again.tied, c.tied);
  ASSERT_THAT(again.decoder_sublayers, SizeIs(3));
  EXPECT_EQ(again.decoder_sublayers[0].type, "self_attention");
  EXPECT_EQ(std::get<int64_t>(again.decoder_sublayers[0].options.Find("heads")->value), 4);
  EXPECT_EQ(std::get<int64_t>(again.decoder_sublayers[2].options.Find("hidden")->value), 7);
  EXPECT_THAT(again.encoder_sublayers, IsEmpty());
}

TEST(TransformerConfig, EveryFamilysDefaultsReadBack) {
  for (const char* family : {"encoder_decoder", "decoder", "encoder"}) {
    TransformerConfig c;
    c.family = family;
    std::vector<std::string> errors;
    TransformerConfig::Read(c.Write(), &errors);
    EXPECT_THAT(errors, IsEmpty()) << family;
  }
}

TEST(TransformerConfig, HeadsThatDoNotDivideAreRefusedNamingBothKeysAndValues) {
  EXPECT_THAT(Errors(Options({{"d_model", Int(10)}, {"heads", Int(3, "f.toml:7:9")}})),
              ElementsAre("f.toml:7:9: model.heads: d_model = 10 is not divisible by heads = 3"));
  EXPECT_THAT(Errors(Options({{"d_model", Int(12)}, {"heads", Int(4)}, {"kv_heads", Int(3, "f.toml:8:12")}})),
              ElementsAre("f.toml:8:12: model.kv_heads: heads = 4 is not divisible by kv_heads = 3"));
  EXPECT_THAT(Errors(Options({{"d_model", Int(12)}, {"heads", Int(4)}, {"kv_heads", Int(0, "f.toml:8:12")}})),
              ElementsAre(HasSubstr("f.toml:8:12: model.kv_heads: found 0")));
}

TEST(TransformerConfig, AllErrorsComeAtOnce) {
  const std::vector<std::string> errors = Errors(Options({{"d_model", Int(10, "f.toml:1:1")},
                                                          {"heads", Int(3, "f.toml:2:1")},
                                                          {"kv_heads", Int(2, "f.toml:3:1")},
                                                          {"activation", Text("gellu", "f.toml:4:1")},
                                                          {"dropout", {1.0, "f.toml:5:1"}},
                                                          {"laers", Int(2, "f.toml:6:1")},
                                                          {"norm", Table(Options({{"kind", Text("batch", "f.toml:7:1")}}))},
                                                          {"pool", Text("mean", "f.toml:8:1")},
                                                          {"max_positions", Int(8, "f.toml:9:1")}}));
  std::string all;
  for (const std::string& error : errors) all += error + "\n";
  for (const char* part : {"f.toml:2:1: model.heads", "f.toml:3:1: model.kv_heads", "f.toml:4:1: model.activation",
                           "f.toml:5:1: model.dropout", "f.toml:6:1: model.laers", "did you mean model.layers?",
                           "f.toml:7:1: model.norm.kind", "f.toml:8:1: model.pool", "f.toml:9:1: model.max_positions"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
  EXPECT_THAT(errors, SizeIs(8)) << all;
}

TEST(TransformerConfig, UnknownSublayersAreRefusedWithPlaceAndSuggestion) {
  EXPECT_THAT(
      Errors(Options({{"decoder", Sublayers({Table(Options({{"type", Text("self_atention", "f.toml:3:30")}})),
                                             Table(Options({{"type", Text("test_running_mean")}}))})}})),
      ElementsAre(testing::AllOf(HasSubstr("f.toml:3:30: model.decoder.sublayers: unknown layer type \"self_atention\""),
                                 HasSubstr("did you mean \"self_attention\"?"))));
}

TEST(TransformerConfig, BadOptionsOfASublayerAreRefusedWithTheirPlace) {
  EXPECT_THAT(
      Errors(Options(
          {{"decoder", Sublayers({Table(Options({{"type", Text("feed_forward")}, {"hiden", Int(7, "f.toml:3:50")}}))})}})),
      ElementsAre(
          testing::AllOf(HasSubstr("f.toml:3:50: model.decoder.feed_forward.hiden"), HasSubstr("feed_forward.hidden?"))));
  EXPECT_THAT(
      Errors(Options({{"d_model", Int(12)},
                      {"heads", Int(3)},
                      {"decoder", Sublayers({Table(Options({{"type", Text("self_attention")}, {"heads", Int(5)}}))})}})),
      ElementsAre(HasSubstr("d_model = 12 is not divisible by heads = 5")));
}

TEST(TransformerConfig, ASublayersWidthIsTheModels) {
  EXPECT_THAT(Errors(Options(
                  {{"decoder", Sublayers({Table(Options({{"type", Text("linear")}, {"d_model", Int(7, "f.toml:3:50")}}))})}})),
              ElementsAre(HasSubstr("f.toml:3:50: model.decoder.sublayers: d_model")));
}

TEST(TransformerConfig, CrossAttentionNeedsAnEncoder) {
  const OptionValue cross = Sublayers({Table(Options({{"type", Text("cross_attention", "f.toml:2:3")}}))});
  EXPECT_THAT(Errors(Options({{"family", Text("decoder")}, {"decoder", cross}})), ElementsAre(HasSubstr("f.toml:2:3")));
  EXPECT_THAT(Errors(Options({{"family", Text("encoder_decoder")}, {"encoder", cross}})), ElementsAre(HasSubstr("f.toml:2:3")));
  EXPECT_THAT(Errors(Options({{"family", Text("encoder_decoder")}, {"decoder", cross}})), IsEmpty());
}

TEST(TransformerConfig, SublayersHaveAListOfTables) {
  EXPECT_THAT(Errors(Options({{"decoder", Sublayers({})}})), SizeIs(1));
  EXPECT_THAT(Errors(Options({{"decoder", Int(3)}})), SizeIs(1));
  EXPECT_THAT(Errors(Options({{"decoder", Sublayers({Int(3)})}})), SizeIs(1));
  EXPECT_THAT(Errors(Options({{"family", Text("encoder")}, {"decoder", Sublayers({Int(3)})}})),
              ElementsAre(HasSubstr("family = \"encoder\" has no decoder")));
  EXPECT_THAT(Errors(Options({{"norm", Int(3)}})), SizeIs(1));
}

TEST(TransformerConfig, TiedSidesFollowTheFamily) {
  const auto errors = [](const char* family, std::vector<std::string> sides) {
    return Errors(Options({{"family", Text(family)}, {"tied", Words(std::move(sides))}}));
  };
  EXPECT_THAT(errors("encoder_decoder", {"source", "target", "output"}), IsEmpty());
  EXPECT_THAT(errors("encoder_decoder", {"source", "output"}), IsEmpty());
  EXPECT_THAT(errors("decoder", {"target", "output"}), IsEmpty());
  EXPECT_THAT(errors("decoder", {"source", "output"}), SizeIs(1));
  EXPECT_THAT(errors("decoder", {"target"}), SizeIs(1));
  EXPECT_THAT(errors("decoder", {"target", "target"}), SizeIs(1));
  EXPECT_THAT(errors("encoder", {"source", "output"}), SizeIs(1));
  EXPECT_THAT(errors("decoder", {"target", "outptu"}), SizeIs(1));
}

TEST(TransformerConfig, ASublayersOwnHeadsHaveAsManyKeyHeads) {
  TransformerConfig c;
  c.d_model = 12;
  c.heads = 6;
  c.decoder_sublayers = {{"self_attention", Options({{"type", Text("self_attention")}, {"heads", Int(4)}})}};
  Parameters parameters;
  const auto model = Transformer::Create(c, {.target_vocabulary = 5}, &parameters);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(parameters.list()[parameters.Find("decoder.0.self_attention.k.weight")].shape, Shape({12, 12}));
}

}  // namespace
}  // namespace weft
