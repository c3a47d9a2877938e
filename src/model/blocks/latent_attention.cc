// Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", 2024) over a paged cache of latents.
// A token's keys and values are products of one latent c: k_h = W_UK_h c and v_h = W_UV_h c. All heads also
// share a part of the key with RoPE. The cache contains only c and this part; k_h and v_h are never computed
// for cached tokens. Instead, queries are multiplied by W_UK_h, since q_h k_h = (W_UK_h^T q_h) c, and the
// weighted sum of latents is multiplied by W_UV_h. Prefill does the same as decode, so that outputs do not
// depend on the chunks of a prompt.
// Sparse attention (DeepSeek-AI, "DeepSeek-V3.2", 2025) stores the key of an indexer beside each latent, and
// a query sees the tokens that the indexer selects. Several layers can share a selection ("IndexCache",
// 2026): then only the first of these layers has an indexer and index keys.
#include <algorithm>
#include <utility>

#include "model/blocks/block.h"
#include "model/gguf/layers.h"

namespace octavo {
namespace {

// Slot, i32 [tokens, Indexer::chosen]: the tokens that the last layer with an indexer has selected.
struct Chosen {};

View beginnings(View heads, std::int64_t dim) {
  heads.shape[2] = dim;
  return heads;
}

// The indexer of one layer: selects the tokens that each query sees.
class IndexerPart {
 public:
  IndexerPart(const Indexer& spec, const Namer& name, std::int64_t q_rank, std::int64_t dim) : spec_(spec) {
    const Names& names = name.names;
    const std::string& begin = names.of<LatentAttention>().indexer;
    q_ = name.linear({names.behind(begin, "wq_b", "attn_q_b")}, {queries()}, q_rank, false);
    key_ = name.linear({names.behind(begin, "wk", "attn_k")}, {spec.head_dim}, dim, false);
    norm_ = name.norm(spec.norm, begin + "k_norm", spec.head_dim);
    weights_ = name.linear({names.behind(begin, "weights_proj", "proj")}, {spec.heads}, dim, false);
    weights_.weight.use = MatrixUse::router;
    if (spec.rotated_end > 0) put_end_first();
  }

  int dim() const { return spec_.head_dim; }

  void list(ParameterList& list) { list.add(q_, key_, norm_, weights_); }

  struct Work {
    View q, key, weights;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.q = scratch.take(act, {n, spec_.heads, spec_.head_dim}),
            .key = scratch.take(act, {n, spec_.head_dim}),
            .weights = scratch.take(DType::f32, {n, spec_.heads})};
  }

  BlockCost cost(const Pass& pass) const {
    const auto tokens = static_cast<double>(pass.tokens), context = static_cast<double>(pass.context);
    return linear_cost(q_, pass) + linear_cost(key_, pass) + linear_cost(weights_, pass) +
           BlockCost{
               .cached = (context + tokens) * spec_.head_dim,
               .operations = 2 * tokens * (context - (tokens - 1) / 2) * static_cast<double>(queries())};
  }

  // Computes the index queries, and the index keys for the cache.
  void prepare(const Step& step, const View& x, const View& q_latent, const Work& w) const {
    linear(step, q_latent, q_, View::of(w.q.data, w.q.dtype, {step.tokens(), queries()}));
    linear(step, x, key_, w.key);
    linear(step, x, weights_, w.weights);
    rotate(step, w.q, {});
    rotate(step, View::of(w.key.data, w.key.dtype, {step.tokens(), 1, spec_.head_dim}), norm_.norm());
  }
  // Scores are not scaled, because a positive factor does not change the selection.
  void choose(const Step& step, const Work& w) const {
    step.backend.ops.choose_tokens(*step.backend.stream, {.q = w.q,
                                                          .weights = w.weights,
                                                          .cache = step.memory.cache.memory,
                                                          .plan = *step.memory.cache.plan,
                                                          .chosen = step.slot<Chosen>()});
  }

 private:
  std::int64_t queries() const { return std::int64_t{spec_.heads} * spec_.head_dim; }

