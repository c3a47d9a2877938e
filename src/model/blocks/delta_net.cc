// The gated delta net, a linear attention. For each token, the state decays. Then it is changed so that the
// value that it returns for the token's key comes closer to the token's value.
#include "model/blocks/recurrent.h"
#include "model/gguf/layers.h"

namespace octavo {
namespace {

// Reorders the rows of a single matrix from key heads to types: all rows of the first type, then all rows of
// the second, and so on. A key head has counts[i] rows of type i.
std::vector<RowRange> by_kind(int key_heads, std::initializer_list<std::int64_t> counts) {
  std::int64_t head_rows = 0;
  for (const std::int64_t count : counts) head_rows += count;
  std::vector<RowRange> order;
  std::int64_t begin = 0;
  for (const std::int64_t count : counts) {
    for (int head = 0; head < key_heads; ++head) order.push_back({begin + head * head_rows, count});
    begin += count;
  }
  return order;
}

// Numbers of rows of queries, keys and values.
std::vector<std::int64_t> sizes(const DeltaNet& spec) {
  const std::int64_t keys = std::int64_t{spec.key_heads} * spec.key_dim;
  return {keys, keys, spec.values()};
}

class DeltaNetBlock final : public Block {
 public:
  DeltaNetBlock(const DeltaNet& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        conv_(name, name.names.of<DeltaNet>().conv, spec.channels(), spec.conv_width, false,
              name.names.of<DeltaNet>().conv.size() == 1 ? std::vector<std::int64_t>() : sizes(spec)) {
    const Names& names = name.names;
    const std::int64_t values = spec.values(), channels = spec.channels(), heads = spec.value_heads;
    const std::int64_t group = heads / spec.key_heads;
    if (names.of<DeltaNet>().in.size() == 1) {
      in_ = name.linear(names.of<DeltaNet>().in, {channels + values}, dim, false);
      in_.weight.order = by_kind(
          spec.key_heads, {spec.key_dim, spec.key_dim, group * spec.value_dim, group * spec.value_dim});
    } else if (names.of<DeltaNet>().in.size() == 2) {
      in_ = name.linear(names.of<DeltaNet>().in, {channels, values}, dim, false);
    } else {
      std::vector<std::int64_t> rows = sizes(spec);
      rows.push_back(values);
      in_ = name.linear(names.of<DeltaNet>().in, rows, dim, false);
    }
    if (names.of<DeltaNet>().ba.size() == 1) {
      ba_ = name.linear(names.of<DeltaNet>().ba, {2 * heads}, dim, false);
      ba_.weight.order = by_kind(spec.key_heads, {group, group});
    } else {
      ba_ = name.linear(names.of<DeltaNet>().ba, {heads, heads}, dim, false);
    }
    ba_.weight.use = MatrixUse::router;
    a_log_ = name.vector({names.of<DeltaNet>().a_log}, {heads});
    a_log_.rates = names.of<DeltaNet>().rates;
    dt_bias_ = name.vector({names.of<DeltaNet>().dt_bias}, {heads});
    norm_ = name.norm(spec.norm, names.of<DeltaNet>().norm, spec.value_dim);
    out_ = name.linear({names.of<DeltaNet>().out}, {dim}, values, false);
    if (name.shard.size > 1) split(name.shard);
  }

  void list(ParameterList& list) override { list.add(in_, ba_, conv_, a_log_, dt_bias_, norm_, out_); }

  std::int64_t state_floats() const override {
    return conv_.state_floats() + std::int64_t{spec_.value_heads} * spec_.key_dim * spec_.value_dim;
  }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard& shard) const override { return divides(shard, spec_.key_heads, "key heads"); }

  BlockCost cost(const Pass& pass) const override {
    const double rule = 7.0 * spec_.value_heads * spec_.key_dim * spec_.value_dim;
    return linear_cost(in_, pass) + linear_cost(ba_, pass) + linear_cost(out_, pass) +
           BlockCost{.state = 2.0 * static_cast<double>(state_floats()),
                     .operations = (rule + conv_.operations()) * static_cast<double>(pass.tokens)};
  }

