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
