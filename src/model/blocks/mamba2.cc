// A Mamba2 mixer: linear attention with a state. Its decay rate depends on the token.
#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

class Mamba2Block final : public Block {
 public:
  Mamba2Block(const Mamba2& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        conv_(name, name.names.of<Mamba>().prefix + "conv1d", spec.channels(), spec.conv_width,
              spec.conv_bias),
        in_(name.linear({tensor(name, "in_proj", "in")}, {in_dim()}, dim, spec.bias)),
        out_(name.linear({tensor(name, "out_proj", "out")}, {dim}, spec.inner(), spec.bias)),
        a_log_(name.vector({tensor(name, "A_log", "a")}, {spec.heads})),
        d_(name.vector({tensor(name, "D", "d")}, {spec.heads})),
        dt_bias_(name.vector({tensor(name, "dt_bias", "dt.bias")}, {spec.heads})),
        norm_(name.norm(spec.norm, name.names.of<Mamba>().prefix + "norm", spec.inner())) {
    norm_.weight.row = spec.inner() / spec.groups;
    if (name.names.gguf) {
      a_log_.rates = true;
      a_log_.parts[0].shape = d_.parts[0].shape = {spec.heads, 1};
      for (Slot& part : norm_.weight.parts) part.shape = {spec.groups, norm_.weight.row};
    }
    const std::int64_t of_groups = std::int64_t{spec.groups} * spec.state_dim;
    conv_.scale(0, spec.inner(), spec.multipliers[1]);
    conv_.scale(spec.inner(), of_groups, spec.multipliers[2]);
    conv_.scale(spec.inner() + of_groups, of_groups, spec.multipliers[3]);
    if (name.shard.size > 1) split(name.shard);
  }

  void list(ParameterList& list) override { list.add(in_, conv_, a_log_, d_, dt_bias_, norm_, out_); }

  std::int64_t state_floats() const override {
    return conv_.state_floats() + spec_.inner() * spec_.state_dim;
  }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard& shard) const override {
    return divides(shard, spec_.groups, "groups of Mamba2 heads");
  }

  BlockCost cost(const Pass& pass) const override {
    const double scan = 5.0 * static_cast<double>(spec_.inner() * spec_.state_dim);
    return linear_cost(in_, pass) + linear_cost(out_, pass) +
           BlockCost{.state = 2.0 * static_cast<double>(state_floats()),
                     .operations = (scan + conv_.operations()) * static_cast<double>(pass.tokens)};
  }

  std::string text() const override {
    return fmt::format("Mamba2, {} heads of {} in {} groups, state {}, convolution {}", spec_.heads,
                       spec_.head_dim, spec_.groups, spec_.state_dim, spec_.conv_width);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const auto [in, mixed, heads] = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    linear(step, x, in_, in);
    conv_.run(step, {.x = in.columns(spec_.inner(), spec_.channels()), .y = mixed});
    ops.scan(stream, {.xbc = mixed,
                      .groups = spec_.groups,
                      .dt = in.columns(spec_.inner() + spec_.channels(), spec_.heads),
                      .time_step = {.scale = spec_.multipliers[4],
                                    .bias = dt_bias_.value,
                                    .least = spec_.least_step,
                                    .most = spec_.most_step},
                      .a_log = a_log_.value,
                      .d = d_.value,
                      .state = state_part(step.memory.states, conv_.state_floats(),
                                          {spec_.heads, spec_.state_dim, spec_.head_dim}),
                      .plan = step.memory.state_plan,
                      .out = heads});
    ops.gate(stream, {.x = heads,
                      .gate = in.columns(0, spec_.inner()),
                      .norm = norm_.norm(),
                      .gate_first = spec_.gate_first,
                      .activation = Activation::silu,
                      .gate_scale = spec_.multipliers[0],
                      .y = heads});
    linear(step, heads, out_, out);
  }

 private:
  static std::string tensor(const Namer& name, const char* usual, const char* in_gguf) {
    return name.names.behind(name.names.of<Mamba>().prefix, usual, in_gguf);
  }

  struct Work {
    View in, mixed, heads;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.in = scratch.take(act, {n, in_dim()}),
            .mixed = scratch.take(act, {n, spec_.channels()}),
            .heads = scratch.take(act, {n, spec_.inner()})};
  }

  // Keeps this rank's groups with their heads.
  void split(const Shard& shard) {
    const Mamba2 whole = spec_;
    spec_.heads /= shard.size;
    spec_.groups /= shard.size;
    const std::int64_t inner = whole.inner(), of_groups = std::int64_t{whole.groups} * whole.state_dim;
    const RowRange own{shard.first(inner), spec_.inner()};
    const RowRange own_groups{shard.first(of_groups), of_groups / shard.size};
    const auto behind = [](std::int64_t begin, RowRange range) {
      return RowRange{begin + range.begin, range.count};
    };
    conv_.keep({own, behind(inner, own_groups), behind(inner + of_groups, own_groups)});
    const RowRange own_heads{shard.first(whole.heads), spec_.heads};
    keep_rows(in_, {own, behind(inner, own), behind(2 * inner, own_groups),
                    behind(2 * inner + of_groups, own_groups),
                    behind(inner + whole.channels(), own_heads)});
    for (VectorParameter* vector : {&a_log_, &d_, &dt_bias_}) keep_rows(*vector, {own_heads});
    if (spec_.norm.kind != NormKind::none)
      keep_rows(norm_.weight, {{shard.first(whole.groups), spec_.groups}});
    keep_columns(out_, own.begin, own.count, shard.rank == 0);
  }

  // Total width of the gate, x, B, C and dt.
  std::int64_t in_dim() const { return spec_.inner() + spec_.channels() + spec_.heads; }

  Mamba2 spec_;
  CausalConv conv_;
  LinearParameter in_, out_;
  VectorParameter a_log_, d_, dt_bias_;
  NormParameter norm_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const Mamba2& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<Mamba2Block>(spec, name, dim);
}

}  // namespace octavo
