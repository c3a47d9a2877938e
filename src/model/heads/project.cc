#include "model/heads/project.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

// Returns the rows of the last `count` squares of the step as [count, any]. The rows of a square are
// concatenated.
View in_squares(const View& rows, std::int64_t count, std::int64_t square) {
  const std::int64_t patches = count * square;
  return View::of(rows.rows(rows.size(0) - patches, patches).data, rows.dtype,
                  {count, rows.size(1) * patches / count});
}

ProjectorLayers deep_projector(const ModelSpec& spec, std::size_t index) {
  const auto numbered = [index](const std::string& name) { return fmt::format(fmt::runtime(name), index); };
  std::vector<std::string> matrices;
  for (const std::string& name : spec.names.projector.deep) matrices.push_back(numbered(name));
  return {spec, spec.inputs.image->deep_projector, matrices, numbered(spec.names.projector.deep_norms)};
}

std::int64_t class_rows_of(const ModelSpec& spec) {
  return spec.inputs.image ? spec.inputs.image->classes.count : 0;
}

}  // namespace

ProjectorLayers::ProjectorLayers(const ModelSpec& spec, const Projector& projector,
                                 const std::vector<std::string>& matrices, const std::string& norm)
    : spec_(projector), dim_(projector.convolved > 0 ? projector.convolved : spec.dim) {
  const Namer name(spec.names, "");
  patch_norm_ = name.norm(projector.patch_norm, spec.names.projector.patch_norm, spec.dim);
  std::int64_t inputs = projector.mean ? spec.dim : std::int64_t{spec.dim} * spec.joined();
  norm_ = name.norm(projector.norm, norm, inputs);
  if (projector.merged) {
    merger_ = name.linear({spec.names.projector.merger}, {dim_}, inputs, projector.convolved > 0);
    merger_.weight.channels = spec.dim;
    if (projector.convolved > 0)
      merger_.weight.parts[0].shape = {dim_, spec.dim, spec.inputs.image->merge, spec.inputs.image->merge};
    inputs = dim_;
  }
  if (projector.mlp_hidden > 0) {
    add_mlp(spec, name, matrices, inputs);
    return;
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const int values = projector.gated ? 2 * projector.hidden : projector.hidden;
    const int outputs = i + 1 == matrices.size() ? spec.out_dim() : i == 0 ? values : projector.middle;
    LinearParameter& linear = matrices_.emplace_back();
    linear = name.linear({matrices[i]}, {outputs}, inputs, projector.bias);
    if (projector.transposed) linear.weight.parts[0] = {matrices[i], {inputs, outputs}};
    linear.weight.transposed = projector.transposed;
    if (i == 0 && projector.gated) {  // activations read the gates first
      linear.weight.order = {{projector.hidden, projector.hidden}, {0, projector.hidden}};
      if (projector.bias) linear.bias.order = linear.weight.order;
    }
    inputs = projector.gated ? projector.hidden : outputs;
  }
}

// Adds a matrix with a norm, and the gated MLP after it.
void ProjectorLayers::add_mlp(const ModelSpec& spec, const Namer& name,
                              const std::vector<std::string>& matrices, std::int64_t inputs) {
  const int hidden = spec_.hidden, units = spec_.mlp_hidden;
  hidden_norm_ = name.norm(spec_.hidden_norm, spec.names.projector.hidden_norm, hidden);
  matrices_.push_back(name.linear({matrices[0]}, {hidden}, inputs, spec_.bias));
  matrices_.push_back(name.linear({matrices[1], matrices[2]}, {units, units}, hidden, spec_.bias));
  matrices_.push_back(name.linear({matrices[3]}, {spec.out_dim()}, units, spec_.bias));
}

void ProjectorLayers::list(ParameterList& list) {
  list.add(patch_norm_, norm_, merger_, hidden_norm_, matrices_);
}

void ProjectorLayers::reserve(Scratch scratch, std::int64_t rows, DType activation) const {
  if (spec_.merged) scratch.take(activation, {rows, dim_});
  const std::int64_t hidden = spec_.hidden, units = spec_.mlp_hidden;
  scratch.take(activation, {rows, spec_.gated ? 2 * hidden : hidden});
  scratch.take(activation, {rows, hidden});
  if (spec_.middle > 0) scratch.take(activation, {rows, spec_.middle});
  if (spec_.activated_middle) scratch.take(activation, {rows, spec_.middle});
  if (units == 0) return;
  scratch.take(DType::f32, {rows, hidden});
  scratch.take(activation, {rows, 2 * units});
  scratch.take(activation, {rows, units});
}

