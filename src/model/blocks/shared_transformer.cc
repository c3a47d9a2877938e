// Attention and then an MLP, without residual additions, shared by several layers.
#include "model/blocks/shared_transformer.h"

#include <algorithm>

namespace octavo {

SharedTransformerBlock::SharedTransformerBlock(const SharedTransformer& spec, const Namer& owned,
                                               const Namer& own, std::int64_t dim,
                                               const SharedTransformerBlock* owner)
    : spec_(spec), dim_(dim), owner_(owner) {
  const std::int64_t rows = spec.rows(), wide = 2 * dim;
  if (owner == nullptr) {
    matrices_ = {
        .input_norm = owned.norm(spec.norm, "input_layernorm", wide),
        .mlp_norm = owned.norm(spec.norm, "pre_ff_layernorm", dim),
        .qkv = owned.linear({"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                            std::vector<std::int64_t>(3, rows), wide, false),
        .attention_out = owned.linear({"self_attn.o_proj"}, {dim}, rows, false),
        .up = owned.linear({"feed_forward.gate_up_proj"}, {spec.mlp.up_dim()}, dim, spec.mlp.up_bias),
        .down = owned.linear({"feed_forward.down_proj"}, {dim}, spec.mlp.hidden, spec.mlp.down_bias)};
  }
  // Returns this use's product from a list that has the products of all uses.
  const auto product = [&](const std::string& list, std::int64_t rank, std::int64_t in, std::int64_t out,
                           std::int64_t first) {
    return LowRank{owned.linear({fmt::format("{}.{}.0", list, spec.use)}, {rank}, in, false),
                   owned.linear({fmt::format("{}.{}.1", list, spec.use)}, {out}, rank, false), first};
  };
  if (spec.attention_rank > 0)
    for (const char* part : {"q", "k", "v"})
      attention_.push_back(product(fmt::format("self_attn.linear_{}_adapter_list", part), spec.attention_rank,
                                   wide, rows, std::ssize(attention_) * rows));
  mlp_ = product("feed_forward.gate_up_proj_adapter_list", spec.mlp_rank, dim, spec.mlp.up_dim(), 0);
  out_ = own.linear({"linear"}, {dim}, dim, false);
}

void SharedTransformerBlock::list(ParameterList& list) {
  list.add(matrices_.input_norm, matrices_.qkv);
  for (LowRank& product : attention_) {
    list.add(product.down, product.up);
  }
  list.add(matrices_.attention_out, matrices_.mlp_norm, matrices_.up, mlp_.down, mlp_.up, matrices_.down,
           out_);
}

std::optional<CacheNeed> SharedTransformerBlock::cache() const {
  return CacheNeed{.q_heads = spec_.heads, .kv_heads = spec_.heads, .head_dim = spec_.head_dim};
}

void SharedTransformerBlock::reserve(Arena arena) const {
  take(arena.scratch, arena.tokens, arena.activation);
  arena.every_row();
}

BlockCost SharedTransformerBlock::cost(const Pass& pass) const {
  const Matrices& all = matrices();
  const auto triangle = [](std::int64_t n) {
    return static_cast<double>(n) * static_cast<double>(n + 1) / 2;
  };
  const auto rows = static_cast<double>(spec_.rows());
  BlockCost cost{.cached = 2 * static_cast<double>(pass.context + pass.tokens) * rows,
                 .operations = 4 * (triangle(pass.context) - triangle(pass.context - pass.tokens)) * rows};
  for (const LinearParameter* linear :
       {&all.qkv, &all.attention_out, &all.up, &all.down, &mlp_.down, &mlp_.up, &out_})
    cost = cost + linear_cost(*linear, pass);
  for (const LowRank& product : attention_)
    cost = cost + linear_cost(product.down, pass) + linear_cost(product.up, pass);
  return cost;
}

std::string SharedTransformerBlock::text() const {
  return fmt::format("shared: {} heads of {}, MLP {} gated {}", spec_.heads, spec_.head_dim, spec_.mlp.hidden,
                     name(spec_.mlp.activation));
}

void SharedTransformerBlock::run(const Step& step, const View& x, const View& out) const {
  Scratch scratch = step.scratch;
  const Work w = take(scratch, step.tokens(), x.dtype);
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const Matrices& all = matrices();
  linear(step, x, all.qkv, w.qkv);
  for (const LowRank& product : attention_) add(step, product, x, w, w.qkv);
  ops.qkv_store(stream, {.qkv = w.qkv,
                         .q_heads = spec_.heads,
                         .rope = step.rope(spec_.rope),
                         .slots = step.memory.cache.slots,
                         .cache = step.memory.cache.memory,
                         .q_out = w.q});
  ops.attention(stream, {.q = w.q,
                         .cache = step.memory.cache.memory,
                         .plan = *step.memory.cache.plan,
                         .scale = spec_.scale,
                         .out = w.attended});
  linear(step, w.attended, all.attention_out, w.sum);
  ops.add_norm(stream, {.residual = w.sum, .norm = all.mlp_norm.norm(), .out = w.normed});
  linear(step, w.normed, all.up, w.up);
  add(step, mlp_, w.normed, w, w.up);
  ops.activate(stream, {.x = w.up, .activation = spec_.mlp.activation, .y = w.hidden});
  linear(step, w.hidden, all.down, w.made);
  linear(step, w.made, out_, out);
}

SharedTransformerBlock::Work SharedTransformerBlock::take(Scratch& scratch, std::int64_t n, DType act) const {
  const std::int64_t rank = std::max(spec_.attention_rank, spec_.mlp_rank);
  const std::int64_t widest = std::max(spec_.rows(), spec_.mlp.up_dim());
  return {.qkv = scratch.take(act, {n, 3 * spec_.rows()}),
          .q = scratch.take(act, {n, spec_.heads, spec_.head_dim}),
          .attended = scratch.take(act, {n, spec_.rows()}),
          .sum = scratch.take(DType::f32, {n, dim_}),
          .normed = scratch.take(act, {n, dim_}),
          .up = scratch.take(act, {n, spec_.mlp.up_dim()}),
          .hidden = scratch.take(act, {n, spec_.mlp.hidden}),
          .made = scratch.take(act, {n, dim_}),
          .low = scratch.take(act, {n * rank}),
          .delta = scratch.take(act, {n * widest})};
}

void SharedTransformerBlock::add(const Step& step, const LowRank& product, const View& x, const Work& work,
                                 const View& y) const {
  const std::int64_t rows = product.up.weight.rows;
  const View low = View::of(work.low.data, x.dtype, {step.tokens(), product.down.weight.rows});
  const View delta = View::of(work.delta.data, x.dtype, {step.tokens(), rows});
  linear(step, x, product.down, low);
  linear(step, low, product.up, delta);
  step.backend.ops.add_rows(*step.backend.stream,
                            {.x = delta, .rows = step.slot<EveryRow>(), .y = y.columns(product.first, rows)});
}

void CopyEmbedding::reserve(Arena arena) const {
  arena.rows<PairRows>(DType::f32, 2 * dim_);
  arena.every_row();
}

void CopyEmbedding::run(const Step& step) const {
  step.backend.ops.gather_rows(*step.backend.stream, {.x = step.residual.rows(),
                                                      .rows = step.slot<EveryRow>(),
                                                      .out = step.slot<PairRows>().columns(dim_, dim_)});
}

void SharedHalf::list(ParameterList& list) {
  shared_->list(list);
  LayerHalf::list(list);
}

void SharedHalf::add_blocks(std::vector<Block*>& all) const {
  all.push_back(shared_.get());
  LayerHalf::add_blocks(all);
}

void SharedHalf::reserve(Arena arena) const {
  LayerHalf::reserve(arena);
  arena.rows<PairInput>(arena.activation, 2 * dim());
  shared_->reserve(arena);
}

// Returns norm(residual + output of the shared block). The residual itself does not change.
View SharedHalf::enter(const Step& step) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const View x = step.slot<HalfInput>(), made = step.slot<HalfOutput>();
  const View pair = step.slot<PairRows>(), pair_x = step.slot<PairInput>();
  const View copy = pair.columns(0, dim());
  step.residual.take_in();
  ops.gather_rows(stream, {.x = step.residual.rows(), .rows = step.slot<EveryRow>(), .out = copy});
  ops.add_norm(stream, {.residual = pair, .norm = shared_->input_norm(), .out = pair_x});
  run_on_ranks(step, *shared_, pair_x, made);
  ops.add_norm(stream, {.residual = copy, .delta = made, .norm = norms().pre.norm(), .out = x});
  return x;
}

}  // namespace octavo
