// A block: what a half of a layer computes. A kind of block is a header here, with its spec and its names,
// and a source, which says all that the rest of the model asks of it. kinds.h lists the kinds.
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

// What a mixer keeps of each token. Mixers with equal needs can share block tables.
struct CacheNeed {
  int window = 0;  // tokens that it keeps; 0: all
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  bool causal = true;      // Attention::causal
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
  double cached = 0;      // numbers that go to the KV cache or come from it
  double state = 0;       // numbers that go to a sequence's state or come from it; f32
  double operations = 0;  // a multiplication and an addition are two
};
BlockCost linear_cost(const LinearParameter& linear, const Pass& pass);
BlockCost operator+(const BlockCost& a, const BlockCost& b);

// y = x * w^T + bias, and what adapters change: every linear product of every block.
void linear(const Step& step, const View& x, const LinearParameter& w, const View& y);

// What each head has put out, act [tokens, heads * dim], is multiplied by the sigmoid of a number of its own, which is a
// product of x: gates f32 [tokens, heads].
void gate_heads(const Step& step, const View& x, const LinearParameter& w, const View& gates, const View& values);

class Block : public NetworkPart {
 public:
  // nullopt: it keeps nothing in the KV cache.
  virtual std::optional<CacheNeed> cache() const { return {}; }
  // Of entries that stand for several tokens each, which it keeps beside those of tokens.
  virtual std::optional<CacheNeed> entries() const { return {}; }
  // Of an encoder's rows, whose keys and values it keeps as long as a sequence lives.
  virtual std::optional<CacheNeed> source() const { return {}; }
  // What it keeps of a sequence instead, in f32; 0: nothing.
  virtual std::int64_t state_floats() const { return 0; }
  // Where that begins in the layer's; 0 without a state.
  std::int64_t first_state() const { return first_state_; }
  void place_state(std::int64_t first) { first_state_ = first; }
  virtual BlockCost cost(const Pass& pass) const = 0;
  // For `octavo model inspect`; equal blocks have equal texts.
  virtual std::string text() const = 0;
  // x, out: act [tokens, dim]. Allocates nothing.
  virtual void run(const Step& step, const View& x, const View& out) const = 0;
  // Writes the keys and values of these rows, act [step.tokens(), dim], to the slots of the layer's cache: attention, of
  // its own input, so that a run() over some of the rows sees all; cross attention, of an encoder's rows to
  // LayerMemory::cross. Others do nothing.
  virtual void store_rows(const Step&, const View&) const {}
  // Of experts that are whole, and spread over ranks; null: it has none.
  virtual ExpertSpread* experts_over_ranks() const { return nullptr; }

 private:
  std::int64_t first_state_ = 0;
};

std::string_view name(Activation activation);

// Of Mlp::limit, where the activation has none of its own: what gates and what they are multiplied with may be.
BoundsParameter gate_bounds(const Mlp& mlp);
// An MLP of these tensors.
std::unique_ptr<Block> make_mlp(const Mlp& spec, const Namer& name, std::int64_t dim,
                                const std::vector<std::string>& up, const std::string& down);

// The layer has no such half.
inline std::unique_ptr<Block> make_block(std::monostate, const Namer&, std::int64_t) { return nullptr; }

}  // namespace octavo
