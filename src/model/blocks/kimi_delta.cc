// Kimi delta attention: a gated delta net whose state has a separate decay for each row.
#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

// Replaces '{}' by q, k and v.
std::vector<std::string> of_each(const std::string& name) {
  std::vector<std::string> names;
  for (const char* letter : {"q", "k", "v"}) names.push_back(fmt::format(fmt::runtime(name), letter));
  return names;
}

class KimiDeltaBlock final : public Block {
 public:
  KimiDeltaBlock(const KimiDelta& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        conv_(name, of_each(tensor(name, "{}_conv1d", "ssm_conv1d_{}")), 3 * spec.inner(), spec.conv_width,
              false),
        in_(name.linear(of_each(tensor(name, "{}_proj", "attn_{}")), std::vector(3, spec.inner()), dim,
                        false)),
        rates_(last(spec, name, spec.one_matrix ? "f_proj" : "f_b_proj", "ssm_f_b", dim)),
        gate_(last(spec, name, spec.one_matrix ? "g_proj" : "g_b_proj", "ssm_g_b", dim)),
        beta_(name.linear({tensor(name, "b_proj", "ssm_beta")}, {spec.heads}, dim, false)),
        out_(name.linear({tensor(name, "o_proj", "attn_output")}, {dim}, spec.inner(), false)),
        a_log_(name.vector({tensor(name, name.names.of<KimiDelta>().log.c_str(), "ssm_a")}, {spec.heads})),
        dt_bias_(name.vector({tensor(name, "dt_bias", "ssm_dt.bias")}, {spec.inner()})),
        norm_(name.norm(spec.norm, tensor(name, "o_norm", "ssm_norm"), spec.head_dim)) {
    a_log_.rates = name.names.gguf;
    if (!name.names.of<KimiDelta>().log_row) a_log_.parts[0].shape = {1, 1, spec.heads, 1};
    if (!spec.one_matrix)
      low_ = name.linear({tensor(name, "f_a_proj", "ssm_f_a"), tensor(name, "g_a_proj", "ssm_g_a")},
                         std::vector<std::int64_t>(2, spec.head_dim), dim, false);
    beta_.weight.use = MatrixUse::router;
  }

  void list(ParameterList& list) override {
    list.add(in_, conv_, low_, rates_, gate_, beta_, a_log_, dt_bias_, norm_, out_);
  }

  std::int64_t state_floats() const override { return conv_.state_floats() + spec_.inner() * spec_.head_dim; }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard&) const override { return not_split("Kimi delta attention"); }

  BlockCost cost(const Pass& pass) const override {
    const double rule = 8.0 * static_cast<double>(spec_.inner() * spec_.head_dim);
    BlockCost cost{.state = 2.0 * static_cast<double>(state_floats()),
                   .operations = (rule + conv_.operations()) * static_cast<double>(pass.tokens)};
    for (const LinearParameter* linear : {&in_, &low_, &rates_, &gate_, &beta_, &out_})
      cost = cost + linear_cost(*linear, pass);
    return cost;
  }

  std::string text() const override {
    return fmt::format("Kimi delta attention, {} heads of {}, convolution {}", spec_.heads, spec_.head_dim,
                       spec_.conv_width);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const Work w = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    linear(step, x, in_, w.in);
    linear(step, x, beta_, w.ba.columns(0, spec_.heads));
    if (!spec_.one_matrix) linear(step, x, low_, w.low);
    const auto input = [&](int number) {
      return spec_.one_matrix ? x : w.low.columns(std::int64_t{number} * spec_.head_dim, spec_.head_dim);
    };
    linear(step, input(0), rates_, w.ba.columns(spec_.heads, spec_.inner()));
    linear(step, input(1), gate_, w.gate);
    conv_.run(step, {.x = w.in, .y = w.mixed});
    ops.gated_delta(stream, {.qkv = w.mixed,
                             .key_heads = spec_.heads,
                             .ba = w.ba,
                             .a_log = a_log_.value,
                             .dt_bias = dt_bias_.value,
                             .least_log = spec_.least_log,
                             .state = state_part(step.memory.states, conv_.state_floats(),
                                                 {spec_.heads, spec_.head_dim, spec_.head_dim}),
                             .plan = step.memory.state_plan,
                             .out = w.heads});
    ops.gate(stream, {.x = w.heads, .gate = w.gate, .norm = norm_.norm(), .y = w.heads});
    linear(step, w.heads, out_, out);
  }

 private:
  static std::string tensor(const Namer& name, const char* usual, const char* in_gguf) {
    return name.names.behind(name.names.of<KimiDelta>().prefix, usual, in_gguf);
  }

  // Returns the last or only matrix that computes decays or gates.
  static LinearParameter last(const KimiDelta& spec, const Namer& name, const char* usual,
                              const char* in_gguf, std::int64_t dim) {
    return name.linear({tensor(name, usual, in_gguf)}, {spec.inner()}, spec.one_matrix ? dim : spec.head_dim,
                       false);
  }

  struct Work {
    View in, low, ba, gate, mixed, heads;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.in = scratch.take(act, {n, 3 * spec_.inner()}),
            .low = scratch.take(act, {n, spec_.one_matrix ? 0 : 2 * std::int64_t{spec_.head_dim}}),
            .ba = scratch.take(DType::f32, {n, spec_.heads + spec_.inner()}),
            .gate = scratch.take(act, {n, spec_.inner()}),
            .mixed = scratch.take(act, {n, 3 * spec_.inner()}),
            .heads = scratch.take(act, {n, spec_.inner()})};
  }

  KimiDelta spec_;
  CausalConv conv_;
  LinearParameter in_, rates_, gate_, beta_, out_;
  LinearParameter low_;  // unless KimiDelta::one_matrix
  VectorParameter a_log_, dt_bias_;
  NormParameter norm_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const KimiDelta& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<KimiDeltaBlock>(spec, name, dim);
}

KimiDelta::Names KimiDelta::Names::of_gguf(const GgufLayers&) {
  return {
      .prefix = "",
  };
}

}  // namespace octavo