  // Moves the end of each index query and key to its beginning (Indexer::rotated_end). The products of
  // queries and keys stay the same.
  void put_end_first() {
    const std::int64_t rest = spec_.head_dim - spec_.rotated_end;
    const auto rows = [&](std::int64_t heads) {
      std::vector<RowRange> order;
      for (std::int64_t first = 0; first < heads * spec_.head_dim; first += spec_.head_dim) {
        order.push_back({first + rest, spec_.rotated_end});
        order.push_back({first, rest});
      }
      return order;
    };
    q_.weight.order = rows(spec_.heads);
    key_.weight.order = norm_.weight.order = norm_.bias.order = rows(1);
  }

  // Applies the norm and RoPE to [n, heads, head_dim] in place.
  void rotate(const Step& step, const View& heads, const Norm& norm) const {
    KvLayer cache = step.memory.cache.memory;
    cache.spec = {
        .kv_heads = 1, .head_dim = spec_.head_dim, .block_size = step.memory.cache.memory.spec.block_size};
    step.backend.ops.qkv_store(
        *step.backend.stream,
        {.qkv = View::of(heads.data, heads.dtype, {step.tokens(), heads.size(1) * spec_.head_dim}),
         .q_heads = static_cast<int>(heads.size(1)),
         .q_norm = norm,
         .stores = false,
         .rope = step.rope(spec_.rope),
         .slots = step.memory.cache.slots,
         .cache = cache,
         .q_out = heads});
  }

  Indexer spec_;
  LinearParameter q_, key_, weights_;
  NormParameter norm_;
};

class LatentAttentionBlock final : public Block {
 public:
  LatentAttentionBlock(const LatentAttention& spec, const Namer& name, std::int64_t dim) : spec_(spec) {
    const Names& names = name.names;
    std::vector<std::string> down{names.of<LatentAttention>().down};
    std::vector<std::int64_t> rows{spec.key_dim()};
    if (spec.q_rank > 0) {
      down.insert(down.begin(), names.of<LatentAttention>().q_down);
      rows.insert(rows.begin(), spec.q_rank);
      q_norm_ = name.norm(spec.norm, names.of<LatentAttention>().q_norm, spec.q_rank);
    }
    down_ = name.linear(down, rows, dim, spec.bias);
    kv_norm_ = name.norm(spec.norm, names.of<LatentAttention>().norm, spec.kv_rank);
    if (spec.latent_scale != 1) kv_norm_.weight.factors = {{0, spec.kv_rank, spec.latent_scale}};
    q_ = name.linear({spec.q_rank > 0 ? names.of<LatentAttention>().q_up : names.of<LatentAttention>().q},
                     {spec.heads * spec.q_dim()}, spec.q_rank > 0 ? spec.q_rank : dim, false);
    if (names.of<LatentAttention>().up_key.empty()) {
      name_halves(name);
    } else {
      up_key_ = name.stack(names.of<LatentAttention>().up_key, spec.heads, spec.kv_rank, spec.nope_dim);
      up_value_ = name.stack(names.of<LatentAttention>().up_value, spec.heads, spec.value_dim, spec.kv_rank);
    }
    up_key_.use = up_value_.use = MatrixUse::plain;
    if (spec.indexer && spec.indexer->heads > 0) indexer_.emplace(*spec.indexer, name, spec.q_rank, dim);
    out_ = name.linear({names.attention.out}, {dim}, std::int64_t{spec.heads} * spec.value_dim, spec.bias);
    if (spec.head_gate) gate_ = name.linear({names.attention.head_gate}, {spec.heads}, dim, false);
    if (spec.output_gate)
      gate_ = name.linear({names.of<LatentAttention>().gate}, {out_.weight.cols}, dim, false);
    if (spec.sinks) sinks_ = name.vector({names.attention.sinks}, {spec.heads});
    if (name.shard.size > 1) split(name.shard);
  }

  void list(ParameterList& list) override {
    list.add(down_, q_norm_, kv_norm_, q_, up_key_, up_value_, indexer_, gate_, sinks_, out_);
  }

  std::optional<CacheNeed> cache() const override {
    const int index_dim = indexer_ ? indexer_->dim() : 0;
    return CacheNeed{.q_heads = spec_.heads,
                     .kv_heads = 1,
                     .head_dim = spec_.key_dim() + index_dim,
                     .causal = spec_.causal,
                     .values_in_keys = spec_.kv_rank,
                     .index_dim = index_dim};
  }

