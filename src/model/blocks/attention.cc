#include <algorithm>
#include <cmath>

#include "dist/process_group.h"
#include "model/blocks/block.h"
#include "model/blocks/distance_bias.h"
#include "model/blocks/fixed_keys.h"
#include "model/blocks/qkv_rows.h"
#include "model/blocks/sparse_attention.h"

namespace octavo {
namespace {

// Makes the biases of the gates' rows, one number per head, which follow the rows of queries, keys and
// values.
VectorParameter gate_biases(const Attention& a, const Namer& name) {
  VectorParameter bias = name.vector({name.names.attention.gate_bias}, {a.q_heads});
  bias.size = a.qkv_dim() + a.q_dim();
  bias.order = {{-1, a.qkv_dim()}};
  for (std::int64_t head = 0; head < a.q_heads; ++head)
    bias.order.insert(bias.order.end(), static_cast<std::size_t>(a.head_dim), RowRange{head, 1});
  return bias;
}

// Returns the norm of queries or of keys, which have `heads` heads.
NormParameter head_norm(const Attention& a, const Namer& name, const std::string& tensor, int heads) {
  if (a.norms.qk_kind == QkNorm::none) return {};
  if (a.norms.qk_kind != QkNorm::per_head)
    return name.norm(a.norms.qk, tensor,
                     a.norms.qk_kind == QkNorm::whole_row ? heads * a.head_dim : a.head_dim);
  NormParameter p{.spec = a.norms.qk, .weight = {}, .bias = {}};
  if (tensor.find("{}") == std::string::npos) {
    p.weight = name.rows_of_vectors({tensor + ".weight"}, heads, a.head_dim);
    return p;
  }
  std::vector<std::string> parts;
  for (int head = 0; head < heads; ++head)
    parts.push_back(fmt::format(fmt::runtime(tensor + ".weight"), head));
  p.weight = name.vector(parts, std::vector<std::int64_t>(parts.size(), a.head_dim));
  p.weight.row = a.head_dim;
  return p;
}

NormParameter plain_norm(const Attention& a, const Namer& name) {
  NormSpec norm = a.norms.qk;
  norm.stored = false;
  return name.norm(norm, "", a.head_dim);
}

NumberChange square_of(float factor) {
  return [factor](float x) { return (factor * x) * (factor * x); };
}

NormParameter query_norm(const Attention& a, const Namer& name) {
  if (a.norms.k_only) return {};
  if (a.norms.q_plain) return plain_norm(a, name);
  if (a.norms.square == 0) return head_norm(a, name, name.names.attention.q_norm, a.q_heads);
  NormParameter p{
      .spec = a.norms.qk, .weight = name.vector({name.names.attention.q_norm}, {a.q_dim()}), .bias = {}};
  p.weight.row = a.head_dim;
  p.weight.change = square_of(a.norms.square);
  return p;
}

NormParameter key_norm(const Attention& a, const Namer& name) {
  if (a.source >= 0) return {};
  return a.norms.square != 0 ? plain_norm(a, name)
                             : head_norm(a, name, name.names.attention.k_norm, a.kv_heads);
}

// Number of (query, key) pairs for the first `n` tokens of a sequence with causal attention.
double seen_by_first(std::int64_t n, std::int64_t window) {
  const auto triangle = [](double k) { return k * (k + 1) / 2; };
  if (window == 0 || n <= window) return triangle(static_cast<double>(n));
  return triangle(static_cast<double>(window)) + static_cast<double>((n - window) * window);
}

// Number of (query, key) pairs without causal mask. It is slightly too high, because tokens near the ends of
// a sequence see fewer keys.
double seen_both_ways(const Pass& pass, std::int64_t window) {
  const std::int64_t each = window == 0 ? pass.context : std::min(pass.context, 2 * window - 1);
  return static_cast<double>(pass.tokens * each);
}

class AttentionBlock final : public Block {
 public:
  AttentionBlock(const Attention& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        q_norm_(query_norm(spec, name)),
        v_norm_(name.norm(spec.norms.v, "", spec.head_dim)),
        k_norm_(key_norm(spec, name)),
        out_norm_(name.norm(spec.norms.out, "", spec.q_dim())) {
    const Names& names = name.names;
    const std::int64_t input_dim = spec.input_dim > 0 ? spec.input_dim : dim;
    const std::vector<std::int64_t> rows = qkv_rows(spec, names.attention.qkv.size());
    const std::int64_t first = spec.q_rank > 0 ? 1 : 0;
    qkv_ = name.linear(
        {names.attention.qkv.begin() + first, names.attention.qkv.begin() + first + std::ssize(rows)}, rows,
        input_dim, spec.biases.qkv);
    if (spec.q_rank > 0) {
      q_down_ = name.linear({names.of<LatentAttention>().q_down}, {spec.q_rank}, input_dim, false);
      q_latent_norm_ = name.norm(spec.q_latent_norm, names.of<LatentAttention>().q_norm, spec.q_rank);
      q_up_ = name.linear({names.of<LatentAttention>().q_up}, {spec.q_dim()}, spec.q_rank, false);
    }
    if (spec.keys_are_values && spec.source < 0) {
      const RowRange keys{spec.q_dim(), spec.kv_dim()};
      qkv_.weight.order = qkv_.bias.order = {{0, spec.q_dim()}, keys, keys};
      qkv_.weight.rows = spec.qkv_dim();
      if (spec.biases.qkv) qkv_.bias.size = spec.qkv_dim();
    }
    if (const std::vector<RowRange> order = qkv_order(spec, names.attention); !order.empty())
      qkv_.weight.order = qkv_.bias.order = order;
    if (spec.value_dim > 0) {
      qkv_.weight.rows = spec.qkv_dim();
      if (spec.biases.qkv) qkv_.bias.size = spec.qkv_dim();
    }
    if (spec.biases.gate) qkv_.bias = gate_biases(spec, name);
    if (spec.gate_square != 0)
      qkv_.weight.scales = {{},
                            {},
                            {},
                            {.slot = name.vector({names.attention.gate_scale}, {spec.q_dim()}).parts[0],
                             .change = square_of(spec.gate_square)}};
    if (names.bounded) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        apart_.push_back(name.linear({names.attention.qkv[i]}, {rows[i]}, input_dim, spec.biases.qkv));
      qkv_.weight.parts.clear();
    }
    if (spec.rope_by_halves) rotate_as_one();
    if (spec.biases.qkv && !spec.biases.k) {
      qkv_.bias.parts.erase(qkv_.bias.parts.begin() + 1);
      qkv_.bias.order = {{0, spec.q_dim()}, {-1, spec.kv_dim()}, {spec.q_dim(), spec.kv_dim()}};
    }
    if (spec.scores.fixed_keys > 0) fixed_.emplace(spec, name);
    if (spec.scores.sinks) sinks_ = name.vector({names.attention.sinks}, {spec.q_heads});
    set_slopes(spec.scores.slopes);
    if (spec.scores.distance_bias.buckets > 0) distance_bias_ = distance_bias(spec, name);
    out_ = name.linear({names.attention.out}, {dim}, std::int64_t{spec.q_heads} * spec.stored_value_dim(),
                       spec.biases.out);
    if (spec.value_dim > 0) {
      out_.weight.stored_run_cols = spec.value_dim;
      out_.weight.run_cols = spec.head_dim;
      out_.weight.cols = spec.q_dim();
    }
    if (spec.head_gate) head_gate_ = name.linear({names.attention.head_gate}, {spec.q_heads}, dim, false);
    if (!names.attention.out_scale.empty())
      out_.scale_by(name.vector({names.attention.out_scale}, {dim}).parts[0]);
    if (name.shard.size > 1) split(name.shard);
    if (spec.clip > 0) {
      const std::vector<float> most(static_cast<std::size_t>(spec_.qkv_dim()), spec.clip);
      bounds_ = {.least = constant_vector(std::vector<float>(most.size(), -spec.clip)), .most = constant_vector(most)};
    }
  }

