// Interface of a block, which computes half of a layer: the mixer or the feed-forward part. Each block type
// has a header in this folder, with its spec and tensor names, and a source file. kinds.h lists the types.
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

// The data that a mixer stores for each token. Mixers with equal needs can share block tables.
struct CacheNeed {
  int window = 0;  // number of tokens that are kept; 0: all
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  bool causal = true;      // see AttentionMask::causal
  int values_in_keys = 0;  // see KvSpec::values_in_keys
  bool local = false;      // see Attention::local
  int index_dim = 0;       // see KvSpec::index_dim
  int rate = 1;            // see KvSpec::rate
  auto operator<=>(const CacheNeed&) const = default;
};

// A forward pass of one sequence: `tokens` new tokens, `context` tokens in total.
struct Pass {
  std::int64_t tokens = 1;
  std::int64_t context = 1;
};

// Minimum memory traffic and arithmetic of a pass.
struct BlockCost {
  double weights = 0;     // number of weights read
  double cached = 0;      // number of elements written to or read from the KV cache
  double state = 0;       // number of f32 elements written to or read from a sequence's state
  double operations = 0;  // number of operations; a multiply-add counts as two
};
BlockCost linear_cost(const LinearParameter& linear, const Pass& pass);
BlockCost operator+(const BlockCost& a, const BlockCost& b);

// Computes y = x * w^T + bias, plus the changes by adapters. Blocks use it for every linear product.
void linear(const Step& step, const View& x, const LinearParameter& w, const View& y);

// Multiplies each head's output, act [tokens, heads * dim], by the sigmoid of its gate. The gates, f32
// [tokens, heads], are the product of x and w.
void gate_heads(const Step& step, const View& x, const LinearParameter& w, const View& gates, const View& values);

class Block : public NetworkPart {
 public:
  // Returns the data that the block stores in the KV cache; nullopt: no data.
  virtual std::optional<CacheNeed> cache() const { return {}; }
  // Returns the cache of compressed entries, which exists in addition to the per-token cache; nullopt: no
  // entries.
  virtual std::optional<CacheNeed> entries() const { return {}; }
  // Returns the cache of an encoder's keys and values, which a sequence keeps until its end; nullopt: no such
  // cache.
  virtual std::optional<CacheNeed> source() const { return {}; }
  // Returns the number of f32 values in a sequence's recurrent state.
  virtual std::int64_t state_floats() const { return 0; }
  // Returns the offset of the block's state in the layer's state; 0 if the block has no state.
  std::int64_t first_state() const { return first_state_; }
  void place_state(std::int64_t first) { first_state_ = first; }
  virtual BlockCost cost(const Pass& pass) const = 0;
  // Returns a description for `octavo model inspect`. Equal blocks have equal descriptions.
  virtual std::string text() const = 0;
  // Computes `out` from x, both act [tokens, dim]. Allocates nothing.
  virtual void run(const Step& step, const View& x, const View& out) const = 0;
  // Writes the keys and values of these rows, act [step.tokens(), dim], to the layer's cache. Attention
  // stores the rows of its input first, so that a run() for some of the rows sees all of them. Cross
  // attention stores an encoder's rows in LayerMemory::cross. Other blocks do nothing.
  virtual void store_rows(const Step&, const View&) const {}
  // Returns the block's experts if experts are spread over ranks (each rank has some of them); otherwise
  // null.
  virtual ExpertSpread* experts_over_ranks() const { return nullptr; }
  // Checks whether ranks of several engines can share the block's experts. Returns the errors of splits().
  virtual Result<> spreads(const Shard&) const { return {}; }
  // Computes this rank's experts for other engines. It is called instead of run() if this engine has no
  // tokens.
  virtual void assist(const Step&) const {}

 private:
  std::int64_t first_state_ = 0;
};

std::string_view name(Activation activation);

// Returns the limits of the gates and of their factors (Mlp::limit), for activations that do not apply them.
BoundsParameter gate_bounds(const Mlp& mlp);
// Makes an MLP from these tensors.
std::unique_ptr<Block> make_mlp(const Mlp& spec, const Namer& name, std::int64_t dim,
                                const std::vector<std::string>& up, const std::string& down);

// Returns null: this half of the layer is empty.
inline std::unique_ptr<Block> make_block(std::monostate, const Namer&, std::int64_t) { return nullptr; }

}  // namespace octavo
