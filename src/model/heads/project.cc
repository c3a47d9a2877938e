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
  // GGUF files have the index of the layer.
  const int number = spec.names.gguf ? spec.inputs.image->deep_layers[index] : static_cast<int>(index);
  const auto numbered = [number](const std::string& name) { return fmt::format(fmt::runtime(name), number); };
  std::vector<std::string> matrices;
  for (const std::string& name : spec.names.projector.deep) matrices.push_back(numbered(name));
  return {spec, spec.inputs.image->deep_projector, matrices, numbered(spec.names.projector.deep_norms)};
}

// Maximum number of rows whose scores of words are in memory at a time.
constexpr std::int64_t kWordRows = 64;

void multiply(const Step& step, const LinearParameter& matrix, const View& x, const View& y) {
  step.backend.ops.matmul(*step.backend.stream,
                          {.x = x, .w = *matrix.weight.weight, .bias = matrix.bias.value, .y = y});
}

View activated(const Step& step, Scratch& scratch, const View& x, Activation activation, bool gated) {
  const View y = scratch.take(x.dtype, {x.size(0), gated ? x.size(1) / 2 : x.size(1)});
  step.backend.ops.activate(*step.backend.stream, {.x = x, .activation = activation, .gated = gated, .y = y});
  return y;
}

std::int64_t class_rows_of(const ModelSpec& spec) {
  return spec.inputs.image ? spec.inputs.image->classes.count : 0;
}

}  // namespace

ProjectorLayers::ProjectorLayers(const ModelSpec& spec, const Projector& projector,
                                 const std::vector<std::string>& matrices, const std::string& norm)
    : spec_(projector),
      dim_(projector.convolved > 0 ? projector.convolved : spec.dim),
      joined_(spec.joined()) {
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
  if (projector.patch_hidden > 0) {
    const std::vector<std::string>& patch = spec.names.projector.patch_matrices;
    patch_matrices_.push_back(name.linear({patch[0]}, {projector.patch_hidden}, spec.dim, projector.bias));
    patch_matrices_.push_back(
        name.linear({patch[1]}, {spec.out_dim()}, projector.patch_hidden, projector.bias));
    inputs = std::int64_t{spec.out_dim()} * spec.joined();
  }
  if (projector.words)
    add_words(spec, name, matrices, inputs);
  else if (projector.mlp_hidden > 0)
    add_mlp(spec, name, matrices, inputs);
  else
    add_matrices(spec, name, matrices, inputs);
}