  void list(ParameterList& list) override {
    list.add(q_down_, q_latent_norm_, q_up_, qkv_, apart_, q_norm_, k_norm_, v_norm_, out_norm_, sinks_,
             slopes_, distance_bias_, bounds_, head_gate_, out_);
    if (fixed_) fixed_->list(list);
  }

  void loaded() override {
    if (fixed_) fixed_->normalise(k_norm_);
    if (const View biases = distance_bias_.value)
      distance_bias_.value = View::of(biases.data, biases.dtype, {spec_.q_heads, biases.elements() / spec_.q_heads});
  }

  std::optional<CacheNeed> cache() const override {
    if (spec_.source >= 0) return {};
    return CacheNeed{.window = spec_.mask.window,
                     .q_heads = spec_.q_heads,
                     .kv_heads = spec_.kv_heads,
                     .head_dim = spec_.head_dim,
                     .causal = spec_.mask.causal,
                     .local = spec_.mask.local};
  }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard& shard) const override {
    if (spec_.norms.qk_kind == QkNorm::whole_row && spec_.norms.qk.kind != NormKind::rms)
      return not_split("norms over the queries of all heads that are not RMS norms");
    if (spec_.q_rank > 0) return not_split("queries of a latent in plain attention");
    if (fixed_) return not_split("fixed keys");
    if (spec_.norms.out.kind != NormKind::none) return not_split("norms over the outputs of all heads");
    if (spec_.source >= 0 || spec_.keys_are_values) return not_split("keys and values that are shared");
    TRY_VOID(divides(shard, spec_.q_heads, "query heads"));
    return shard.size % spec_.kv_heads == 0 ? Result<>() : divides(shard, spec_.kv_heads, "key heads");
  }
  bool spans_layers() const override { return spec_.source >= 0; }
  std::vector<Need> needs() const override {
    return fixed_ ? std::vector{Need::fixed_keys} : std::vector<Need>();
  }

