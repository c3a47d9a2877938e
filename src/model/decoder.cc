#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace octavo {

Result<Decoder> Decoder::make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits, ProcessGroup* group) {
  CHECK((group != nullptr ? group->size() : 1) == model.spec.shard.size);
  Decoder decoder(model, layout, backend, group);
  TRY_VOID(decoder.allocate(limits));
  return decoder;
}

void Decoder::begin(const ForwardBatch& batch) {
  rows_ = {0, batch.positions.size(0)};
  CHECK(rows_.count > 0 && rows_.count <= residual_.all.size(0), "{} tokens, room for {}", rows_.count,
        residual_.all.size(0));
  pending_ = {};
  compute_angles(batch);
  if (batch.features)
    embed_positions(batch, batch.features);
  else if (batch.patches)
    embed_patches(batch);
  else if (model_.spec.stage.is_first())
    embed(batch);
  if (model_.spec.hidden) join_hidden();
  if (const Norm norm = model_.network.embedding_norm.norm(); norm.kind != NormKind::none)
    pending_ = {.delta = pending_.delta, .norm = norm, .replaces = true};
  if (model_.spec.layer_inputs) make_layer_inputs(batch);
  if (model_.spec.streams) make_streams();
  if (model_.spec.hyper && model_.spec.stage.is_first()) copy_streams();
  if (const std::int64_t dim = model_.spec.dim; pair_.all)
    backend_.ops.gather_rows(*backend_.stream, {.x = residual_.rows(rows_),
                                                .rows = every_row_.rows(rows_),
                                                .out = pair_.rows(rows_).columns(dim, dim)});
}

void Decoder::run_layers(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t first,
                         std::size_t end) {
  CHECK(cache.size() == layout_.layers.size() && batch.groups.size() == layout_.groups.size());
  StepContext step = context(batch);
  for (std::size_t i = first; i < end; ++i) {
    enter(i, batch, cache, step);
    if (const std::int64_t state = layout_.layers[i].state; state >= 0)
      step.state = batch.states.memory.columns(state, model_.network.layers[i].state_floats());
    keep_residual(i);
    if (model_.network.layers[i].cross) step.cross_cache = batch.cross.cache[i];
    if (const auto& inputs = model_.spec.layer_inputs)
      step.layer_input =
          inputs_.rows(rows_).columns(static_cast<std::int64_t>(i) * inputs->size, inputs->size);
    blend_residual(i);
    run_layer(model_.spec.layers[model_.spec.first_layer() + i], model_.network.layers[i], step);
    if (i > 0 && model_.network.layers[i - 1].shortcut)
      add(std::exchange(pending_, {.delta = shortcut_.rows(rows_), .norm = {}}), {}, {});
    add_deep_rows(i, batch.images);
    if (batch.deep) project_deep(i, batch.deep);
  }
  if (end < model_.network.layers.size()) return;
  if (model_.spec.hyper) {
    if (model_.spec.stage.is_last()) collapse_streams(model_.network.output_streams, false);
    return;
  }
  add(pending_, {}, {});
  if (model_.spec.streams) join_streams();
}

// What is the same for all layers.
StepContext Decoder::context(const ForwardBatch& batch) {
  return {.backend = backend_,
          .tokens = rows_.count,
          .positions = batch.positions.rows(rows_.first, rows_.count),
          .frequencies = model_.ropes,
          .ropes = ropes_,
          .temperatures = model_.temperatures,
          .scratch = Scratch(scratch_.all),
          .adapters = batch.adapters,
          .adapter_scratch = Scratch(adapter_scratch_.all),
          .slots = batch.groups.empty() || !batch.groups[0].slots ? View{}
                                                                   : batch.groups[0].slots.rows(rows_.first, rows_.count),
          .wholes = batch.wholes,
          .ids = batch.ids ? batch.ids.rows(rows_.first, rows_.count) : View{},
          .cross_plan = batch.cross.plan,
          .residual = residual_.rows(rows_),
          .every_row = every_row_.rows(rows_),
          .first_values = first_values_.rows(rows_),
          .chosen = chosen_.rows(rows_),
          .states = {batch.states.slots, batch.states.starts, batch.positions, batch.states.copies},
          .ranks = group_};
}

