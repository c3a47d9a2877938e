// Attention over the last tokens and over compressed entries (DeepSeek-AI, "DeepSeek-V4", 2026).
// A token has one key for all heads, which is also its value. RoPE rotates the last elements of keys and
// queries, and each head's output is rotated back. A compressed entry covers several tokens: it is the mean
// of projections of the tokens, weighted by gates. An incomplete entry is part of the sequence's state. If an
// entry covers few tokens, an indexer selects entries for each query. The indexer has separate, smaller
// entries.
#include <algorithm>
#include <utility>

#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

class Compressor {
 public:
  // Each tensor name is `usual` or `in_gguf`, depending on the file type, followed by the tensor's own name.
  Compressor(const CompressedAttention& spec, const Namer& name, const char* usual, const char* in_gguf,
             std::int64_t entry_dim, std::int64_t dim)
      : dim_(entry_dim), sets_(spec.sets()), rate_(spec.rate), rope_(static_cast<std::size_t>(spec.rope)) {
    const Names& names = name.names;
    const std::string begin = names.behind(names.of<CompressedAttention>().prefix, usual, in_gguf);
    in_ = name.linear({names.behind(begin, "wkv", "kv"), names.behind(begin, "wgate", "gate")},
                      {sets_ * dim_, sets_ * dim_}, dim, false);
    in_.weight.use = MatrixUse::plain;
    bias_ = name.rows_of_vectors({names.behind(begin, "ape", "ape.weight")}, rate_, sets_ * dim_);
    norm_ = name.norm(spec.norm, begin + "norm", dim_);
  }

  void list(ParameterList& list) { list.add(in_, bias_, norm_); }
  std::int64_t state_floats() const { return sets_ * 3 * dim_; }
  BlockCost cost(const Pass& pass) const {
    return linear_cost(in_, pass) + BlockCost{.state = 2.0 * static_cast<double>(state_floats())};
  }

  struct Work {
    View in, means;
  };
  Work take(Scratch& scratch, std::int64_t n) const {
    return {.in = scratch.take(DType::f32, {n, in_.weight.rows}),
            .means = scratch.take(DType::f32, {n, dim_})};
  }

  // Stores the entries whose last token is in this step. They are in the cache's rows from element `first`
  // on. `state` is the offset of this object's state in the block's state.
  void run(const Step& step, const View& x, std::int64_t state, std::int64_t first, const Work& w) const {
    linear(step, x, in_, w.in);
    step.backend.ops.compress(*step.backend.stream,
                              {.values = w.in.columns(0, sets_ * dim_),
                               .gates = w.in.columns(sets_ * dim_, sets_ * dim_),
                               .bias = bias_.value,
                               .state = state_part(step.memory.states, state, {sets_, 3, dim_}),
                               .plan = step.memory.state_plan,
                               .means = w.means});
    const Frequencies& frequencies = step.rotation.frequencies[rope_];
    step.backend.ops.store_rows(*step.backend.stream, {.x = w.means,
                                                       .norm = norm_.norm(),
                                                       .positions = step.positions(),
                                                       .frequencies = frequencies.each,
                                                       .scale = frequencies.scale,
                                                       .slots = step.memory.entries.slots,
                                                       .cache = step.memory.entries.memory,
                                                       .first = first});
  }

 private:
  std::int64_t dim_, sets_, rate_;
  std::size_t rope_;
  LinearParameter in_;  // values, then gates
  VectorParameter bias_;
  NormParameter norm_;
};

class CompressedAttentionBlock final : public Block {
 public:
  CompressedAttentionBlock(const CompressedAttention& spec, const Namer& name, std::int64_t dim)
      : spec_(spec) {
    const auto tensor = [&](const char* usual, const char* in_gguf) {
      return name.names.behind(name.names.of<CompressedAttention>().prefix, usual, in_gguf);
    };
    down_ = name.linear({tensor("wq_a", "attn_q_a"), tensor("wkv", "attn_kv")}, {spec.q_rank, spec.head_dim},
                        dim, false);
    q_latent_norm_ = name.norm(spec.norm, tensor("q_norm", "attn_q_a_norm"), spec.q_rank);
    q_ = name.linear({tensor("wq_b", "attn_q_b")}, {queries()}, spec.q_rank, false);
    NormSpec own = spec.norm;
    own.stored = false;
    q_norm_ = name.norm(own, "", spec.head_dim);
    kv_norm_ = name.norm(spec.norm, tensor("kv_norm", "attn_kv_a_norm"), spec.head_dim);
    sinks_ = name.vector({name.names.attention.sinks}, {spec.heads});
    if (spec.rate > 0) compressor_.emplace(spec, name, "compressor.", "attn_compressor_", spec.head_dim, dim);
    if (spec.indexer) {
      const Indexer& indexer = *spec.indexer;
      index_compressor_.emplace(spec, name, "indexer.compressor.", "indexer_compressor_", indexer.head_dim,
                                dim);
      index_q_ =
          name.linear({tensor("indexer.wq_b", "indexer.attn_q_b")}, {index_queries()}, spec.q_rank, false);
      index_weights_ =
          name.linear({tensor("indexer.weights_proj", "indexer.proj")}, {indexer.heads}, dim, false);
      index_weights_.weight.use = MatrixUse::router;
    }
    const std::int64_t first = name.shard.first(spec.out_groups);
    for (std::int64_t group = first; group < first + spec.out_groups / name.shard.size; ++group) {
      LinearParameter& part = groups_.emplace_back(
          name.linear({tensor("wo_a", "attn_output_a")}, {std::int64_t{spec.out_groups} * spec.out_rank},
                      group_dim(), false));
      keep_rows(part, {{group * spec.out_rank, spec.out_rank}});
    }
    out_ = name.linear({tensor("wo_b", "attn_output_b")}, {dim},
                       std::int64_t{spec.out_groups} * spec.out_rank, false);
    if (name.shard.size > 1) split(name.shard);
  }