  BlockCost cost(const Pass& pass) const override {
    const std::int64_t window = spec_.mask.window;
    const double seen = spec_.mask.causal ? seen_by_first(pass.context, window) -
                                                seen_by_first(pass.context - pass.tokens, window)
                                          : seen_both_ways(pass, window);
    const std::int64_t read = window > 0 ? std::min(pass.context, window + pass.tokens - 1) : pass.context;
    const std::int64_t written = spec_.source < 0 ? pass.tokens : 0;
    const BlockCost attention{.cached = 2 * static_cast<double>(read + written) * spec_.kv_dim(),
                              .operations = 4 * seen * spec_.q_dim()};
    return linear_cost(q_down_, pass) + linear_cost(q_up_, pass) + linear_cost(qkv_, pass) + attention +
           linear_cost(head_gate_, pass) + linear_cost(out_, pass);
  }

  std::string text() const override {
    std::string text =
        fmt::format("{} query and {} key heads of {}", spec_.q_heads, spec_.kv_heads, spec_.head_dim);
    if (spec_.q_rank > 0) text += fmt::format(", queries of {}", spec_.q_rank);
    if (spec_.norms.qk_kind != QkNorm::none) text += ", normed";
    if (spec_.keys_are_values) text += ", keys are values";
    if (spec_.source >= 0) text += fmt::format(", cache of layer {}", spec_.source);
    if (!spec_.mask.causal) text += ", both ways";
    if (spec_.mask.local) text += ", in windows";
    if (spec_.mask.chunk > 0) text += fmt::format(", chunks of {}", spec_.mask.chunk);
    if (spec_.mask.window > 0 && spec_.mask.chunk == 0) text += fmt::format(", window {}", spec_.mask.window);
    if (!spec_.scores.slopes.empty())
      text += spec_.scores.root_distances > 0 ? ", ALiBi of roots" : ", ALiBi";
    if (spec_.scores.distance_bias.buckets > 0)
      text += fmt::format(", biases of {} distances", spec_.scores.distance_bias.buckets);
    if (spec_.scores.sinks) text += ", sinks";
    if (fixed_) text += fmt::format(", {} fixed keys", spec_.scores.fixed_keys);
    if (spec_.output_gate || spec_.head_gate) text += ", gated";
    if (spec_.clip > 0) text += fmt::format(", clipped at {}", spec_.clip);
    if (spec_.value_dim > 0) text += fmt::format(", values of {}", spec_.value_dim);
    if (spec_.scores.soft_cap > 0) text += fmt::format(", scores capped at {}", spec_.scores.soft_cap);
    return text;
  }

