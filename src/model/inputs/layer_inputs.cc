#include "model/inputs/layer_inputs.h"

#include <cmath>
#include <numbers>

namespace octavo {
namespace {

// Maps each token id to the row of its vector. Ids without a vector, such as image tokens, get row 0.
std::vector<RowRange> rows_of_ids(const ModelSpec& spec) {
  const int own = spec.inputs.by_layer->vocab, media = spec.media.tower ? spec.media.token : -1;
  std::vector<RowRange> rows;
  int next = 0;
  if (media >= 0 && media < own) {
    rows = {{0, media}, {0, 1}};
    next = media + 1;
  }
  if (rows.empty() && own == spec.vocab) return rows;
  rows.push_back({next, own - next});
  rows.resize(rows.size() + static_cast<std::size_t>(spec.vocab - own), {0, 1});
  return rows;
}

}  // namespace

LayerInputsPhase::LayerInputsPhase(const ModelSpec& spec, const Namer& top)
    : layers_(std::ssize(spec.layers)), size_(spec.inputs.by_layer->size), dim_(spec.dim) {
  const Names& names = top.names;
  if (spec.inputs.by_layer->vocab > 0) {
    table_ = top.table(names.of<LayerInputs>().table, spec.inputs.by_layer->vocab, layers_ * size_,
                       MatrixUse::table);
    table_.rows = spec.vocab;
    table_.order = rows_of_ids(spec);
  }
  projection_ = top.linear({names.of<LayerInputs>().projection}, {layers_ * size_}, spec.dim, false);
  norm_ = top.norm(spec.inputs.by_layer->norm, names.of<LayerInputs>().norm, size_);
}

void LayerInputsPhase::list(ParameterList& list) { list.add(table_, projection_, norm_); }

void LayerInputsPhase::reserve(Arena arena) const {
  arena.rows<HalfInput>(arena.activation, dim_);
  arena.rows<LayerInputSums>(DType::f32, layers_ * size_);
  arena.rows<LayerInputProducts>(arena.activation, layers_ * size_);
  arena.rows<LayerInputRows>(arena.activation, layers_ * size_);
}

// Computes (norm(projection(embedding)) + table[id]) / sqrt(2) or, without a table,
// norm(projection(embedding)). Each layer's vector is normalised separately. The table is multiplied by
// sqrt(size).
void LayerInputsPhase::run(const Step& step) const {
  constexpr float kInverseRoot2 = std::numbers::sqrt2_v<float> / 2;
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const View x = step.slot<HalfInput>(), sums = step.slot<LayerInputSums>(),
             products = step.slot<LayerInputProducts>();
  const auto by_layer = [&](const View& all) {
    return View::of(all.data, all.dtype, {step.tokens() * layers_, size_});
  };
  step.residual.look({}, x);
  if (!table_.weight) {
    ops.matmul(stream, {.x = x, .w = *projection_.weight.weight, .y = sums});
    ops.add_norm(
        stream,
        {.residual = by_layer(sums), .norm = norm_.norm(), .out = by_layer(step.slot<LayerInputRows>())});
    return;
  }
  ops.embed(stream, {.ids = step.batch.ids,
                     .table = *table_.weight,
                     .scale = std::sqrt(static_cast<float>(size_)) * kInverseRoot2,
                     .out = sums});
  ops.matmul(stream, {.x = x, .w = *projection_.weight.weight, .y = products});
  ops.add_norm(stream, {.residual = by_layer(sums),
                        .delta = by_layer(products),
                        .delta_scale = kInverseRoot2,
                        .delta_norm = norm_.norm(),
                        .out = by_layer(step.slot<LayerInputRows>())});
}

}  // namespace octavo
