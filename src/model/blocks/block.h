// A block: the computation of a half of a layer. A kind of block has a header here, with its spec and its
// names, and a source with its implementation. kinds.h lists the kinds.
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

// Cache of a mixer, for each token. Mixers with equal needs can share block tables.
struct CacheNeed {
  int window = 0;  // number of tokens that it keeps; with 0 it keeps all
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  bool causal = true;      // AttentionMask::causal
  int values_in_keys = 0;  // KvSpec::values_in_keys
  bool local = false;      // Attention::local
  int index_dim = 0;       // KvSpec::index_dim
  int rate = 1;            // KvSpec::rate
  auto operator<=>(const CacheNeed&) const = default;
};

// One forward pass of one sequence: `tokens` new tokens, `context` in all.
struct Pass {
  std::int64_t tokens = 1;
  std::int64_t context = 1;
};

// Least traffic and work of a pass.
struct BlockCost {
  double weights = 0;     // numbers of matrices that are read
  double cached = 0;      // numbers written to or read from the KV cache
  double state = 0;       // numbers written to or read from a sequence's state; f32
  double operations = 0;  // a multiplication and an addition are two
};
BlockCost linear_cost(const LinearParameter& linear, const Pass& pass);
BlockCost operator+(const BlockCost& a, const BlockCost& b);

// y = x * w^T + bias, plus the changes by adapters: every linear product of every block.
void linear(const Step& step, const View& x, const LinearParameter& w, const View& y);

// Multiplies each head's output, act [tokens, heads * dim], by the sigmoid of its gate. The product of x
// and w gives the gates, f32 [tokens, heads].
void gate_heads(const Step& step, const View& x, const LinearParameter& w, const View& gates, const View& values);

class Block : public NetworkPart {
 public:
  // Need of the KV cache, or nullopt if the block has no cache.
  virtual std::optional<CacheNeed> cache() const { return {}; }
  // Cache of compressed entries, beside the per-token cache.
  virtual std::optional<CacheNeed> entries() const { return {}; }
  // Cache of an encoder's keys and values, kept for the lifetime of a sequence.
  virtual std::optional<CacheNeed> source() const { return {}; }
  // Size of a sequence's recurrent state, in f32 values.
  virtual std::int64_t state_floats() const { return 0; }
  // Offset of the block's state in the layer's state; 0 without a state.
  std::int64_t first_state() const { return first_state_; }
  void place_state(std::int64_t first) { first_state_ = first; }
  virtual BlockCost cost(const Pass& pass) const = 0;
  // For `octavo model inspect`; equal blocks have equal texts.
  virtual std::string text() const = 0;
  // x, out: act [tokens, dim]. Allocates nothing.
  virtual void run(const Step& step, const View& x, const View& out) const = 0;
  // Writes the keys and values of these rows, act [step.tokens(), dim], to the slots of the layer's cache.
  // Attention stores those of its input, so that a run() over some of the rows sees all. Cross attention
  // stores an encoder's rows in LayerMemory::cross. Other blocks do nothing.
  virtual void store_rows(const Step&, const View&) const {}
  // Whole experts that are spread over ranks, or null.
  virtual ExpertSpread* experts_over_ranks() const { return nullptr; }
  // Whether ranks of several engines can share the block's experts. Errors: as splits().
  virtual Result<> spreads(const Shard&) const { return {}; }
  // In place of run() when this engine has no tokens: computes the experts of this rank for other engines.
  virtual void assist(const Step&) const {}

 private:
  std::int64_t first_state_ = 0;
};

std::string_view name(Activation activation);

// Bounds from Mlp::limit, for activations that do not apply it themselves: of the gates and of their
// factors.
BoundsParameter gate_bounds(const Mlp& mlp);
// An MLP of these tensors.
std::unique_ptr<Block> make_mlp(const Mlp& spec, const Namer& name, std::int64_t dim,
                                const std::vector<std::string>& up, const std::string& down);

// The layer has no such half.
inline std::unique_ptr<Block> make_block(std::monostate, const Namer&, std::int64_t) { return nullptr; }

}  // namespace octavo
