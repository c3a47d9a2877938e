#include "model/residual/hyper.h"

namespace octavo {

HyperWeights::HyperWeights(const HyperConnections& spec, std::int64_t dim, const Namer& name,
                           const std::string& begin, bool half)
    : spec_(spec), dim_(dim), half_(half) {
  const std::int64_t rows = half ? spec.rows() : spec.count;
  const auto tensor = [&](const std::string& part) {
    return begin + part + (name.names.gguf ? ".weight" : "");
  };
  matrix_ = name.rows_of_vectors({tensor("fn")}, rows, spec.count * dim);
  base_ = name.vector({tensor("base")}, {rows});
  scale_ = name.vector({tensor("scale")}, {!half ? 1 : spec.mixes ? 3 : 2});
}

void HyperWeights::list(ParameterList& list) { list.add(matrix_, base_, scale_); }

void HyperWeights::reserve(const Arena& arena) const {
  arena.rows<HyperRows>(DType::f32, spec_.count * dim_);
  arena.rows<HyperPosts>(DType::f32, spec_.count);
  if (spec_.mixes) arena.rows<HyperMixes>(DType::f32, std::int64_t{spec_.count} * spec_.count);
}

View HyperWeights::mixes(const Step& step) const { return spec_.mixes ? step.slot<HyperMixes>() : View{}; }

View HyperWeights::streams(const Step& step) const {
  const View all = step.slot<HyperRows>();
  return View::of(all.data, all.dtype, {step.tokens(), spec_.count, dim_});
}

void HyperWeights::collapse(const Step& step) const {
  step.backend.ops.collapse_streams(*step.backend.stream, {.x = streams(step),
                                                           .matrix = matrix_.value,
                                                           .base = base_.value,
                                                           .scale = scale_.value,
                                                           .norm_eps = spec_.norm_eps,
                                                           .eps = spec_.eps,
                                                           .iterations = spec_.iterations,
                                                           .post_scale = spec_.magnitude,
                                                           .post_eps = spec_.post_eps,
                                                           .out = step.residual.rows(),
                                                           .post = half_ ? step.slot<HyperPosts>() : View{},
                                                           .mix = half_ ? mixes(step) : View{}});
}

void HyperWeights::expand(const Step& step, const View& out) const {
  step.backend.ops.expand_streams(
      *step.backend.stream,
      {.x = streams(step), .delta = out, .post = step.slot<HyperPosts>(), .mix = mixes(step)});
}

HyperScheme::HyperScheme(const HyperConnections& spec, const Namer& top, std::int64_t dim, bool last)
    : ResidualScheme(dim), count_(spec.count) {
  if (last) output_.emplace(spec, dim, top, top.names.of<HyperConnections>().output, false);
}

void HyperScheme::reserve(Arena arena) const {
  ResidualScheme::reserve(arena);
  arena.rows<HyperRows>(DType::f32, count_ * dim());
  arena.every_row();
}

void HyperScheme::begin(const Step& step) const {
  for (int i = 0; i < count_; ++i)
    step.backend.ops.gather_rows(*step.backend.stream,
                                 {.x = step.residual.rows(),
                                  .rows = step.slot<EveryRow>(),
                                  .out = step.slot<HyperRows>().columns(i * dim(), dim())});
}

void HyperHalf::list(ParameterList& list) {
  LayerHalf::list(list);
  weights_.list(list);
}

void HyperHalf::reserve(Arena arena) const {
  LayerHalf::reserve(arena);
  weights_.reserve(arena);
}

View HyperHalf::enter(const Step& step) const {
  const View x = step.slot<HalfInput>();
  weights_.collapse(step);
  step.residual.look(norms().pre.norm(), x);
  return x;
}

void HyperHalf::leave(const Step& step, const View& out) const { weights_.expand(step, out); }

HyperConnections::Names HyperConnections::Names::of_gguf(const GgufLayers&) {
  return {
      .output = "output_hc_",
  };
}

}  // namespace octavo
