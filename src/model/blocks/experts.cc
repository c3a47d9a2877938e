// A router, and many MLPs of which each token passes the few that it chooses.
#include <cmath>
#include <cstring>

#include "model/adapter.h"
#include "model/blocks/block.h"

namespace octavo {
namespace {

class ExpertsBlock final : public Block {
 public:
  ExpertsBlock(const Experts& spec, const Namer& name, std::int64_t dim)
      : spec_(spec), dim_(dim), ranks_(name.shard.size) {
    const Names& names = name.names;
    const Mlp& mlp = spec.expert;
    router_ = name.linear({names.router}, {spec.count}, dim, spec.router_bias);
    router_.weight.use = MatrixUse::router;
    if (spec.choice_bias) choice_bias_ = name.vector({names.choice_bias}, {spec.count});
    if (spec.choice_bias && names.choice_bias_row) choice_bias_.parts[0].shape = {1, spec.count};
    up_ = name.experts(names.expert_up, spec.count, mlp.up_dim(), dim);
    down_ = name.experts({names.expert_down}, spec.count, dim, mlp.hidden);
    if (mlp.up_bias) up_bias_ = name.rows_of_vectors(names.expert_up_bias, spec.count, mlp.up_dim());
    if (mlp.down_bias) down_bias_ = name.rows_of_vectors({names.expert_down_bias}, spec.count, dim);
    if (spec.scales) scales_ = name.vector({names.expert_scales}, {spec.count});
    if (reads_residual()) {
      router_norm_ = {
          .spec = spec.router_norm, .weight = name.vector({names.router_norm}, {dim}), .bias = {}};
      router_norm_.weight.factors = {{0, dim, 1 / std::sqrt(static_cast<float>(dim))}};
    }
    if (names.expert_interleaved) {
      up_bias_.order = {{0, mlp.hidden, 2}, {1, mlp.hidden, 2}};
      for (MatrixParameter& up : up_) up.order = up_bias_.order;
    }
    if (name.shard.size > 1) name.shard.whole_experts ? keep_some(name.shard) : keep_part_of_each(name.shard);
    if (!spec.shared) return;
    shared_ = make_mlp(*spec.shared, name, dim, names.shared_up, names.shared_down);
    if (!spec.shared_gate) return;
    shared_gate_ = name.linear({names.shared_gate}, {1}, dim, false);
    shared_gate_.weight.use = MatrixUse::router;
  }

  void list(ParameterList& list) override {
    list.add(router_norm_);
    list.add(router_);
    list.add(choice_bias_);
    list.add(scales_);
    for (std::size_t e = 0; e < up_.size(); ++e) {
      list.add(up_[e]);
      list.add(down_[e]);
    }
    list.experts.push_back({&up_, spec_.router.chosen});
    list.experts.push_back({&down_, spec_.router.chosen});
    list.add(up_bias_);
    list.add(down_bias_);
    if (shared_) shared_->list(list);
    list.add(shared_gate_);
  }

  void loaded() override {
    for (const MatrixParameter& up : up_) up_weights_.push_back(up.weight.get());
    for (const MatrixParameter& down : down_) down_weights_.push_back(down.weight.get());
  }

  std::int64_t scratch_bytes(std::int64_t tokens, DType activation) const override {
    Scratch scratch;
    take(scratch, tokens, activation);
    return scratch.bytes() + (shared_ ? shared_->scratch_bytes(tokens, activation) : 0);
  }

  // As if the tokens chose evenly.
  BlockCost cost(const Pass& pass) const override {
    const auto tokens = static_cast<double>(pass.tokens), count = static_cast<double>(spec_.count);
    const double chosen = spec_.router.chosen;
    const double met = count * (1 - std::pow(1 - chosen / count, tokens));
    const auto expert = static_cast<double>(up_[0].elements() + down_[0].elements());
    BlockCost cost = linear_cost(router_, pass) + linear_cost(shared_gate_, pass);
    if (shared_) cost = cost + shared_->cost(pass);
    return cost + BlockCost{.weights = met * expert, .operations = 2 * tokens * chosen * expert};
  }

  std::string text() const override {
    const Mlp& mlp = spec_.expert;
    std::string text = fmt::format("{} of {} experts, MLP {} {}{}", spec_.router.chosen, spec_.count,
                                   mlp.hidden, mlp.gated ? "gated " : "", name(mlp.activation));
    if (shared_) text += fmt::format(", and a shared {}", shared_->text());
    return text;
  }