  void store_rows(const Step& step, const View& x) const override { project(step, x); }

  void run(const Step& step, const View& x, const View& out) const override {
    const auto [qkv, q, attended, gates, low, latent, within, squares] = project(step, x);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    if (spec_.scores.temperature) {
      const View rows = View::of(q.data, q.dtype, {step.tokens(), spec_.q_dim()});
      ops.scale_rows(stream,
                     {.x = rows, .factors = step.rotation.temperatures, .rows = step.positions(), .y = rows});
    }
    View chosen;
    if (spec_.mask.chosen_blocks > 0) {
      const View rows = step.slot<ChosenBlocks>();
      chosen = View::of(rows.data, rows.dtype, {step.tokens(), spec_.kv_heads, spec_.mask.chosen_blocks});
    }
    const auto attend = [&](std::int64_t first, std::int64_t count, const AttentionPlan& plan, bool causal) {
      ops.attention(stream, {.q = q.rows(first, count),
                             .cache = step.memory.cache.memory,
                             .plan = plan,
                             .scale = spec_.scores.scale,
                             .causal = causal,
                             .window = spec_.mask.window,
                             .chunk = spec_.mask.chunk,
                             .soft_cap = spec_.scores.soft_cap,
                             .slopes = slopes_.value,
                             .distance_bias = distance_bias_.value,
                             .sinks = sinks_.value,
                             .fixed_keys = fixed_ ? fixed_->keys() : View{},
                             .fixed_values = fixed_ ? fixed_->values() : View{},
                             .chosen = chosen ? chosen.rows(first, count) : View{},
                             .chosen_tokens = spec_.mask.block_tokens > 0 ? spec_.mask.block_tokens : 1,
                             .out = attended.rows(first, count)});
    };
    attend(0, step.tokens(), *step.memory.cache.plan, spec_.mask.causal);
    // Computes attention again for tokens of images, which also see later tokens of the same image.
    if (spec_.mask.whole_images)
      for (const WholeSpan& span : step.batch.wholes)
        attend(span.token, span.count, *span.plans[step.memory.group], false);
    if (spec_.output_gate)
      ops.gate(stream, {.x = attended,
                        .gate = qkv.columns(spec_.qkv_dim(), spec_.q_dim()),
                        .norm = out_norm_.norm(),
                        .gate_first = true,
                        .activation = spec_.gate,
                        .y = attended});
    if (spec_.head_gate) gate_heads(step, x, head_gate_, gates, attended, spec_.gate);
    linear(step, attended, out_, out);
  }

 private:
  // Swaps the two middle quarters of each head's queries and keys. Then rotating a head rotates both halves
  // like separate heads (Attention::rope_by_halves).
  void rotate_as_one() {
    const std::int64_t quarter = spec_.head_dim / 4;
    const auto rotated = [&](std::int64_t heads) {
      std::vector<RowRange> rows;
      for (std::int64_t head = 0; head < heads; ++head)
        for (const std::int64_t part : {0, 2, 1, 3}) rows.push_back({(4 * head + part) * quarter, quarter});
      return rows;
    };
    if (apart_.empty()) {
      qkv_.weight.order = rotated(spec_.q_heads + spec_.kv_heads);
      qkv_.weight.order.push_back({spec_.q_dim() + spec_.kv_dim(), spec_.kv_dim()});
    } else {
      apart_[0].weight.order = rotated(spec_.q_heads);
      apart_[1].weight.order = rotated(spec_.kv_heads);
    }
    for (NormParameter* norm : {&q_norm_, &k_norm_})
      for (const std::int64_t part : {0, 2, 1, 3}) norm->weight.order.push_back({part * quarter, quarter});
  }

