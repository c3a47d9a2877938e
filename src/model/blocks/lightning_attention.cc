// Lightning attention. Runs as Mamba2's scan with step 1: B are the keys, C the queries, x the values.
#include <cmath>
#include <limits>

#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

class LightningAttentionBlock final : public Block {
 public:
  LightningAttentionBlock(const LightningAttention& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        in_(name.linear({name.names.of<LightningAttention>().in}, {3 * spec.inner()}, dim, false)),
        gate_(name.linear({name.names.of<LightningAttention>().gate}, {spec.inner()}, dim, false)),
        out_(name.linear({name.names.of<LightningAttention>().out}, {dim}, spec.inner(), false)),
        norm_(name.norm(spec.norm, name.names.of<LightningAttention>().norm, spec.inner())),
        q_norm_(name.norm(spec.qk_norm, name.names.attention.q_norm, spec.head_dim)),
        k_norm_(name.norm(spec.qk_norm, name.names.attention.k_norm, spec.head_dim)),
        none_(constant_vector(std::vector(spec.rates.size(), 0.0F))) {
    if (spec.norm_groups > 1) norm_.weight.row = spec.inner() / spec.norm_groups;
    if (spec.scale != 1) q_norm_.weight.factors = {{0, spec.head_dim, spec.scale}};
    // The checkpoint stores the rows of queries, keys and values by type or by head. In memory, the order is
    // all values, all keys, all queries.
    const bool by_head = name.names.of<LightningAttention>().order == QkvOrder::by_head;
    for (const std::int64_t kind : {2, 1, 0})
      for (std::int64_t head = 0; head < spec.heads; ++head)
        in_.weight.order.push_back(
            {(by_head ? 3 * head + kind : kind * spec.heads + head) * spec.head_dim, spec.head_dim});
    std::vector<float> logs;
    for (const float rate : spec.rates) logs.push_back(std::log(rate));
    rates_ = constant_vector(std::move(logs));
  }

  void list(ParameterList& list) override {
    list.add(in_, gate_, rates_, none_, norm_, q_norm_, k_norm_, out_);
  }

  std::int64_t state_floats() const override { return spec_.inner() * spec_.head_dim; }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard&) const override { return not_split("lightning attention"); }

  BlockCost cost(const Pass& pass) const override {
    const double scan = 5.0 * static_cast<double>(spec_.inner() * spec_.head_dim);
    return linear_cost(in_, pass) + linear_cost(gate_, pass) + linear_cost(out_, pass) +
           BlockCost{.state = 2.0 * static_cast<double>(state_floats()),
                     .operations = scan * static_cast<double>(pass.tokens)};
  }

  std::string text() const override {
    return fmt::format("lightning attention, {} heads of {}", spec_.heads, spec_.head_dim);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const auto [in, gate, heads] = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    linear(step, x, in_, in);
    linear(step, x, gate_, gate);
    if (spec_.silu) ops.activate(stream, {.x = in, .activation = Activation::silu, .gated = false, .y = in});
    rotate(step, in.columns(spec_.inner(), spec_.inner()), k_norm_.norm());
    rotate(step, in.columns(2 * spec_.inner(), spec_.inner()), q_norm_.norm());
    ops.scan(stream,
             {.xbc = in,
              .groups = spec_.heads,
              .a_log = rates_.value,
              .d = none_.value,
              .state = state_part(step.memory.states, 0, {spec_.heads, spec_.head_dim, spec_.head_dim}),
              .plan = step.memory.state_plan,
              .out = heads});
    ops.gate(stream, {.x = heads, .gate = gate, .norm = norm_.norm(), .y = heads});
    linear(step, heads, out_, out);
  }

 private:
  // Applies the norm and RoPE to each head, in place.
  void rotate(const Step& step, const View& rows, const Norm& norm) const {
    if (norm.kind == NormKind::none && spec_.rope < 0) return;
    View heads = rows;
    heads.rank = 3;
    heads.shape = {step.tokens(), spec_.heads, spec_.head_dim};
    heads.stride = {rows.stride[0], spec_.head_dim, 1};
    KvLayer cache;  // unused
    cache.spec = {.kv_heads = 1, .head_dim = spec_.head_dim, .block_size = 1};
    cache.blocks = std::numeric_limits<std::int64_t>::max();
    step.backend.ops.qkv_store(*step.backend.stream, {.qkv = rows,
                                                      .q_heads = spec_.heads,
                                                      .q_norm = norm,
                                                      .stores = false,
                                                      .rope = step.rope(spec_.rope),
                                                      .slots = step.memory.cache.slots,
                                                      .cache = cache,
                                                      .q_out = heads});
  }

  struct Work {
    View in, gate, heads;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.in = scratch.take(act, {n, 3 * spec_.inner()}),
            .gate = scratch.take(act, {n, spec_.inner()}),
            .heads = scratch.take(act, {n, spec_.inner()})};
  }

  LightningAttention spec_;
  LinearParameter in_, gate_, out_;
  NormParameter norm_, q_norm_, k_norm_;
  // a_log and d of ScanArgs: logarithms of the decay rates, and zeros (lightning attention has no d)
  VectorParameter rates_, none_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const LightningAttention& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<LightningAttentionBlock>(spec, name, dim);
}

LightningAttention::Names LightningAttention::Names::of_gguf(const GgufLayers&) {
  return {
      .in = "attn_qkv",
      .gate = "attn_gate",
      .norm = "attn_norm_2",
      .out = "attn_output",
  };
}

}  // namespace octavo
