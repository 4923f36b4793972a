// A model and its training loop in plain C++, no config: predicts the next letter of a sentence. Prints the first and the last
// loss; exits 1 if the loss has not fallen to a tenth.
#include <cstdio>
#include <string>
#include <vector>

#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/feed_forward.h"
#include "layers/positions.h"
#include "train/optimizer.h"

int main() {
  const std::string text = "she sells sea shells by the sea shore; the shells she sells are sea shells for sure";
  const std::vector<int32_t> ids(text.begin(), text.end() - 1), next(text.begin() + 1, text.end());
  const weft::Sequence rows{.start = 0, .length = static_cast<int32_t>(ids.size())};

  weft::Parameters parameters;
  const weft::Builder model(&parameters);
  const weft::Embedding embedding(model.Sub("embedding"), 128, 32, /*std=*/0.2, /*scale=*/1);
  const weft::SinusoidalPositions positions(model.Sub("positions"), {.d_model = 32});
  const weft::SelfAttention attention(model.Sub("attention"), {.d_model = 32, .heads = 4, .kv_heads = 4});
  const weft::FeedForward feed_forward(model.Sub("feed_forward"), {.d_model = 32, .hidden = 64});
  const weft::LinearLayer head(model.Sub("head"), 32, 128, /*bias=*/true);
  parameters.Allocate(weft::DType::kF32, /*seed=*/1);

  const weft::Slab gradients(weft::DType::kF32, parameters.slab_size());
  weft::Optimizer optimizer({.kind = "adamw"}, parameters);
  weft::Context context(parameters);
  double first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    gradients.tensor().Zero();
    context.Begin(gradients.tensor(), weft::RandomKey{1}.Fold(step));
    context.sequences = {&rows, 1};
    context.causal = true;
    weft::Variable x = positions.Forward(context, embedding.Forward(context, ids));
    x = weft::Add(x, attention.Forward(context, x));
    x = weft::Add(x, feed_forward.Forward(context, x));
    const weft::CrossEntropyResult result = weft::CrossEntropy(head.Forward(context, x), next);
    context.tape().Backward(result.loss);
    optimizer.Step(&parameters, gradients.tensor(), 1.0 / result.targets, /*clip_norm=*/1.0, /*lr=*/0.01);
    last = result.loss.value().At(0) / result.targets;
    if (step == 0) first = last;
  }
  std::printf("first loss %.3f, last loss %.3f\n", first, last);
  return last < first / 10 ? 0 : 1;
}