// Adds matrices with activations in between.
void ProjectorLayers::add_matrices(const ModelSpec& spec, const Namer& name,
                                   const std::vector<std::string>& matrices, std::int64_t inputs) {
  const Projector& projector = spec_;
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

void ProjectorLayers::add_words(const ModelSpec& spec, const Namer& name,
                                const std::vector<std::string>& matrices, std::int64_t inputs) {
  const std::int64_t words = spec_.hidden, all = words + kMarkRows;
  hidden_norm_ = name.norm(spec_.hidden_norm, spec.names.projector.hidden_norm, words);
  matrices_.push_back(name.linear({matrices[0]}, {words}, inputs, spec_.bias));
  LinearParameter& table = matrices_.emplace_back(name.linear({matrices[1]}, {spec.out_dim()}, all, false));
  std::ranges::reverse(table.weight.parts[0].shape);
  table.weight.transposed = true;
}

void ProjectorLayers::list(ParameterList& list) {
  list.add(patch_norm_, norm_, patch_matrices_, merger_, hidden_norm_, matrices_);
}

void ProjectorLayers::reserve(Scratch scratch, std::int64_t rows, DType activation) const {
  const std::int64_t hidden = spec_.hidden, units = spec_.mlp_hidden;
  if (spec_.words) {
    rows = std::min(rows, kWordRows);
    scratch.take(DType::f32, {rows, hidden});
    scratch.take(activation, {rows, hidden});
    scratch.take(activation, {rows, hidden + kMarkRows});
    return;
  }
  if (spec_.patch_hidden > 0) {
    scratch.take(activation, {rows * joined_, spec_.patch_hidden});
    scratch.take(activation, {rows * joined_, spec_.patch_hidden});
    scratch.take(activation, {rows * joined_, patch_matrices_[1].weight.rows});
  }
  if (spec_.merged) scratch.take(activation, {rows, dim_});
  scratch.take(activation, {rows, spec_.gated ? 2 * hidden : hidden});
  scratch.take(activation, {rows, hidden});
  if (spec_.middle > 0) scratch.take(activation, {rows, spec_.middle});
  if (spec_.activated_middle) scratch.take(activation, {rows, spec_.middle});
  if (units == 0) return;
  scratch.take(DType::f32, {rows, hidden});
  scratch.take(activation, {rows, 2 * units});
  scratch.take(activation, {rows, units});
}

// Returns the output of the matrices of each patch, joined.
View ProjectorLayers::run_patches(const Step& step, Scratch& scratch, const View& x) const {
  const std::int64_t patches = x.size(0) * joined_, columns = patch_matrices_[1].weight.rows;
  const View hidden = scratch.take(x.dtype, {patches, spec_.patch_hidden});
  multiply(step, patch_matrices_[0], View::of(x.data, x.dtype, {patches, dim_}), hidden);
  const View inner = activated(step, scratch, hidden, *spec_.activation, false);
  const View y = scratch.take(x.dtype, {patches, columns});
  multiply(step, patch_matrices_[1], inner, y);
  return View::of(y.data, y.dtype, {x.size(0), joined_ * columns});
}

void ProjectorLayers::run_words(const Step& step, const Scratch& scratch, const View& x,
                                const View& out) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  for (std::int64_t first = 0; first < x.size(0); first += kWordRows) {
    Scratch own = scratch;
    const std::int64_t count = std::min(kWordRows, x.size(0) - first), words = spec_.hidden;
    const View sums = own.take(DType::f32, {count, words});
    const View scores = own.take(x.dtype, {count, words});
    const View shares = own.take(x.dtype, {count, words + kMarkRows});
    multiply(step, matrices_[0], x.rows(first, count), sums);
    ops.add_norm(stream, {.residual = sums, .norm = hidden_norm_.norm(), .out = scores});
    ops.softmax(stream, {.x = scores, .y = shares});
    multiply(step, matrices_[1], shares, out.rows(first, count));
  }
}

void ProjectorLayers::run(const Step& step, Scratch scratch, View x, const View& out) const {
  if (spec_.words) return run_words(step, scratch, x, out);
  if (spec_.patch_hidden > 0) x = run_patches(step, scratch, x);
  if (spec_.merged) {
    const View merged = scratch.take(x.dtype, {x.size(0), dim_});
    multiply(step, merger_, x, merged);
    x = merged;
  }
  if (spec_.mlp_hidden > 0) {
    const View sums = scratch.take(DType::f32, {x.size(0), spec_.hidden});
    const View normed = scratch.take(x.dtype, {x.size(0), spec_.hidden});
    multiply(step, matrices_[0], x, sums);
    step.backend.ops.add_norm(*step.backend.stream,
                              {.residual = sums, .norm = hidden_norm_.norm(), .out = normed});
    x = activated(step, scratch, normed, *spec_.activation, false);
    const View values = scratch.take(x.dtype, {x.size(0), 2 * std::int64_t{spec_.mlp_hidden}});
    multiply(step, matrices_[1], x, values);
    x = activated(step, scratch, values, Activation::silu, true);
  } else if (spec_.activation) {
    const View hidden =
        scratch.take(x.dtype, {x.size(0), spec_.gated ? 2 * std::int64_t{spec_.hidden} : spec_.hidden});
    multiply(step, matrices_[0], x, hidden);
    x = activated(step, scratch, hidden, *spec_.activation, spec_.gated);
  }
  if (spec_.middle > 0) {
    const View next = scratch.take(x.dtype, {x.size(0), spec_.middle});
    multiply(step, matrices_[1], x, next);
    x = spec_.activated_middle ? activated(step, scratch, next, *spec_.activation, false) : next;
  }
  multiply(step, matrices_.back(), x, out);
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
