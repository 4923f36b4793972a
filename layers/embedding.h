// Embedding: token ids to rows of a table [V, D], times sqrt(D) by option (Vaswani et al. 2017, section 3.4). The table may be
// shared with other embeddings and with the output head: then all use one parameter.
#ifndef WEFT_LAYERS_EMBEDDING_H_
#define WEFT_LAYERS_EMBEDDING_H_

#include "autograd/ops.h"
#include "layers/builder.h"
#include "layers/context.h"

namespace weft {

class Embedding {
 public:
  // A new table, drawn from Normal(std).
  Embedding(Builder builder, int64_t vocabulary, int64_t d_model, double std, double scale)
      : table_(builder.Parameter("weight", {vocabulary, d_model}, Init::Normal(std))), scale_(scale) {}
  // Another embedding's table.
  Embedding(const Embedding& shared, double scale) : table_(shared.table_), scale_(scale) {}

  // [ids.size(), D]. REQUIRES: 0 <= id < vocabulary.
  Variable Forward(Context& context, absl::Span<const int32_t> ids) const {
    const Tape::Scope scope(context.tape(), "embedding");
    const Variable rows = GatherRows(context.Get(table_), ids);
    return scale_ == 1 ? rows : Scale(context.tape().LastUse(rows), scale_);
  }
  ParameterRef table() const { return table_; }

 private:
  ParameterRef table_;
  double scale_;
};

}  // namespace weft

#endif  // WEFT_LAYERS_EMBEDDING_H_