void ProjectorLayers::run(const Step& step, Scratch scratch, View x, const View& out) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const auto product = [&](const LinearParameter& linear, const View& y) {
    ops.matmul(stream, {.x = x, .w = *linear.weight.weight, .bias = linear.bias.value, .y = y});
  };
  if (spec_.merged) {
    const View merged = scratch.take(x.dtype, {x.size(0), dim_});
    product(merger_, merged);
    x = merged;
  }
  const auto activated = [&](const View& values, Activation activation, bool gated) {
    const View y = scratch.take(x.dtype, {x.size(0), gated ? values.size(1) / 2 : values.size(1)});
    ops.activate(stream, {.x = values, .activation = activation, .gated = gated, .y = y});
    return y;
  };
  if (spec_.mlp_hidden > 0) {
    const View sums = scratch.take(DType::f32, {x.size(0), spec_.hidden});
    const View normed = scratch.take(x.dtype, {x.size(0), spec_.hidden});
    product(matrices_[0], sums);
    ops.add_norm(stream, {.residual = sums, .norm = hidden_norm_.norm(), .out = normed});
    x = activated(normed, *spec_.activation, false);
    const View values = scratch.take(x.dtype, {x.size(0), 2 * std::int64_t{spec_.mlp_hidden}});
    product(matrices_[1], values);
    x = activated(values, Activation::silu, true);
  } else if (spec_.activation) {
    const View hidden =
        scratch.take(x.dtype, {x.size(0), spec_.gated ? 2 * std::int64_t{spec_.hidden} : spec_.hidden});
    product(matrices_[0], hidden);
    x = activated(hidden, *spec_.activation, spec_.gated);
  }
  if (spec_.middle > 0) {
    const View next = scratch.take(x.dtype, {x.size(0), spec_.middle});
    product(matrices_[1], next);
    x = spec_.activated_middle ? activated(next, *spec_.activation, false) : next;
  }
  product(matrices_.back(), out);
}

ProjectHead::ProjectHead(const ModelSpec& spec, const Ends& ends)
    : ends_(ends),
      dim_(spec.dim),
      joined_(spec.joined()),
      class_rows_(class_rows_of(spec)),
      projector_(spec, spec.projector(), spec.names.projector.matrices, spec.names.projector.norm) {}

void ProjectHead::reserve(Arena arena) const {
  const std::int64_t count = arena.tokens / joined_;
  arena.rows<HalfInput>(arena.activation, dim_);
  Scratch scratch = arena.scratch;
  scratch.take(DType::f32, {count, dim_});
  scratch.take(arena.activation, {count, dim_ * joined_});
  projector_.reserve(scratch, count, arena.activation);
}

// Returns the input rows of the projector, act [count, any].
View ProjectHead::joined(const Step& step, Scratch& scratch, std::int64_t count, const View& starts) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const DType activation = step.slots.all<HalfInput>().dtype;
  if (projector_.spec().patch_norm.kind != NormKind::none) {
    norm_rows(step, ends_.final_norm);
    const View x = step.slot<HalfInput>();
    step.residual.look(projector_.patch_norm(), x);
    return in_squares(x, count, joined_);
  }
  if (!projector_.spec().mean && projector_.spec().norm.kind == NormKind::none)
    return in_squares(normed_rows(step, ends_.final_norm), count, joined_);
  norm_rows(step, ends_.final_norm);
  const View& residual = step.residual.rows();
  View sums = in_squares(residual, count, joined_);
  if (projector_.spec().mean) {
    const std::int64_t patches = count * sums.size(1) / dim_;
    sums = scratch.take(DType::f32, {count, dim_});
    ops.pool(stream, {.x = residual.rows(residual.size(0) - patches, patches),
                      .starts = starts,
                      .pool = Pool::mean,
                      .out = sums});
  }
  const View x = scratch.take(activation, {count, sums.size(1)});
  ops.add_norm(stream, {.residual = sums, .norm = projector_.norm(), .out = x});
  return x;
}

void ProjectHead::run(const Step& step, const View& starts, const View& out) const {
  Scratch scratch = step.scratch;
  const View x = joined(step, scratch, out.size(0), starts);
  projector_.run(step, scratch, x, out);
}

ProjectDeep::ProjectDeep(const ModelSpec& spec, std::size_t index)
    : dim_(spec.dim),
      square_(spec.inputs.image->square()),
      class_rows_(class_rows_of(spec)),
      first_column_(static_cast<std::int64_t>(index) * spec.inputs.image->out_dim),
      out_dim_(spec.inputs.image->out_dim),
      projector_(deep_projector(spec, index)) {}

void ProjectDeep::reserve(Arena arena) const {
  const std::int64_t count = arena.tokens / square_;
  Scratch scratch = arena.scratch;
  scratch.take(arena.activation, {count, dim_ * square_});
  projector_.reserve(scratch, count, arena.activation);
}

void ProjectDeep::run(const Step& step) const {
  step.residual.settle();
  const StepRows& rows = step.rows;
  const std::int64_t first = std::max<std::int64_t>(0, rows.first - class_rows_) / square_;
  const std::int64_t count = (rows.first + rows.count - class_rows_) / square_ - first;
  Scratch scratch = step.scratch;
  const View squares = in_squares(step.residual.rows(), count, square_);
  const View x = scratch.take(step.slots.all<HalfInput>().dtype, {count, squares.size(1)});
  step.backend.ops.add_norm(*step.backend.stream, {.residual = squares, .norm = projector_.norm(), .out = x});
  projector_.run(step, scratch, x, step.batch.deep.rows(first, count).columns(first_column_, out_dim_));
}

}  // namespace octavo
