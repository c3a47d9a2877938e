#include "model/decoder.h"

#include <algorithm>

namespace octavo {

namespace {

// Elements that a token needs in each workspace.
struct Widths {
  std::int64_t dim = 0;
  std::int64_t second = 0;  // for the mlp of parallel layers; 0 when there are none
  std::int64_t qkv = 0;
  std::int64_t q = 0;
  std::int64_t up = 0;
  std::int64_t hidden = 0;
};

Widths widths_of(const ModelSpec& spec) {
  Widths w{.dim = spec.dim};
  for (const LayerSpec& layer : spec.layers) {
    w.qkv = std::max<std::int64_t>(w.qkv, layer.attention.qkv_dim());
    w.q = std::max<std::int64_t>(w.q, layer.attention.q_dim());
    w.up = std::max<std::int64_t>(w.up, layer.mlp.gated ? 2 * layer.mlp.hidden : layer.mlp.hidden);
    w.hidden = std::max<std::int64_t>(w.hidden, layer.mlp.hidden);
    if (layer.residual != Residual::serial) w.second = spec.dim;
  }
  return w;
}

}  // namespace

std::int64_t workspace_bytes(const ModelSpec& spec, DType activation, const DecoderLimits& limits) {
  const Widths w = widths_of(spec);
  const auto element = static_cast<std::int64_t>(size_of(activation));
  const std::int64_t token =
      w.dim * 4 + (2 * w.dim + 2 * w.second + w.qkv + 2 * w.q + w.up + w.hidden) * element;
  return limits.max_tokens * token + limits.max_logit_rows * w.dim * (4 + element);
}

Result<Decoder> Decoder::make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits) {
  Decoder decoder(model, layout, backend);
  TRY_VOID(decoder.allocate(limits));
  return decoder;
}

Result<> Decoder::allocate(const DecoderLimits& limits) {
  const std::int64_t n = limits.max_tokens;
  const DType act = model_.activation;
  const Widths w = widths_of(model_.spec);
  const Attention& a = model_.spec.layers[0].attention;
  TRY_VOID(allocate(residual_, DType::f32, {n, w.dim}));
  TRY_VOID(allocate(x_, act, {n, w.dim}));
  TRY_VOID(allocate(delta_, act, {n, w.dim}));
  if (w.second > 0) {
    TRY_VOID(allocate(second_x_, act, {n, w.second}));
    TRY_VOID(allocate(second_delta_, act, {n, w.second}));
  }
  TRY_VOID(allocate(qkv_, act, {n, w.qkv}));
  TRY_VOID(allocate(q_, act, {n, a.q_heads, a.head_dim}));
  TRY_VOID(allocate(attended_, act, {n, w.q}));
  TRY_VOID(allocate(up_, act, {n, w.up}));
  TRY_VOID(allocate(hidden_, act, {n, w.hidden}));
  TRY_VOID(allocate(logit_residual_, DType::f32, {limits.max_logit_rows, w.dim}));
  return allocate(logit_x_, act, {limits.max_logit_rows, w.dim});
}

Result<> Decoder::allocate(Workspace& workspace, DType type, std::initializer_list<std::int64_t> shape) {
  const View wanted = View::of(nullptr, type, shape);
  TRY(workspace.buffer, backend_.device->allocate(static_cast<std::size_t>(wanted.bytes())));
  workspace.all = workspace.buffer.view(type, shape);
  return {};
}

void Decoder::forward(const ForwardBatch& batch, std::span<const KvLayer> cache) {
  tokens_ = batch.ids.size(0);
  CHECK(tokens_ > 0 && tokens_ <= residual_.all.size(0), "{} tokens, room for {}", tokens_,
        residual_.all.size(0));
  CHECK(cache.size() == model_.layers.size() && batch.groups.size() == layout_.groups.size());
  backend_.ops.embed(*backend_.stream, {.ids = batch.ids,
                                        .table = *model_.embedding,
                                        .scale = model_.spec.embed_scale,
                                        .position_table = model_.positions.get(),
                                        .positions = batch.positions,
                                        .out = residual_.rows(tokens_)});
  pending_ = {};
  for (std::size_t layer = 0; layer < cache.size(); ++layer) run_layer(layer, batch, cache[layer]);
  add(pending_, {}, {});
}