  void reserve(Arena arena) const override {
    take(arena.scratch, arena.tokens, arena.activation);
    if (spec_.indexer) arena.rows<Chosen>(DType::i32, spec_.indexer->chosen);
  }
  Result<> splits(const Shard& shard) const override { return divides(shard, spec_.heads, "heads"); }
  bool spans_layers() const override { return spec_.indexer && !indexer_; }

  BlockCost cost(const Pass& pass) const override {
    const auto tokens = static_cast<double>(pass.tokens), context = static_cast<double>(pass.context);
    double seen = tokens * (context - (tokens - 1) / 2);
    if (spec_.indexer) seen = std::min(seen, tokens * spec_.indexer->chosen);
    const BlockCost attention{.cached = (context + tokens) * spec_.key_dim(),
                              .operations = 2 * seen * spec_.heads * (spec_.key_dim() + spec_.kv_rank)};
    const auto up = static_cast<double>(up_key_.elements() + up_value_.elements());
    return linear_cost(down_, pass) + linear_cost(q_, pass) +
           BlockCost{.weights = up, .operations = 2 * up * tokens} + attention + linear_cost(out_, pass) +
           linear_cost(gate_, pass) + (indexer_ ? indexer_->cost(pass) : BlockCost{});
  }

  std::string text() const override {
    std::string text =
        fmt::format("{} heads over latents of {} + {}", spec_.heads, spec_.kv_rank, spec_.rope_dim);
    if (spec_.q_rank > 0) text += fmt::format(", queries of latents of {}", spec_.q_rank);
    if (!spec_.causal) text += ", both ways";
    if (spec_.sinks) text += ", sinks";
    if (spec_.head_gate || spec_.output_gate) text += ", gated";
    if (indexer_)
      text += fmt::format(", {} tokens chosen by {} heads of {}", spec_.indexer->chosen, spec_.indexer->heads,
                          spec_.indexer->head_dim);
    else if (spec_.indexer)
      text += fmt::format(", the {} tokens that a layer before has chosen", spec_.indexer->chosen);
    return text;
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const Work w = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    linear(step, x, down_, w.down);
    if (spec_.q_rank > 0) {
      ops.add_norm(stream,
                   {.residual = w.down.columns(0, spec_.q_rank), .norm = q_norm_.norm(), .out = w.q_latent});
      linear(step, w.q_latent, q_, w.q);
    } else {
      linear(step, x, q_, w.q);
    }
    if (spec_.temperature)
      ops.scale_rows(stream,
                     {.x = w.q, .factors = step.rotation.temperatures, .rows = step.positions(), .y = w.q});
    const View q = View::of(w.q.data, w.q.dtype, {step.tokens(), spec_.heads, spec_.q_dim()});
    if (indexer_) indexer_->prepare(step, x, w.q_latent, w.index);
    ops.latent_store(stream, {.kv = w.down.columns(spec_.q_rank, spec_.key_dim()),
                              .index_keys = w.index.key,
                              .norm = kv_norm_.norm(),
                              .rope = step.rope(spec_.rope),
                              .slots = step.memory.cache.slots,
                              .cache = step.memory.cache.memory,
                              .q = q,
                              .q_out = w.absorbed});
    ops.head_matmul(stream, {.x = beginnings(q, spec_.nope_dim),
                             .w = *up_key_.weight,
                             .y = beginnings(w.absorbed, spec_.kv_rank)});
    if (indexer_) indexer_->choose(step, w.index);
    ops.attention(stream, {.q = w.absorbed,
                           .cache = step.memory.cache.memory,
                           .plan = *step.memory.cache.plan,
                           .scale = spec_.scale,
                           .causal = spec_.causal,
                           .sinks = sinks_.value,
                           .chosen = spec_.indexer ? step.slot<Chosen>() : View(),
                           .out = w.latents});
    ops.head_matmul(stream,
                    {.x = View::of(w.latents.data, x.dtype, {step.tokens(), spec_.heads, spec_.kv_rank}),
                     .w = *up_value_.weight,
                     .y = View::of(w.values.data, x.dtype, {step.tokens(), spec_.heads, spec_.value_dim})});
    if (spec_.head_gate) gate_heads(step, x, gate_, w.gates, w.values);
    if (spec_.output_gate) {
      linear(step, x, gate_, w.gates);
      ops.gate(stream, {.x = w.values, .gate = w.gates, .activation = Activation::sigmoid, .y = w.values});
    }
    linear(step, w.values, out_, out);
  }

