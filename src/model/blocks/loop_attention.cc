// Attention in a repeated layer: to the last tokens of the layer, and to all tokens of an earlier layer.
#include "model/blocks/loop_attention.h"

#include <algorithm>

#include "model/blocks/block.h"

namespace octavo {
namespace {

class LoopAttentionBlock final : public Block {
 public:
  LoopAttentionBlock(const LoopAttention& spec, const Namer& name, std::int64_t dim)
      : spec_(spec.attention),
        qkv_(name.linear(name.names.attention.qkv, {spec_.q_dim(), spec_.kv_dim(), spec_.kv_dim()}, dim,
                         spec_.biases.qkv)),
        out_(name.linear({name.names.attention.out}, {dim}, spec_.q_dim(), spec_.biases.out)) {
    const std::string& gate = name.names.of<LoopAttention>().gate;
    gate_ = name.without_prefix().rows_of_vectors({gate + ".weight"}, spec_.q_heads, spec_.head_dim);
    gate_bias_ = name.without_prefix().vector({gate + ".bias"}, {spec_.q_heads});
  }

  void list(ParameterList& list) override { list.add(qkv_, gate_, gate_bias_, out_); }
  std::optional<CacheNeed> cache() const override {
    return CacheNeed{.window = spec_.mask.window,
                     .q_heads = spec_.q_heads,
                     .kv_heads = spec_.kv_heads,
                     .head_dim = spec_.head_dim};
  }
  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard&) const override { return not_split("layers that run several times"); }
  bool spans_layers() const override { return true; }

  BlockCost cost(const Pass& pass) const override {
    const std::int64_t window = std::min<std::int64_t>(pass.context, spec_.mask.window);
    const auto seen = static_cast<double>(pass.tokens) * static_cast<double>(pass.context + window);
    const BlockCost attention{
        .cached = 2 * static_cast<double>(pass.context + window + pass.tokens) * spec_.kv_dim(),
        .operations = 4 * seen * spec_.q_dim()};
    return linear_cost(qkv_, pass) + attention + linear_cost(out_, pass);
  }
  std::string text() const override {
    return fmt::format("{} query and {} key heads of {}, window {} and the cache of an earlier layer, gated",
                       spec_.q_heads, spec_.kv_heads, spec_.head_dim, spec_.mask.window);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const Work w = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    const LayerCache& own = step.memory.cache;
    linear(step, x, qkv_, w.qkv);
    ops.qkv_store(stream, {.qkv = w.qkv,
                           .q_heads = spec_.q_heads,
                           .rope = step.rope(spec_.rope),
                           .slots = own.slots,
                           .cache = own.memory,
                           .q_out = w.q});
    const auto attend = [&](const LayerCache& cache, int window, const View& to) {
      ops.attention(stream, {.q = w.q,
                             .cache = cache.memory,
                             .plan = *cache.plan,
                             .scale = spec_.scores.scale,
                             .window = window,
                             .out = to});
    };
    attend(step.memory.earlier, 0, w.far);
    attend(own, spec_.mask.window, w.near);
    ops.mix_heads(stream, {.q = w.q,
                           .weight = gate_.value,
                           .bias = gate_bias_.value,
                           .first = w.far,
                           .second = w.near,
                           .y = w.near});
    linear(step, w.near, out_, out);
  }

 private:
  struct Work {
    View qkv, q, far, near;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.qkv = scratch.take(act, {n, spec_.qkv_dim()}),
            .q = scratch.take(act, {n, spec_.q_heads, spec_.head_dim}),
            .far = scratch.take(act, {n, spec_.q_dim()}),
            .near = scratch.take(act, {n, spec_.q_dim()})};
  }

  Attention spec_;
  LinearParameter qkv_, out_;
  VectorParameter gate_, gate_bias_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const LoopAttention& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<LoopAttentionBlock>(spec, name, dim);
}

}  // namespace octavo
