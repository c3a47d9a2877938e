// Time mixing and channel mixing of RWKV-7. Both read mixtures of a token and the previous token. A mixture
// is a convolution of width two.
#include <algorithm>
#include <memory>

#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

// Slot, act [tokens, TimeMix::inner()]: values of the first layer.
struct FirstValues {};

// Number of mixtures. Their weights are in one tensor or in six.
constexpr std::int64_t kParts = 6;
CausalConv time_mixtures(const Namer& name, std::int64_t dim) {
  std::vector<std::int64_t> shape{1, 1, dim};
  if (name.names.gguf)
    shape = {kParts, 1, 1, dim};
  else if (name.names.of<TimeMix>().shares.size() == 1)
    shape = {kParts, dim};
  return CausalConv::mixtures(name, name.names.of<TimeMix>().shares, shape, dim);
}

class TimeMixBlock final : public Block {
 public:
  TimeMixBlock(const TimeMix& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        dim_(dim),
        shift_(time_mixtures(name, dim)),
        r_(linear_of(name, "r_proj", "receptance", spec.inner(), dim)),
        k_(linear_of(name, "k_proj", "key", spec.inner(), dim)),
        v_(linear_of(name, "v_proj", "value", spec.inner(), dim)),
        out_(linear_of(name, "o_proj", "output", dim, spec.inner())),
        decay_(name, 'w', spec.decay_rank, spec.inner(), dim, true),
        rate_(name, 'a', spec.rate_rank, spec.inner(), dim, true),
        gate_(name, 'g', spec.gate_rank, spec.inner(), dim, false),
        k_k_(vector_of(name, "k_k", {spec.inner()})),
        k_a_(vector_of(name, "k_a", {spec.inner()})),
        r_k_(vector_of(name, "r_k", {spec.heads, spec.head_dim})),
        norm_(name.norm(spec.norm, name.names.behind(name.names.of<TimeMix>().prefix, "g_norm", "ln"),
                        spec.inner())) {
    if (!spec.first) values_ = LowRank(name, 'v', spec.value_rank, spec.inner(), dim, true);
  }

  void list(ParameterList& list) override {
    shift_.list(list);
    for (LinearParameter* linear : {&r_, &k_, &v_}) list.add(*linear);
    for (LowRank* product : {&decay_, &rate_, &values_, &gate_}) {
      list.add(product->down);
      list.add(product->up);
    }
    for (VectorParameter* vector : {&k_k_, &k_a_, &r_k_}) list.add(*vector);
    list.add(norm_, out_);
  }

  std::int64_t state_floats() const override {
    return shift_.state_floats() + spec_.inner() * spec_.head_dim;
  }

  void reserve(Arena arena) const override {
    take(arena.scratch, arena.tokens, arena.activation);
    arena.rows<FirstValues>(arena.activation, spec_.inner());
  }
  Result<> splits(const Shard&) const override { return not_split("time mixing"); }
  bool spans_layers() const override { return true; }

  BlockCost cost(const Pass& pass) const override {
    const double rule = 10.0 * static_cast<double>(spec_.inner() * spec_.head_dim);
    BlockCost cost{.state = 2.0 * static_cast<double>(state_floats()),
                   .operations = (rule + shift_.operations()) * static_cast<double>(pass.tokens)};
    for (const LinearParameter* linear : {&r_, &k_, &v_, &out_}) cost = cost + linear_cost(*linear, pass);
    for (const LowRank* product : {&decay_, &rate_, &values_, &gate_})
      cost = cost + linear_cost(product->down, pass) + linear_cost(product->up, pass);
    return cost;
  }

  std::string text() const override {
    return fmt::format("RWKV-7 time mixing, {} heads of {}", spec_.heads, spec_.head_dim);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const Work w = take(scratch, step.tokens(), x.dtype);
    const auto part = [&](Part i) { return w.mixed.columns(i * dim_, dim_); };
    shift_.run(step, {.x = x, .silu = false, .y = w.mixed});
    linear(step, part(kR), r_, w.r);
    linear(step, part(kK), k_, w.k);
    const View v = spec_.first ? step.slot<FirstValues>() : w.v;
    linear(step, part(kV), v_, v);
    decay_.run(step, part(kW), Activation::tanh, w.low, w.decay);
    rate_.run(step, part(kA), {}, w.low, w.rate);
    gate_.run(step, part(kG), Activation::sigmoid, w.low, w.gate);
    if (!spec_.first) values_.run(step, part(kV), {}, w.low, w.mix);
    step.backend.ops.wkv(*step.backend.stream,
                         {.r = w.r,
                          .k = w.k,
                          .v = v,
                          .decay = w.decay,
                          .rate = w.rate,
                          .gate = w.gate,
                          .mix = spec_.first ? View() : w.mix,
                          .first = spec_.first ? View() : step.slot<FirstValues>(),
                          .k_k = k_k_.value,
                          .k_a = k_a_.value,
                          .r_k = r_k_.value,
                          .eps = spec_.unit_eps,
                          .norm = norm_.norm(),
                          .state = state_part(step.memory.states, shift_.state_floats(),
                                              {spec_.heads, spec_.head_dim, spec_.head_dim}),
                          .plan = step.memory.state_plan,
                          .out = w.heads});
    linear(step, w.heads, out_, out);
  }

 private:
  enum Part : std::int64_t { kR, kW, kK, kV, kA, kG };  // order of the mixtures

  // Computes up * activation(down * x) + bias.
  struct LowRank {
    LinearParameter down, up;

    LowRank() = default;
    LowRank(const Namer& name, char letter, std::int64_t rank, std::int64_t rows, std::int64_t dim,
            bool bias) {
      const Names& names = name.names;
      const auto tensor = [&](const char* usual, const char* in_gguf) {
        return names.of<TimeMix>().prefix + letter + (names.gguf ? in_gguf : usual);
      };
      down = name.linear({tensor("_lora.lora.0", "1")}, {rank}, dim, false);
      up = name.linear({tensor("_lora.lora.2", "2")}, {rows}, rank, false);
      if (bias) up.bias = name.vector({tensor("_lora.lora.2.bias", "0.weight")}, {rows});
      down.weight.use = up.weight.use = MatrixUse::router;
    }

    void run(const Step& step, const View& x, std::optional<Activation> activation,
             const View& all_low, const View& y) const {
      const View low = all_low.columns(0, down.weight.rows);
      linear(step, x, down, low);
      if (activation)
        step.backend.ops.activate(*step.backend.stream,
                                  {.x = low, .activation = *activation, .gated = false, .y = low});
      linear(step, low, up, y);
    }
  };

  static LinearParameter linear_of(const Namer& name, const char* usual, const char* in_gguf,
                                   std::int64_t rows, std::int64_t cols) {
    return name.linear({name.names.behind(name.names.of<TimeMix>().prefix, usual, in_gguf)}, {rows}, cols,
                       false);
  }

  static VectorParameter vector_of(const Namer& name, const std::string& tensor,
                                   std::vector<std::int64_t> shape) {
    std::int64_t size = 1;
    for (const std::int64_t count : shape) size *= count;
    VectorParameter vector =
        name.vector({name.names.of<TimeMix>().prefix + tensor + (name.names.gguf ? ".weight" : "")}, {size});
    if (!name.names.gguf) vector.parts[0].shape = std::move(shape);
    return vector;
  }

  struct Work {
    View mixed, r, k, v, decay, rate, gate, mix, low, heads;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    const std::int64_t inner = spec_.inner();
    const int most = std::max({spec_.decay_rank, spec_.rate_rank, spec_.value_rank, spec_.gate_rank});
    return {.mixed = scratch.take(act, {n, kParts * dim_}),
            .r = scratch.take(act, {n, inner}),
            .k = scratch.take(act, {n, inner}),
            .v = scratch.take(act, {n, inner}),
            .decay = scratch.take(DType::f32, {n, inner}),
            .rate = scratch.take(act, {n, inner}),
            .gate = scratch.take(act, {n, inner}),
            .mix = scratch.take(act, {n, inner}),
            .low = scratch.take(act, {n, most}),
            .heads = scratch.take(act, {n, inner})};
  }

  TimeMix spec_;
  std::int64_t dim_;
  CausalConv shift_;
  LinearParameter r_, k_, v_, out_;
  LowRank decay_, rate_, values_, gate_;
  VectorParameter k_k_, k_a_, r_k_;
  NormParameter norm_;
};

class ChannelMixBlock final : public Block {
 public:
  ChannelMixBlock(const ChannelMix& spec, const Namer& name, std::int64_t dim)
      : dim_(dim),
        shift_(CausalConv::mixtures(name, {name.names.of<ChannelMix>().shares}, {dim}, dim)),
        mlp_(make_block(spec.mlp, name, dim)) {}