 private:
  struct Work {
    View down, q_latent, q, absorbed, latents, values, gates;
    IndexerPart::Work index;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    const std::int64_t heads = spec_.heads;
    return {.down = scratch.take(DType::f32, {n, down_.weight.rows}),
            .q_latent = scratch.take(act, {n, spec_.q_rank}),
            .q = scratch.take(act, {n, heads * spec_.q_dim()}),
            .absorbed = scratch.take(act, {n, heads, spec_.key_dim()}),
            .latents = scratch.take(act, {n, heads * spec_.kv_rank}),
            .values = scratch.take(act, {n, heads * spec_.value_dim}),
            .gates = scratch.take(spec_.head_gate ? DType::f32 : act, {n, gate_.weight.rows}),
            .index = indexer_ ? indexer_->take(scratch, n, act) : IndexerPart::Work{}};
  }

  // Splits a tensor that has, for each head, the rows for keys and then the rows for values.
  void name_halves(const Namer& name) {
    const std::int64_t heads = spec_.heads, head_rows = spec_.nope_dim + spec_.value_dim;
    const auto up = [&] {
      return name.linear({name.names.of<LatentAttention>().up}, {heads * head_rows}, spec_.kv_rank, false)
          .weight;
    };
    up_key_ = up();
    up_value_ = up();
    for (std::int64_t head = 0; head < heads; ++head) {
      up_key_.order.push_back({head * head_rows, spec_.nope_dim});
      up_value_.order.push_back({head * head_rows + spec_.nope_dim, spec_.value_dim});
    }
    up_key_.ranges_transposed = true;
    up_key_.rows = heads * spec_.kv_rank;
    up_key_.cols = spec_.nope_dim;
    up_value_.rows = heads * spec_.value_dim;
  }

  // Keeps this rank's heads, and all latents.
  void split(const Shard& shard) {
    const std::int64_t first = shard.first(spec_.heads);
    spec_.heads /= shard.size;
    const auto own = [&](std::int64_t rows) { return RowRange{first * rows, spec_.heads * rows}; };
    keep_rows(q_, {own(spec_.q_dim())});
    keep_rows(up_key_, {own(up_key_.ranges_transposed ? spec_.nope_dim : spec_.kv_rank)});
    up_key_.rows = std::int64_t{spec_.heads} * spec_.kv_rank;
    if (up_key_.ranges_transposed)
      // The rank's part is not contiguous in the tensor, whose rows are the columns of up_key_.
      up_key_.sharded = false;
    keep_rows(up_value_, {own(spec_.value_dim)});
    if (spec_.head_gate) keep_rows(gate_, {own(1)});
    if (spec_.output_gate) keep_rows(gate_, {own(spec_.value_dim)});
    if (spec_.sinks) keep_rows(sinks_, {own(1)});
    keep_columns(out_, own(spec_.value_dim).begin, own(spec_.value_dim).count, shard.rank == 0);
  }

  LatentAttention spec_;
  NormParameter q_norm_, kv_norm_;
  LinearParameter down_;  // latent of queries, if there is one, then latent of keys and values
  LinearParameter q_, gate_, out_;
  VectorParameter sinks_;
  MatrixParameter up_key_, up_value_;   // W_UK_h^T and W_UV_h for all heads
  std::optional<IndexerPart> indexer_;  // not split over ranks
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const LatentAttention& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<LatentAttentionBlock>(spec, name, dim);
}

LatentAttention::Names LatentAttention::Names::of_gguf(const GgufLayers& layers) {
  const bool halves = layers.have("attn_k_b.weight");
  return {
      .q = "attn_q",
      .q_down = "attn_q_a",
      .q_norm = "attn_q_a_norm",
      .q_up = "attn_q_b",
      .down = "attn_kv_a_mqa",
      .norm = "attn_kv_a_norm",
      .up = "attn_kv_b",
      .up_key = halves ? "attn_k_b" : "",
      .up_value = halves ? "attn_v_b" : "",
      .indexer = "indexer.",
  };
}

}  // namespace octavo
