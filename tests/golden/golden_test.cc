// Runs every case of the golden folder by its kind.
#include <cctype>
#include <iostream>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_case.h"

namespace weft::golden {
namespace {

// Cases about whole model folders, whose readers are not part of these tests.
bool OfModelFolder(const Case& c) { return absl::StartsWith(c.kind, "float32 logits of the model folder"); }

std::vector<Case> Cases() {
  auto cases = ReadIndex(Folder());
  std::vector<Case> kept;
  if (!cases.ok()) return kept;
  for (Case& c : *cases) {
    if (!OfModelFolder(c)) kept.push_back(std::move(c));
  }
  return kept;
}

TEST(GoldenIndex, HasCases) {
  const auto cases = ReadIndex(Folder());
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_FALSE(Cases().empty()) << Folder();
  for (const Case& c : *cases) {
    if (OfModelFolder(c)) std::cout << "left out, the model folders join later: " << c.name << " (" << c.kind << ")\n";
  }
}

class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, Agrees) {
  Case c = GetParam();
  const absl::Status opened = c.Open(Folder());
  ASSERT_TRUE(opened.ok()) << opened;
  if (c.kind == "multi_head_attention") {
    RunMultiHeadAttention(c);
  } else if (absl::StartsWith(c.kind, "attention core")) {
    RunAttentionCore(c);
  } else if (absl::StartsWith(c.kind, "encoder layer")) {
    RunEncoderOrDecoderLayer(c, false);
  } else if (absl::StartsWith(c.kind, "decoder layer")) {
    RunEncoderOrDecoderLayer(c, true);
  } else if (c.kind == "operation") {
    RunOperation(c);
  } else if (absl::StartsWith(c.kind, "mean over targets")) {
    RunCrossEntropy(c);
  } else if (absl::StrContains(c.kind, "steps, each clipped to global norm")) {
    RunOptimizer(c);
  } else if (c.kind == "training curve") {
    RunCurve(c, Cases());
  } else {
    FAIL() << c.name << ": no test knows the kind \"" << c.kind << "\"";
  }
}

std::string TestName(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Folder, Golden, testing::ValuesIn(Cases()), TestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Golden);  // a folder without cases fails in HasCases

}  // namespace
}  // namespace weft::golden
