#include "model/inputs/tokens.h"

#include <algorithm>

#include "dist/process_group.h"
#include "model/adapter.h"

namespace octavo {

void RotaryInput::reserve(Arena arena) const {
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    arena.rows<Cosines>(DType::f32, ropes_[i].rotary_dim / 2, static_cast<int>(i));
    arena.rows<Sines>(DType::f32, ropes_[i].rotary_dim / 2, static_cast<int>(i));
  }
}

// If a rope has several axes, consecutive pairs of the same axis are computed together.
void RotaryInput::run(const Step& step) const {
  const View& all_axes = step.batch.axes;
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    const Rope rope = step.rope(static_cast<int>(i));
    const Frequencies& frequencies = step.rotation.frequencies[i];
    const auto compute = [&](const View& positions, std::int64_t pair, std::int64_t count) {
      step.backend.ops.angles(*step.backend.stream, {.positions = positions,
                                                     .frequencies = frequencies.each.rows(pair, count),
                                                     .scale = frequencies.scale,
                                                     .cos = rope.cos.columns(pair, count),
                                                     .sin = rope.sin.columns(pair, count)});
    };
    const std::vector<std::int32_t>& axes = ropes_[i].axes;
    if (axes.empty() || !all_axes) {
      compute(step.positions(), 0, rope.rotary_dim / 2);
      continue;
    }
    const auto on_axis = [&](std::int32_t axis) {
      return View::of(all_axes.rows(axis, 1).data, all_axes.dtype, {step.tokens()});
    };
    if (all_axes.size(0) == 1) {
      compute(on_axis(0), 0, rope.rotary_dim / 2);
      continue;
    }
    for (auto run = axes.begin(); run != axes.end();) {
      const auto end = std::ranges::find_if(run, axes.end(), [&](std::int32_t axis) { return axis != *run; });
      compute(on_axis(*run), run - axes.begin(), end - run);
      run = end;
    }
  }
}

MatrixParameter learned_positions(const ModelSpec& spec, const Namer& top) {
  if (spec.embedding.learned_positions == 0) return {};
  MatrixParameter positions =
      top.table(top.names.embedding.positions, spec.embedding.learned_positions, spec.dim, MatrixUse::plain);
  if (spec.embedding.first_position > 0) {
    positions.rows -= spec.embedding.first_position;
    positions.order = {{spec.embedding.first_position, positions.rows}};
  }
  return positions;
}

TokenInput::TokenInput(const ModelSpec& spec, const Namer& top, const Ends& ends)
    : ends_(ends),
      first_id_(static_cast<std::int32_t>(spec.shard.first(spec.vocab))),
      split_(spec.shard.size > 1),
      positions_(learned_positions(spec, top)) {
  if (spec.embedding.token_types > 0)
    types_ =
        top.table(top.names.embedding.token_types, spec.embedding.token_types, spec.dim, MatrixUse::plain);
}

void TokenInput::list(ParameterList& list) { list.add(positions_, types_); }

void TokenInput::reserve(Arena arena) const {
  if (split_) arena.slots.add<OwnIds>(DType::i32, {arena.tokens});
}

View TokenInput::own_ids(const Step& step) const {
  const View own = step.slot<OwnIds>();
  step.backend.ops.own_ids(*step.backend.stream, {.ids = step.batch.ids, .rows = own_rows(), .own = own});
  return own;
}

void TokenInput::run(const Step& step) const {
  const ForwardBatch& batch = step.batch;
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const View& residual = step.residual.rows();
  const View ids = split_ ? own_ids(step) : batch.ids;
  ops.embed(stream, {.ids = ids,
                     .table = ends_.table(),
                     .scale = ends_.embed_scale,
                     .position_table = positions_.weight.get(),
                     .positions = batch.positions,
                     .type_table = types_.weight.get(),
                     .types = batch.token_types,
                     .out = residual});
  if (batch.adapters != nullptr)
    add_embedding_changes(step.backend, *batch.adapters, step.adapter_scratch, ids, residual);
  for (const ImageRows& image : batch.images)
    ops.gather_rows(stream, {.x = image.x.columns(0, residual.size(1)),
                             .rows = image.rows,
                             .out = residual.rows(image.token, image.rows.size(0))});
  if (!split_) return;
  ops.keep_own_rows(stream, {.ids = batch.ids, .rows = own_rows(), .x = residual});
  step.ranks->all_reduce({residual.as<float>(), static_cast<std::size_t>(residual.elements())});
}

// The layer's output is still pending, so the order of additions for a token does not depend on other tokens
// of the step.
void AddDeepRows::run(const Step& step) const {
  const std::int64_t column = static_cast<std::int64_t>(layer_ + 1) * dim_;
  for (const ImageRows& image : step.batch.images)
    step.backend.ops.add_norm(*step.backend.stream,
                              {.residual = step.residual.all().rows(image.token, image.x.size(0)),
                               .delta = image.x.columns(column, dim_)});
}

}  // namespace octavo