// Where the layer keeps keys and values.
void Decoder::enter(std::size_t layer, const ForwardBatch& batch, std::span<const KvLayer> cache,
                    StepContext& step) const {
  const int group = layout_.layers[layer].group;
  if (group < 0) return;
  const GroupBatch& of_group = batch.groups[static_cast<std::size_t>(group)];
  step.cache = cache[layer];
  step.plan = of_group.plan;
  step.slots = of_group.slots.rows(rows_.first, rows_.count);
  step.group = static_cast<std::size_t>(group);
  const int entries = layout_.layers[layer].entries;
  if (entries < 0) return;
  const auto number = static_cast<std::size_t>(entries);
  const GroupBatch& of_entries = batch.groups[static_cast<std::size_t>(layout_.layers[number].group)];
  step.entries = cache[number];
  step.entry_plan = of_entries.plan;
  step.entry_slots = of_entries.slots.rows(rows_.first, rows_.count);
}

void Decoder::take_ropes() {
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    ropes_[i].cos = angles_[i].cos.rows(rows_);
    ropes_[i].sin = angles_[i].sin.rows(rows_);
  }
}

// Once for all layers. Of a rope with axes, each run of pairs on one axis by itself.
void Decoder::compute_angles(const ForwardBatch& batch) {
  take_ropes();
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    const Rope& rope = ropes_[i];
    const auto compute = [&](const View& positions, std::int64_t pair, std::int64_t count) {
      backend_.ops.angles(*backend_.stream, {.positions = positions,
                                             .frequencies = model_.ropes[i].each.rows(pair, count),
                                             .scale = model_.ropes[i].scale,
                                             .cos = rope.cos.columns(pair, count),
                                             .sin = rope.sin.columns(pair, count)});
    };
    const std::vector<std::int32_t>& axes = model_.spec.ropes[i].axes;
    if (axes.empty() || !batch.axes) {
      compute(batch.positions, 0, rope.rotary_dim / 2);
      continue;
    }
    const auto on_axis = [&](std::int32_t axis) {
      return View::of(batch.axes.rows(axis, 1).data, batch.axes.dtype, {rows_.count});
    };
    if (batch.axes.size(0) == 1) {
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

// A rank has the vectors of its part of the vocabulary, and zeros for all other tokens.
void Decoder::embed(const ForwardBatch& batch) {
  const Weight& table = model_.network.table();
  const View residual = residual_.rows(rows_);
  View ids = batch.ids;
  const auto first = static_cast<std::int32_t>(model_.spec.shard.first(model_.spec.vocab));
  const auto is_own = [&](std::int64_t i) {
    const std::int32_t id = batch.ids.as<std::int32_t>()[i];
    return id >= first && id < first + table.rows();
  };
  if (group_ != nullptr) {
    ids = own_ids_.rows(rows_);
    for (std::int64_t i = 0; i < rows_.count; ++i)
      ids.as<std::int32_t>()[i] = is_own(i) ? batch.ids.as<std::int32_t>()[i] - first : 0;
  }
  backend_.ops.embed(*backend_.stream, {.ids = ids,
                                        .table = table,
                                        .scale = model_.spec.embed_scale,
                                        .position_table = model_.network.positions.weight.get(),
                                        .positions = batch.positions,
                                        .type_table = model_.network.token_types.weight.get(),
                                        .types = batch.token_types,
                                        .out = residual});
  if (batch.adapters != nullptr)
    add_embedding_changes(backend_, *batch.adapters, Scratch(adapter_scratch_.all), ids, residual);
  for (const ImageRows& image : batch.images)
    backend_.ops.gather_rows(*backend_.stream, {.x = image.x.columns(0, residual.size(1)),
                                                .rows = image.rows,
                                                .out = residual.rows(image.token, image.rows.size(0))});
  if (group_ == nullptr) return;
  for (std::int64_t i = 0; i < rows_.count; ++i)
    if (!is_own(i)) std::fill_n(residual.row<float>(i), residual.size(1), 0.0F);
  sum_over_ranks(residual);
}

// (norm(projection(embedding)) + table[id]) / sqrt(2), each layer's vector normalised on its own. The table
// counts sqrt(size) times.
void Decoder::make_layer_inputs(const ForwardBatch& batch) {
  constexpr float kInverseRoot2 = std::numbers::sqrt2_v<float> / 2;
  const Network& network = model_.network;
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
  const std::int64_t size = model_.spec.layer_inputs->size,
                     rows = rows_.count * std::ssize(model_.spec.layers);
  const View x = x_.rows(rows_), sum = input_sum_.rows(rows_), delta = input_delta_.rows(rows_);
  const auto by_layer = [&](const View& all) { return View::of(all.data, all.dtype, {rows, size}); };
  add({}, {}, x);
  ops.embed(stream, {.ids = batch.ids,
                     .table = *network.input_table.weight,
                     .scale = std::sqrt(static_cast<float>(size)) * kInverseRoot2,
                     .out = sum});
  ops.matmul(stream, {.x = x, .w = *network.input_projection.weight.weight, .y = delta});
  ops.add_norm(stream, {.residual = by_layer(sum),
                        .delta = by_layer(delta),
                        .delta_scale = kInverseRoot2,
                        .delta_norm = network.input_norm.norm(),
                        .out = by_layer(inputs_.rows(rows_))});
}

void Decoder::read_hidden(const Decoder& from, const View& rows) {
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
  const std::int64_t n = rows.size(0), dim = from.model_.spec.dim;
  hidden_is_own_ = &from == this;
  if (!hidden_is_own_ && !from.kept_.empty()) {
    for (std::size_t i = 0; i < from.kept_.size(); ++i)
      ops.gather_rows(stream, {.x = from.kept_[i].all,
                               .rows = rows,
                               .out = hidden_.rows(n).columns(static_cast<std::int64_t>(i) * dim, dim)});
    return;
  }
  const View hidden = hidden_.rows(n).columns(0, dim);
  ops.gather_rows(stream, {.x = from.residual_.all, .rows = rows, .out = hidden});
  if (const Norm norm = from.model_.network.final_norm.norm();
      norm.kind != NormKind::none && (!hidden_is_own_ || model_.spec.hidden->normed_output))
    ops.add_norm(stream, {.residual = hidden, .norm = norm, .replace = true});
}

// Of the embeddings in the residual and the rows that read_hidden() has brought.
void Decoder::join_hidden() {
  const HiddenInput& input = *model_.spec.hidden;
  const Network& network = model_.network;
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
  const std::int64_t dim = model_.spec.dim, row = input.row();
  const View residual = residual_.rows(rows_), joint = joint_.rows(rows_);
  const View hidden = hidden_.rows(rows_).columns(0, row);
  const auto product = [&](const View& x) {
    ops.matmul(stream,
               {.x = x, .w = *network.joint.weight.weight, .bias = network.joint.bias.value, .y = residual});
  };
  if (input.joined) {
    ops.add_norm(stream, {.residual = residual,
                          .norm = network.token_norm.norm(),
                          .out = joint.columns(input.hidden_first ? row : 0, dim)});
    ops.add_norm(stream, {.residual = hidden,
                          .norm = network.hidden_norm.norm(),
                          .out = joint.columns(input.hidden_first ? 0 : dim, row)});
    return product(joint);
  }
  ops.add_norm(
      stream,
      {.residual = residual, .norm = network.layers[0].mixer_norm.norm(), .out = joint.columns(0, dim)});
  if (hidden_is_own_) {
    ops.gather_rows(stream,
                    {.x = hidden_.all.columns(0, dim), .rows = every_row_.rows(rows_), .out = residual});
  } else {
    ops.add_norm(stream, {.residual = hidden, .out = hidden_x_.rows(rows_)});
    product(hidden_x_.rows(rows_));
  }
  ops.add_norm(stream, {.residual = residual,
                        .norm = network.hidden_norm.norm(),
                        .replace = input.normed_residual,
                        .out = joint.columns(dim, dim)});
}

void Decoder::keep_residual(std::size_t layer) {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    if (!std::cmp_equal(kept_layers_[i], layer)) continue;
    add(std::exchange(pending_, {}), {}, {});
    backend_.ops.gather_rows(
        *backend_.stream,
        {.x = residual_.rows(rows_), .rows = every_row_.rows(rows_), .out = kept_[i].rows(rows_)});
  }
}

// LayerSpec::blend of this layer, and the residual that later ones ask for.
void Decoder::blend_residual(std::size_t layer) {
  const Ops& ops = backend_.ops;
  const std::optional<Blend>& blend = model_.spec.layers[layer].blend;
  const auto kept = earlier_.find(static_cast<int>(layer));
  if (blend || kept != earlier_.end()) add(std::exchange(pending_, {}), {}, {});
  if (kept != earlier_.end())
    ops.gather_rows(*backend_.stream,
                    {.x = residual_.rows(rows_), .rows = every_row_.rows(rows_), .out = kept->second.rows(rows_)});
  if (blend)
    ops.add_norm(*backend_.stream, {.residual = residual_.rows(rows_),
                                    .delta = earlier_.at(blend->layer).rows(rows_),
                                    .delta_scale = blend->share / (1 - blend->share),
                                    .residual_scale = model_.network.layers[layer].rest.value});
}

// rows: f32 [n, dim], contiguous, in host memory.
void Decoder::sum_over_ranks(const View& rows) {
  group_->all_reduce({rows.as<float>(), static_cast<std::size_t>(rows.elements())});
}

// With several ranks, each computes a part of what the half adds to the residual.
void Decoder::run(const Block& half, const StepContext& step, const View& x, const View& delta) {
  half.run(step, x, delta);
  if (group_ != nullptr) sum_over_ranks(delta);
}

void Decoder::run_layer(const LayerSpec& spec, const Layer& layer, const StepContext& step) {
  const View x = x_.rows(rows_);
  const View delta = delta_.rows(rows_);
  const float scale = spec.residual_scale;
  if (spec.residual != Residual::parallel && spec.residual != Residual::parallel_shared) {
    if (model_.spec.streams) predict_streams(layer);
    const bool sees_joint =
        model_.spec.hidden && !model_.spec.hidden->joined && &layer == model_.network.layers.data();
    if (layer.shared) {
      run_shared(layer, step, x);
      run(*layer.mixer, step, x, delta);
      pending_ = {delta, layer.mixer_post_norm.norm(), scale * spec.mixer_scale};
      return;
    }
    StepContext own = step;  // where each half has its part of the state
    const auto take = [&](const Block& half, const NormParameter& pre, const NormParameter& post,
                          float factor) {
      const bool joint = sees_joint && &half == layer.mixer.get();
      if (model_.spec.hyper) {
        collapse_streams(&half == layer.mixer.get() ? layer.mixer_streams : layer.feed_forward_streams, true);
        add({}, pre.norm(), x);
        run(half, own, x, delta);
        return expand_streams(delta);
      }
      if (spec.residual == Residual::from_norm) {
        pending_.norm = pre.norm();
        pending_.replaces = true;
        add(pending_, {}, x);
      } else if (!joint) {
        add(pending_, pre.norm(), x);
      }
      run(half, own, joint ? joint_.rows(rows_) : x, delta);
      pending_ = {delta, post.norm(), scale * factor, spec.residual == Residual::post_norm};
    };
    if (layer.mixer) take(*layer.mixer, layer.mixer_norm, layer.mixer_post_norm, spec.mixer_scale);
    if (layer.second_mixer) {
      add(pending_, {}, {});
      pending_ = {second_delta_.rows(rows_), {}, scale * spec.second_mixer_scale};
      run(*layer.second_mixer, step, x, pending_.delta);
    }
    pending_.residual_scale = layer.mixed_scale.value;
    if (layer.cross) take(*layer.cross, layer.cross_norm, layer.cross_post_norm, 1);
    if (layer.feed_forward) {
      if (const std::int64_t floats = layer.feed_forward_state_floats(); floats > 0)
        own.state = step.state.columns(layer.mixer_state_floats(), floats);
      take(*layer.feed_forward, layer.feed_forward_norm, layer.feed_forward_post_norm,
           spec.feed_forward_scale);
      if (layer.shortcut) run(*layer.shortcut, step, x, shortcut_.rows(rows_));
    }
    if (model_.spec.streams) return correct_streams(layer, step);
    if (layer.input) take(*layer.input, {}, layer.input_post_norm, 1);
    pending_.residual_scale = layer.passed_scale.value;
    return;
  }
  const View second_x = spec.residual == Residual::parallel ? second_x_.rows(rows_) : x;
  const View second_delta = second_delta_.rows(rows_);
  add(pending_, layer.mixer_norm.norm(), x);
  if (spec.residual == Residual::parallel) add({}, layer.feed_forward_norm.norm(), second_x);
  run(*layer.mixer, step, x, delta);
  run(*layer.feed_forward, step, second_x, second_delta);
  add({delta, layer.mixer_post_norm.norm(), scale * spec.mixer_scale}, {}, {});
  pending_ = {second_delta, layer.feed_forward_post_norm.norm(), scale * spec.feed_forward_scale};
}

// x = norm(residual + what the shared matrices make), which leaves the residual as it is.
void Decoder::run_shared(const Layer& layer, const StepContext& step, const View& x) {
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
  const View delta = delta_.rows(rows_), pair = pair_.rows(rows_), pair_x = pair_x_.rows(rows_);
  const View copy = pair.columns(0, model_.spec.dim);
  add(pending_, {}, {});
  ops.gather_rows(stream, {.x = residual_.rows(rows_), .rows = every_row_.rows(rows_), .out = copy});
  ops.add_norm(stream, {.residual = pair, .norm = layer.shared->input_norm(), .out = pair_x});
  run(*layer.shared, step, pair_x, delta);
  ops.add_norm(stream, {.residual = copy, .delta = delta, .norm = layer.mixer_norm.norm(), .out = x});
}

// residual += pending;  out = norm(residual)
void Decoder::add(const Pending& pending, const Norm& norm, const View& out) {
  if (pending.replaces) {
    const bool more = norm.kind != NormKind::none;
    backend_.ops.add_norm(*backend_.stream, {.residual = residual_.rows(rows_),
                                             .delta = pending.delta,
                                             .delta_scale = pending.scale,
                                             .residual_scale = pending.residual_scale,
                                             .norm = pending.norm,
                                             .replace = true,
                                             .out = more ? View{} : out});
    if (more) add({}, norm, out);
    return;
  }
  backend_.ops.add_norm(*backend_.stream, {.residual = residual_.rows(rows_),
                                           .delta = pending.delta,
                                           .delta_scale = pending.scale,
                                           .delta_norm = pending.norm,
                                           .residual_scale = pending.residual_scale,
                                           .norm = norm,
                                           .out = out});
}

AttentionLimits attention_limits(const Model& model, const LayerGroup& group, int max_tokens,
                                 int max_sequences) {
  return {.max_tokens = max_tokens,
          .max_sequences = max_sequences,
          .max_length = model.max_model_len,
          .q_heads = group.q_heads,
          .kv = group.kv,
          .window = group.window,
          .causal = group.causal};
}

}  // namespace octavo
