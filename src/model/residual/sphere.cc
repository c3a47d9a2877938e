#include "model/residual/sphere.h"

#include <cmath>
#include <utility>

namespace octavo {
namespace {

// Returns v / sqrt(sum of v^2 + eps) as an RMS norm with the weight 1 / sqrt(dim).
NormParameter unit_norm(float eps, std::int64_t dim) {
  const auto count = static_cast<float>(dim);
  return {.spec = {.kind = NormKind::rms, .eps = eps / count},
          .weight = constant_vector(std::vector(static_cast<std::size_t>(dim), 1 / std::sqrt(count))),
          .bias = {}};
}

NormParameter weighted_unit_norm(float eps, VectorParameter weight, NumberChange weight_of) {
  const auto count = static_cast<float>(weight.size);
  weight.change = [weight_of = std::move(weight_of), root = std::sqrt(count)](float s) {
    return weight_of(s) / root;
  };
  return {.spec = {.kind = NormKind::rms, .eps = eps / count}, .weight = std::move(weight), .bias = {}};
}

}  // namespace

SphereHalf::SphereHalf(std::unique_ptr<Block> block, const SphereStep& spec, const Namer& name,
                       const std::string& tensor, std::int64_t dim)
    : LayerHalf(std::move(block), {}, 1, dim),
      rest_(weighted_unit_norm(spec.eps, name.vector({tensor}, {dim}),
                               [scale = spec.scale](float s) { return 1 - std::abs(scale * s); })),
      share_(weighted_unit_norm(spec.out_eps, name.vector({tensor}, {dim}),
                                [scale = spec.scale](float s) { return std::abs(scale * s); })),
      unit_(unit_norm(spec.eps, dim)) {}

void SphereHalf::list(ParameterList& list) {
  LayerHalf::list(list);
  list.add(rest_, share_, unit_);
}

void SphereHalf::leave(const Step& step, const View& out) const {
  const View& residual = step.residual.rows();
  step.backend.ops.add_norm(*step.backend.stream,
                            {.residual = residual, .norm = rest_.norm(), .replace = true});
  step.backend.ops.add_norm(*step.backend.stream, {.residual = residual,
                                                   .delta = out,
                                                   .delta_norm = share_.norm(),
                                                   .norm = unit_.norm(),
                                                   .replace = true});
}

AddLoopStart::AddLoopStart(const LoopInput& spec, std::int64_t dim)
    : first_(spec.first), dim_(dim), unit_(unit_norm(spec.eps, dim)) {}

void AddLoopStart::reserve(Arena arena) const {
  arena.rows<LoopStart>(DType::f32, dim_);
  arena.every_row();
}

void AddLoopStart::run(const Step& step) const {
  const View& residual = step.residual.rows();
  step.residual.settle();
  if (first_)
    step.backend.ops.gather_rows(
        *step.backend.stream, {.x = residual, .rows = step.slot<EveryRow>(), .out = step.slot<LoopStart>()});
  step.backend.ops.add_norm(
      *step.backend.stream,
      {.residual = residual, .delta = step.slot<LoopStart>(), .norm = unit_.norm(), .replace = true});
}

}  // namespace octavo
