#include "model/heads/pool.h"

#include <algorithm>

namespace octavo {

int pooled_size(const ModelSpec& spec, std::size_t head) {
  CHECK(head < spec.heads(), "{} has {} heads", spec.architecture, spec.heads());
  const Head& of = spec.head_at(head);
  return of.layers.empty() ? spec.dim : of.layers.back().outputs;
}

PoolHeads::PoolHeads(const ModelSpec& spec, const Ends& ends) : ends_(ends), dim_(spec.dim) {
  const Names plain;  // not transposed: the matrices of heads are stored as [outputs, inputs]
  const Namer name(plain, "");
  for (std::size_t i = 0; i < spec.heads(); ++i) {
    const Head& of = spec.head_at(i);
    heads_.push_back({.pool = of.pool, .layers = {}});
    Layers& head = heads_.back();
    std::int64_t inputs = spec.dim;
    for (const HeadLayer& layer : of.layers) {
      const int stored = layer.rows.empty() ? layer.outputs : layer.table > 0 ? layer.table : spec.vocab;
      head.layers.push_back({.spec = layer,
                             .linear = name.linear({layer.name}, {stored}, inputs, layer.bias),
                             .norm = name.norm(layer.norm, layer.norm_name, layer.outputs)});
      if (!layer.bias_name.empty())
        head.layers.back().linear.bias = name.vector({layer.bias_name}, {layer.outputs});
      inputs = layer.outputs;
      if (layer.rows.empty()) continue;
      std::vector<RowRange> rows;
      for (const int row : layer.rows) rows.push_back({row, 1});
      MatrixParameter& weight = head.layers.back().linear.weight;
      keep_rows(weight, rows);
      weight.difference = layer.difference;
      weight.rows = layer.outputs;
      weight.use = MatrixUse::plain;
    }
  }
}

void PoolHeads::list(ParameterList& list) {
  for (Layers& head : heads_)
    for (Layer& layer : head.layers) {
      list.add(layer.linear, layer.norm);
    }
}

void PoolHeads::reserve(Arena arena) const {
  const std::int64_t rows = arena.logit_rows;
  arena.slots.add<HeadRows>(DType::f32, {rows, dim_});
  arena.slots.add<HeadFactors>(arena.activation, {rows, dim_});
  for (const Layers& head : heads_) {
    Scratch scratch = arena.scratch;
    for (const Layer& layer : head.layers) {
      const std::int64_t outputs = layer.spec.outputs;
      for (int i = 0; i < 3; ++i) scratch.take(arena.activation, {rows, outputs});
      scratch.take(DType::f32, {rows, outputs});
      if (layer.spec.activation || layer.spec.norm.kind != NormKind::none)
        arena.slots.add<HeadZeros>(DType::f32, {rows * outputs});
    }
  }
}

void PoolHeads::run(const Step& step, std::size_t index, const View& starts, const View& out) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const Layers& head = heads_[index];
  const std::int64_t count = out.size(0);
  const View pooled = head.layers.empty() ? out : step.slots.all<HeadRows>().rows(0, count);
  ops.pool(stream, {.x = step.residual.rows(), .starts = starts, .pool = head.pool, .out = pooled});
  if (head.layers.empty()) return;
  View x = step.slots.all<HeadFactors>().rows(0, count);
  ops.add_norm(stream, {.residual = pooled, .out = x});
  Scratch scratch = step.scratch;
  for (const Layer& layer : head.layers)
    x = run_layer(step, layer, scratch, x, &layer == &head.layers.back() ? out : View());
}

// Runs a layer and returns its output in the format of activations. The last layer writes f32 to `out`.
View PoolHeads::run_layer(const Step& step, const Layer& layer, Scratch& scratch, View x, const View& out) {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const HeadLayer& spec = layer.spec;
  const std::int64_t count = x.size(0);
  const bool normed = spec.norm.kind != NormKind::none;
  const bool plain = !spec.activation && !normed;
  const View product = plain && out ? out : scratch.take(x.dtype, {count, spec.outputs});
  ops.matmul(stream,
             {.x = x, .w = *layer.linear.weight.weight, .bias = layer.linear.bias.value, .y = product});
  x = product;
  if (spec.activation) {
    const View y = scratch.take(x.dtype, {count, spec.outputs});
    ops.activate(stream, {.x = x, .activation = *spec.activation, .gated = false, .y = y});
    x = y;
  }
  if (plain || (!normed && !out)) return x;
  // Norms read f32 rows, so x is converted to f32 by adding it to zeros.
  const View sum = out ? out : scratch.take(DType::f32, {count, spec.outputs});
  const View next = out ? View() : scratch.take(x.dtype, {count, spec.outputs});
  const View zeros = View::of(step.slots.all<HeadZeros>().data, DType::f32, {count, spec.outputs});
  step.backend.device->copy(stream, sum, zeros);
  ops.add_norm(stream,
               {.residual = sum, .delta = x, .norm = layer.norm.norm(), .replace = normed, .out = next});
  return next;
}

}  // namespace octavo
