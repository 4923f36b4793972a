#include "train/checkpoint.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "autograd/base/status.h"
#include "gtest/gtest.h"
#include "layers/builder.h"
#include "layers/parameters.h"
#include "tests/train/temporary_folder.h"
#include "train/model_state.h"

namespace weft {
namespace {

CheckpointMeta SomeMeta() {
  CheckpointMeta meta;
  meta.step = 7;
  meta.optimizer_updates = 7;
  meta.seed = 9007199254740993u;  // 2^53 + 1: no double holds it
  meta.position = {2, 345};
  meta.tokens = 123456;
  meta.shards = 4;
  meta.data_hash = 0xFEDCBA9876543210u;
  meta.config_toml = "[train]\nsteps = 20\n";
  meta.source_tokenizer = {"char", {"a", "\xC3\xA9", std::string("\0", 1)}, false, false};
  meta.target_tokenizer = {"unigram", {"AH0", " B"}, true, true, "", {-1.5f, -2.25f}, false, "nfkc"};
  meta.class_names = {"no", "yes"};
  meta.history = {{5, "loss", 0.9868011474609375}, {7, "loss", std::nan("")}};
  meta.best = {5, std::numeric_limits<double>::infinity(), 1};
  return meta;
}

std::unique_ptr<Parameters> Model(int64_t width, uint64_t seed, DType dtype = DType::kF32) {
  auto parameters = std::make_unique<Parameters>();
  Builder builder(parameters.get());
  builder.Sub("head").Parameter("weight", {3, width}, Init::Normal(1));
  builder.Sub("head").Parameter("bias", {3}, Init::Normal(1));
  parameters->Allocate(dtype, seed);
  return parameters;
}

OptimizerConfig AdamW() { return OptimizerConfig(); }

std::string SlabBytes(const Parameters& parameters) {
  return {static_cast<const char*>(parameters.slab().raw()), static_cast<size_t>(parameters.slab().bytes())};
}

// A checkpoint file of a small model with moments; returns its path.
std::string Saved(const TemporaryFolder& folder, const Parameters& parameters) {
  const Optimizer optimizer(AdamW(), parameters);
  const std::string path = folder.Path("a.weft");
  const absl::Status status = SaveCheckpoint(path, SomeMeta(), StateTensors(parameters, optimizer));
  EXPECT_TRUE(status.ok()) << status;
  return path;
}

// The message of the error of opening `bytes` as a checkpoint, which must exit with 1 and name the file.
std::string OpenError(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder.Path("bad.weft");
  PutBytes(path, bytes);
  const absl::Status status = Checkpoint::Open(path).status();
  EXPECT_EQ(ExitCode(status), 1) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
  return std::string(status.message());
}

TEST(Checkpoint, RestoresEveryFieldOfTheMeta) {
  const TemporaryFolder folder;
  const auto parameters = Model(4, 1);
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(Saved(folder, *parameters));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const CheckpointMeta& meta = checkpoint->meta();
  const CheckpointMeta want = SomeMeta();
  EXPECT_EQ(meta.step, want.step);
  EXPECT_EQ(meta.optimizer_updates, want.optimizer_updates);
  EXPECT_EQ(meta.seed, want.seed);
  EXPECT_EQ(meta.position, want.position);
  EXPECT_EQ(meta.tokens, want.tokens);
  EXPECT_EQ(meta.shards, want.shards);
  EXPECT_EQ(meta.data_hash, want.data_hash);
  EXPECT_EQ(meta.config_toml, want.config_toml);
  EXPECT_EQ(meta.source_tokenizer.symbols, want.source_tokenizer.symbols);
  EXPECT_EQ(meta.target_tokenizer.kind, "unigram");
  EXPECT_EQ(meta.target_tokenizer.scores, want.target_tokenizer.scores);
  EXPECT_EQ(meta.target_tokenizer.normalization, "nfkc");
  EXPECT_TRUE(meta.target_tokenizer.specials && meta.target_tokenizer.unknown);
  EXPECT_EQ(meta.class_names, want.class_names);
  ASSERT_EQ(meta.history.size(), 2u);
  EXPECT_EQ(meta.history[0].value, want.history[0].value);
  EXPECT_TRUE(std::isnan(meta.history[1].value));
  EXPECT_EQ(meta.best, want.best);
}

TEST(Checkpoint, TensorsComeBackBitwise) {
  const TemporaryFolder folder;
  std::vector<float> floats = {1e-20f,
                               0.1f,
                               1e-45f,
                               -0.0f,
                               std::numeric_limits<float>::max(),
                               std::bit_cast<float>(0x7FC12345u),
                               std::bit_cast<float>(0xFF800001u),
                               INFINITY};
  std::vector<double> doubles = {0.9868011474609375, std::bit_cast<double>(0x7FF8000000000123u), -0.0, 5e-324};
  std::vector<int32_t> ints = {-1, 1 << 30};
  double scalar = -INFINITY;
  const Tensor f = Tensor::Of(absl::MakeSpan(floats), {2, 4}), d = Tensor::Of(absl::MakeSpan(doubles), {4});
  const Tensor i = Tensor::Of(absl::MakeSpan(ints), {2}), s(&scalar, DType::kF64, {}),
               empty(floats.data(), DType::kF32, {0, 3});
  ASSERT_TRUE(SaveCheckpoint(folder.Path("t.weft"), {}, {{"f", f}, {"d", d}, {"empty", empty}, {"i", i}, {"s", s}}).ok());
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder.Path("t.weft"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const std::string bytes = BytesOf(folder.Path("t.weft"));
  for (const auto& [name, tensor] : {std::pair<const char*, Tensor>{"f", f}, {"d", d}, {"i", i}, {"s", s}}) {
    std::vector<char> back(static_cast<size_t>(tensor.bytes()));
    const absl::Status read = checkpoint->ReadInto(name, Tensor(back.data(), tensor.dtype(), tensor.shape()));
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(std::memcmp(back.data(), tensor.raw(), back.size()), 0) << name;
    const StoredTensor* stored = checkpoint->Find(name);
    EXPECT_EQ(stored->offset % 64, 0) << name;
    EXPECT_EQ(std::memcmp(bytes.data() + stored->offset, tensor.raw(), back.size()), 0) << name;
  }
  EXPECT_EQ(checkpoint->ReadInto("f", d).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(checkpoint->ReadInto("g", f).code(), absl::StatusCode::kNotFound);
}

// Moments and a best metric that text formats lose: digits, tiny values, the sign of zero, NaN and infinity.
TEST(Checkpoint, B095_TheOptimizerStateComesBackBitwise) {
  const TemporaryFolder folder;
  const auto parameters = Model(4, 1);
  const Optimizer optimizer(AdamW(), *parameters);
  const std::vector<float> values = {1e-20f,
                                     0.1f,
                                     0.9868011474609375f,
                                     1e-45f,
                                     -0.0f,
                                     std::numeric_limits<float>::max(),
                                     NAN,
                                     INFINITY,
                                     -INFINITY,
                                     std::bit_cast<float>(0xFFC00001u)};
  CheckpointMeta meta;
  meta.optimizer_updates = 3;
  meta.best = {5, std::numeric_limits<double>::infinity(), 1};
  std::vector<NamedTensor> tensors;
  for (const NamedTensor& moment : optimizer.state()) {
    const Tensor part = moment.value;
    for (int64_t i = 0; i < part.shape().elements(); ++i) part.data<float>()[i] = values[i % values.size()];
    tensors.push_back({"optimizer." + moment.name, part});
  }
  ASSERT_EQ(tensors.size(), 4u);  // m and v of weight and bias
  ASSERT_TRUE(SaveCheckpoint(folder.Path("a"), meta, tensors).ok());

  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder.Path("a"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->meta().best, meta.best);
  Optimizer restored(AdamW(), *parameters);
  const absl::Status loaded = LoadOptimizer(*checkpoint, &restored);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(restored.updates(), 3);
  for (size_t i = 0; i < optimizer.state().size(); ++i) {
    const Tensor before = optimizer.state()[i].value, after = restored.state()[i].value;
    EXPECT_EQ(std::memcmp(before.raw(), after.raw(), static_cast<size_t>(before.bytes())), 0) << optimizer.state()[i].name;
  }
}

TEST(Checkpoint, EqualContentGivesEqualBytes) {
  const TemporaryFolder one, other;
  const auto parameters = Model(5, 1);
  EXPECT_EQ(BytesOf(Saved(one, *parameters)), BytesOf(Saved(other, *Model(5, 1))));
  EXPECT_EQ(NamesIn(one.path()), std::vector<std::string>{"a.weft"});  // no temporary stays
}

TEST(Checkpoint, RefusesEveryCut) {
  const TemporaryFolder folder;
  const std::string bytes = BytesOf(Saved(folder, *Model(40, 1)));
  for (size_t part = 0; part < 32; ++part) OpenError(folder, bytes.substr(0, bytes.size() * part / 32));
  OpenError(folder, bytes.substr(0, bytes.size() - 1));
  for (size_t size = 1; size < 80; ++size) OpenError(folder, bytes.substr(0, size));
}

TEST(Checkpoint, RefusesEveryFlippedBit) {
  const TemporaryFolder folder;
  const std::string bytes = BytesOf(Saved(folder, *Model(40, 1)));
  for (size_t part = 0; part < 64; ++part) {
    std::string flipped = bytes;
    flipped[bytes.size() * part / 64] ^= static_cast<char>(1 << (part % 8));
    OpenError(folder, flipped);
  }
  std::string last = bytes;
  last.back() ^= 1;
  EXPECT_TRUE(absl::StrContains(OpenError(folder, last), "checksum"));
}

TEST(Checkpoint, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  const std::string bytes = BytesOf(Saved(folder, *Model(4, 1)));
  EXPECT_TRUE(absl::StrContains(OpenError(folder, ""), "is empty"));
  EXPECT_TRUE(absl::StrContains(OpenError(folder, "PK\x03\x04 some other file"), "not a Weft checkpoint"));
  EXPECT_TRUE(absl::StrContains(OpenError(folder, bytes + std::string(100, '\0')), "longer than written"));
  EXPECT_TRUE(absl::StrContains(OpenError(folder, bytes.substr(0, bytes.size() / 2)), "cut off"));
  EXPECT_EQ(Checkpoint::Open(folder.Path("none")).status().code(), absl::StatusCode::kNotFound);
  const absl::Status directory = Checkpoint::Open(folder.path()).status();
  EXPECT_EQ(ExitCode(directory), 1);
  EXPECT_TRUE(absl::StrContains(directory.message(), "directory")) << directory;
}

TEST(Checkpoint, AFailedSaveLeavesTheOldFile) {
  const TemporaryFolder folder;
  const auto parameters = Model(4, 1);
  const std::string path = Saved(folder, *parameters);
  // A folder at the target makes the rename fail.
  std::filesystem::create_directories(folder.Path("b.weft/inside"));
  EXPECT_FALSE(SaveCheckpoint(folder.Path("b.weft"), SomeMeta(), ParameterTensors(*parameters)).ok());
  EXPECT_EQ(NamesIn(folder.path()), (std::vector<std::string>{"a.weft", "b.weft"}));
  const absl::Status status = SaveCheckpoint(folder.Path("none/c.weft"), SomeMeta(), ParameterTensors(*parameters));
  EXPECT_TRUE(absl::StrContains(status.message(), "none/c.weft")) << status;
  EXPECT_TRUE(Checkpoint::Open(path).ok());
}

TEST(ModelState, LoadsParametersAndMoments) {
  const TemporaryFolder folder;
  const auto parameters = Model(4, 1);
  Optimizer optimizer(AdamW(), *parameters);
  const Slab gradients(DType::kF32, parameters->slab_size());
  Parameters::In(gradients.tensor(), parameters->list()[0]).Set(2, 1.5);
  optimizer.Step(parameters.get(), gradients.tensor(), 1, 0, 0.1);
  CheckpointMeta meta;
  meta.optimizer_updates = optimizer.updates();
  ASSERT_TRUE(SaveCheckpoint(folder.Path("a"), meta, StateTensors(*parameters, optimizer)).ok());

  const auto other = Model(4, 2);
  Optimizer resumed(AdamW(), *other);
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder.Path("a"));
  ASSERT_TRUE(checkpoint.ok());
  const uint64_t version = *other->version();
  ASSERT_TRUE(LoadParameters(*checkpoint, other.get()).ok());
  ASSERT_TRUE(LoadOptimizer(*checkpoint, &resumed).ok());
  EXPECT_GT(*other->version(), version);
  EXPECT_EQ(resumed.updates(), 1);
  // Equal states go on to equal bits.
  optimizer.Step(parameters.get(), gradients.tensor(), 1, 0, 0.1);
  resumed.Step(other.get(), gradients.tensor(), 1, 0, 0.1);
  EXPECT_EQ(SlabBytes(*parameters), SlabBytes(*other));
}

TEST(ModelState, AnotherModelIsRefusedWithBothListsAndChangesNothing) {
  const TemporaryFolder folder;
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(Saved(folder, *Model(4, 1)));
  ASSERT_TRUE(checkpoint.ok());
  Parameters other;
  Builder builder(&other);
  builder.Sub("head").Parameter("weight", {3, 5}, Init::Normal(1));
  builder.Sub("tail").Parameter("weight", {2, 2}, Init::Normal(1));
  other.Allocate(DType::kF32, 3);
  const std::string before = SlabBytes(other);
  const absl::Status status = LoadParameters(*checkpoint, &other);
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_TRUE(absl::StrContains(status.message(), "missing in the file: tail.weight f32[2, 2]")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "only in the file: head.bias f32[3]")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "other in the file: head.weight f32[3, 5] is f32[3, 4]")) << status;
  EXPECT_EQ(SlabBytes(other), before);

  const auto wider = Model(4, 2, DType::kF64);
  EXPECT_TRUE(absl::StrContains(LoadParameters(*checkpoint, wider.get()).message(), "f64[3, 4] is f32[3, 4]"));
  OptimizerConfig sgd;
  sgd.kind = "sgd";
  sgd.momentum = 0.9;
  const auto same = Model(4, 2);
  Optimizer optimizer(sgd, *same);
  EXPECT_TRUE(absl::StrContains(LoadOptimizer(*checkpoint, &optimizer).message(), "optimizer.momentum/head.weight"));
}

TEST(CheckpointDeathTest, RefusesRepeatedNames) {
  const TemporaryFolder folder;
  float x = 0;
  const Tensor tensor(&x, DType::kF32, {1});
  EXPECT_DEATH((void)SaveCheckpoint(folder.Path("a"), {}, {{"x", tensor}, {"x", tensor}}), "empty or repeated");
}

}  // namespace
}  // namespace weft