  struct Work {
    View qkv, q, attended, gates, low, latent, bounded, squares;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.qkv = scratch.take(act, {n, q_up_.weight.rows + qkv_.weight.rows}),
            .q = scratch.take(act, {n, spec_.q_heads, spec_.head_dim}),
            .attended = scratch.take(act, {n, spec_.q_dim()}),
            .gates = scratch.take(DType::f32, {n, head_gate_.weight.rows}),
            .low = scratch.take(DType::f32, {n, spec_.q_rank}),
            .latent = scratch.take(act, {n, spec_.q_rank}),
            .bounded = scratch.take(act, {n, apart_.empty() ? 0 : apart_[0].weight.cols}),
            .squares = scratch.take(DType::f32, {over_ranks_ ? n : 0, 2})};
  }

  // Computes queries, keys and values of each token into one row of work.qkv, which qkv_store() reads.
  void multiply(const Step& step, const View& x, const Work& work) const {
    if (!apart_.empty()) return multiply_each(step, x, work);
    if (spec_.q_rank == 0) return linear(step, x, qkv_, work.qkv);
    linear(step, x, q_down_, work.low);
    step.backend.ops.add_norm(*step.backend.stream,
                              {.residual = work.low, .norm = q_latent_norm_.norm(), .out = work.latent});
    linear(step, work.latent, q_up_, work.qkv.columns(0, spec_.q_dim()));
    linear(step, x, qkv_, work.qkv.columns(spec_.q_dim(), 2 * std::int64_t{spec_.kv_dim()}));
  }

  // Computes queries, keys and values as three products, because each product clamps its input to different
  // limits.
  void multiply_each(const Step& step, const View& x, const Work& work) const {
    std::int64_t first = 0;
    for (const LinearParameter& part : apart_) {
      step.backend.device->copy(*step.backend.stream, work.bounded, x);
      linear(step, work.bounded, part, work.qkv.columns(first, part.weight.rows));
      first += part.weight.rows;
    }
  }

  Work project(const Step& step, const View& x) const {
    Scratch scratch = step.scratch;
    const Work work = take(scratch, step.tokens(), x.dtype);
    multiply(step, x, work);
    if (bounds_.least.value) {
      const View qkv = work.qkv.columns(0, spec_.qkv_dim());
      step.backend.ops.clamp(*step.backend.stream,
                             {.x = qkv, .least = bounds_.least.value, .most = bounds_.most.value, .y = qkv});
    }
    if (over_ranks_) norm_over_ranks(step, work);
    step.backend.ops.qkv_store(
        *step.backend.stream, {.qkv = work.qkv.columns(0, spec_.source < 0 ? spec_.qkv_dim() : spec_.q_dim()),
                               .q_heads = spec_.q_heads,
                               .q_norm = over_ranks_ ? Norm() : q_norm_.norm(),
                               .k_norm = over_ranks_ ? Norm() : k_norm_.norm(),
                               .norm_whole_row = spec_.norms.qk_kind == QkNorm::whole_row && !over_ranks_,
                               .norm_rotated = spec_.norms.qk_after_rope,
                               .v_norm = v_norm_.norm(),
                               .stores = spec_.source < 0,
                               .rope = step.rope(spec_.rope),
                               .slots = step.memory.cache.slots,
                               .cache = step.memory.cache.memory,
                               .q_out = work.q});
    return work;
  }

