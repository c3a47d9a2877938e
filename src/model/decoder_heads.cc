// What becomes of rows behind the layers: logits, and the vectors and scores of texts and tokens.
#include <span>

#include "model/decoder.h"

namespace octavo {

void Decoder::logits(const View& rows, const View& out, const StepAdapters* adapters) {
  const std::int64_t count = rows.size(0);
  const View residual = logit_residual_.rows(count);
  const View x = logit_x_.rows(count);
  backend_.ops.gather_rows(*backend_.stream, {.x = residual_.all, .rows = rows, .out = residual});
  backend_.ops.add_norm(*backend_.stream, {.residual = residual,
                                           .delta = {},
                                           .delta_norm = {},
                                           .norm = model_.network.final_norm.norm(),
                                           .out = x});
  const Shard& shard = model_.spec.shard;
  const View own = out.columns(shard.first(model_.spec.vocab), shard.count(model_.spec.vocab));
  backend_.ops.matmul(
      *backend_.stream,
      {.x = x, .w = model_.network.output(), .bias = model_.network.logits_bias.value, .y = own});
  if (adapters != nullptr)
    add_changes(backend_, *adapters, Scratch(adapter_scratch_.all), x, kOutputIndex, own);
  if (group_ != nullptr) {
    for (std::int64_t row = 0; row < count; ++row)
      group_->gather(std::as_writable_bytes(std::span(out.row<float>(row), static_cast<std::size_t>(out.size(1)))),
                     logit_bytes_, 0);
    if (group_->rank() > 0) return;
  }
  const ModelSpec& spec = model_.spec;
  if (spec.logits_scale == 1 && spec.logits_soft_cap == 0) return;
  backend_.ops.scale_logits(*backend_.stream,
                            {.logits = out, .scale = spec.logits_scale, .soft_cap = spec.logits_soft_cap});
}

int pooled_size(const ModelSpec& spec, std::size_t head) {
  CHECK(head < spec.heads(), "{} has {} heads", spec.architecture, spec.heads());
  const Head& of = spec.head_at(head);
  return of.layers.empty() ? spec.dim : of.layers.back().outputs;
}

void Decoder::norm_rows() {
  if (const Norm norm = model_.network.final_norm.norm(); norm.kind != NormKind::none)
    backend_.ops.add_norm(*backend_.stream,
                          {.residual = residual_.rows(rows_), .norm = norm, .replace = true});
}

void Decoder::pool(const View& starts, std::size_t index, const View& out) {
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
  const Head& head = model_.spec.head_at(index);
  const std::int64_t count = out.size(0);
  const View pooled = head.layers.empty() ? out : logit_residual_.rows(count);
  ops.pool(stream, {.x = residual_.rows(rows_), .starts = starts, .pool = head.pool, .out = pooled});
  if (head.layers.empty()) return;
  View x = logit_x_.rows(count);
  ops.add_norm(stream, {.residual = pooled, .out = x});
  Scratch scratch(scratch_.all);
  for (std::size_t i = 0; i < head.layers.size(); ++i) {
    const bool last = i + 1 == head.layers.size();
    x = run_head_layer(head.layers[i], model_.network.heads[index][i], scratch, x, last ? out : View());
  }
}

// What comes next, act; of the last layer it is put into out, f32.
View Decoder::run_head_layer(const HeadLayer& spec, const HeadParameter& layer, Scratch& scratch, View x,
                             const View& out) {
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
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
  // Norms are of f32, and so are the vectors: a sum with zeros.
  const View sum = out ? out : scratch.take(DType::f32, {count, spec.outputs});
  const View next = out ? View() : scratch.take(x.dtype, {count, spec.outputs});
  backend_.device->copy(stream, sum, View::of(zeros_.all.data, DType::f32, {count, spec.outputs}));
  ops.add_norm(stream,
               {.residual = sum, .delta = x, .norm = layer.norm.norm(), .replace = normed, .out = next});
  return next;
}

View Decoder::rows() {
  const View x = x_.rows(rows_);
  backend_.ops.add_norm(
      *backend_.stream,
      {.residual = residual_.rows(rows_), .norm = model_.network.final_norm.norm(), .out = x});
  return x;
}

}  // namespace octavo
