// An MLP: two linear layers with an activation between them, and optionally a gate.
#include <algorithm>
#include <limits>

#include "model/blocks/block.h"

namespace octavo {
namespace {

class MlpBlock final : public Block {
 public:
  MlpBlock(const Mlp& spec, const Namer& name, std::int64_t dim, const std::vector<std::string>& up,
           const std::string& down)
      : spec_(spec),
        up_(name.linear(up, std::vector(up.size(), spec.up_dim() / std::ssize(up)), dim, spec.up_bias)),
        down_(name.linear({down}, {dim}, spec.hidden, spec.down_bias)) {
    if (name.names.bounded) {
      for (const std::string& tensor : up)
        apart_.push_back(name.linear({tensor}, {spec.up_dim() / std::ssize(up)}, dim, spec.up_bias));
      up_.weight.parts.clear();
    }
    if (const std::string& scale = name.names.mlp.down_scale; !scale.empty())
      down_.scale_by(name.vector({scale}, {dim}).parts[0]);
    if (spec.row_scale != 0) scale_rows_of_up(name);
    if (spec.hidden_norm.kind != NormKind::none) hidden_norm_ = name.norm(spec.hidden_norm, "", spec.hidden);
    if (name.names.mlp.up_first) {
      up_.weight.order = {{spec.hidden, spec.hidden}, {0, spec.hidden}};
      up_.bias.order = up_.bias.parts.empty() ? std::vector<RowRange>() : up_.weight.order;
    }
    if (spec.activation == Activation::xielu)
      slopes_ = spec.slopes ? constant_vector({spec.slopes->begin(), spec.slopes->end()})
                            : name.vector(name.names.mlp.slopes, {1, 1});
    if (name.shard.size > 1) split(name.shard);
    if (spec_.limit > 0 && spec.activation != Activation::swigluoai) bounds_ = gate_bounds(spec_);
  }

  void list(ParameterList& list) override { list.add(up_, apart_, bounds_, slopes_, hidden_norm_, down_); }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard& shard) const override {
    if (spec_.hidden_norm.kind != NormKind::none) return not_split("norms over the hidden units of MLPs");
    return divides(shard, spec_.hidden, "hidden units");
  }

  BlockCost cost(const Pass& pass) const override {
    return linear_cost(up_, pass) + linear_cost(down_, pass);
  }

  std::string text() const override {
    return fmt::format("MLP {} {}{}{}", spec_.hidden, spec_.gated ? "gated " : "",
                       octavo::name(spec_.activation), spec_.tail ? ", sparse" : "");
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const auto [up, hidden, bounded] = take(scratch, step.tokens(), x.dtype);
    if (apart_.empty()) linear(step, x, up_, up);
    std::int64_t first = 0;
    for (const LinearParameter& part : apart_) {
      step.backend.device->copy(*step.backend.stream, bounded, x);
      linear(step, bounded, part, up.columns(first, part.weight.rows));
      first += part.weight.rows;
    }
    if (bounds_.least.value)
      step.backend.ops.clamp(*step.backend.stream,
                             {.x = up, .least = bounds_.least.value, .most = bounds_.most.value, .y = up});
    if (spec_.tail)
      step.backend.ops.keep_tail(*step.backend.stream,
                                 {.x = up.columns(0, spec_.hidden), .deviations = *spec_.tail});
    if (spec_.gate_scale != 1 || hidden_norm_.spec.kind != NormKind::none) {
      const View gate = up.columns(0, spec_.hidden);
      step.backend.ops.gate(*step.backend.stream,
                            {.x = spec_.gated ? up.columns(spec_.hidden, spec_.hidden) : gate,
                             .gate = gate,
                             .norm = hidden_norm_.norm(),
                             .gate_first = true,
                             .activation = spec_.activation,
                             .gate_scale = spec_.gate_scale,
                             .y = hidden});
    } else {
      step.backend.ops.activate(*step.backend.stream, {.x = up,
                                                       .activation = spec_.activation,
                                                       .gated = spec_.gated,
                                                       .alpha = spec_.alpha,
                                                       .limit = spec_.limit,
                                                       .slopes = slopes_.value,
                                                       .y = hidden});
    }
    linear(step, hidden, down_, out);
  }

 private:
  struct Work {
    View up, hidden, bounded;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {scratch.take(act, {n, spec_.up_dim()}), scratch.take(act, {n, spec_.hidden}),
            scratch.take(act, {n, apart_.empty() ? 0 : apart_[0].weight.cols})};
  }

  void scale_rows_of_up(const Namer& name) {
    for (const std::string& vector : name.names.mlp.up_scales)
      up_.weight.scales.push_back({.slot = name.vector({vector}, {spec_.hidden}).parts[0],
                                   .change = [factor = spec_.row_scale](float x) { return factor * x; }});
  }

  // Keeps this rank's hidden units.
  void split(const Shard& shard) {
    const std::int64_t first = shard.first(spec_.hidden), whole = spec_.hidden;
    spec_.hidden /= shard.size;
    std::vector<RowRange> rows{{first, spec_.hidden}};
    if (spec_.gated) rows.push_back({whole + first, spec_.hidden});
    keep_rows(up_, std::move(rows));
    keep_columns(down_, first, spec_.hidden, shard.rank == 0);
  }

  Mlp spec_;
  LinearParameter up_, down_;
  // used instead of up_ if Names::bounded: one product each for gate and up
  std::vector<LinearParameter> apart_;
  BoundsParameter bounds_;              // limits of Mlp::limit
  VectorParameter slopes_;
  NormParameter hidden_norm_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const Mlp& spec, const Namer& name, std::int64_t dim) {
  return make_mlp(spec, name, dim, name.names.mlp.up, name.names.mlp.down);
}

BoundsParameter gate_bounds(const Mlp& mlp) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  std::vector<float> least(static_cast<std::size_t>(mlp.up_dim()), -mlp.limit), most(least.size(), mlp.limit);
  if (mlp.gated) std::fill_n(least.begin(), mlp.hidden, -kNone);
  if (mlp.gated && mlp.gate_limit > 0) std::fill_n(most.begin(), mlp.hidden, mlp.gate_limit);
  return {.least = constant_vector(std::move(least)), .most = constant_vector(std::move(most))};
}

std::unique_ptr<Block> make_mlp(const Mlp& spec, const Namer& name, std::int64_t dim,
                                const std::vector<std::string>& up, const std::string& down) {
  return std::make_unique<MlpBlock>(spec, name, dim, up, down);
}

}  // namespace octavo