  // Applies RMS norms over the queries and keys of all heads on all ranks. Each rank computes its part of the
  // sum of squares.
  void norm_over_ranks(const Step& step, const Work& work) const {
    struct Part {
      View rows;
      const NormParameter& norm;
      // fraction of this rank's sum of squares that this rank adds, because several ranks may have the same
      // heads
      double share;
      std::int64_t all;
    };
    const Part parts[] = {
        {work.qkv.columns(0, spec_.q_dim()), q_norm_, 1, over_ranks_->q_dim},
        {work.qkv.columns(spec_.q_dim(), spec_.kv_dim()), k_norm_, over_ranks_->key_share, over_ranks_->kv_dim}};
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    const auto sums = [&](const Part& part) { return work.squares.columns(&part - parts, 1); };
    for (const Part& part : parts)
      ops.sum_squares(stream, {.x = part.rows, .factor = part.share, .sums = sums(part)});
    step.ranks->all_reduce({work.squares.as<float>(), static_cast<std::size_t>(2 * step.tokens())});
    for (const Part& part : parts)
      ops.norm_by_squares(stream, {.x = part.rows,
                                   .sums = sums(part),
                                   .count = part.all,
                                   .eps = static_cast<float>(part.norm.spec.eps),
                                   .weight = part.norm.weight.value});
  }

  // Keeps this rank's query heads with their KV heads. If there are fewer KV heads than ranks, several ranks
  // have the same KV head.
  void split(const Shard& shard) {
    const Attention whole = spec_;
    spec_.q_heads /= shard.size;
    spec_.kv_heads = std::max(1, spec_.kv_heads / shard.size);
    const std::int64_t first_q = shard.first(whole.q_dim());
    const std::int64_t first_kv = std::int64_t{shard.rank} * whole.kv_heads / shard.size * whole.head_dim;
    std::vector<RowRange> rows{{first_q, spec_.q_dim()},
                               {whole.q_dim() + first_kv, spec_.kv_dim()},
                               {whole.q_dim() + whole.kv_dim() + first_kv, spec_.kv_dim()}};
    if (whole.output_gate) rows.push_back({whole.qkv_dim() + first_q, spec_.q_dim()});
    keep_rows(qkv_, rows);
    keep_columns(out_, first_q, spec_.q_dim(), shard.rank == 0);
    const RowRange own_heads{shard.first(whole.q_heads), spec_.q_heads};
    if (whole.norms.qk_kind == QkNorm::per_head) {
      keep_rows(q_norm_.weight, {own_heads});
      keep_rows(k_norm_.weight, {{first_kv / whole.head_dim, spec_.kv_heads}});
    }
    if (whole.norms.qk_kind == QkNorm::whole_row) {
      keep_rows(q_norm_.weight, {rows[0]});
      keep_rows(k_norm_.weight, {{first_kv, spec_.kv_dim()}});
      over_ranks_ = OverRanks{whole.q_dim(), whole.kv_dim(),
                              static_cast<double>(whole.kv_heads) / (spec_.kv_heads * shard.size)};
    }
    if (whole.scores.sinks) keep_rows(sinks_, {own_heads});
    if (whole.head_gate) keep_rows(head_gate_, {own_heads});
    if (whole.scores.slopes.empty()) return;
    const auto first = whole.scores.slopes.begin() + own_heads.begin;
    set_slopes({first, first + spec_.q_heads});
  }

  void set_slopes(const std::vector<float>& slopes) {
    if (slopes.empty()) return;
    if (spec_.scores.root_distances > 0)
      distance_bias_ = root_biases(slopes, spec_.scores.root_distances - 1);
    else
      slopes_ = constant_vector(slopes);
  }

  struct OverRanks {
    std::int64_t q_dim, kv_dim;
    double key_share;
  };

  Attention spec_;
  std::optional<OverRanks> over_ranks_;
  std::optional<FixedKeys> fixed_;
  NormParameter q_norm_, v_norm_, k_norm_, out_norm_, q_latent_norm_;
  VectorParameter sinks_, slopes_, distance_bias_;
  BoundsParameter bounds_;         // if Attention::clip > 0
  LinearParameter head_gate_;      // if Attention::head_gate
  // used if Attention::q_rank > 0; qkv_ then has only the rows of keys and values
  LinearParameter q_down_, q_up_;
  LinearParameter qkv_, out_;
  // used instead of qkv_ if Names::bounded: one product each for queries, keys and values
  std::vector<LinearParameter> apart_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const Attention& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<AttentionBlock>(spec, name, dim);
}

}  // namespace octavo
