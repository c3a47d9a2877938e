// A Mamba mixer: each channel has a state. Its decay rates depend on the token.
#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

class MambaBlock final : public Block {
 public:
  MambaBlock(const Mamba& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        conv_(name, name.names.of<Mamba>().prefix + "conv1d", spec.inner, spec.conv_width, spec.conv_bias),
        in_(name.linear({tensor(name, "in_proj", "in")}, {2 * std::int64_t{spec.inner}}, dim, spec.bias)),
        low_(name.linear({tensor(name, "x_proj", "x")}, {low_dim()}, spec.inner, false)),
        step_(name.linear({tensor(name, "dt_proj", "dt")}, {spec.inner}, spec.step_rank, false)),
        out_(name.linear({tensor(name, "out_proj", "out")}, {dim}, spec.inner, spec.bias)),
        step_bias_(name.vector({tensor(name, "dt_proj.bias", "dt.bias")}, {spec.inner})),
        a_log_(name.rows_of_vectors({tensor(name, "A_log", "a")}, spec.inner, spec.state_dim)),
        d_(name.vector({tensor(name, "D", "d")}, {spec.inner})),
        step_norm_(name.norm(spec.norm, tensor(name, "dt_layernorm", "dt_norm"), spec.step_rank)),
        b_norm_(name.norm(spec.norm, tensor(name, "b_layernorm", "b_norm"), spec.state_dim)),
        c_norm_(name.norm(spec.norm, tensor(name, "c_layernorm", "c_norm"), spec.state_dim)) {
    low_.weight.use = step_.weight.use = MatrixUse::plain;
    a_log_.rates = name.names.gguf;
  }

  void list(ParameterList& list) override {
    list.add(in_, conv_, low_, step_norm_, b_norm_, c_norm_, step_, step_bias_, a_log_, d_, out_);
  }

  std::int64_t state_floats() const override {
    return conv_.state_floats() + std::int64_t{spec_.inner} * spec_.state_dim;
  }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard&) const override { return not_split("Mamba layers"); }

  BlockCost cost(const Pass& pass) const override {
    const double scan = 7.0 * spec_.inner * spec_.state_dim;
    return linear_cost(in_, pass) + linear_cost(low_, pass) + linear_cost(step_, pass) +
           linear_cost(out_, pass) +
           BlockCost{.state = 2.0 * static_cast<double>(state_floats()),
                     .operations = (scan + conv_.operations()) * static_cast<double>(pass.tokens)};
  }

  std::string text() const override {
    return fmt::format("Mamba, {} channels, state {}, convolution {}", spec_.inner, spec_.state_dim,
                       spec_.conv_width);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const Work w = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    linear(step, x, in_, w.in);
    conv_.run(step, {.x = w.in.columns(0, spec_.inner), .y = w.mixed});
    linear(step, w.mixed, low_, w.low);
    const auto take_part = [&](std::int64_t begin, std::int64_t count, const NormParameter& norm,
                               const View& part) {
      ops.add_norm(stream, {.residual = w.low.columns(begin, count), .norm = norm.norm(), .out = part});
    };
    const std::int64_t numbers = spec_.state_dim;
    take_part(0, spec_.step_rank, step_norm_, w.low_step);
    take_part(spec_.step_rank, numbers, b_norm_, w.bc.columns(0, numbers));
    take_part(spec_.step_rank + numbers, numbers, c_norm_, w.bc.columns(numbers, numbers));
    linear(step, w.low_step, step_, w.step);
    ops.channel_scan(stream, {.x = w.mixed,
                              .bc = w.bc,
                              .dt = w.step,
                              .time_step = {.bias = step_bias_.value},
                              .a_log = a_log_.value,
                              .d = d_.value,
                              .state = state_part(step.memory.states, conv_.state_floats(), {numbers, spec_.inner}),
                              .plan = step.memory.state_plan,
                              .out = w.scanned});
    ops.gate(stream, {.x = w.scanned,
                      .gate = w.in.columns(spec_.inner, spec_.inner),
                      .activation = Activation::silu,
                      .y = w.scanned});
    linear(step, w.scanned, out_, out);
  }

 private:
  static std::string tensor(const Namer& name, const char* usual, const char* in_gguf) {
    return name.names.behind(name.names.of<Mamba>().prefix, usual, in_gguf);
  }

  struct Work {
    View in, mixed, low, low_step, bc, step, scanned;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.in = scratch.take(act, {n, 2 * std::int64_t{spec_.inner}}),
            .mixed = scratch.take(act, {n, spec_.inner}),
            .low = scratch.take(DType::f32, {n, low_dim()}),
            .low_step = scratch.take(act, {n, spec_.step_rank}),
            .bc = scratch.take(act, {n, 2 * std::int64_t{spec_.state_dim}}),
            .step = scratch.take(act, {n, spec_.inner}),
            .scanned = scratch.take(act, {n, spec_.inner})};
  }

  std::int64_t low_dim() const { return spec_.step_rank + 2 * std::int64_t{spec_.state_dim}; }

  Mamba spec_;
  CausalConv conv_;
  LinearParameter in_, low_, step_, out_;
  VectorParameter step_bias_, a_log_, d_;
  NormParameter step_norm_, b_norm_, c_norm_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const Mamba& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<MambaBlock>(spec, name, dim);
}

Mamba::Names Mamba::Names::of_gguf(const GgufLayers&) {
  return {
      .prefix = "ssm_",
  };
}

}  // namespace octavo
