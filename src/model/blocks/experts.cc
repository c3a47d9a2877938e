// Mixture of experts: a router selects a few of many MLPs for each token.
#include <cmath>
#include <string_view>

#include "model/adapter.h"
#include "model/blocks/block.h"
#include "model/blocks/expert_exchange.h"
#include "model/blocks/expert_spread.h"
#include "model/gguf/layers.h"
#include "model/residual/residual.h"

namespace octavo {
namespace {

// The matrices of all experts for one product: up or down.
struct ExpertProjection {
  std::vector<MatrixParameter> matrices;
  VectorParameter bias;
  std::vector<const Weight*> weights;  // `matrices` after loading; empty before
};

class ExpertsBlock final : public Block {
 public:
  ExpertsBlock(const Experts& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        flat_(name.names.of<Experts>().storage == ExpertStorage::flat),
        dim_(dim),
        inner_(spec.latent > 0 ? spec.latent : dim),
        shard_(name.shard) {
    const Names& names = name.names;
    const Mlp& mlp = spec.expert;
    router_ = name.linear({names.of<Experts>().router}, {choices()}, dim, spec.router_bias);
    router_.weight.use = MatrixUse::router;
    if (spec.choice_bias) choice_bias_ = name.vector({names.of<Experts>().choice_bias}, {choices()});
    if (spec.choice_bias && names.of<Experts>().choice_bias_row) choice_bias_.parts[0].shape = {1, choices()};
    up_.matrices = name.experts(names.of<Experts>().up, spec.count, mlp.up_dim(), inner_);
    down_.matrices = name.experts({names.of<Experts>().down}, spec.count, inner_, mlp.hidden, true);
    if (spec.latent > 0) {
      latent_ = name.linear({names.of<Experts>().latent}, {inner_}, dim, false);
      lift_ = name.linear({names.of<Experts>().lift}, {dim}, inner_, false);
    }
    if (mlp.up_bias) up_.bias = name.rows_of_vectors(names.of<Experts>().up_bias, spec.count, mlp.up_dim());
    if (mlp.down_bias) down_.bias = name.rows_of_vectors({names.of<Experts>().down_bias}, spec.count, inner_);
    if (spec.sum_bias) sum_bias_ = name.vector({names.of<Experts>().sum_bias}, {dim});
    if (spec.vocab > 0) {
      table_ = name.rows_of_vectors({names.of<Experts>().table}, spec.vocab, spec.router.chosen);
      table_.below = spec.count;
      table_.parts[0].integers = true;
    }
    if (spec.scales) scales_ = name.vector({names.of<Experts>().scales}, {spec.count});
    if (reads_residual()) {
      router_norm_ = {.spec = spec.router_norm,
                      .weight = name.vector({names.of<Experts>().router_norm}, {dim}),
                      .bias = {}};
      router_norm_.weight.factors = {{0, dim, 1 / std::sqrt(static_cast<float>(dim))}};
    }
    if (names.of<Experts>().interleaved) {
      up_.bias.order = {{0, mlp.hidden, 2}, {1, mlp.hidden, 2}};
      for (MatrixParameter& up : up_.matrices) up.order = up_.bias.order;
    }
    if (name.shard.rank > 0) sum_bias_ = {};
    if (name.shard.whole_experts) {
      if (name.shard.expert_ranks() > 1) spread(name.shard);
    } else if (name.shard.size > 1) {
      keep_part_of_each(name.shard);
    }
    if (mlp.limit > 0 && mlp.activation != Activation::swigluoai) bounds_ = gate_bounds(spec_.expert);
    if (!spec.shared) return;
    shared_ =
        make_mlp(*spec.shared, name, dim, names.of<Experts>().shared_up, names.of<Experts>().shared_down);
    if (!spec.shared_gate) return;
    shared_gate_ = name.linear({names.of<Experts>().shared_gate}, {1}, dim, false);
    shared_gate_.weight.use = MatrixUse::router;
  }

  void list(ParameterList& list) override {
    list.add(router_norm_, router_, choice_bias_, table_, bounds_, scales_, latent_);
    for (std::size_t e = 0; e < up_.matrices.size(); ++e) {
      list.add(up_.matrices[e], down_.matrices[e]);
    }
    list.experts.push_back({&up_.matrices, spec_.router.chosen});
    list.experts.push_back({&down_.matrices, spec_.router.chosen});
    list.add(up_.bias, down_.bias, sum_bias_, lift_, shared_, shared_gate_);
  }

  void loaded() override {
    for (const MatrixParameter& up : up_.matrices) up_.weights.push_back(up.weight.get());
    for (const MatrixParameter& down : down_.matrices) down_.weights.push_back(down.weight.get());
    if (!spread_) return;
    std::vector<std::vector<const Weight*>> matrices;
    for (std::size_t i = 0; i < up_.matrices.size(); ++i)
      matrices.push_back({up_.weights[i], down_.weights[i]});
    spread_->loaded(std::move(matrices));
  }

  ExpertSpread* experts_over_ranks() const override { return spread_.get(); }

  void reserve(Arena arena) const override {
    take(arena.scratch, tokens_of(arena.tokens), arena.activation);
    if (shared_) shared_->reserve(arena);
  }

  Result<> splits(const Shard& shard) const override {
    if (shared_) TRY_VOID(shared_->splits(shard));
    if (shard.whole_experts) return spreads(shard);
    if (flat_)
      return not_split("experts stored in one matrix, unless --enable-expert-parallel keeps them whole");
    const std::int64_t hidden = spec_.expert.hidden;
    return shard.together(hidden) > 1 ? Result<>() : divides(shard, hidden, "hidden units of an expert");
  }

  // Assumes that all experts are selected equally often.
  BlockCost cost(const Pass& pass) const override {
    const auto tokens = static_cast<double>(pass.tokens), count = static_cast<double>(spec_.count);
    const double chosen = spec_.router.chosen * count / static_cast<double>(choices());
    const double met = count * (1 - std::pow(1 - chosen / count, tokens));
    const auto expert = static_cast<double>(up_.matrices[0].elements() + down_.matrices[0].elements());
    BlockCost cost = linear_cost(router_, pass) + linear_cost(shared_gate_, pass) +
                     linear_cost(latent_, pass) + linear_cost(lift_, pass);
    if (shared_) cost = cost + shared_->cost(pass);
    return cost + BlockCost{.weights = met * expert, .operations = 2 * tokens * chosen * expert};
  }

  std::string text() const override {
    const Mlp& mlp = spec_.expert;
    std::string text = fmt::format("{} of {} experts, MLP {} {}{}", spec_.router.chosen, spec_.count,
                                   mlp.hidden, mlp.gated ? "gated " : "", name(mlp.activation));
    if (spec_.identities > 0) text += fmt::format(" beside {} that do nothing", spec_.identities);
    if (spec_.latent > 0) text += fmt::format(" of a latent of {}", spec_.latent);
    if (shared_) text += fmt::format(", and a shared {}", shared_->text());
    return text;
  }

  void run(const Step& step, const View& x, const View& out) const override {
    // The shared expert uses the workspaces that remain after take().
    Step rest = step;
    const Work w = take(rest.scratch, tokens_of(step), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    if (reads_residual())
      ops.add_norm(stream,
                   {.residual = step.residual.rows(), .norm = router_norm_.norm(), .out = w.router_x});
    linear(step, reads_residual() ? w.router_x : x, router_, w.logits);
    if (spec_.vocab > 0) {
      const View ids = step.batch.ids.rows(step.rows.first, step.rows.count);
      ops.gather_rows(stream, {.x = table_.value, .rows = ids, .out = w.given});
    }
    const RouteArgs routed{.logits = w.logits,
                           .bias = choice_bias_.value,
                           .scales = scales_.value,
                           .given = w.given,
                           .rule = spec_.router,
                           .weights = w.weights,
                           .pair_rows = w.pair_rows,
                           .tokens = w.tokens,
                           .starts = w.starts};
    ops.route(stream, routed);
    if (spec_.weigh_input) {
      const View factors = View::of(w.weights.data, DType::f32, {step.tokens()});
      ops.scale_rows(stream, {.x = x, .factors = factors, .y = w.weighed});
    }
    if (spec_.latent > 0) linear(step, x, latent_, w.latent);
    const View expert_x = spec_.latent > 0 ? w.latent : spec_.weigh_input ? w.weighed : x;
    const View y = run_chosen(step, w, expert_x, routed);
    if (shared_) shared_->run(rest, x, w.shared);
    // Clamping x to [bias, bias] sets each row to the bias, which combine() then adds.
    if (sum_bias_.value)
      ops.clamp(stream, {.x = x, .least = sum_bias_.value, .most = sum_bias_.value, .y = w.shared});
    if (spec_.shared_gate) linear(step, x, shared_gate_, w.gate);
    // If experts are spread over ranks, rank 0 of the engine has the outputs of all experts.
    const bool adds = !spread_ || shard_.rank == 0;
    // `out` is f32 and x is not: the outputs of the ranks are added up later
    const bool sums_follow = out.dtype != x.dtype;
    const std::int64_t chosen = adds ? spec_.router.chosen : 0;
    // the sum is projected to the network's width before the shared expert is added
    const bool lifts = spec_.latent > 0;
    ops.combine(stream, {.y = y.rows(0, step.tokens() * chosen),
                         .pair_rows = w.pair_rows.columns(0, chosen),
                         .weights = spec_.weigh_input ? View{} : w.weights.columns(0, chosen),
                         .shared = (shared_ && !lifts) || sum_bias_.value ? w.shared : View{},
                         .shared_gate = spec_.shared_gate ? w.gate : View{},
                         .out = lifts || sums_follow ? w.joined : out});
    if (lifts) {
      linear(step, w.joined, lift_, sums_follow ? out : w.lifted);
      ops.add_norm(stream, {.residual = sums_follow ? out : w.lifted,
                            .delta = shared_ ? w.shared : View{},
                            .out = sums_follow ? View{} : out});
      return;
    }
    if (!sums_follow) return;
    step.backend.device->clear(stream, out);
    ops.add_norm(stream, {.residual = out, .delta = w.joined});
  }

  // Returns an error unless each rank can have some complete experts.
  Result<> spreads(const Shard& shard) const override {
    const std::string_view field = shard.engines > 1 ? "data_parallel_size" : "tensor_parallel_size";
    if (spec_.identities > 0) return not_split("experts that do nothing, with --enable-expert-parallel");
    if (spec_.count < shard.expert_ranks())
      return invalid(field, "{} {}, but the model has {} experts",
                     shard.engines > 1 ? "times tensor_parallel_size is" : "is", shard.expert_ranks(),
                     spec_.count);
    if (const int most = spec_.count * (shard.expert_ranks() - 1); shard.redundant_experts > most)
      return invalid("eplb_config",
                     "num_redundant_experts is {}, but {} experts on {} ranks allow at most {}",
                     shard.redundant_experts, spec_.count, shard.expert_ranks(), most);
    return {};
  }

  void assist(const Step& step) const override {
    Step rest = step;
    const Work w = take(rest.scratch, tokens_of(step), step.experts->activation());
    step.backend.device->clear(*step.backend.stream, w.starts);
    run_for_all(step, w, w.own,
                {.logits = {},
                 .rule = spec_.router,
                 .weights = {},
                 .pair_rows = w.pair_rows,
                 .tokens = w.tokens,
                 .starts = w.starts});
  }

 private:
  std::int64_t choices() const { return std::int64_t{spec_.count} + spec_.identities; }

  // Numbers of tokens in a step: this engine's, the maximum over engines, and the sum over engines.
  struct Tokens {
    std::int64_t own, most, all;
  };
  Tokens tokens_of(const Step& step) const {
    const std::int64_t n = step.tokens();
    if (step.experts == nullptr) return {n, 0, n};
    return {n, step.experts->most_tokens(), step.experts->tokens()};
  }
  Tokens tokens_of(std::int64_t limit) const {
    return {limit, shard_.engines > 1 ? limit : 0, limit * shard_.engines};
  }

  struct Work {
    View router_x, logits, given, weights, pair_rows, tokens, starts, weighed, latent, up, hidden, down,
        everyone, sent, own, shared, gate, joined, lifted;
    struct {
      View tokens, order, starts, own, up_bias, down_bias;
    } spread;  // used if experts are spread over ranks
  };
  Work take(Scratch& scratch, const Tokens& tokens, DType act) const {
    const std::int64_t n = tokens.own, chosen = spec_.router.chosen, pair_rows = tokens.all * chosen;
    const bool exchanges = shard_.engines > 1;
    return {
        .router_x = scratch.take(act, {reads_residual() ? n : 0, dim_}),
        .logits = scratch.take(DType::f32, {n, choices()}),
        .given = spec_.vocab > 0 ? scratch.take(DType::f32, {n, chosen}) : View{},
        .weights = scratch.take(DType::f32, {n, chosen}),
        .pair_rows = scratch.take(DType::i32, {n, chosen}),
        .tokens = scratch.take(DType::i32, {n * chosen}),
        .starts = scratch.take(DType::i32, {choices() + 1}),
        .weighed = scratch.take(act, {spec_.weigh_input ? n : 0, dim_}),
        .latent = scratch.take(act, {spec_.latent > 0 ? n : 0, inner_}),
        .up = scratch.take(act, {pair_rows, spec_.expert.up_dim()}),
        .hidden = scratch.take(act, {pair_rows, spec_.expert.hidden}),
        .down = scratch.take(act, {pair_rows, inner_}),
        .everyone = scratch.take(act, {exchanges ? tokens.all : 0, inner_}),
        .sent = scratch.take(act, {tokens.most * chosen, inner_}),
        .own = scratch.take(act, {exchanges ? n * chosen : 0, inner_}),
        .shared = scratch.take(act, {shared_ || sum_bias_.size > 0 ? n : 0, dim_}),
        .gate = scratch.take(DType::f32, {spec_.shared_gate ? n : 0, 1}),
        .joined = scratch.take(act, {shard_.size > 1 || spec_.latent > 0 ? n : 0, inner_}),
        .lifted = scratch.take(DType::f32, {spec_.latent > 0 ? n : 0, dim_}),
        .spread = {
            .tokens = scratch.take(DType::i32, {spread_ ? pair_rows : 0}),
            .order = scratch.take(DType::i32, {spread_ ? pair_rows : 0}),
            .starts = scratch.take(DType::i32, {std::ssize(up_.matrices) + 1}),
            .own = scratch.take(DType::i32, {spread_ ? std::ssize(up_.matrices) : 0}),
            .up_bias = scratch.take(DType::f32, {spread_ && up_.bias.size > 0 ? std::ssize(up_.matrices) : 0,
                                                 spec_.expert.up_dim()}),
            .down_bias = scratch.take(
                DType::f32, {spread_ && down_.bias.size > 0 ? std::ssize(up_.matrices) : 0, inner_})}};
  }

  // Copies the input of each pair to its output, which is the result for identity experts. All other experts
  // overwrite their outputs later. Ranks above 0 write zeros, because the ranks' outputs are added up.
  void pass_through(const Step& step, const View& x, const Work& w) const {
    if (shard_.rank > 0) {
      step.backend.device->clear(*step.backend.stream, w.down);
      return;
    }
    step.backend.ops.gather_rows(*step.backend.stream, {.x = x, .rows = w.tokens, .out = w.down});
  }

  // Arguments for y = down(activate(up(x[tokens]))). Each row uses the matrices of its expert.
  struct Rows {
    View x, tokens, starts, y;
  };
  void run_experts(const Step& step, const Work& w, const Rows& rows) const {
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    const Mlp& mlp = spec_.expert;
    const View up = w.up.rows(0, rows.tokens.size(0)), hidden = w.hidden.rows(0, rows.tokens.size(0));
    ops.grouped_matmul(stream, {.x = rows.x,
                                .rows = rows.tokens,
                                .starts = rows.starts,
                                .w = up_.weights,
                                .bias = own_biases(step, up_.bias, w.spread.own, w.spread.up_bias),
                                .y = up});
    ExpertPairs pairs{
        .index = up_.matrices[0].index, .rows = rows.tokens, .tokens = rows.tokens, .starts = rows.starts};
    add_expert_changes(step, rows.x, pairs, up);
    if (bounds_.least.value)
      ops.clamp(stream, {.x = up, .least = bounds_.least.value, .most = bounds_.most.value, .y = up});
    ops.activate(stream, {.x = up,
                          .activation = mlp.activation,
                          .gated = mlp.gated,
                          .alpha = mlp.alpha,
                          .limit = mlp.limit,
                          .y = hidden});
    ops.grouped_matmul(stream, {.x = hidden,
                                .starts = rows.starts,
                                .w = down_.weights,
                                .bias = own_biases(step, down_.bias, w.spread.own, w.spread.down_bias),
                                .y = rows.y});
    pairs.index = down_.matrices[0].index;
    pairs.rows = {};
    add_expert_changes(step, hidden, pairs, rows.y);
  }

  // Returns the outputs of the selected experts, indexed by RouteArgs::pair_rows.
  View run_chosen(const Step& step, const Work& w, const View& x, const RouteArgs& routed) const {
    if (step.experts != nullptr) {
      run_for_all(step, w, x, routed);
      return w.own;
    }
    if (!spread_) {
      if (spec_.identities > 0) pass_through(step, x, w);
      run_experts(step, w, {x, w.tokens, w.starts.rows(0, std::int64_t{spec_.count} + 1), w.down});
      return w.down;
    }
    spread_->arrange(step.backend, routed, {w.pair_rows, w.spread.tokens, w.spread.order, w.spread.starts});
    const std::int64_t first = spread_->first_row(shard_.rank),
                       count = spread_->first_row(shard_.rank + 1) - first;
    if (count > 0)
      run_experts(step, w,
                  {x, w.spread.tokens.rows(first, count), w.spread.starts, w.down.rows(first, count)});
    spread_->gather(*step.ranks, w.down);
    return w.down;
  }

  // Computes the outputs of the selected experts into w.own, and this rank's experts for tokens of other
  // engines.
  void run_for_all(const Step& step, const Work& w, const View& x, const RouteArgs& routed) const {
    ExpertExchange& exchange = *step.experts;
    if (!exchange.share(x, routed, spec_.router.chosen, w.everyone)) return;
    spread_->arrange(exchange.routed(),
                     {w.pair_rows.rows(0, 0), w.spread.tokens, w.spread.order, w.spread.starts});
    exchange.divide(*spread_, {w.pair_rows, w.spread.tokens, w.spread.order});
    const std::int64_t first = spread_->first_row(shard_.expert_rank()),
                       count = spread_->first_row(shard_.expert_rank() + 1) - first;
    if (count > 0)
      run_experts(
          step, w,
          {w.everyone, w.spread.tokens.rows(first, count), w.spread.starts, w.down.rows(first, count)});
    exchange.give_back(w.down.rows(first, count), w.sent, w.own);
  }

  bool reads_residual() const { return spec_.router_norm.kind != NormKind::none; }

  // Keeps this rank's complete experts.
  void spread(const Shard& shard) {
    spread_ = std::make_unique<ExpertSpread>(spec_.count, shard);
    const auto keep = [&](std::vector<MatrixParameter>& all) {
      std::vector<MatrixParameter> own;
      for (const std::int32_t expert : spread_->own())
        own.push_back(std::move(all[static_cast<std::size_t>(expert)]));
      all = std::move(own);
    };
    keep(up_.matrices);
    keep(down_.matrices);
  }

  // Keeps this rank's hidden units of every expert. Only rank 0 adds the biases of `down`.
  void keep_part_of_each(const Shard& shard) {
    Mlp& mlp = spec_.expert;
    const std::int64_t whole = mlp.hidden, together = shard.together(whole);
    const std::int64_t first = shard.first(whole / together) * together;
    mlp.hidden = static_cast<int>(shard.count(whole / together) * together);
    std::vector<RowRange> rows{{first, mlp.hidden}};
    if (mlp.gated) rows.push_back({whole + first, mlp.hidden});
    for (MatrixParameter& up : up_.matrices) keep_rows(up, rows);
    for (MatrixParameter& down : down_.matrices) keep_columns(down, first, mlp.hidden);
    if (up_.bias.size > 0) keep_columns(up_.bias, rows);
    if (shard.rank > 0) down_.bias = {};
  }

  // Returns the biases of all experts. If experts are spread, returns the biases of this rank's slots.
  // `experts`, i32 [slots], and `own`, f32 [slots, ..], are workspaces.
  View own_biases(const Step& step, const VectorParameter& biases, const View& experts,
                  const View& own) const {
    if (!spread_ || !biases.value) return biases.value;
    const Backend& backend = step.backend;
    backend.device->upload(*backend.stream, experts, spread_->own().data());
    backend.ops.gather_rows(*backend.stream, {.x = biases.value, .rows = experts, .out = own});
    return own;
  }

  Experts spec_;
  bool flat_;                 // ExpertStorage::flat
  std::int64_t dim_, inner_;  // width of the network; input and output width of experts
  Shard shard_;
  std::unique_ptr<ExpertSpread> spread_;  // null: this rank has all experts, or a part of each expert
  LinearParameter router_, shared_gate_;
  LinearParameter latent_, lift_;  // matrices of Experts::latent
  ExpertProjection up_, down_;
  NormParameter router_norm_;
  VectorParameter choice_bias_, table_, scales_, sum_bias_;
  BoundsParameter bounds_;  // limits of Mlp::limit
  std::unique_ptr<Block> shared_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const Experts& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<ExpertsBlock>(spec, name, dim);
}

Experts::Names Experts::Names::of_gguf(const GgufLayers& layers) {
  const bool fused_experts = layers.have("ffn_gate_up_exps.weight");
  return {
      .router = "ffn_gate_inp",
      .router_norm = "ffn_gate_inp.scale",
      .scales = "ffn_down_exps.scale",
      .choice_bias = "exp_probs_b.bias",
      .table = "ffn_gate_tid2eid.weight",
      .storage = ExpertStorage::stacked,
      .up = fused_experts ? std::vector<std::string>{"ffn_gate_up_exps.weight"}
            : layers.have("ffn_gate_exps.weight")
                ? std::vector<std::string>{"ffn_gate_exps.weight", "ffn_up_exps.weight"}
                : std::vector<std::string>{"ffn_up_exps.weight"},
      .down = "ffn_down_exps.weight",
      .up_bias = {"ffn_gate_exps.bias", "ffn_up_exps.bias"},
      .down_bias = "ffn_down_exps.bias",
      .latent = "ffn_latent_down",
      .lift = "ffn_latent_up",
      .shared_up = layers.have("ffn_gate_shexp.weight")
                       ? std::vector<std::string>{"ffn_gate_shexp", "ffn_up_shexp"}
                       : std::vector<std::string>{"ffn_up_shexp"},
      .shared_down = "ffn_down_shexp",
      .shared_gate = "ffn_gate_inp_shexp",
  };
}

}  // namespace octavo
