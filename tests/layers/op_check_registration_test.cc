#include <algorithm>

#include "autograd/op_checks.h"
#include "autograd/ops.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

// y = x * scale, whose backward adds `claimed` times dy.
Variable TestScale(Variable x, double scale, double claimed) {
  Op op("test_scale", {x});
  const Variable y = op.Output(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.value().elements(); ++i) y.value().Set(i, scale * x.value().At(i));
  op.Backward([x, y, claimed](Gradients& gradients) {
    const Tensor dy = gradients.Of(y), dx = gradients.Into(x);
    for (int64_t i = 0; dx.defined() && i < dx.elements(); ++i) dx.Set(i, dx.At(i) + claimed * dy.At(i));
  });
  return y;
}

const OpCheckRegistration kRight(MakeOpCheck("test_scale", {{"x", {3, 2}}}, [](auto x) { return TestScale(x[0], 3, 3); }));
const OpCheckRegistration kWrong(MakeOpCheck("test_wrong_scale", {{"x", {3, 2}}},
                                             [](auto x) { return TestScale(x[0], 3, 2.97); }));

OpCheck Find(const std::string& name) {
  const std::vector<OpCheck> checks = OpChecks();
  const auto it = std::find_if(checks.begin(), checks.end(), [&](const OpCheck& check) { return check.name == name; });
  EXPECT_NE(it, checks.end()) << name;
  return *it;
}

TEST(OpCheckRegistration, AUsersOpIsInTheCatalogueAndIsCheckedLikeOurs) {
  EXPECT_TRUE(Find("test_scale").run({}).passed);
  EXPECT_FALSE(Find("test_wrong_scale").run({}).passed);
}

TEST(OpCheckRegistrationDeathTest, ANameThatIsTakenStopsTheProgram) {
  EXPECT_DEATH(OpCheckRegistration(MakeOpCheck("add", {{"x", {1}}}, [](auto x) { return x[0]; })),
               "op check add is there already");
}

}  // namespace
}  // namespace weft