  void list(ParameterList& list) override { list.add(shift_, mlp_); }
  std::int64_t state_floats() const override { return shift_.state_floats(); }
  void reserve(Arena arena) const override {
    arena.scratch.take(arena.activation, {arena.tokens, dim_});
    mlp_->reserve(arena);
  }
  Result<> splits(const Shard&) const override { return not_split("channel mixing"); }
  BlockCost cost(const Pass& pass) const override {
    return mlp_->cost(pass) + BlockCost{.state = 2.0 * static_cast<double>(state_floats()),
                                        .operations = shift_.operations() * static_cast<double>(pass.tokens)};
  }
  std::string text() const override { return "RWKV-7 channel mixing, " + mlp_->text(); }

  void run(const Step& step, const View& x, const View& out) const override {
    Step inner = step;
    const View mixed = inner.scratch.take(x.dtype, {step.tokens(), dim_});
    shift_.run(step, {.x = x, .silu = false, .y = mixed});
    mlp_->run(inner, mixed, out);
  }

 private:
  std::int64_t dim_;
  CausalConv shift_;
  std::unique_ptr<Block> mlp_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const TimeMix& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<TimeMixBlock>(spec, name, dim);
}

template <>
std::unique_ptr<Block> make_block(const ChannelMix& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<ChannelMixBlock>(spec, name, dim);
}

TimeMix::Names TimeMix::Names::of_gguf(const GgufLayers&) {
  return {
      .prefix = "time_mix_",
      .shares = {"time_mix_lerp_fused.weight"},
  };
}

ChannelMix::Names ChannelMix::Names::of_gguf(const GgufLayers&) {
  return {
      .shares = "channel_mix_lerp_k.weight",
  };
}

}  // namespace octavo
