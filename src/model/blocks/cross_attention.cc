// Attention to an encoder's rows (Vaswani et al., "Attention Is All You Need", 2017). Keys and values of the
// encoder's rows are computed once, after the encoder has run. Later steps only read them.
#include "model/blocks/block.h"

namespace octavo {
namespace {

class CrossAttentionBlock final : public Block {
 public:
  CrossAttentionBlock(const CrossAttention& spec, const Namer& name, std::int64_t dim) : spec_(spec) {
    const std::int64_t rows = spec.rows();
    q_ = name.linear({name.names.of<CrossAttention>().q}, {rows}, dim, spec.bias);
    kv_ = name.linear(name.names.of<CrossAttention>().kv, {rows, rows}, dim, spec.bias);
    if (spec.bias && !spec.k_bias) {
      kv_.bias.parts.erase(kv_.bias.parts.begin());
      kv_.bias.order = {{-1, rows}, {0, rows}};
    }
    out_ = name.linear({name.names.of<CrossAttention>().out}, {dim}, rows, spec.bias);
  }

  void list(ParameterList& list) override { list.add(q_, kv_, out_); }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard&) const override { return not_split("cross attention"); }

  std::optional<CacheNeed> source() const override {
    return CacheNeed{
        .q_heads = spec_.heads, .kv_heads = spec_.heads, .head_dim = spec_.head_dim, .causal = false};
  }

  // The number of encoder rows does not grow with the context, so reading them is a cost per sequence and is
  // not counted here.
  BlockCost cost(const Pass& pass) const override { return linear_cost(q_, pass) + linear_cost(out_, pass); }

  std::string text() const override {
    return fmt::format("{} heads of {} on an encoder's rows", spec_.heads, spec_.head_dim);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const auto [q, attended] = take(scratch, step.tokens(), x.dtype);
    linear(step, x, q_, q);
    step.backend.ops.attention(*step.backend.stream,
                               {.q = View::of(q.data, q.dtype, {step.tokens(), spec_.heads, spec_.head_dim}),
                                .cache = step.memory.cross,
                                .plan = *step.memory.cross_plan,
                                .scale = spec_.scale,
                                .causal = false,
                                .out = attended});
    linear(step, attended, out_, out);
  }

  void store_rows(const Step& step, const View& rows) const override {
    Scratch scratch = step.scratch;
    const View kv = scratch.take(rows.dtype, {step.tokens(), kv_.weight.rows});
    linear(step, rows, kv_, kv);
    step.backend.ops.qkv_store(*step.backend.stream,
                               {.qkv = kv,
                                .slots = step.memory.cache.slots,
                                .cache = step.memory.cross,
                                .q_out = View::of(kv.data, kv.dtype, {step.tokens(), 0, spec_.head_dim})});
  }

 private:
  struct Work {
    View q, attended;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {scratch.take(act, {n, spec_.rows()}), scratch.take(act, {n, spec_.rows()})};
  }

  CrossAttention spec_;
  LinearParameter q_, kv_, out_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const CrossAttention& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<CrossAttentionBlock>(spec, name, dim);
}

}  // namespace octavo
