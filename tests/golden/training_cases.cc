// Optimizers on given gradients, and whole training runs of both families.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "layers/transformer.h"
#include "tests/golden/golden_case.h"
#include "train/gradient.h"
#include "train/optimizer.h"

namespace weft::golden {
namespace {

// "lr .05, betas .9 .95, eps 1e-8, decay .1": what the text leaves out is PyTorch's default.
OptimizerConfig ReadOptimizer(const std::string& kind, const std::string& settings) {
  OptimizerConfig config;
  config.kind = kind;
  config.lr = NumberAfter(settings, "lr", 1e-3);
  double beta1 = 0.9, beta2 = 0.999;
  if (const size_t at = settings.find("betas "); at != std::string::npos) {
    EXPECT_EQ(std::sscanf(settings.c_str() + at, "betas %lf %lf", &beta1, &beta2), 2) << settings;
  }
  config.betas = {beta1, beta2};
  config.eps = NumberAfter(settings, "eps", 1e-8);
  config.momentum = NumberAfter(settings, "momentum", 0);
  config.nesterov = absl::StrContains(settings, "nesterov");
  const double decay = NumberAfter(settings, "decay", 0), l2 = NumberAfter(settings, "L2", 0);
  config.weight_decay = std::max(decay, l2);
  // Of every parameter unless the text limits it ("on w only", "on rank>=2").
  const bool matrices = absl::StrContains(settings, " only") || absl::StrContains(settings, "rank>=2");
  config.decay = matrices ? "matrices" : "all";
  return config;
}

// Ours for the curve's name of a parameter: "blocks.0.norm1.weight" is "decoder.0.self_attention_norm.weight".
std::string OurName(const std::string& theirs, bool has_encoder) {
  std::string name = theirs;
  if (absl::StartsWith(name, "blocks.")) name = absl::StrCat("decoder.", name.substr(7));
  if (absl::StartsWith(name, "norm.") || absl::StartsWith(name, "decoder_norm.")) {
    return absl::StrCat("decoder.", name.substr(name.find("norm.")));
  }
  if (absl::StartsWith(name, "encoder_norm.")) return absl::StrCat("encoder.", name.substr(8));
  if (name == "token.weight") return has_encoder ? "source_embedding.weight" : "target_embedding.weight";
  if (name == "position.weight") return "decoder.positions.weight";
  return absl::StrReplaceAll(name, {{".norm1.", ".self_attention_norm."},
                                    {".norm2.", ".feed_forward_norm."},
                                    {".norm_cross.", ".cross_attention_norm."},
                                    {".up.", ".feed_forward.up."},
                                    {".down.", ".feed_forward.down."}});
}

// The note with the optimizer's settings: the case's own, or that of the curve it refers to ("optimizer as in the decoder-only
// curve"), if there are several the one with the same rest of its name.
std::string OptimizerNote(const Case& c, const std::vector<Case>& all) {
  if (absl::StrContains(c.note, "AdamW lr")) return c.note;
  const std::string twin = absl::StrReplaceAll(c.name, {{"encoder_decoder", "decoder_only"}});
  std::string note;
  for (const Case& other : all) {
    if (other.kind != c.kind || !absl::StrContains(other.note, "AdamW lr")) continue;
    if (note.empty() || other.name == twin) note = other.note;
  }
  return note;
}

// Blocks with this prefix ("initial.blocks.").
int64_t CountBlocks(const Case& c, const std::string& prefix) {
  int64_t blocks = 0;
  while (c.Has(absl::StrCat(prefix, blocks, ".norm1.weight"))) ++blocks;
  return blocks;
}

// Appends the first `length` ids of row `row` of a padded [B, T].
void AppendRow(const std::vector<int32_t>& padded, int64_t time, int64_t row, int64_t length, std::vector<int32_t>* ids) {
  ids->insert(ids->end(), padded.begin() + row * time, padded.begin() + row * time + length);
}

Batch ReadBatch(const Case& c, int64_t step, bool has_encoder) {
  const std::string prefix = absl::StrCat("batch.", step, ".");
  const std::string input_name = prefix + (has_encoder ? "target_input" : "input");
  const std::vector<int32_t> inputs = c.ReadIds(input_name);
  const std::vector<int32_t> labels = c.ReadIds(prefix + (has_encoder ? "target_label" : "target"));
  const Values shape = c.Read(input_name);
  const int64_t rows = shape.dim(0), time = shape.dim(1);
  Batch batch;
  for (int64_t row = 0; row < rows; ++row) {
    batch.sequence_ids.push_back(row);
    // Behind the last label that counts there is only padding, which no earlier token sees.
    int64_t length = time;
    while (length > 1 && labels[row * time + length - 1] == kIgnoreTarget) --length;
    batch.target_lengths.push_back(length);
    AppendRow(inputs, time, row, length, &batch.target_ids);
    AppendRow(labels, time, row, length, &batch.target_labels);
  }
  if (has_encoder) {
    const std::vector<int32_t> source = c.ReadIds(prefix + "source"), lengths = c.ReadIds(prefix + "source_length");
    for (int64_t row = 0; row < rows; ++row) {
      batch.source_lengths.push_back(lengths[row]);
      AppendRow(source, c.Read(prefix + "source").dim(1), row, lengths[row], &batch.source_ids);
    }
  }
  return batch;
}

}  // namespace

void RunOptimizer(const Case& c) {
  int steps = 0;
  double clip = 0;
  ASSERT_EQ(std::sscanf(c.kind.c_str(), "%d steps, each clipped to global norm %lf", &steps, &clip), 2) << c.kind;
  const std::string kind = absl::StrContains(c.name, "adamw")  ? "adamw"
                           : absl::StrContains(c.name, "adam") ? "adam"
                           : absl::StrContains(c.name, "sgd")  ? "sgd"
                                                               : "";
  ASSERT_FALSE(kind.empty()) << "no test knows the optimizer " << c.name;
  const OptimizerConfig config = ReadOptimizer(kind, c.note);
  const DType type = c.TypeOf("w.0");
  const double tolerance = ToleranceOf(type);

  Parameters parameters;
  Builder root(&parameters);
  root.Parameter("w", Shape(c.Read("w.0").shape), Init::Zeros());
  root.Parameter("b", Shape(c.Read("b.0").shape), Init::Zeros());
  parameters.Allocate(type, 1);
  SetParameter(&parameters, "w", c.Read("w.0").v);
  SetParameter(&parameters, "b", c.Read("b.0").v);
  Optimizer optimizer(config, parameters);
  const Slab gradients(type, parameters.slab_size());
  for (int step = 1; step <= steps; ++step) {
    for (const char* name : {"w", "b"}) {
      const Values g = c.Read(absl::StrCat("g", name, ".", step));
      const Tensor into = Parameters::In(gradients.tensor(), parameters.list()[parameters.Find(name)]);
      ASSERT_EQ(into.elements(), static_cast<int64_t>(g.v.size()));
      for (int64_t i = 0; i < into.elements(); ++i) into.Set(i, 4 * g.v[i]);  // a sum over 4 tokens
    }
    const UpdateStats stats = optimizer.Step(&parameters, gradients.tensor(), 0.25, clip, config.lr);
    ExpectNear(absl::StrCat("norm.", step), {stats.grad_norm}, c.Read(absl::StrCat("norm.", step)).v, tolerance);
    for (const char* name : {"w", "b"}) {
      ExpectNear(absl::StrCat(name, ".", step), ToDoubles(parameters.value(parameters.Find(name))),
                 c.Read(absl::StrCat(name, ".", step)).v, tolerance);
    }
  }
}

void RunCurve(const Case& c, const std::vector<Case>& all) {
  const bool has_encoder = c.Has("batch.0.source");
  const DType type = c.TypeOf("initial.token.weight");
  const double tolerance = ToleranceOf(type);
  const std::string optimizer_note = OptimizerNote(c, all);
  ASSERT_TRUE(absl::StrContains(optimizer_note, "AdamW lr")) << c.note;
  const OptimizerConfig optimizer_config = ReadOptimizer("adamw", optimizer_note.substr(optimizer_note.find("AdamW lr")));
  const double clip = NumberAfter(optimizer_note, "clip", 0), smoothing = NumberAfter(c.note, "smoothing", 0);

  const Values token = c.Read("initial.token.weight");
  TransformerConfig config;
  config.family = has_encoder ? "encoder_decoder" : "decoder";
  config.d_model = token.dim(1);
  config.encoder_layers = CountBlocks(c, "initial.encoder.");
  config.decoder_layers = CountBlocks(c, has_encoder ? "initial.decoder." : "initial.blocks.");
  config.heads = static_cast<int64_t>(NumberAfter(c.note, "heads", 0));
  config.hidden = c.Read(has_encoder ? "initial.decoder.0.up.weight" : "initial.blocks.0.up.weight").dim(0);
  config.positions = c.Has("initial.position.weight") ? "learned" : "sinusoidal";
  if (config.positions == "learned") config.max_positions = c.Read("initial.position.weight").dim(0);
  config.tied = {"target", "output"};
  if (has_encoder) config.tied.push_back("source");
  config.embedding_scale = absl::StrContains(c.note, "scaled by sqrt(d_model)");
  config.norm_place = "pre";
  config.norm_eps = NumberAfter(c.note, "LayerNorm eps", 1e-5);
  ASSERT_TRUE(absl::StrContains(c.note, "pre-norm")) << c.note;
  ASSERT_GT(config.heads, 0) << c.note;
  ASSERT_GT(config.decoder_layers, 0);

  Parameters parameters;
  const ModelSizes sizes{.source_vocabulary = token.dim(0), .target_vocabulary = token.dim(0), .shared_vocabulary = true};
  auto created = Transformer::Create(config, sizes, &parameters);
  ASSERT_TRUE(created.ok()) << created.status();
  const std::unique_ptr<Transformer> model = *std::move(created);
  parameters.Allocate(type, 1);
  int64_t given = 0;
  for (const std::string& name : c.TensorNames()) {
    if (!absl::StartsWith(name, "initial.")) continue;
    SetParameter(&parameters, OurName(name.substr(8), has_encoder), c.Read(name).v);
    ++given;
  }
  ASSERT_EQ(given, static_cast<int64_t>(parameters.list().size())) << "the model has parameters that the case does not give";

  GradientRunner runner(*model, parameters);
  Optimizer optimizer(optimizer_config, parameters);
  std::vector<double> losses, norms;
  std::vector<BatchView> leaves;
  for (int64_t step = 0; step < c.integers.at("steps"); ++step) {
    const Batch batch = ReadBatch(c, step, has_encoder);
    leaves.clear();
    SplitBatch(batch.View(), 2, &leaves);
    Tensor gradients;
    const LossSum loss = runner.Run(leaves, smoothing, RandomKey{1}, &gradients);
    ASSERT_GT(loss.targets, 0);
    losses.push_back(loss.mean_loss());
    norms.push_back(
        optimizer.Step(&parameters, gradients, 1.0 / static_cast<double>(loss.targets), clip, optimizer_config.lr).grad_norm);
  }
  const Values expected_losses = c.Read("losses"), expected_norms = c.Read("norms");
  ASSERT_EQ(losses.size(), expected_losses.v.size());
  ASSERT_EQ(norms.size(), expected_norms.v.size());
  for (size_t step = 0; step < losses.size(); ++step) {
    ExpectNear(absl::StrCat("loss of step ", step), {losses[step]}, {expected_losses.v[step]}, tolerance);
    ExpectNear(absl::StrCat("norm of step ", step), {norms[step]}, {expected_norms.v[step]}, tolerance);
  }
  for (const std::string& name : c.TensorNames()) {
    if (!absl::StartsWith(name, "final.")) continue;
    const std::string ours = OurName(name.substr(6), has_encoder);
    const std::vector<double> actual = ToDoubles(parameters.value(parameters.Find(ours)));
    const std::vector<double> expected = c.Read(name).v;
    if (type == DType::kF32 && absl::EndsWith(name, ".k.bias")) {
      // Its true gradient is 0 (softmax ignores a shift of a row), so that rounding decides where Adam moves it: by lr at most.
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        EXPECT_NEAR(actual[i], expected[i], static_cast<double>(losses.size()) * optimizer_config.lr) << name << " " << i;
      }
    } else {
      ExpectNear(name, actual, expected, tolerance);
    }
  }
}

}  // namespace weft::golden