  void list(ParameterList& list) override {
    list.add(down_, q_latent_norm_, q_, q_norm_, kv_norm_, compressor_, index_compressor_, index_q_,
             index_weights_, sinks_, groups_, out_);
  }

  std::optional<CacheNeed> cache() const override {
    return CacheNeed{.window = spec_.window,
                     .q_heads = spec_.heads,
                     .kv_heads = 1,
                     .head_dim = spec_.head_dim,
                     .values_in_keys = spec_.head_dim};
  }
  std::optional<CacheNeed> entries() const override {
    if (spec_.rate == 0) return {};
    return CacheNeed{.q_heads = spec_.heads,
                     .kv_heads = 1,
                     .head_dim = spec_.head_dim + spec_.index_dim(),
                     .values_in_keys = spec_.head_dim,
                     .index_dim = spec_.index_dim(),
                     .rate = spec_.rate};
  }
  std::int64_t state_floats() const override {
    return (compressor_ ? compressor_->state_floats() : 0) +
           (index_compressor_ ? index_compressor_->state_floats() : 0);
  }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard& shard) const override {
    return divides(shard, spec_.out_groups, "groups of heads");
  }

  BlockCost cost(const Pass& pass) const override {
    const auto tokens = static_cast<double>(pass.tokens), context = static_cast<double>(pass.context);
    const double entries = spec_.rate > 0 ? context / spec_.rate : 0,
                 window = std::min<double>(context, spec_.window);
    const double seen = window + (spec_.indexer ? std::min<double>(entries, spec_.indexer->chosen) : entries);
    BlockCost cost = linear_cost(down_, pass) + linear_cost(q_, pass) + linear_cost(out_, pass) +
                     BlockCost{.cached = (seen + tokens) * spec_.head_dim,
                               .operations = 4 * tokens * seen * static_cast<double>(queries())};
    for (const LinearParameter& group : groups_) cost = cost + linear_cost(group, pass);
    if (compressor_) cost = cost + compressor_->cost(pass);
    if (!index_compressor_) return cost;
    return cost + index_compressor_->cost(pass) + linear_cost(index_q_, pass) +
           linear_cost(index_weights_, pass) +
           BlockCost{.cached = entries * spec_.index_dim(),
                     .operations = 2 * tokens * entries * static_cast<double>(index_queries())};
  }

  std::string text() const override {
    std::string text = fmt::format("{} heads over {} tokens of {}, queries of latents of {}", spec_.heads,
                                   spec_.window, spec_.head_dim, spec_.q_rank);
    if (spec_.rate > 0) text += fmt::format(", and entries of {} tokens", spec_.rate);
    if (spec_.indexer)
      text += fmt::format(", {} chosen by {} heads of {}", spec_.indexer->chosen, spec_.indexer->heads,
                          spec_.indexer->head_dim);
    return text;
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const Work w = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    const Frequencies& frequencies = step.rotation.frequencies[static_cast<std::size_t>(spec_.rope)];
    linear(step, x, down_, w.down);
    ops.add_norm(
        stream,
        {.residual = w.down.columns(0, spec_.q_rank), .norm = q_latent_norm_.norm(), .out = w.q_latent});
    linear(step, w.q_latent, q_, w.q);
    const View q = heads_of(w.q, spec_.heads, spec_.head_dim),
               seen = heads_of(w.seen, spec_.heads, spec_.head_dim);
    rotate(step, q, q_norm_.norm(), false);
    ops.store_rows(stream, {.x = w.down.columns(spec_.q_rank, spec_.head_dim),
                            .norm = kv_norm_.norm(),
                            .positions = step.positions(),
                            .frequencies = frequencies.each,
                            .scale = frequencies.scale,
                            .slots = step.memory.cache.slots,
                            .cache = step.memory.cache.memory});
    if (compressor_) compressor_->run(step, x, 0, 0, w.entries);
    if (index_compressor_) choose(step, x, w);
    ops.attention(stream, {.q = q,
                           .cache = step.memory.cache.memory,
                           .plan = *step.memory.cache.plan,
                           .scale = spec_.scale,
                           .window = spec_.window,
                           .sinks = sinks_.value,
                           .chosen = w.chosen,
                           .entries = step.memory.entries.memory,
                           .entry_plan = compressor_ ? step.memory.entries.plan : nullptr,
                           .out = w.seen});
    rotate(step, seen, {}, true);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const auto number = static_cast<std::int64_t>(group);
      linear(step, w.seen.columns(number * group_dim(), group_dim()), groups_[group],
             w.grouped.columns(number * spec_.out_rank, spec_.out_rank));
    }
    linear(step, w.grouped, out_, out);
  }

 private:
  // Keeps this rank's groups of heads, and all latents, keys and entries.
  void split(const Shard& shard) {
    const std::int64_t head = shard.first(spec_.heads), group = shard.first(spec_.out_groups);
    spec_.heads /= shard.size;
    spec_.out_groups /= shard.size;
    keep_rows(q_, {{head * spec_.head_dim, queries()}});
    keep_rows(sinks_, {{head, spec_.heads}});
    keep_columns(out_, group * spec_.out_rank, std::int64_t{spec_.out_groups} * spec_.out_rank, true);
  }

  struct Work {
    View down, q_latent, q, seen, grouped, index_q, index_weights, chosen;
    Compressor::Work entries, index_entries;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    Work w{.down = scratch.take(DType::f32, {n, down_.weight.rows}),
           .q_latent = scratch.take(act, {n, spec_.q_rank}),
           .q = scratch.take(act, {n, queries()}),
           .seen = scratch.take(act, {n, queries()}),
           .grouped = scratch.take(act, {n, std::int64_t{spec_.out_groups} * spec_.out_rank}),
           .index_q = {},
           .index_weights = {},
           .chosen = {},
           .entries = compressor_ ? compressor_->take(scratch, n) : Compressor::Work{},
           .index_entries = index_compressor_ ? index_compressor_->take(scratch, n) : Compressor::Work{}};
    if (!spec_.indexer) return w;
    w.index_q = scratch.take(act, {n, index_queries()});
    w.index_weights = scratch.take(DType::f32, {n, spec_.indexer->heads});
    w.chosen = scratch.take(DType::i32, {n, spec_.indexer->chosen});
    return w;
  }

  std::int64_t queries() const { return std::int64_t{spec_.heads} * spec_.head_dim; }
  std::int64_t index_queries() const { return std::int64_t{spec_.indexer->heads} * spec_.indexer->head_dim; }
  std::int64_t group_dim() const { return queries() / spec_.out_groups; }
  static View heads_of(const View& rows, std::int64_t heads, std::int64_t dim) {
    return View::of(rows.data, rows.dtype, {rows.size(0), heads, dim});
  }

  void rotate(const Step& step, const View& heads, const Norm& norm, bool back) const {
    const Frequencies& frequencies = step.rotation.frequencies[static_cast<std::size_t>(spec_.rope)];
    step.backend.ops.rotate_ends(*step.backend.stream, {.x = heads,
                                                        .norm = norm,
                                                        .positions = step.positions(),
                                                        .frequencies = frequencies.each,
                                                        .scale = frequencies.scale,
                                                        .back = back});
  }

  // Selects the entries that each query sees. Scores are not scaled, because a positive factor does not
  // change the selection.
  void choose(const Step& step, const View& x, const Work& w) const {
    const View q = heads_of(w.index_q, spec_.indexer->heads, spec_.indexer->head_dim);
    index_compressor_->run(step, x, compressor_->state_floats(), spec_.head_dim, w.index_entries);
    linear(step, w.q_latent, index_q_, w.index_q);
    linear(step, x, index_weights_, w.index_weights);
    rotate(step, q, {}, false);
    step.backend.ops.choose_tokens(*step.backend.stream, {.q = q,
                                                          .weights = w.index_weights,
                                                          .cache = step.memory.entries.memory,
                                                          .plan = *step.memory.entries.plan,
                                                          .chosen = w.chosen});
  }

  CompressedAttention spec_;
  LinearParameter down_;  // latent of the queries, then the key
  NormParameter q_latent_norm_, q_norm_, kv_norm_;
  LinearParameter q_, index_q_, index_weights_, out_;
  std::optional<Compressor> compressor_, index_compressor_;
  VectorParameter sinks_;
  std::vector<LinearParameter> groups_;  // one matrix per group of heads
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const CompressedAttention& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<CompressedAttentionBlock>(spec, name, dim);
}

CompressedAttention::Names CompressedAttention::Names::of_gguf(const GgufLayers&) {
  return {
      .prefix = "",
  };
}

}  // namespace octavo
