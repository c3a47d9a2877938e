// Interface of a block: a layer's mixer or its feed-forward. Each block type has a header in this folder,
// with its spec and tensor names, and a source file. kinds.h lists the types.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/ops.h"
#include "model/part.h"
#include "model/spec.h"

namespace octavo {

class ExpertSpread;

// Data that a mixer caches for each token. Mixers with equal needs can share block tables.
struct CacheNeed {
  int window = 0;  // number of tokens that are kept; 0: all
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  bool causal = true;      // see AttentionMask::causal
  int values_in_keys = 0;  // see KvSpec::values_in_keys
  bool local = false;      // see AttentionMask::local
  int index_dim = 0;       // see KvSpec::index_dim
  int rate = 1;            // see KvSpec::rate
  auto operator<=>(const CacheNeed&) const = default;
};

// A forward pass of one sequence with `tokens` new tokens and `context` tokens in total.
struct Pass {
  std::int64_t tokens = 1;
  std::int64_t context = 1;
};

// Minimum memory traffic (in elements) and arithmetic of a pass.
struct BlockCost {
  double weights = 0;     // weights read
  double cached = 0;      // elements written to or read from the KV cache
  double state = 0;       // floats written to or read from the sequence's recurrent state
  double operations = 0;  // operations; a multiply-add counts as two
};
BlockCost linear_cost(const LinearParameter& linear, const Pass& pass);
BlockCost operator+(const BlockCost& a, const BlockCost& b);

// Computes y = x * w^T + bias, plus the changes by LoRA adapters.
void linear(const Step& step, const View& x, const LinearParameter& w, const View& y);

// Multiplies each head's output in `values`, act [tokens, heads * dim], by the activation of the head's gate:
// sigmoid or softplus. `gates`, f32 [tokens, heads], receives the gates: the product of x and w.
void gate_heads(const Step& step, const View& x, const LinearParameter& w, const View& gates,
                const View& values, Activation activation = Activation::sigmoid);

class Block : public NetworkPart {
 public:
  // Returns what the block stores in the KV cache; nullopt: nothing.
  virtual std::optional<CacheNeed> cache() const { return {}; }
  // Returns what the block stores in a second cache, for compressed entries that cover several tokens each;
  // nullopt: nothing.
  virtual std::optional<CacheNeed> entries() const { return {}; }
  // Returns what the block stores in a cache for an encoder's keys and values, which a sequence keeps until
  // its end; nullopt: nothing.
  virtual std::optional<CacheNeed> source() const { return {}; }
  // Returns the number of floats in a sequence's recurrent state; 0: the block has no state.
  virtual std::int64_t state_floats() const { return 0; }
  // Offset of the block's state in the layer's state, in floats. run() must not add it: step.memory.states
  // begins at the block's state.
  std::int64_t first_state() const { return first_state_; }
  void put_state(std::int64_t first) { first_state_ = first; }
  virtual BlockCost cost(const Pass& pass) const = 0;
  // A description for `octavo model inspect`. Equal blocks have equal descriptions.
  virtual std::string text() const = 0;
  // Computes `out` from x, both act [tokens, dim]. Must not allocate memory.
  virtual void run(const Step& step, const View& x, const View& out) const = 0;
  // Writes the keys and values of x, act [step.tokens(), dim], to the cache. Attention uses it to store all
  // rows before run() is called for some of them. Cross attention stores an encoder's rows in
  // LayerMemory::cross.
  virtual void store_rows(const Step&, const View&) const {}
  // Returns the block's experts if they are spread over ranks (expert parallelism); otherwise null.
  virtual ExpertSpread* experts_over_ranks() const { return nullptr; }
  // Checks whether the ranks of several engines can share the block's experts. Returns the errors of
  // splits().
  virtual Result<> spreads(const Shard&) const { return {}; }
  // Computes this rank's experts for the tokens of other engines. Called instead of run() if this engine has
  // no tokens in the step.
  virtual void assist(const Step&) const {}

 private:
  std::int64_t first_state_ = 0;
};

std::string_view name(Activation activation);

// Returns the limits of gates and of the values that they multiply (Mlp::limit), for activations that do not
// apply the limits themselves.
BoundsParameter gate_bounds(const Mlp& mlp);
// Makes an MLP from tensors with the names `up` and `down`.
std::unique_ptr<Block> make_mlp(const Mlp& spec, const Namer& name, std::int64_t dim,
                                const std::vector<std::string>& up, const std::string& down);

// Makes the block that a spec describes. The source file of each block type has its specialisation.
template <class Kind>
std::unique_ptr<Block> make_block(const Kind& spec, const Namer& name, std::int64_t dim);
// Returns null: this half of the layer has no block.
inline std::unique_ptr<Block> make_block(std::monostate, const Namer&, std::int64_t) { return nullptr; }

}  // namespace octavo