  std::string text() const override {
    return fmt::format("gated delta net, {} key heads of {}, {} value heads of {}, convolution {}",
                       spec_.key_heads, spec_.key_dim, spec_.value_heads, spec_.value_dim, spec_.conv_width);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const auto [in, ba, mixed, heads] = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    linear(step, x, in_, in);
    linear(step, x, ba_, ba);
    conv_.run(step, {.x = in.columns(0, spec_.channels()), .y = mixed});
    ops.gated_delta(stream, {.qkv = mixed,
                             .key_heads = spec_.key_heads,
                             .tiled = spec_.tiled,
                             .ba = ba,
                             .a_log = a_log_.value,
                             .dt_bias = dt_bias_.value,
                             .beta_scale = spec_.beta_scale,
                             .state = state_part(step.memory.states, conv_.state_floats(),
                                                 {spec_.value_heads, spec_.key_dim, spec_.value_dim}),
                             .plan = step.memory.state_plan,
                             .out = heads});
    ops.gate(stream, {.x = heads,
                      .gate = in.columns(spec_.channels(), spec_.values()),
                      .norm = norm_.norm(),
                      .activation = Activation::silu,
                      .y = heads});
    linear(step, heads, out_, out);
  }

 private:
  struct Work {
    View in, ba, mixed, heads;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.in = scratch.take(act, {n, spec_.channels() + spec_.values()}),
            .ba = scratch.take(DType::f32, {n, 2 * std::int64_t{spec_.value_heads}}),
            .mixed = scratch.take(act, {n, spec_.channels()}),
            .heads = scratch.take(act, {n, spec_.values()})};
  }

  // Keeps this rank's key heads with their value heads.
  void split(const Shard& shard) {
    const DeltaNet whole = spec_;
    spec_.key_heads /= shard.size;
    spec_.value_heads /= shard.size;
    const std::int64_t keys = std::int64_t{whole.key_heads} * whole.key_dim, values = whole.values();
    const std::int64_t first_key = shard.first(keys), first_value = shard.first(values);
    std::vector<RowRange> rows{{first_key, keys / shard.size},
                               {keys + first_key, keys / shard.size},
                               {2 * keys + first_value, spec_.values()}};
    conv_.keep(rows);
    rows.push_back({whole.channels() + first_value, spec_.values()});
    keep_rows(in_, rows);
    const std::int64_t first = shard.first(whole.value_heads);
    keep_rows(ba_, {{first, spec_.value_heads}, {whole.value_heads + first, spec_.value_heads}});
    for (VectorParameter* vector : {&a_log_, &dt_bias_}) keep_rows(*vector, {{first, spec_.value_heads}});
    keep_columns(out_, first_value, spec_.values(), false);
  }

  DeltaNet spec_;
  CausalConv conv_;
  LinearParameter in_, ba_, out_;
  VectorParameter a_log_, dt_bias_;
  NormParameter norm_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const DeltaNet& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<DeltaNetBlock>(spec, name, dim);
}

DeltaNet::Names DeltaNet::Names::of_gguf(const GgufLayers& layers) {
  return {
      .in = layers.have("ssm_in.weight") ? std::vector<std::string>{"ssm_in"}
                                         : std::vector<std::string>{"attn_qkv", "attn_gate"},
      .ba = layers.have("ssm_ba.weight") ? std::vector<std::string>{"ssm_ba"}
                                         : std::vector<std::string>{"ssm_beta", "ssm_alpha"},
      .conv = {"ssm_conv1d"},
      .a_log = "ssm_a",
      .rates = true,
      .dt_bias = "ssm_dt.bias",
      .norm = "ssm_norm",
      .out = "ssm_out",
  };
}

}  // namespace octavo
