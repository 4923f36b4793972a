// What is promised of every registered layer, tested for all of them, the tests' own layer included.
#include <numeric>

#include "autograd/base/parallel.h"
#include "gmock/gmock.h"
#include "layers/layer_check.h"
#include "tests/allocation_count.h"
#include "tests/layers/layer_rig.h"

namespace weft {
namespace {

TEST(Registry, HasTheseTypes) {
  std::vector<std::string> names;
  for (const LayerType* type : LayerTypes()) names.push_back(type->name);
  EXPECT_THAT(names, testing::ElementsAre("cross_attention", "dropout", "feed_forward", "layer_norm", "learned_positions",
                                          "linear", "rms_norm", "self_attention", "sinusoidal_positions", "test_running_mean"));
}

TEST(Registry, UnknownNamesHaveNoType) { EXPECT_EQ(FindLayerType("self_atention"), nullptr); }

TEST(Registry, ChecksCoverAllTypesAndTheUnregisteredParts) {
  std::vector<std::string> names, expected;
  for (const NamedCheck& check : LayerChecks()) names.push_back(check.name);
  for (const LayerType* type : LayerTypes()) expected.push_back(type->name);
  expected.insert(expected.end(), {"add_norm", "embedding"});
  EXPECT_EQ(names, expected);
}

class LayerCheckTest : public testing::TestWithParam<std::string> {};

TEST_P(LayerCheckTest, GradientsMatchDifferences) {
  for (const NamedCheck& check : LayerChecks()) {
    if (check.name != GetParam()) continue;
    GradCheckOptions options;
    options.max_elements_per_input = 24;
    const auto report = check.run(options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->passed) << report->ToString();
    EXPECT_FALSE(report->entries.empty());
    for (const GradCheckEntry& entry : report->entries) EXPECT_TRUE(entry.received_gradient) << entry.name;
  }
}

std::vector<std::string> CheckNames() {
  std::vector<std::string> names;
  for (const NamedCheck& check : LayerChecks()) names.push_back(check.name);
  return names;
}
const auto kPrintName = [](const auto& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(All, LayerCheckTest, testing::ValuesIn(CheckNames()), kPrintName);

class RegisteredLayerTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kWidth = 12;
  // Ragged: also a sequence of one token.
  static LayerInput Ragged(bool causal) {
    LayerInput input = MakeInput({4, 0, 9}, {5, 1, 7}, kWidth);
    input.causal = causal;
    return input;
  }
};

std::vector<std::string> TypeNames() {
  std::vector<std::string> names;
  for (const LayerType* type : LayerTypes()) names.push_back(type->name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, RegisteredLayerTest, testing::ValuesIn(TypeNames()), kPrintName);

TEST_P(RegisteredLayerTest, F32AgreesWithF64) {
  const LayerRig f32(GetParam(), {.dtype = DType::kF32});
  LayerRig f64(GetParam(), {.dtype = DType::kF64});
  CopyByName(f32.parameters, &f64.parameters);
  LayerInput input = Ragged(true);
  // Both start from numbers that f32 can hold.
  for (std::vector<double>* values : {&input.x, &input.memory}) {
    for (double& v : *values) v = static_cast<float>(v);
  }
  const Pass a = Train(f32, input), b = Train(f64, input);
  // A handful of products of up to 24 terms in a row, each rounded to 6e-8: some 1e-6 of the largest value.
  EXPECT_LT(RelativeError(a.y, b.y), 1e-5);
  EXPECT_LT(RelativeError(a.dx, b.dx), 1e-5);
  EXPECT_LT(RelativeError(a.dmemory, b.dmemory), 1e-5);
  EXPECT_LT(RelativeError(a.gradients, b.gradients), 1e-5);
}

TEST_P(RegisteredLayerTest, ThreadsDoNotChangeABit) {
  // Large enough that products, attention and sums split into many tiles; the tests' own op is plain loops, so keep it short.
  RigOptions options{.d_model = 96, .heads = 6, .kv_heads = 2, .hidden = 130, .dropout = 0.1};
  const LayerRig rig(GetParam(), options);
  LayerInput input = MakeInput({1, 2, 3, 4}, {70, 33, 1, 90}, options.d_model);
  input.causal = true;
  Pass one;
  Workers(1).Run([&] { one = Train(rig, input); });
  for (int threads : {2, 4}) {
    Pass several;
    Workers(threads).Run([&] { several = Train(rig, input); });
    EXPECT_TRUE(several == one) << threads << " threads";
  }
}

TEST_P(RegisteredLayerTest, ParametersCopiedByNameGiveTheSameBits) {
  const LayerRig first(GetParam(), {.seed = 1});
  LayerRig second(GetParam(), {.seed = 2, .perturb = false});
  CopyByName(first.parameters, &second.parameters);
  EXPECT_TRUE(Train(first, Ragged(false)) == Train(second, Ragged(false)));
}

TEST_P(RegisteredLayerTest, SteadyStepAllocatesNothing) {
  const LayerRig rig(GetParam(), {.dropout = 0.1});
  const LayerInput input = Ragged(true);
  const int64_t rows = RowsOf(input.sequences);
  const Slab x(DType::kF32, rows * kWidth), dx(DType::kF32, rows * kWidth);
  const Slab memory(DType::kF32, static_cast<int64_t>(input.memory.size()));
  const Tensor x_view = x.tensor().Reshaped({rows, kWidth}), dx_view = dx.tensor().Reshaped({rows, kWidth});
  const Tensor memory_view = memory.tensor().Reshaped({memory.tensor().elements() / kWidth, kWidth});
  for (int64_t i = 0; i < x_view.elements(); ++i) x_view.Set(i, input.x[i]);
  for (int64_t i = 0; i < memory_view.elements(); ++i) memory_view.Set(i, input.memory[i]);
  Context context(rig.parameters);
  const auto step = [&](uint64_t number) {
    context.Begin(rig.gradients.tensor(), RandomKey{number});
    context.sequences = input.sequences;
    context.causal = true;
    if (rig.type.traits.needs_memory) {
      context.memory = context.tape().Constant(memory_view);
      context.memory_sequences = input.memory_sequences;
    }
    const Variable y = rig.layer->Forward(context, context.tape().Leaf(x_view, dx_view));
    context.tape().Backward(y, x_view);
  };
  // The first step finds out how much is needed, the next merges blocks and fills the pools.
  for (uint64_t i = 0; i < 3; ++i) step(i);
  const int64_t before = AllocationCount();
  step(3);
  EXPECT_EQ(AllocationCount() - before, 0);
}

TEST_P(RegisteredLayerTest, SequenceAloneGivesTheBitsItGivesAmongOthers) {
  // Dropout on: its masks belong to the sequence, wherever that is.
  const LayerRig rig(GetParam(), {.dropout = 0.2});
  for (bool causal : {false, true}) {
    const LayerInput together = Ragged(causal);
    const Pass all = Train(rig, together);
    for (const Sequence& s : together.sequences) {
      LayerInput single = MakeInput({s.id}, {s.length}, kWidth);
      single.causal = causal;
      const Pass alone = Train(rig, single);
      EXPECT_EQ(alone.y, Rows(all.y, kWidth, s.start, s.length)) << "sequence " << s.id;
      EXPECT_EQ(alone.dx, Rows(all.dx, kWidth, s.start, s.length)) << "dx of sequence " << s.id;
    }
  }
}

TEST_P(RegisteredLayerTest, CausalRowsDoNotSeeLaterTokens) {
  const LayerRig rig(GetParam(), {});
  const LayerInput input = Ragged(true);
  const std::vector<double> before = Infer(rig, input);
  for (const Sequence& s : input.sequences) {
    for (int32_t j = 0; j < s.length; ++j) {
      LayerInput changed = input;
      for (int64_t d = 0; d < kWidth; ++d) changed.x[(s.start + j) * kWidth + d] += 3;
      const std::vector<double> after = Infer(rig, changed);
      EXPECT_EQ(Rows(after, kWidth, s.start, j), Rows(before, kWidth, s.start, j)) << "token " << j << " changed";
      // Other sequences see nothing at all.
      for (const Sequence& other : input.sequences) {
        if (other.id == s.id) continue;
        EXPECT_EQ(Rows(after, kWidth, other.start, other.length), Rows(before, kWidth, other.start, other.length));
      }
    }
  }
}

// Layers that say they can decode with a state.
class StatefulLayerTest : public RegisteredLayerTest {
 protected:
  static double Tolerance(DType dtype) { return dtype == DType::kF32 ? 1e-5 : 1e-12; }

  // Rows first[i] .. first[i] + count - 1 of the chosen sequences, as one step of decoding with a state.
  static LayerInput Step(const LayerInput& full, const std::vector<int32_t>& chosen, const std::vector<int32_t>& first,
                         const std::vector<int32_t>& count) {
    LayerInput step;
    step.causal = true;
    step.memory = full.memory;
    step.memory_sequences = full.memory_sequences;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const Sequence& s = full.sequences[chosen[i]];
      step.sequences.push_back({static_cast<int32_t>(static_cast<int64_t>(step.x.size()) / kWidth), count[i], first[i],
                                static_cast<uint64_t>(chosen[i])});
      const std::vector<double> rows = Rows(full.x, kWidth, s.start + first[i], count[i]);
      step.x.insert(step.x.end(), rows.begin(), rows.end());
    }
    return step;
  }
};

std::vector<std::string> StatefulNames() {
  std::vector<std::string> names;
  for (const LayerType* type : LayerTypes()) {
    if (type->traits.decodes_with_state) names.push_back(type->name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, StatefulLayerTest, testing::ValuesIn(StatefulNames()), kPrintName);

TEST_P(StatefulLayerTest, ChunksWithStateEqualOneFullPass) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const LayerRig rig(GetParam(), {.dtype = dtype});
    LayerInput full = MakeInput({0, 1, 2}, {9, 4, 6}, kWidth);
    full.causal = true;
    const std::vector<double> expected = Infer(rig, full);
    for (int32_t chunk : {1, 2, 4, 9}) {
      State state(3, 9);
      std::vector<int32_t> done(3, 0);
      // Shorter sequences end earlier, and the order of the rest changes from call to call.
      for (int call = 0;; ++call) {
        std::vector<int32_t> chosen, first, count;
        for (int32_t i : {call % 3, (call + 1) % 3, (call + 2) % 3}) {
          const int32_t left = full.sequences[i].length - done[i];
          if (left == 0) continue;
          chosen.push_back(i);
          first.push_back(done[i]);
          count.push_back(std::min(left, chunk));
        }
        if (chosen.empty()) break;
        const LayerInput step = Step(full, chosen, first, count);
        const std::vector<double> y = Infer(rig, step, &state, chosen);
        for (size_t i = 0; i < chosen.size(); ++i) {
          EXPECT_LT(RelativeError(Rows(y, kWidth, step.sequences[i].start, count[i]),
                                  Rows(expected, kWidth, full.sequences[chosen[i]].start + first[i], count[i])),
                    Tolerance(dtype))
              << "chunks of " << chunk << ", sequence " << chosen[i] << ", rows from " << first[i];
          done[chosen[i]] += count[i];
        }
      }
    }
  }
}

TEST_P(StatefulLayerTest, ReorderedStateContinuesTheOtherSequence) {
  const LayerRig rig(GetParam(), {.dtype = DType::kF64});
  LayerInput full = MakeInput({0, 1, 2}, {5, 5, 5}, kWidth);
  full.causal = true;
  const std::vector<double> expected = Infer(rig, full);
  State state(3, 5);
  Infer(rig, Step(full, {0, 1, 2}, {0, 0, 0}, {4, 4, 4}), &state, {0, 1, 2});
  // Beams: slots 0 and 2 both go on from sequence 1, slot 1 from sequence 0.
  const std::vector<int32_t> from = {1, 0, 1};
  state.Reorder(from, 4);
  LayerInput step = Step(full, from, {4, 4, 4}, {1, 1, 1});
  for (size_t slot = 0; slot < 3; ++slot) step.sequences[slot].id = slot;
  const std::vector<double> y = Infer(rig, step, &state, from);
  for (int64_t slot = 0; slot < 3; ++slot) {
    EXPECT_LT(RelativeError(Rows(y, kWidth, slot, 1), Rows(expected, kWidth, full.sequences[from[slot]].start + 4, 1)), 1e-12)
        << "slot " << slot;
  }
}

TEST(StateDeathTest, TokensBeyondTheCapacityAreRefused) {
  const LayerRig rig("self_attention", {});
  LayerInput input = MakeInput({0}, {4}, 12);
  input.causal = true;
  State state(1, 3);
  EXPECT_DEATH(Infer(rig, input, &state), "position 0 \\+ 4 of 3");
}

}  // namespace
}  // namespace weft
