// The sum of a dense MLP and of experts: norm(mlp(x)) + norm(experts(norm(residual))), where x is the
// residual after another norm.
#include "model/blocks/block.h"
#include "model/residual/residual.h"

namespace octavo {
namespace {

class MlpAndExpertsBlock final : public Block {
 public:
  MlpAndExpertsBlock(const MlpAndExperts& spec, const Namer& name, std::int64_t dim)
      : dim_(dim),
        mlp_(make_block(spec.mlp, name, dim)),
        experts_(make_block(spec.experts, name, dim)),
        mlp_post_norm_(name.norm(spec.norm, name.names.of<MlpAndExperts>().mlp_post_norm, dim)),
        experts_norm_(name.norm(spec.norm, name.names.of<MlpAndExperts>().norm, dim)),
        experts_post_norm_(name.norm(spec.norm, name.names.of<MlpAndExperts>().post_norm, dim)) {}

  void list(ParameterList& list) override {
    list.add(mlp_, mlp_post_norm_, experts_norm_, experts_, experts_post_norm_);
  }

  void loaded() override { experts_->loaded(); }

  void reserve(Arena arena) const override {
    take(arena.scratch, arena.tokens, arena.activation);
    mlp_->reserve(arena);
    experts_->reserve(arena);
  }
  Result<> splits(const Shard&) const override { return not_split("experts beside a dense MLP"); }
  Result<> spreads(const Shard& shard) const override { return splits(shard); }

  BlockCost cost(const Pass& pass) const override { return mlp_->cost(pass) + experts_->cost(pass); }

  std::string text() const override { return fmt::format("{}, beside {}", mlp_->text(), experts_->text()); }

  void run(const Step& step, const View& x, const View& out) const override {
    Step rest = step;  // Both parts use the same workspaces, one after another.
    const auto [sum, read, put_out] = take(rest.scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    mlp_->run(rest, x, sum);
    ops.add_norm(stream, {.residual = sum, .norm = mlp_post_norm_.norm(), .replace = true});
    ops.add_norm(stream, {.residual = step.residual.rows(), .norm = experts_norm_.norm(), .out = read});
    experts_->run(rest, read, put_out);
    ops.add_norm(stream,
                 {.residual = sum, .delta = put_out, .delta_norm = experts_post_norm_.norm(), .out = out});
  }

 private:
  struct Work {
    View sum, read, put_out;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.sum = scratch.take(DType::f32, {n, dim_}),
            .read = scratch.take(act, {n, dim_}),
            .put_out = scratch.take(act, {n, dim_})};
  }

  std::int64_t dim_;
  std::unique_ptr<Block> mlp_, experts_;
  NormParameter mlp_post_norm_, experts_norm_, experts_post_norm_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const MlpAndExperts& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<MlpAndExpertsBlock>(spec, name, dim);
}

MlpAndExperts::Names MlpAndExperts::Names::of_gguf(const GgufLayers&) {
  return {
      .norm = "pre_ffw_norm_2",
      .post_norm = "post_ffw_norm_2",
      .mlp_post_norm = "post_ffw_norm_1",
  };
}

}  // namespace octavo
