#include "model/residual/sources.h"

namespace octavo {

SourceMix::SourceMix(const AttendedSources& spec, std::int64_t dim, const Namer& name,
                     const std::string& tensor, int banked, bool residual)
    : dim_(dim), eps_(spec.norm.eps), banked_(banked), residual_(residual) {
  if (tensor.empty()) {
    query_ = constant_vector(std::vector(static_cast<std::size_t>(dim), 0.0F));
    return;
  }
  query_ = name.vector({tensor + "_norm_weight"}, {dim});
  query_.scale = name.vector({tensor + "_proj.weight"}, {dim}).parts[0];
  query_.scale->shape = {1, dim};
}

void SourceMix::mix(const Step& step, const View& out) const {
  const View bank = step.slot<SourceBank>();
  View sources = View::of(bank.data, bank.dtype, {step.tokens(), bank.size(1) / dim_, dim_});
  sources.shape[1] = banked_;
  step.backend.ops.mix_sources(*step.backend.stream, {.x = sources,
                                                      .last = residual_ ? step.residual.rows() : View{},
                                                      .query = query_.value,
                                                      .eps = eps_,
                                                      .out = out});
}

SourceScheme::SourceScheme(const AttendedSources& spec, const Namer& top, std::int64_t dim, int layers)
    : ResidualScheme(dim),
      sources_((layers + spec.group - 1) / spec.group),
      output_(spec, dim, top, top.names.of<AttendedSources>().output, sources_, true) {}

void SourceScheme::reserve(Arena arena) const {
  ResidualScheme::reserve(arena);
  arena.rows<SourceBank>(DType::f32, sources_ * dim());
}

void SourceScheme::end(const Step& step) const {
  step.residual.take_in();
  output_.mix(step, step.residual.rows());
}

void BankResidual::run(const Step& step) const {
  step.residual.take_in();
  step.backend.ops.gather_rows(*step.backend.stream,
                               {.x = step.residual.rows(),
                                .rows = step.slot<EveryRow>(),
                                .out = step.slot<SourceBank>().columns(index_ * dim_, dim_)});
  step.residual.scale(zero_.value);
}

void SourceHalf::list(ParameterList& list) {
  LayerHalf::list(list);
  mix_.list(list);
}

void SourceHalf::reserve(Arena arena) const {
  LayerHalf::reserve(arena);
  arena.rows<MixedRows>(DType::f32, dim());
}

View SourceHalf::enter(const Step& step) const {
  const View x = step.slot<HalfInput>(), mixed = step.slot<MixedRows>();
  step.residual.take_in();
  mix_.mix(step, mixed);
  step.backend.ops.add_norm(*step.backend.stream, {.residual = mixed, .norm = norms().pre.norm(), .out = x});
  return x;
}

}  // namespace octavo
