#include "model/inputs/hidden.h"

#include <utility>

namespace octavo {

HiddenRowsInput::HiddenRowsInput(const ModelSpec& spec, const Namer& top, const Namer& first)
    : spec_(*spec.inputs.hidden), dim_(spec.dim) {
  const Names& names = top.names;
  if (spec_.joined)
    token_norm_ = top.norm(spec_.token_norm, names.hidden.token_norm, dim_);
  else
    token_norm_ = first.norm(spec.layers[0].pre_norm, names.attention.norm, dim_);
  hidden_norm_ = top.norm(spec_.hidden_norm, names.hidden.hidden_norm, spec_.joined ? spec_.dim : dim_);
  const std::int64_t row = spec_.row();
  joint_ = top.linear({names.hidden.joint}, {dim_}, spec_.joined ? dim_ + row : row, spec_.joint_bias);
}

void HiddenRowsInput::list(ParameterList& list) { list.add(token_norm_, hidden_norm_, joint_); }

void HiddenRowsInput::reserve(Arena arena) const {
  const std::int64_t row = spec_.row();
  arena.rows<HiddenRows>(DType::f32, std::max(dim_, row));
  if (!spec_.joined) arena.rows<HiddenFactors>(arena.activation, row);
  arena.rows<JointRows>(arena.activation, dim_ + (spec_.joined ? row : dim_));
  arena.every_row();
}

void HiddenRowsInput::multiply(Backend& backend, const View& x, const View& y) const {
  backend.ops.matmul(*backend.stream,
                     {.x = x, .w = *joint_.weight.weight, .bias = joint_.bias.value, .y = y});
}

void HiddenRowsInput::read(Backend& backend, const Slots& slots, const HiddenSource& from,
                           const View& rows) const {
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;
  const std::int64_t n = rows.size(0);
  const View hidden = slots.all<HiddenRows>().rows(0, n);
  const std::int64_t dim = from.residual.size(1);
  for (std::size_t i = 0; i < from.kept.size(); ++i)
    ops.gather_rows(
        stream,
        {.x = from.kept[i], .rows = rows, .out = hidden.columns(static_cast<std::int64_t>(i) * dim, dim)});
  if (from.kept.empty()) {
    const View row = hidden.columns(0, dim);
    ops.gather_rows(stream, {.x = from.residual, .rows = rows, .out = row});
    if (from.final_norm.kind != NormKind::none && (!from.own || spec_.normed_output))
      ops.add_norm(stream, {.residual = row, .norm = from.final_norm, .replace = true});
  }
  if (spec_.joined || from.own) return;
  const View factors = slots.all<HiddenFactors>().rows(0, n);
  ops.add_norm(stream, {.residual = hidden.columns(0, spec_.row()), .out = factors});
  multiply(backend, factors, hidden.columns(0, dim_));
}

void HiddenRowsInput::run(const Step& step) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const std::int64_t row = spec_.row();
  const View& residual = step.residual.rows();
  const View joint = step.slot<JointRows>(), hidden = step.slot<HiddenRows>();
  if (spec_.joined) {
    ops.add_norm(stream, {.residual = residual,
                          .norm = token_norm_.norm(),
                          .out = joint.columns(spec_.hidden_first ? row : 0, dim_)});
    ops.add_norm(stream, {.residual = hidden.columns(0, row),
                          .norm = hidden_norm_.norm(),
                          .out = joint.columns(spec_.hidden_first ? 0 : dim_, row)});
    return multiply(step.backend, joint, residual);
  }
  ops.add_norm(stream, {.residual = residual, .norm = token_norm_.norm(), .out = joint.columns(0, dim_)});
  ops.gather_rows(stream, {.x = hidden.columns(0, dim_), .rows = step.slot<EveryRow>(), .out = residual});
  ops.add_norm(stream, {.residual = residual,
                        .norm = hidden_norm_.norm(),
                        .replace = spec_.normed_residual,
                        .out = joint.columns(dim_, dim_)});
}

void RowKeeper::reserve(Arena arena) const {
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) arena.rows<KeptRows>(DType::f32, dim_, i);
  if (!layers_.empty()) arena.every_row();
}

void RowKeeper::before(std::size_t layer, const Step& step) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!std::cmp_equal(layers_[i], layer)) continue;
    step.residual.take_in();
    step.backend.ops.gather_rows(*step.backend.stream, {.x = step.residual.rows(),
                                                        .rows = step.slot<EveryRow>(),
                                                        .out = step.slot<KeptRows>(static_cast<int>(i))});
  }
}

std::vector<View> RowKeeper::kept(const Slots& slots) const {
  std::vector<View> kept;
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) kept.push_back(slots.all<KeptRows>(i));
  return kept;
}

}  // namespace octavo