void Decoder::run_layer(std::size_t layer, const ForwardBatch& batch, const KvLayer& cache) {
  const LayerWeights& w = model_.layers[layer];
  const LayerSpec& spec = model_.spec.layers[layer];
  const View x = x_.rows(tokens_);
  const View delta = delta_.rows(tokens_);
  const float scale = spec.residual_scale;

  add(pending_, w.attention_norm, x);
  if (spec.residual == Residual::serial) {
    attention(layer, x, delta, batch, cache);
    add({delta, w.attention_post_norm, scale}, w.mlp_norm, x);
    mlp(layer, x, delta);
    pending_ = {delta, w.mlp_post_norm, scale};
    return;
  }
  const View second_x = spec.residual == Residual::parallel ? second_x_.rows(tokens_) : x;
  const View second_delta = second_delta_.rows(tokens_);
  if (spec.residual == Residual::parallel) add({}, w.mlp_norm, second_x);
  attention(layer, x, delta, batch, cache);
  mlp(layer, second_x, second_delta);
  add({delta, w.attention_post_norm, scale}, {}, {});
  pending_ = {second_delta, w.mlp_post_norm, scale};
}

// residual += pending;  out = norm(residual)
void Decoder::add(const Pending& pending, const Norm& norm, const View& out) {
  backend_.ops.add_norm(*backend_.stream, {.residual = residual_.rows(tokens_),
                                           .delta = pending.delta,
                                           .delta_scale = pending.scale,
                                           .delta_norm = pending.norm,
                                           .norm = norm,
                                           .out = out});
}

void Decoder::attention(std::size_t layer, const View& x, const View& out, const ForwardBatch& batch,
                        const KvLayer& cache) {
  const Attention& a = model_.spec.layers[layer].attention;
  const LayerWeights& w = model_.layers[layer];
  const GroupBatch& group = batch.groups[static_cast<std::size_t>(layout_.layers[layer].group)];
  const View qkv = qkv_.rows(tokens_);
  const View q = q_.rows(tokens_);
  const View attended = attended_.rows(tokens_);
  linear(x, w.qkv, qkv);
  backend_.ops.qkv_store(*backend_.stream,
                         {.qkv = qkv,
                          .q_heads = a.q_heads,
                          .q_norm = w.q_norm,
                          .k_norm = w.k_norm,
                          .norm_whole_row = a.qk_norm == QkNorm::whole_row,
                          .rope = a.rope >= 0 ? model_.ropes[static_cast<std::size_t>(a.rope)] : Rope{},
                          .positions = batch.positions,
                          .slots = group.slots,
                          .cache = cache,
                          .q_out = q});
  backend_.ops.attention(*backend_.stream, {.q = q,
                                            .cache = cache,
                                            .plan = *group.plan,
                                            .scale = a.scale,
                                            .window = a.window,
                                            .soft_cap = a.soft_cap,
                                            .out = attended});
  linear(attended, w.out, out);
}

void Decoder::mlp(std::size_t layer, const View& x, const View& out) {
  const Mlp& spec = model_.spec.layers[layer].mlp;
  const LayerWeights& w = model_.layers[layer];
  const View up = up_.rows(tokens_);
  const View hidden = hidden_.rows(tokens_);
  linear(x, w.up, up);
  backend_.ops.activate(*backend_.stream,
                        {.x = up, .activation = spec.activation, .gated = spec.gated, .y = hidden});
  linear(hidden, w.down, out);
}

void Decoder::linear(const View& x, const Linear& linear, const View& y) {
  backend_.ops.matmul(*backend_.stream, {.x = x, .w = *linear.weight, .bias = linear.bias, .y = y});
}

void Decoder::logits(const View& rows, const View& out) {
  const std::int64_t count = rows.size(0);
  const View residual = logit_residual_.rows(count);
  const View x = logit_x_.rows(count);
  backend_.ops.gather_rows(*backend_.stream, {.x = residual_.all, .rows = rows, .out = residual});
  backend_.ops.add_norm(
      *backend_.stream,
      {.residual = residual, .delta = {}, .delta_norm = {}, .norm = model_.final_norm, .out = x});
  backend_.ops.matmul(*backend_.stream, {.x = x, .w = model_.lm_head(), .bias = {}, .y = out});
  const ModelSpec& spec = model_.spec;
  if (spec.logits_scale == 1 && spec.logits_soft_cap == 0) return;
  backend_.ops.scale_logits(*backend_.stream,
                            {.logits = out, .scale = spec.logits_scale, .soft_cap = spec.logits_soft_cap});
}

AttentionLimits attention_limits(const Model& model, const CacheLayout& layout, int max_tokens,
                                 int max_sequences) {
  return {.max_tokens = max_tokens,
          .max_sequences = max_sequences,
          .max_length = model.max_model_len,
          .q_heads = model.spec.layers[0].attention.q_heads,
          .kv = layout.kv};
}

}  // namespace octavo
