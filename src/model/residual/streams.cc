#include "model/residual/streams.h"

#include <fmt/format.h>

namespace octavo {
namespace {

// f32 [tokens, dim]
View stream_of(const Step& step, int number, std::int64_t dim) {
  return step.slot<StreamRows>().columns(std::int64_t{number} * dim, dim);
}

// f32 [tokens, streams, dim]
View all_streams(const Step& step, int count, std::int64_t dim) {
  const View all = step.slot<StreamRows>();
  return View::of(all.data, all.dtype, {step.tokens(), count, dim});
}

void multiply(const Step& step, const View& x, const LinearParameter& product, const View& y) {
  step.backend.ops.matmul(*step.backend.stream, {.x = x, .w = *product.weight.weight, .y = y});
}

}  // namespace

// Each product has a separate tensor, or a part of a stack.
StreamsScheme::StreamsScheme(const Streams& spec, const Namer& top, std::int64_t dim)
    : ResidualScheme(dim), count_(spec.count) {
  const auto product = [&](const std::string& tensor, int number) {
    LinearParameter linear = top.linear({fmt::format(fmt::runtime(tensor), number)}, {dim}, dim, false);
    if (tensor.find("{}") != tensor.npos) return linear;
    linear.weight.parts[0].shape = {count_ - 1, dim, dim};
    linear.weight.slice = number;
    return linear;
  };
  for (int i = 0; i + 1 < count_; ++i) {
    in_.push_back(product(top.names.of<Streams>().in, i));
    out_.push_back(product(top.names.of<Streams>().out, i));
  }
}

void StreamsScheme::list(ParameterList& list) {
  for (std::vector<LinearParameter>* products : {&in_, &out_})
    for (LinearParameter& product : *products) list.add(product);
}

void StreamsScheme::reserve(Arena arena) const {
  arena.rows<StreamRows>(DType::f32, count_ * dim());
  arena.rows<HalfInput>(arena.activation, dim());
}

void StreamsScheme::begin(const Step& step) const {
  const View x = step.slot<HalfInput>();
  step.residual.look({}, x);
  for (int i = 1; i < count_; ++i) {
    const View stream = stream_of(step, i, dim());
    multiply(step, x, in_[static_cast<std::size_t>(i - 1)], stream);
    step.backend.ops.match_size(*step.backend.stream, {.x = stream, .like = step.residual.rows()});
  }
}

void StreamsScheme::end(const Step& step) const {
  const Ops& ops = step.backend.ops;
  Stream& queue = *step.backend.stream;
  step.residual.take_in();
  const View x = step.slot<HalfInput>(), residual = step.residual.rows();
  for (int i = 1; i < count_; ++i) {
    const View stream = stream_of(step, i, dim());
    ops.add_norm(queue, {.residual = stream, .out = x});
    multiply(step, x, out_[static_cast<std::size_t>(i - 1)], stream);
    ops.match_size(queue, {.x = stream, .like = residual});
  }
  for (int i = 1; i < count_; ++i)
    ops.add_norm(queue, {.residual = residual, .delta = stream_of(step, i, dim())});
}

PredictStreams::PredictStreams(const Streams& spec, const Namer& name, std::int64_t dim)
    : spec_(spec), dim_(dim) {
  const auto tensor = [&](const char* usual, const char* in_gguf) {
    return name.names.behind(name.names.of<Streams>().prefix, usual, in_gguf);
  };
  const std::int64_t count = spec.count;
  norm_ = name.norm(spec.norm, tensor("router_norm", "router_norm"), dim);
  norm_.weight.factors.push_back({0, dim, 1 / static_cast<float>(dim)});
  router_ = name.linear({tensor("modality_router", "router")}, {count}, dim, false).weight;
  router_.use = MatrixUse::router;
  predict_ =
      name.rows_of_vectors({tensor("prediction_coefs.weight", "predict_coef.weight")}, count * count, count);
  correct_ = name.rows_of_vectors({tensor("correction_coefs.weight", "correct_coef.weight")}, count, count);
  if (spec.scales_input)
    scale_ = name.vector({tensor("correct_output_scale", "correct_scale.weight")}, {dim});
}

void PredictStreams::list(ParameterList& list) {
  list.add(norm_, router_);
  for (VectorParameter* vector : {&predict_, &correct_, &scale_}) list.add(*vector);
}

void PredictStreams::reserve(Arena arena) const {
  arena.rows<HalfInput>(arena.activation, dim_);
  arena.rows<StreamsBefore>(DType::f32, dim_);
  arena.rows<StreamsRouted>(DType::f32, spec_.count);
  arena.every_row();
}

namespace {

// Returns the weights that mix the streams. They are computed from the first stream, after pending outputs
// were added to it.
View route_streams(const Step& step, const NormParameter& norm, const MatrixParameter& router) {
  const View x = step.slot<HalfInput>(), routed = step.slot<StreamsRouted>();
  step.residual.read(norm.norm(), x);
  step.backend.ops.matmul(*step.backend.stream, {.x = x, .w = *router.weight, .y = routed});
  return routed;
}

}  // namespace

void PredictStreams::run(const Step& step) const {
  const Ops& ops = step.backend.ops;
  Stream& queue = *step.backend.stream;
  const View routed = route_streams(step, norm_, router_);
  ops.predict_streams(queue,
                      {.x = all_streams(step, spec_.count, dim_), .router = routed, .coefs = predict_.value});
  ops.gather_rows(
      queue, {.x = step.residual.rows(), .rows = step.slot<EveryRow>(), .out = step.slot<StreamsBefore>()});
}

void CorrectStreams::list(ParameterList& list) { list.add(input_, input_norm_); }

void CorrectStreams::add_blocks(std::vector<Block*>& all) const {
  if (input_) all.push_back(input_.get());
}

void CorrectStreams::reserve(Arena arena) const {
  reserve_half(arena, before_.dim_);
  if (input_) input_->reserve(arena);
}

void CorrectStreams::run(const Step& step) const {
  const Ops& ops = step.backend.ops;
  Stream& queue = *step.backend.stream;
  const int count = before_.spec_.count;
  const std::int64_t dim = before_.dim_;
  const View x = step.slot<HalfInput>(), made = step.slot<HalfOutput>();
  const View routed = route_streams(step, before_.norm_, before_.router_);
  ops.correct_streams(queue, {.x = all_streams(step, count, dim),
                              .before = step.slot<StreamsBefore>(),
                              .router = routed,
                              .coefs = before_.correct_.value,
                              .scale = before_.scale_.value,
                              .out = x});
  if (!input_) return;
  run_on_ranks(step, *input_, x, made);
  for (int i = 1; i < count; ++i)
    ops.add_norm(queue,
                 {.residual = stream_of(step, i, dim), .delta = made, .delta_norm = input_norm_.norm()});
}

Streams::Names Streams::Names::of_gguf(const GgufLayers&) {
  return {
      .in = "altup_proj",
      .out = "altup_unembd_proj",
      .prefix = "altup_",
  };
}

}  // namespace octavo
