// Multi-head attention (Vaswani et al. 2017, section 3.2.2) as two layers: SelfAttention, whose queries, keys and values all
// come from x, and CrossAttention, whose keys and values come from the memory (the encoder's output). With kv_heads < heads
// several query heads share one key/value head: grouped-query attention (Ainslie et al. 2023); kv_heads = 1 is multi-query
// (Shazeer 2019). docs/attention.md walks through it.
#ifndef WEFT_LAYERS_ATTENTION_H_
#define WEFT_LAYERS_ATTENTION_H_

#include <memory>
#include <string>

#include "layers/layer.h"
#include "layers/linear.h"

namespace weft {

struct AttentionConfig {
  int64_t d_model = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // 0: as many as heads
  bool bias = true;
  double attention_dropout = 0;
  void Fields(FieldVisitor& v);
  // InvalidArgument, naming both keys and values, when d_model is not divisible by heads or heads not by kv_heads. Fills in
  // kv_heads.
  absl::Status Resolve(absl::string_view path);
};

class SelfAttention : public Layer {
 public:
  using Config = AttentionConfig;
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  // REQUIRES: a config that Resolve has accepted, as in Create.
  SelfAttention(const Builder& builder, const Config& config);
  // [N, D] -> [N, D]; causal when context.causal. With a state, keys and values of x are appended to its cache and all cached
  // ones are seen.
  Variable Forward(Context& context, Variable x) const override;

 private:
  Config config_;
  LinearStack qkv_;  // q.weight [D, D]; k.weight, v.weight [kv_heads * d_head, D]
  LinearLayer out_;  // o.weight [D, D]
};

class CrossAttention : public Layer {
 public:
  using Config = AttentionConfig;
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Builder& builder, const Config& config);

  // REQUIRES: a config that Resolve has accepted, as in Create.
  CrossAttention(const Builder& builder, const Config& config);
  // [N, D] -> [N, D]. REQUIRES: context.memory. With a state, keys and values of the memory are computed once.
  Variable Forward(Context& context, Variable x) const override;

 private:
  Config config_;
  LinearLayer query_;
  LinearStack kv_;
  LinearLayer out_;
};

}  // namespace weft

#endif  // WEFT_LAYERS_ATTENTION_H_
