// A short convolution between two gates (LFM2).
#include <utility>

#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

class ShortConvBlock final : public Block {
 public:
  ShortConvBlock(const ShortConv& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        dim_(dim),
        conv_(name, name.names.of<ShortConv>().conv, dim, spec.width, spec.bias),
        in_(name.linear({name.names.of<ShortConv>().in}, {3 * dim}, dim, spec.bias)),
        out_(name.linear({name.names.of<ShortConv>().out}, {dim}, dim, spec.bias)) {
    if (name.shard.size > 1) split(name.shard);
  }

  void list(ParameterList& list) override { list.add(in_, conv_, out_); }

  std::int64_t state_floats() const override { return conv_.state_floats(); }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard& shard) const override { return divides(shard, dim_, "channels"); }

  BlockCost cost(const Pass& pass) const override {
    return linear_cost(in_, pass) + linear_cost(out_, pass) +
           BlockCost{.state = 2.0 * static_cast<double>(state_floats()),
                     .operations = conv_.operations() * static_cast<double>(pass.tokens)};
  }

  std::string text() const override {
    return fmt::format("short convolution, {} wide{}", spec_.width, spec_.ahead > 0 ? ", both ways" : "");
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const auto [in, mixed] = take(scratch, step.tokens(), x.dtype);
    linear(step, x, in_, in);
    conv_.run(step, {.x = in.columns(2 * dim_, dim_),
                     .x_gate = in.columns(0, dim_),
                     .silu = false,
                     .ahead = spec_.ahead,
                     .y_gate = in.columns(dim_, dim_),
                     .y = mixed});
    linear(step, mixed, out_, out);
  }

 private:
  struct Work {
    View in, mixed;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.in = scratch.take(act, {n, 3 * dim_}), .mixed = scratch.take(act, {n, dim_})};
  }

  // Keeps this rank's channels.
  void split(const Shard& shard) {
    const std::int64_t whole = std::exchange(dim_, dim_ / shard.size), first = shard.first(whole);
    conv_.keep({{first, dim_}});
    keep_rows(in_, {{first, dim_}, {whole + first, dim_}, {2 * whole + first, dim_}});
    keep_columns(out_, first, dim_, shard.rank == 0);
  }

  ShortConv spec_;
  std::int64_t dim_;  // channels
  CausalConv conv_;
  LinearParameter in_, out_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const ShortConv& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<ShortConvBlock>(spec, name, dim);
}

ShortConv::Names ShortConv::Names::of_gguf(const GgufLayers&) {
  return {
      .in = "shortconv.in_proj",
      .conv = "shortconv.conv",
      .out = "shortconv.out_proj",
  };
}

}  // namespace octavo
