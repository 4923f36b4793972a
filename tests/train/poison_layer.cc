// A layer for tests of diverging runs: it hands its input on, but a sequence whose id is `victim` gets NaN in training.
#include <limits>

#include "layers/layer.h"

namespace weft {
namespace {

class Poison : public Layer {
 public:
  struct Config {
    int64_t victim = -1;
    void Fields(FieldVisitor& v) { v.Visit("victim", victim, {.min = -1}, "id of the sequence"); }
  };
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config) {
    return std::make_unique<Poison>(builder, config);
  }
  Poison(const Builder& builder, const Config& config) : Layer(builder), victim_(config.victim) {}

  Variable Forward(Context& context, Variable x) const override {
    if (!context.training()) return Scale(x, 0);
    for (const Sequence& s : context.sequences) {
      if (static_cast<int64_t>(s.id) == victim_) return Scale(x, std::numeric_limits<double>::quiet_NaN());
    }
    return Scale(x, 0);
  }

 private:
  const int64_t victim_;
};

WEFT_REGISTER_LAYER(Poison, "poison", "NaN for one sequence");

}  // namespace
}  // namespace weft
