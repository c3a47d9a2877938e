#include "model/residual/across_layers.h"

namespace octavo {

void KeepResidual::reserve(Arena arena) const {
  arena.rows<EarlierResidual>(DType::f32, dim_, layer_);
  arena.every_row();
}

void KeepResidual::run(const Step& step) const {
  step.residual.take_in();
  step.backend.ops.gather_rows(
      *step.backend.stream,
      {.x = step.residual.rows(), .rows = step.slot<EveryRow>(), .out = step.slot<EarlierResidual>(layer_)});
}

void BlendResidual::run(const Step& step) const {
  step.residual.settle();
  step.backend.ops.add_norm(*step.backend.stream, {.residual = step.residual.rows(),
                                                   .delta = step.slot<EarlierResidual>(spec_.layer),
                                                   .delta_scale = spec_.share / (1 - spec_.share),
                                                   .residual_scale = rest_.value});
}

JoinedStates::JoinedStates(const JoinStates& spec, const Namer& top, std::int64_t dim)
    : spec_(spec), dim_(dim) {
  if (!spec.first) {
    norm_ = top.norm(spec.norm, "", dim);
    return;
  }
  start_ = {.spec = {.kind = NormKind::affine},
            .weight = constant_vector(std::vector(static_cast<std::size_t>(dim), 0.0F)),
            .bias = top.vector({top.names.of<JoinStates>().start}, {dim})};
}

void JoinedStates::reserve(Arena arena) const {
  arena.rows<LoopState>(DType::f32, dim_, spec_.kept);
  arena.every_row();
  reserve_half(arena, dim_);
}

void JoinedStates::run(const Step& step) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const View& residual = step.residual.rows();
  if (spec_.first)
    step.residual.settle();
  else
    step.residual.replace(norm_.norm(), {});
  ops.gather_rows(stream,
                  {.x = residual, .rows = step.slot<EveryRow>(), .out = step.slot<LoopState>(spec_.kept)});
  const View start = step.slot<HalfInput>();
  if (spec_.first) ops.add_norm(stream, {.residual = residual, .norm = start_.norm(), .out = start});
  ops.add_norm(stream,
               {.residual = residual, .delta = spec_.first ? start : step.slot<LoopState>(spec_.added)});
}

void Shortcut::reserve(Arena arena) const {
  arena.rows<ShortcutOutput>(arena.sums, dim_);
  block_->reserve(arena);
}

void Shortcut::run(const Step& step) const {
  run_on_ranks(step, *block_, step.slot<HalfInput>(), step.slot<ShortcutOutput>());
}

void EndShortcut::run(const Step& step) const {
  step.residual.take_in();
  step.residual.put({.delta = step.slot<ShortcutOutput>()});
}

}  // namespace octavo
