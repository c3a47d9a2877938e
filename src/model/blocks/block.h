// A block: one half of a layer. A kind of block is a struct in spec.h and a file here, which says all that
// the rest asks of it.
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
#include "model/parameters.h"
#include "model/spec.h"

namespace octavo {

struct StepAdapters;
class ExpertSpread;
class ProcessGroup;

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

// Workspaces, taken one after the other from one piece of memory that all blocks share. Without memory it
// measures.
class Scratch {
 public:
  explicit Scratch(View memory = {}) : memory_(memory) {}

  View take(DType type, std::initializer_list<std::int64_t> shape);
  std::int64_t bytes() const { return used_; }

 private:
  View memory_;  // u8 [bytes]
  std::int64_t used_ = 0;
};

// Tokens [token, token + count) of a step, of one sequence, that see each other and all before them, as those
// of an image do (ModelSpec::whole_images).
struct WholeSpan {
  std::int64_t token = 0;
  std::int64_t count = 0;
  std::vector<const AttentionPlan*> plans;  // not causal; one a cache group
};

// What a step's angles are made of: rope.h.
struct Frequencies {
  View each;  // f32 [pairs]
  float scale = 1;
};

// What a block runs with: a step, and the part of the cache or the states that belongs to its layer.
struct StepContext {
  Backend& backend;
  std::int64_t tokens = 0;
  View positions;               // i32 [tokens]
  std::span<const Frequencies> frequencies;  // beside ModelSpec::ropes
  std::span<const Rope> ropes;  // likewise, of the step's tokens
  View temperatures = {};       // Model::temperatures
  Scratch scratch;

  const StepAdapters* adapters = nullptr;  // null: no token has one
  Scratch adapter_scratch = Scratch();

  KvLayer cache = {};
  const AttentionPlan* plan = nullptr;
  View slots = {};  // i64 [tokens]; of a layer that keeps nothing in the cache: another's
  std::span<const WholeSpan> wholes = {};
  std::size_t group = 0;  // the layer's cache group
  // Where it keeps entries (Block::entries()).
  KvLayer entries = {};
  const AttentionPlan* entry_plan = nullptr;
  View entry_slots = {};  // i64 [tokens]: of tokens

  View ids = {};  // i32 [tokens]; of language models

  // Of cross attention: where the keys and values of encoders' rows are, and which of them each sequence
  // sees.
  KvLayer cross_cache = {};
  const AttentionPlan* cross_plan = nullptr;

  View residual = {};     // f32 [tokens, dim]: what the norm before the block has read
  View every_row = {};    // i32 [tokens]: 0, 1 ..; where layers share matrices
  View layer_input = {};  // act [tokens, LayerInputs::size]: the layer's
  View first_values = {};  // act [tokens, TimeMix::inner()]: of the first layer, which writes them
  View chosen = {};        // i32 [tokens, Indexer::chosen]: of the last layer with an indexer, which writes them

  View state = {};  // f32 [slots, state_floats()]
  StatePlan states = {};

  ProcessGroup* ranks = nullptr;  // that share the layer; null: there are none
};

// y = x * w^T + bias, and what adapters change: every linear product of every block.
void linear(const StepContext& step, const View& x, const LinearParameter& w, const View& y);

// What each head has put out, act [tokens, heads * dim], is multiplied by the sigmoid of a number of its own, which is a
// product of x: gates f32 [tokens, heads].
void gate_heads(const StepContext& step, const View& x, const LinearParameter& w, const View& gates, const View& values);

class Block {
 public:
  virtual ~Block() = default;

  // Adds all parameters.
  virtual void list(ParameterList& list) = 0;
  // Called once when all of them have their values.
  virtual void loaded() {}
  // nullopt: it keeps nothing in the KV cache.
  virtual std::optional<CacheNeed> cache() const { return {}; }
  // Of entries that stand for several tokens each, which it keeps beside those of tokens.
  virtual std::optional<CacheNeed> entries() const { return {}; }
  // What it keeps of a sequence instead, in f32; 0: nothing.
  virtual std::int64_t state_floats() const { return 0; }
  // Of a step of so many tokens.
  virtual std::int64_t scratch_bytes(std::int64_t tokens, DType activation) const = 0;
  virtual BlockCost cost(const Pass& pass) const = 0;
  // For `octavo model inspect`; equal blocks have equal texts.
  virtual std::string text() const = 0;
  // x, out: act [tokens, dim]. Allocates nothing.
  virtual void run(const StepContext& step, const View& x, const View& out) const = 0;
  // Writes the keys and values of these rows, act [step.tokens, dim], to step.slots: attention, of its own
  // input to step.cache, so that a run() over some of the rows sees all; cross attention, of an encoder's rows
  // to step.cross_cache. Others do nothing.
  virtual void store_rows(const StepContext&, const View&) const {}
  // Of experts that are whole, and spread over ranks; null: it has none.
  virtual ExpertSpread* experts_over_ranks() const { return nullptr; }
};

std::string_view name(Activation activation);

// One for each kind: blocks/<kind>.cc. `name` is the layer's, `dim` the width of the network.
std::unique_ptr<Block> make_block(const Attention& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const CrossAttention& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const LatentAttention& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const CompressedAttention& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const DeltaNet& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const KimiDelta& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const LightningAttention& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const Laurel& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const ShortConv& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const Mamba2& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const Mamba& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const TimeMix& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const ChannelMix& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const Mlp& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const Experts& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const MlpAndExperts& spec, const Namer& name, std::int64_t dim);
std::unique_ptr<Block> make_block(const LayerInputs& spec, const Namer& name, std::int64_t dim);
// Of Mlp::limit, where the activation has none of its own: what gates and what they are multiplied with may be.
BoundsParameter gate_bounds(const Mlp& mlp);
// An MLP of these tensors.
std::unique_ptr<Block> make_mlp(const Mlp& spec, const Namer& name, std::int64_t dim,
                                const std::vector<std::string>& up, const std::string& down);
inline std::unique_ptr<Block> make_block(std::monostate, const Namer&, std::int64_t) { return nullptr; }

}  // namespace octavo
