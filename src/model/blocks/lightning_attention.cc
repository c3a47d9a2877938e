// Lightning attention: the scan of Mamba2 with steps of 1, whose B are the keys, C the queries and x the
// values.
#include <cmath>

#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

class LightningAttentionBlock final : public Block {
 public:
  LightningAttentionBlock(const LightningAttention& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        in_(name.linear({tensor(name, "qkv_proj", "attn_qkv")}, {3 * spec.inner()}, dim, false)),
        gate_(name.linear({tensor(name, "output_gate", "attn_gate")}, {spec.inner()}, dim, false)),
        out_(name.linear({tensor(name, "out_proj", "attn_output")}, {dim}, spec.inner(), false)),
        norm_(name.norm(spec.norm, tensor(name, "norm", "attn_norm_2"), spec.inner())),
        none_(constant_vector(std::vector(spec.rates.size(), 0.0F))) {
    // Stored head by head, queries, keys, values; here all values, all keys, all queries.
    for (const std::int64_t kind : {2, 1, 0})
      for (std::int64_t head = 0; head < spec.heads; ++head)
        in_.weight.order.push_back({(3 * head + kind) * spec.head_dim, spec.head_dim});
    std::vector<float> logs;
    for (const float rate : spec.rates) logs.push_back(std::log(rate));
    rates_ = constant_vector(std::move(logs));
  }

  void list(ParameterList& list) override {
    list.add(in_);
    list.add(gate_);
    list.add(rates_);
    list.add(none_);
    list.add(norm_);
    list.add(out_);
  }

  std::int64_t state_floats() const override { return spec_.inner() * spec_.head_dim; }

  std::int64_t scratch_bytes(std::int64_t tokens, DType activation) const override {
    Scratch scratch;
    take(scratch, tokens, activation);
    return scratch.bytes();
  }

  BlockCost cost(const Pass& pass) const override {
    const double scan = 5.0 * static_cast<double>(spec_.inner() * spec_.head_dim);
    return linear_cost(in_, pass) + linear_cost(gate_, pass) + linear_cost(out_, pass) +
           BlockCost{.state = 2.0 * static_cast<double>(state_floats()),
                     .operations = scan * static_cast<double>(pass.tokens)};
  }

  std::string text() const override {
    return fmt::format("lightning attention, {} heads of {}", spec_.heads, spec_.head_dim);
  }

  void run(const StepContext& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const auto [in, gate, heads] = take(scratch, step.tokens, x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    linear(step, x, in_, in);
    linear(step, x, gate_, gate);
    ops.activate(stream, {.x = in, .activation = Activation::silu, .gated = false, .y = in});
    ops.scan(stream, {.xbc = in,
                      .groups = spec_.heads,
                      .a_log = rates_.value,
                      .d = none_.value,
                      .state = state_part(step.state, 0, {spec_.heads, spec_.head_dim, spec_.head_dim}),
                      .plan = step.states,
                      .out = heads});
    ops.gate(stream, {.x = heads, .gate = gate, .norm = norm_.norm(), .y = heads});
    linear(step, heads, out_, out);
  }

 private:
  static std::string tensor(const Namer& name, const char* usual, const char* in_gguf) {
    return name.names.behind(name.names.lightning, usual, in_gguf);
  }

  struct Work {
    View in, gate, heads;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.in = scratch.take(act, {n, 3 * spec_.inner()}),
            .gate = scratch.take(act, {n, spec_.inner()}),
            .heads = scratch.take(act, {n, spec_.inner()})};
  }

  LightningAttention spec_;
  LinearParameter in_, gate_, out_;
  NormParameter norm_;
  VectorParameter rates_, none_;  // as ScanArgs has them: logarithms, and no share of the values themselves
};

}  // namespace

std::unique_ptr<Block> make_block(const LightningAttention& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<LightningAttentionBlock>(spec, name, dim);
}

}  // namespace octavo
