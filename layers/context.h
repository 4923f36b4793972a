// Context: all that a layer's Forward may know beside its input: the tape, its parameters as Variables, whose rows are whose
// (sequences), the memory of an encoder, train or inference, random keys, and two optional guests: the State of cached decoding
// and a Probe that looks on. One context serves one shard of a batch at a time, on one thread; its tape and buffers are reused
// from step to step.
#ifndef WEFT_LAYERS_CONTEXT_H_
#define WEFT_LAYERS_CONTEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/base/random.h"
#include "autograd/sequences.h"
#include "autograd/tape.h"
#include "layers/parameters.h"

namespace weft {

// What layers remember while a sequence is decoded piece by piece (keys and values of attention), so that earlier tokens are
// not computed again. Rows of a cache belong to slots: slot s owns rows s * capacity .. + capacity - 1; Sequence::id names the
// slot of a sequence, and Sequence::position says how many of its tokens are there already. Not thread-safe.
class State {
 public:
  // REQUIRES: slots >= 1, capacity >= 1 (the longest sequence, in tokens).
  State(int64_t slots, int64_t capacity) : slots_(slots), capacity_(capacity) {}

  int64_t slots() const { return slots_; }
  int64_t capacity() const { return capacity_; }
  // The cache of the layer at `path`: [slots * capacity, width], zero at first use. REQUIRES: the same width and dtype each
  // time.
  Tensor Cache(const std::string& path, DType dtype, int64_t width);
  // A value that does not grow, such as the keys and values of the memory: computed once by the layer at `path`. Not defined()
  // until Set.
  Tensor Fixed(const std::string& path) const;
  void SetFixed(const std::string& path, const Tensor& value);  // copies
  // Makes room for sequences of `capacity` tokens; what is cached stays. REQUIRES: capacity >= capacity().
  void Grow(int64_t capacity);
  // Slot i continues what slot from[i] held (beams), of which the first `tokens` rows matter. Only slots with from[i] != i are
  // copied. REQUIRES: from.size() == slots(), each in range; tokens <= capacity().
  void Reorder(absl::Span<const int32_t> from, int64_t tokens);

 private:
  int64_t slots_, capacity_;
  struct Entry {
    Slab memory;
    Tensor view;
  };
  std::map<std::string, Entry> caches_, fixed_;
};

// Looks on at a forward pass: attention layers hand over their weights.
class Probe {
 public:
  virtual ~Probe() = default;
  // The weights of the attention layer at `path`: for each query sequence, for each head, [Tq, Tk] row-major, laid end to end.
  // Sequence i of `queries` looks at keys[key_of_query[i]] (keys[i] when key_of_query is empty). Views are valid during the
  // call only.
  virtual void AttentionWeights(const std::string& path, int64_t heads, Sequences queries, Sequences keys,
                                absl::Span<const int32_t> key_of_query, const Tensor& weights) = 0;
};

class Context {
 public:
  // `parameters` must outlive the context. `gradients` is a slab of their layout that Backward adds into, or not defined
  // (inference).
  explicit Context(const Parameters& parameters) : parameters_(parameters) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Starts a pass: resets the tape and forgets all settings below. With a defined `gradients` slab it is a training pass
  // (dropout on, backward recorded); else inference. `key` is the random key of this update. With `is_fresh` the slab holds
  // garbage: gradients overwrite it where they first arrive, which saves passes over zeros; ZeroRest must follow Backward.
  void Begin(const Tensor& gradients, RandomKey key, bool is_fresh = false);
  // After the Backward of a fresh pass: zeros where no gradient arrived. Then the slab may be added into.
  void ZeroRest();

  Tape& tape() { return tape_; }
  bool training() const { return gradients_.defined(); }
  // The parameter as a Variable of this pass; asked for twice it is the same Variable, so tied weights add up. `ref` not
  // defined gives a Variable not defined (an absent bias).
  Variable Get(ParameterRef ref);
  // The random key of the layer at `path` in this update.
  RandomKey Key(const std::string& path) const { return key_.Fold(path); }
  // Names of parameters that were used in this pass but got no gradient from Backward, and of those that were not used at all.
  std::vector<std::string> WithoutGradient() const;

  // --- Set by the model before it calls a layer; a layer reads them.
  Sequences sequences;                  // of x's rows
  bool causal = false;                  // self-attention looks back only
  Variable memory;                      // output of the encoder [Ns, D]; not defined in an encoder or a decoder-only model
  Sequences memory_sequences;           // of memory's rows
  absl::Span<const int32_t> memory_of;  // for each sequence the index of its memory sequence; empty: the i-th has the i-th
  State* state = nullptr;               // null in training: compute everything
  Probe* probe = nullptr;

 private:
  // The part of a slab that belongs to a parameter.
  static Tensor PartOf(const Tensor& slab, const Parameters::Handle& handle) {
    return Tensor(static_cast<char*>(slab.raw()) + handle.offset * DTypeSize(slab.dtype()), slab.dtype(), handle.shape);
  }
  bool GotGradient(size_t handle) const;

  const Parameters& parameters_;
  Tape tape_;
  Tensor gradients_;
  bool is_fresh_ = false;
  RandomKey key_;
  std::vector<Variable> variables_;  // by handle
};

}  // namespace weft

#endif  // WEFT_LAYERS_CONTEXT_H_
