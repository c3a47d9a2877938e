// Networks of images and sound, and their rows in a text: patches and positions in front of the layers,
// projectors behind them and between.
#include <algorithm>
#include <utility>

#include "model/decoder.h"

namespace octavo {

// What the layer itself has put out is still pending, so that the order of the sum is the same for a token
// whatever else is in the step.
void Decoder::add_deep_rows(std::size_t layer, std::span<const ImageRows> images) {
  const std::int64_t dim = model_.spec.dim, column = static_cast<std::int64_t>(layer + 1) * dim;
  for (const ImageRows& image : images) {
    if (column >= image.x.size(1)) return;
    backend_.ops.add_norm(*backend_.stream, {.residual = residual_.all.rows(image.token, image.x.size(0)),
                                             .delta = image.x.columns(column, dim)});
  }
}

void Decoder::embed_patches(const ForwardBatch& batch) {
  const Network& network = model_.network;
  const bool placed = network.positions.weight != nullptr;
  const View delta = placed ? delta_.rows(rows_) : residual_.rows(rows_);
  const auto product = [&](std::int64_t first, std::int64_t count, const View& bias) {
    backend_.ops.matmul(*backend_.stream, {.x = batch.patches.rows(first, count),
                                           .w = *network.patches.weight.weight,
                                           .bias = bias,
                                           .y = delta.rows(first, count)});
  };
  // The class token's patch is all zeros and has no bias.
  const std::int64_t first = class_rows();
  if (first > 0) product(0, first, {});
  product(first, rows_.count - first, network.patches.bias.value);
  if (placed) embed_positions(batch, delta);
}

// Positions, and then what is added to them. A class token is the first row, whose patch is all zeros.
void Decoder::embed_positions(const ForwardBatch& batch, const View& added) {
  const Network& network = model_.network;
  const View residual = residual_.rows(rows_);
  if (batch.placed)
    backend_.ops.gather_rows(*backend_.stream, {.x = batch.placed, .rows = batch.positions, .out = residual});
  else
    backend_.ops.embed(*backend_.stream,
                       {.ids = batch.positions, .table = *network.positions.weight, .out = residual});
  if (network.class_token.weight) {
    const View first = batch.positions.rows(0, 1);
    backend_.ops.embed(*backend_.stream, {.ids = first,
                                          .table = *network.class_token.weight,
                                          .position_table = network.positions.weight.get(),
                                          .positions = first,
                                          .out = residual_.rows(1)});
  }
  pending_ = {.delta = added, .norm = {}};
}

// Of rows, the last of the part: those of each square side by side, [count, any].
View Decoder::in_squares(const View& rows, std::int64_t count) const {
  const std::int64_t patches = count * model_.spec.joined();
  return View::of(rows.rows(rows_.count - patches, patches).data, rows.dtype,
                  {count, rows.size(1) * patches / count});
}

// The rows that the projector takes, act [count, any].
View Decoder::joined(Scratch& scratch, std::int64_t count, const View& starts) {
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
  const Projector& projector = model_.spec.projector();
  if (!projector.mean && projector.norm.kind == NormKind::none) return in_squares(rows(), count);
  const View residual = residual_.rows(rows_);
  if (const Norm norm = model_.network.final_norm.norm(); norm.kind != NormKind::none)
    ops.add_norm(stream, {.residual = residual, .norm = norm, .replace = true});
  View sums = in_squares(residual, count);
  if (projector.mean) {
    const std::int64_t patches = count * sums.size(1) / model_.spec.dim;
    sums = scratch.take(DType::f32, {count, model_.spec.dim});
    ops.pool(stream, {.x = residual.rows(rows_.count - patches, patches),
                      .starts = starts,
                      .pool = Pool::mean,
                      .out = sums});
  }
  const View x = scratch.take(model_.activation, {count, sums.size(1)});
  ops.add_norm(stream, {.residual = sums, .norm = model_.network.projector.norm.norm(), .out = x});
  return x;
}

void Decoder::project(std::int64_t first, const View& out, const View& starts) {
  const std::int64_t square = model_.spec.joined();
  const StepRows all = std::exchange(rows_, {class_rows() + first * square, out.size(0) * square});
  Scratch scratch(scratch_.all);
  const View x = joined(scratch, out.size(0), starts);
  run_projector(model_.spec.projector(), model_.network.projector, scratch, x, out);
  rows_ = all;
}

void Decoder::project_rows(const View& x, const View& out) {
  Scratch scratch(scratch_.all);
  run_projector(model_.spec.projector(), model_.network.projector, scratch, x, out);
}

// Where the layer is a deep one.
void Decoder::project_deep(std::size_t layer, const View& deep) {
  const ImageInput& image = *model_.spec.image;
  const auto found = std::ranges::find(image.deep_layers, static_cast<int>(layer));
  if (found == image.deep_layers.end()) return;
  const auto index = found - image.deep_layers.begin();
  const ProjectorParameter& projector = model_.network.deep_projectors[static_cast<std::size_t>(index)];
  add(std::exchange(pending_, {}), {}, {});
  Scratch scratch(scratch_.all);
  const View squares = in_squares(residual_.rows(rows_), deep.size(0));
  const View x = scratch.take(model_.activation, {deep.size(0), squares.size(1)});
  backend_.ops.add_norm(*backend_.stream, {.residual = squares, .norm = projector.norm.norm(), .out = x});
  run_projector(image.deep_projector, projector, scratch, x,
                deep.columns(index * image.out_dim, image.out_dim));
}

void Decoder::run_projector(const Projector& spec, const ProjectorParameter& projector, Scratch& scratch,
                            View x, const View& out) {
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
  const auto product = [&](const LinearParameter& linear, const View& y) {
    ops.matmul(stream, {.x = x, .w = *linear.weight.weight, .bias = linear.bias.value, .y = y});
  };
  if (spec.merged) {
    const View merged = scratch.take(x.dtype, {x.size(0), model_.spec.dim});
    product(projector.merger, merged);
    x = merged;
  }
  if (spec.activation) {
    const View hidden = scratch.take(x.dtype, {x.size(0), spec.hidden});
    product(projector.matrices[0], hidden);
    x = scratch.take(x.dtype, {x.size(0), spec.hidden});
    ops.activate(stream, {.x = hidden, .activation = *spec.activation, .gated = false, .y = x});
  }
  product(projector.matrices.back(), out);
}

// Before and behind it nothing is pending, so that each part finds the same.
template <typename Function>
void Decoder::on_part(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                      StepRows part, const Function& function) {
  const auto settle = [&] {
    if (pending_.delta || pending_.norm.kind != NormKind::none) add(std::exchange(pending_, {}), {}, {});
  };
  settle();
  const StepRows all = std::exchange(rows_, part);
  take_ropes();
  StepContext step = context(batch);
  enter(layer, batch, cache, step);
  function(step);
  settle();
  rows_ = all;
  take_ropes();
}

void Decoder::store_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                         StepRows part) {
  on_part(batch, cache, layer, part, [&](const StepContext& step) {
    const Layer& of = model_.network.layers[layer];
    add({}, of.mixer_norm.norm(), x_.rows(rows_));
    of.mixer->store_rows(step, x_.rows(rows_));
  });
}

void Decoder::run_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                       StepRows part) {
  on_part(batch, cache, layer, part, [&](const StepContext& step) {
    run_layer(model_.spec.layers[layer], model_.network.layers[layer], step);
    if (!batch.deep) return;
    const std::int64_t square = model_.spec.image->square(), extra = class_rows();
    const std::int64_t first = std::max<std::int64_t>(0, part.first - extra) / square;
    project_deep(layer, batch.deep.rows(first, (part.first + part.count - extra) / square - first));
  });
}

}  // namespace octavo
