// Networks with several residuals side by side (Streams, HyperConnections): how the decoder begins, mixes and joins
// them.
#include "model/decoder.h"

namespace octavo {

// f32 [tokens, dim]
View Decoder::stream(int number) const {
  return streams_.rows(rows_).columns(std::int64_t{number} * model_.spec.dim, model_.spec.dim);
}

// Products of the first one, as large as it.
void Decoder::make_streams() {
  const Ops& ops = backend_.ops;
  Stream& queue = *backend_.stream;
  const View x = x_.rows(rows_);
  add({}, {}, x);
  for (int i = 1; i < model_.spec.streams->count; ++i) {
    const LinearParameter& product = model_.network.stream_in[static_cast<std::size_t>(i - 1)];
    ops.matmul(queue, {.x = x, .w = *product.weight.weight, .y = stream(i)});
    ops.match_size(queue, {.x = stream(i), .like = residual_.rows(rows_)});
  }
}

// What mixes them, of the residual with all that is pending.
void Decoder::route_streams(const Layer& layer) {
  add(pending_, layer.streams.norm.norm(), x_.rows(rows_));
  pending_ = {};
  backend_.ops.matmul(
      *backend_.stream,
      {.x = x_.rows(rows_), .w = *layer.streams.router.weight, .y = routed_.rows(rows_)});
}

void Decoder::predict_streams(const Layer& layer) {
  const Ops& ops = backend_.ops;
  const View all = streams_.rows(rows_);
  route_streams(layer);
  ops.predict_streams(
      *backend_.stream,
      {.x = View::of(all.data, all.dtype, {rows_.count, model_.spec.streams->count, model_.spec.dim}),
       .router = routed_.rows(rows_),
       .coefs = layer.streams.predict.value});
  ops.gather_rows(
      *backend_.stream,
      {.x = residual_.rows(rows_), .rows = every_row_.rows(rows_), .out = before_.rows(rows_)});
}

// A layer's input is made of the first one, and goes to the others.
void Decoder::correct_streams(const Layer& layer, const StepContext& step) {
  const Ops& ops = backend_.ops;
  const View all = streams_.rows(rows_), x = x_.rows(rows_), delta = delta_.rows(rows_);
  route_streams(layer);
  ops.correct_streams(
      *backend_.stream,
      {.x = View::of(all.data, all.dtype, {rows_.count, model_.spec.streams->count, model_.spec.dim}),
       .before = before_.rows(rows_),
       .router = routed_.rows(rows_),
       .coefs = layer.streams.correct.value,
       .scale = layer.streams.scale.value,
       .out = x});
  if (!layer.input) return;
  run(*layer.input, step, x, delta);
  for (int i = 1; i < model_.spec.streams->count; ++i)
    ops.add_norm(*backend_.stream,
                 {.residual = stream(i), .delta = delta, .delta_norm = layer.input_post_norm.norm()});
}

// The sum of all, each of which is a product as large as the first one.
void Decoder::join_streams() {
  const Ops& ops = backend_.ops;
  Stream& queue = *backend_.stream;
  const View x = x_.rows(rows_), residual = residual_.rows(rows_);
  for (int i = 1; i < model_.spec.streams->count; ++i) {
    const LinearParameter& product = model_.network.stream_out[static_cast<std::size_t>(i - 1)];
    ops.add_norm(queue, {.residual = stream(i), .out = x});
    ops.matmul(queue, {.x = x, .w = *product.weight.weight, .y = stream(i)});
    ops.match_size(queue, {.x = stream(i), .like = residual});
  }
  for (int i = 1; i < model_.spec.streams->count; ++i)
    ops.add_norm(queue, {.residual = residual, .delta = stream(i)});
}

// f32 [tokens, streams, dim]
View Decoder::hyper_streams() const {
  const View all = streams_.rows(rows_);
  return View::of(all.data, all.dtype, {rows_.count, model_.spec.hyper->count, model_.spec.dim});
}

void Decoder::copy_streams() {
  for (int i = 0; i < model_.spec.hyper->count; ++i)
    backend_.ops.gather_rows(*backend_.stream,
                             {.x = residual_.rows(rows_), .rows = every_row_.rows(rows_), .out = stream(i)});
}

// The residual becomes what a half of a layer reads of all or, at the end, what becomes of them.
void Decoder::collapse_streams(const StreamWeights& weights, bool mixes) {
  const HyperConnections& hyper = *model_.spec.hyper;
  backend_.ops.collapse_streams(*backend_.stream, {.x = hyper_streams(),
                                                   .matrix = weights.matrix.value,
                                                   .base = weights.base.value,
                                                   .scale = weights.scale.value,
                                                   .norm_eps = hyper.norm_eps,
                                                   .eps = hyper.eps,
                                                   .iterations = hyper.iterations,
                                                   .out = residual_.rows(rows_),
                                                   .post = mixes ? posts_.rows(rows_) : View{},
                                                   .mix = mixes ? mixes_.rows(rows_) : View{}});
}

void Decoder::expand_streams(const View& delta) {
  backend_.ops.expand_streams(
      *backend_.stream,
      {.x = hyper_streams(), .delta = delta, .post = posts_.rows(rows_), .mix = mixes_.rows(rows_)});
}

}  // namespace octavo
