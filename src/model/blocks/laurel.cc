// Laurel: a learned low-rank path that runs in parallel to attention.
#include "model/blocks/block.h"

namespace octavo {
namespace {

class LaurelBlock final : public Block {
 public:
  LaurelBlock(const Laurel& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        dim_(dim),
        left_(name.linear({name.names.behind(name.names.of<Laurel>().prefix, "linear_left", "l")},
                          {spec.rank}, dim, false)),
        right_(name.linear({name.names.behind(name.names.of<Laurel>().prefix, "linear_right", "r")}, {dim},
                           spec.rank, false)),
        norm_(name.norm(spec.norm,
                        name.names.behind(name.names.of<Laurel>().prefix, "post_laurel_norm", "post_norm"),
                        dim)) {}

  void list(ParameterList& list) override { list.add(left_, right_, norm_); }

  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard&) const override { return not_split("second paths beside attention"); }

  BlockCost cost(const Pass& pass) const override {
    return linear_cost(left_, pass) + linear_cost(right_, pass);
  }

  std::string text() const override { return fmt::format("Laurel of rank {}", spec_.rank); }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const auto [left, sum] = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    linear(step, x, left_, left);
    linear(step, left, right_, sum);
    ops.add_norm(stream, {.residual = sum, .norm = norm_.norm(), .replace = true});
    ops.add_norm(stream, {.residual = sum, .delta = x, .out = out});
  }

 private:
  struct Work {
    View left, sum;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.left = scratch.take(act, {n, spec_.rank}), .sum = scratch.take(DType::f32, {n, dim_})};
  }

  Laurel spec_;
  std::int64_t dim_;
  LinearParameter left_, right_;
  NormParameter norm_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const Laurel& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<LaurelBlock>(spec, name, dim);
}

Laurel::Names Laurel::Names::of_gguf(const GgufLayers&) {
  return {
      .prefix = "laurel_",
  };
}

}  // namespace octavo