  void run(const StepContext& step, const View& x, const View& out) const override {
    StepContext rest = step;  // what is left of the workspaces is the shared expert's
    const Work w = take(rest.scratch, step.tokens, x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    const Mlp& mlp = spec_.expert;
    if (reads_residual())
      ops.add_norm(stream, {.residual = step.residual, .norm = router_norm_.norm(), .out = w.router_x});
    linear(step, reads_residual() ? w.router_x : x, router_, w.logits);
    ops.route(stream, {.logits = w.logits,
                       .bias = choice_bias_.value,
                       .scales = scales_.value,
                       .rule = spec_.router,
                       .weights = w.weights,
                       .places = w.places,
                       .tokens = w.tokens,
                       .starts = w.starts});
    if (spec_.weigh_input) {
      const View factors = View::of(w.weights.data, DType::f32, {step.tokens});
      ops.scale_rows(stream, {.x = x, .factors = factors, .y = w.weighed});
    }
    const View starts = w.starts.rows(first_, std::ssize(up_) + 1);
    const View& read = spec_.weigh_input ? w.weighed : x;
    ops.grouped_matmul(stream, {.x = read,
                                .rows = w.tokens,
                                .starts = starts,
                                .w = up_weights_,
                                .bias = own_biases(up_bias_),
                                .y = w.up});
    ExpertPlaces places{.index = up_[0].index, .rows = w.tokens, .tokens = w.tokens, .starts = starts};
    add_expert_changes(step, read, places, w.up);
    ops.activate(stream, {.x = w.up,
                          .activation = mlp.activation,
                          .gated = mlp.gated,
                          .alpha = mlp.alpha,
                          .limit = mlp.limit,
                          .y = w.hidden});
    ops.grouped_matmul(
        stream,
        {.x = w.hidden, .starts = starts, .w = down_weights_, .bias = own_biases(down_bias_), .y = w.down});
    places.index = down_[0].index;
    places.rows = {};
    add_expert_changes(step, w.hidden, places, w.down);
    if (std::ssize(up_) < spec_.count) leave_out_others(starts, w.down);
    if (shared_) shared_->run(rest, x, w.shared);
    if (spec_.shared_gate) linear(step, x, shared_gate_, w.gate);
    const bool sums_follow = out.dtype != x.dtype;  // over ranks, in f32
    ops.combine(stream, {.y = w.down,
                         .places = w.places,
                         .weights = spec_.weigh_input ? View{} : w.weights,
                         .shared = shared_ ? w.shared : View{},
                         .shared_gate = spec_.shared_gate ? w.gate : View{},
                         .out = sums_follow ? w.joined : out});
    if (!sums_follow) return;
    std::memset(out.data, 0, static_cast<std::size_t>(out.bytes()));
    ops.add_norm(stream, {.residual = out, .delta = w.joined});
  }

 private:
  struct Work {
    View router_x, logits, weights, places, tokens, starts, weighed, up, hidden, down, shared, gate, joined;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    const std::int64_t chosen = spec_.router.chosen, places = n * chosen;
    return {.router_x = scratch.take(act, {reads_residual() ? n : 0, dim_}),
            .logits = scratch.take(DType::f32, {n, spec_.count}),
            .weights = scratch.take(DType::f32, {n, chosen}),
            .places = scratch.take(DType::i32, {n, chosen}),
            .tokens = scratch.take(DType::i32, {places}),
            .starts = scratch.take(DType::i32, {std::int64_t{spec_.count} + 1}),
            .weighed = scratch.take(act, {spec_.weigh_input ? n : 0, dim_}),
            .up = scratch.take(act, {places, spec_.expert.up_dim()}),
            .hidden = scratch.take(act, {places, spec_.expert.hidden}),
            .down = scratch.take(act, {places, dim_}),
            .shared = scratch.take(act, {shared_ ? n : 0, dim_}),
            .gate = scratch.take(DType::f32, {spec_.shared_gate ? n : 0, 1}),
            .joined = scratch.take(act, {ranks_ > 1 ? n : 0, dim_})};
  }

  bool reads_residual() const { return spec_.router_norm.kind != NormKind::none; }

  // Each rank has some of the experts, whole: as many as the others, or one more.
  void keep_some(const Shard& shard) {
    first_ = std::int64_t{spec_.count} * shard.rank / shard.size;
    const std::int64_t count = std::int64_t{spec_.count} * (shard.rank + 1) / shard.size - first_;
    const auto keep = [&](std::vector<MatrixParameter>& all) {
      all.erase(all.begin() + first_ + count, all.end());
      all.erase(all.begin(), all.begin() + first_);
    };
    keep(up_);
    keep(down_);
  }

  // Each rank has some of the hidden units of every expert.
  void keep_part_of_each(const Shard& shard) {
    Mlp& mlp = spec_.expert;
    const std::int64_t whole = mlp.hidden, first = shard.first(whole);
    mlp.hidden /= shard.size;
    std::vector<RowRange> rows{{first, mlp.hidden}};
    if (mlp.gated) rows.push_back({whole + first, mlp.hidden});
    for (MatrixParameter& up : up_) keep_rows(up, rows);
    for (MatrixParameter& down : down_) keep_columns(down, first, mlp.hidden);
  }

  // What others' experts put out counts as zeros here. starts, y: in host memory, as ranks are CPUs.
  void leave_out_others(const View& starts, const View& y) const {
    const std::int64_t begin = starts.as<std::int32_t>()[0], end = starts.as<std::int32_t>()[starts.size(0) - 1];
    for (const View& others : {y.rows(0, begin), y.rows(end, y.size(0) - end)})
      std::memset(others.data, 0, static_cast<std::size_t>(others.bytes()));
  }

  View own_biases(const VectorParameter& biases) const {
    return biases.value ? biases.value.rows(first_, std::ssize(up_)) : View{};
  }

  Experts spec_;
  std::int64_t dim_;
  int ranks_ = 1;
  std::int64_t first_ = 0;  // of the experts that this rank has: up_ and down_
  LinearParameter router_, shared_gate_;
  std::vector<MatrixParameter> up_, down_;
  NormParameter router_norm_;
  VectorParameter choice_bias_, scales_, up_bias_, down_bias_;
  std::vector<const Weight*> up_weights_, down_weights_;
  std::unique_ptr<Block> shared_;
};

}  // namespace

std::unique_ptr<Block> make_block(const Experts& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<ExpertsBlock>(spec, name, dim);
}

}  // namespace octavo
